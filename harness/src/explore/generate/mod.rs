//! Generates objects that a server must accept.
//!
//! Objects begin with the template of their resource. A complete schema decides alone what a valid
//! value is. The published schemas of built-in types lack rules, so their values go to places where
//! every server accepts any text. Other values are attempts, which the server judges first.

mod built_in;
mod metadata;
mod pattern;
mod text;
mod values;
mod variants;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::schema::Schema;

/// Members that servers or other parts of this program fill in.
const MANAGED: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Generates values from a seed.
#[derive(Debug)]
pub(super) struct Generator<'a> {
    pub(super) schema: &'a Schema,
    /// The name of the resource, such as `configmaps.v1`.
    resource: &'a str,
    /// A valid object with a name.
    template: &'a Value,
    pub(super) random: StdRng,
    /// The most characters of a text.
    longest: usize,
    /// The number of the check, which chooses the mistake.
    pub(super) turn: u64,
}

impl<'a> Generator<'a> {
    pub(super) fn new(
        schema: &'a Schema,
        resource: &'a str,
        template: &'a Value,
        (seed, turn): (u64, u64),
    ) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self { schema, resource, template, random, longest: text::LONG, turn }
    }

    /// Returns a valid object.
    pub(super) fn object(&mut self) -> Value {
        let mut object = self.template.clone();
        if self.once_in(12) {
            return object;
        }
        self.add_metadata(&mut object);
        if self.schema.is_complete {
            let generated = self.members(self.schema.root(), 0, &MANAGED);
            for (name, value) in generated {
                object[name] = value;
            }
            return self.repaired(object);
        }
        self.fill(&mut object);
        object
    }

    /// Removes what does not fit the schema, with the objects around it if necessary.
    pub(super) fn repaired(&self, object: Value) -> Value {
        let mut repaired = object;
        for around in 0..6 {
            let misfits = self.schema.misfits(&repaired);
            if misfits.is_empty() {
                return repaired;
            }
            for misfit in misfits.iter().rev() {
                let mut place = misfit.at.as_str();
                for _ in 0..around / 2 {
                    place = place.rsplit_once('/').map_or(place, |(parent, _)| parent);
                }
                remove(&mut repaired, place);
            }
        }
        self.template.clone()
    }

    /// Returns the name of the resource.
    pub(super) fn resource(&self) -> &str {
        self.resource
    }

    /// Reports true once in this number of times.
    pub(super) fn once_in(&mut self, number: u32) -> bool {
        self.random.random_ratio(1, number)
    }

    /// Returns one of some values.
    pub(super) fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        if all.is_empty() {
            return None;
        }
        let place = self.random.random_range(..all.len());
        all.get(place).cloned()
    }
}

/// Returns the names of the members of an object.
pub(super) fn member_names(object: &Value) -> Vec<String> {
    object.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// Removes the value of a JSON Pointer. Returns whether it was there.
pub(super) fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    let name = name.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => members.remove(&name).is_some(),
        Some(Value::Array(items)) => match name.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}
