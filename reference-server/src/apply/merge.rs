//! Values in the light of field sets: merging one into another, taking fields out, and telling what changed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Step};
use super::shape::{self, Shape};
use crate::Faults;
use crate::schema::Schema;

/// A part of a value, and the step to it.
type Part<'a> = (Step, &'a Value);

/// `live` with everything that `config` says.
pub(crate) fn merge(live: &Value, config: &Value, schema: Option<&Schema>, faults: Faults) -> Value {
    match (Shape::of(live, schema, faults), Shape::of(config, schema, faults)) {
        (Shape::Fields(live), Shape::Fields(config)) => {
            let mut result = live.clone();
            for (name, field) in config {
                let merged = match live.get(name) {
                    Some(old) => merge(old, field, shape::below(schema, name), faults),
                    None => field.clone(),
                };
                result.insert(name.clone(), merged);
            }
            Value::Object(result)
        }
        (Shape::Items(live), Shape::Items(config)) => merge_items(&live, &config, schema, faults),
        _ => config.clone(),
    }
}

/// The order is that of `config`; what only `live` has keeps its place before the items that it stood before.
fn merge_items(live: &[Part<'_>], config: &[Part<'_>], schema: Option<&Schema>, faults: Faults) -> Value {
    let old: BTreeMap<&Step, &Value> = live.iter().map(|(step, item)| (step, *item)).collect();
    let said: BTreeMap<&Step, &Value> = config.iter().map(|(step, item)| (step, *item)).collect();
    let mut result = Vec::new();
    let mut waiting = live.iter().peekable();
    let mut placed = std::collections::BTreeSet::new();
    for (step, item) in config {
        while let Some((step, kept)) =
            waiting.next_if(|(step, _)| !said.contains_key(step) || placed.contains(step))
        {
            if !placed.contains(step) {
                result.push((*kept).clone());
            }
        }
        placed.insert(step.clone());
        result.push(match old.get(step) {
            Some(old) => merge(old, item, shape::items(schema), faults),
            None => (*item).clone(),
        });
    }
    result.extend(waiting.filter(|(step, _)| !said.contains_key(step)).map(|(_, kept)| (*kept).clone()));
    Value::Array(result)
}

/// The value without the places of the set, and what is below them.
pub(crate) fn remove(value: &Value, places: &FieldSet, schema: Option<&Schema>, faults: Faults) -> Value {
    match Shape::of(value, schema, faults) {
        Shape::Leaf => value.clone(),
        Shape::Fields(fields) => {
            let mut result = Map::new();
            for (name, field) in fields {
                match places.children.get(&Step::field(name)) {
                    Some(child) if child.member => {}
                    Some(child) => {
                        let left = remove(field, child, shape::below(schema, name), faults);
                        result.insert(name.clone(), left);
                    }
                    None => drop(result.insert(name.clone(), field.clone())),
                }
            }
            Value::Object(result)
        }
        Shape::Items(list) => list
            .into_iter()
            .filter_map(|(step, item)| match places.children.get(&step) {
                Some(child) if child.member => None,
                Some(child) => Some(remove(item, child, shape::items(schema), faults)),
                None => Some(item.clone()),
            })
            .collect(),
    }
}

