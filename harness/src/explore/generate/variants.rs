//! Changes of a valid object that lead to another valid object.

use rand::RngExt;
use rand::seq::SliceRandom;
use serde_json::{Map, Value};

use super::{Generator, MANAGED};

impl Generator<'_> {
    /// Returns another valid object, which shares parts with the first.
    pub(in crate::explore) fn variant(&mut self, object: &Value) -> Value {
        let other = self.object();
        let mut variant = object.clone();
        self.mix(&mut variant, &other, 0);
        for name in ["labels", "annotations"] {
            let (of, from) = (&mut variant["metadata"], &other["metadata"]);
            if self.once_in(2) {
                of[name] = from[name].clone();
            }
            if of[name].is_null() {
                super::remove(of, &format!("/{name}"));
            }
        }
        if self.schema.is_complete { self.repaired(variant) } else { variant }
    }

    /// Takes members from another object: some new, some changed, some removed.
    fn mix(&mut self, value: &mut Value, other: &Value, depth: usize) {
        let (Value::Object(members), Value::Object(others)) = (value, other) else { return };
        let is_managed = |name: &str| depth == 0 && MANAGED.contains(&name);
        let names: Vec<String> = members.keys().chain(others.keys()).cloned().collect();
        for name in names.iter().filter(|name| !is_managed(name)) {
            let choice = self.random.random_range(0..6);
            match (members.get_mut(name), others.get(name)) {
                (Some(of), Some(from)) if of.is_object() && from.is_object() => {
                    self.mix(of, from, depth + 1);
                }
                (Some(of), _) if choice == 0 => self.reorder(of),
                (Some(of), Some(from)) if choice < 4 => *of = from.clone(),
                (None, Some(from)) if choice < 4 => {
                    members.insert(name.clone(), from.clone());
                }
                (Some(_), None) if choice < 3 => {
                    members.remove(name);
                }
                _ => {}
            }
        }
        if self.once_in(3) {
            rename(members, depth);
        }
    }

    fn reorder(&mut self, value: &mut Value) {
        if let Value::Array(items) = value {
            items.shuffle(&mut self.random);
        }
    }
}

/// Gives the value of one key to another key, in maps of texts.
fn rename(members: &mut Map<String, Value>, depth: usize) {
    let is_map = depth == 1 && members.values().all(Value::is_string);
    let first = members.keys().next().cloned().filter(|_| is_map);
    if let Some((key, value)) = first.and_then(|key| Some((key.clone(), members.remove(&key)?))) {
        let renamed: String = format!("renamed-{key}").chars().take(60).collect();
        let renamed = renamed.trim_end_matches(['-', '.', '_']).to_owned();
        members.insert(renamed, value);
    }
}