/// How one value differs from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Changes {
    fn attach(&mut self, step: &Step, child: Self) {
        self.added.attach(step.clone(), child.added);
        self.modified.attach(step.clone(), child.modified);
        self.removed.attach(step.clone(), child.removed);
    }

    /// Each of the three sets, changed in the same way.
    #[must_use]
    pub(crate) fn map(self, change: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self { added: change(self.added), modified: change(self.modified), removed: change(self.removed) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// What `new` sets that `old` did not have so.
    pub(crate) fn written(&self) -> FieldSet {
        self.added.union(&self.modified)
    }
}

/// What changed from `old` to `new`.
pub(crate) fn compare(old: &Value, new: &Value, schema: Option<&Schema>, faults: Faults) -> Changes {
    let mut changes = Changes::default();
    if old == new {
        return changes;
    }
    let parts = match (Shape::of(old, schema, faults), Shape::of(new, schema, faults)) {
        (Shape::Fields(old), Shape::Fields(new)) => {
            let step = |(name, field): (&String, _)| (Step::field(name), field);
            (old.iter().map(step).collect(), new.iter().map(step).collect())
        }
        (Shape::Items(old), Shape::Items(new)) => (old, new),
        _ => {
            changes.modified.member = true;
            return changes;
        }
    };
    let (old, new): (Vec<Part<'_>>, Vec<Part<'_>>) = parts;
    let before: BTreeMap<&Step, &Value> = old.iter().map(|(step, part)| (step, *part)).collect();
    let after: BTreeMap<&Step, &Value> = new.iter().map(|(step, part)| (step, *part)).collect();
    let below = |step: &Step| match step {
        Step::Field(name) => shape::below(schema, name),
        _ => shape::items(schema),
    };
    for (step, part) in &after {
        match before.get(step) {
            Some(old) => changes.attach(step, compare(old, part, below(step), faults)),
            None => {
                changes.added.attach((*step).clone(), shape::every_place(part, below(step), faults));
            }
        }
    }
    for (step, part) in before.iter().filter(|(step, _)| !after.contains_key(*step)) {
        changes.removed.attach((*step).clone(), shape::every_place(part, below(step), faults));
    }
    changes
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let document = json!({"type": "object", "properties": {
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}}}},
            "args": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        Schema::from_openapi(&document).unwrap()
    }

    #[rstest]
    #[case(json!({"labels": {"a": "1"}}), json!({"labels": {"b": "2"}}), json!({"labels": {"a": "1", "b": "2"}}))]
    #[case(json!({"args": ["a", "b"]}), json!({"args": ["c"]}), json!({"args": ["c"]}))]
    #[case(json!({"tags": ["a", "b"]}), json!({"tags": ["c", "b"]}), json!({"tags": ["a", "c", "b"]}))]
    #[case(json!({"tags": ["x", "a", "y"]}), json!({"tags": ["y", "x"]}), json!({"tags": ["y", "x", "a"]}))]
    #[case(json!({"items": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]}), json!({"items": [{"name": "b"}]}),
           json!({"items": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]}))]
    fn what_the_configuration_says_joins_what_is_there(
        #[case] live: Value,
        #[case] config: Value,
        #[case] expected: Value,
    ) {
        assert_eq!(merge(&live, &config, Some(&schema()), Faults::none()), expected);
    }

    #[test]
    fn changes_are_told_by_place() {
        let old = json!({"labels": {"a": "1", "b": "1"}, "items": [{"name": "a", "weight": 1}]});
        let new =
            json!({"labels": {"a": "2", "c": "1"}, "items": [{"name": "a", "weight": 1}, {"name": "b"}]});
        let changes = compare(&old, &new, Some(&schema()), Faults::none());
        assert_eq!(changes.modified.paths(), [".labels.a"]);
        assert_eq!(changes.removed.paths(), [".labels.b"]);
        assert_eq!(changes.added.paths(), [".items[name=\"b\"]", ".items[name=\"b\"].name", ".labels.c"]);
    }

    #[test]
    fn removed_places_take_along_what_is_below() {
        let value =
            json!({"items": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}], "tags": ["x", "y"]});
        let places = json!({
            "f:items": {"k:{\"name\":\"a\"}": {}, "k:{\"name\":\"b\"}": {"f:weight": {}}}, "f:tags": {"v:\"x\"": {}},
        });
        let places = FieldSet::from_fields_v1(&places).unwrap();
        let left = remove(&value, &places, Some(&schema()), Faults::none());
        assert_eq!(left, json!({"items": [{"name": "b"}], "tags": ["y"]}));
    }
}
