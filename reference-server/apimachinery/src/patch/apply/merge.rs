//! Operations on values with field sets: merge, remove and compare.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Step};
use super::shape::{self, Shape};

use crate::schema::Schema;

/// A part of a value, and the step that leads to it.
type Part<'a> = (Step, &'a Value);

/// Returns `live` with the fields of `config`. In `config`, null is an empty list, map or object.
pub(super) fn merge(live: &Value, config: &Value, schema: Option<&Schema>) -> Value {
    match (Shape::of(live, schema), Shape::of(config, schema)) {
        (Shape::Fields(live), Shape::Fields(config)) => {
            let mut result = live.clone();
            for (name, field) in config {
                let merged = match live.get(name) {
                    Some(old) => merge(old, field, shape::below(schema, name)),
                    None => field.clone(),
                };
                result.insert(name.clone(), merged);
            }
            Value::Object(result)
        }
        (Shape::Items(live), Shape::Items(config)) => merge_items(&live, &config, schema),
        (Shape::Fields(fields), _) if config.is_null() && !fields.is_empty() => live.clone(),
        (Shape::Items(items), _) if config.is_null() && !items.is_empty() => live.clone(),
        _ => config.clone(),
    }
}

/// The result follows the order of `config`. An item that is only in `live` stays before the items
/// that it preceded.
fn merge_items(live: &[Part<'_>], config: &[Part<'_>], schema: Option<&Schema>) -> Value {
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
            Some(old) => merge(old, item, shape::items(schema)),
            None => (*item).clone(),
        });
    }
    result.extend(
        waiting.filter(|(step, _)| !said.contains_key(step)).map(|(_, kept)| (*kept).clone()),
    );
    Value::Array(result)
}

/// Returns the value without the members of the set and their children.
pub(super) fn remove(value: &Value, places: &FieldSet, schema: Option<&Schema>) -> Value {
    match Shape::of(value, schema) {
        Shape::Leaf => value.clone(),
        Shape::Fields(fields) => {
            let mut result = Map::new();
            for (name, field) in fields {
                match places.children.get(&Step::field(name)) {
                    Some(child) if child.member => {}
                    Some(child) => {
                        let left = remove(field, child, shape::below(schema, name));
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
                Some(child) => Some(remove(item, child, shape::items(schema))),
                None => Some(item.clone()),
            })
            .collect(),
    }
}

/// The difference between two values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Changes {
    /// Adds the changes below a step. Most fields have none, and need no step.
    fn attach(&mut self, step: impl Fn() -> Step, child: Self) {
        let sets = [&mut self.added, &mut self.modified, &mut self.removed];
        for (set, child) in sets.into_iter().zip([child.added, child.modified, child.removed]) {
            if !child.is_empty() {
                set.attach(step(), child);
            }
        }
    }

    /// Applies the same function to each of the three sets.
    #[must_use]
    pub(super) fn map(self, change: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self {
            added: change(self.added),
            modified: change(self.modified),
            removed: change(self.removed),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Returns the written fields, which `new` added or changed, and the removed fields.
    pub(super) fn into_parts(self) -> (FieldSet, FieldSet) {
        (self.added.union(self.modified), self.removed)
    }
}

/// Compares `old` with `new`. In `old`, null is an empty list.
pub(super) fn compare(old: &Value, new: &Value, schema: Option<&Schema>) -> Changes {
    let mut changes = Changes::default();
    if old == new {
        return changes;
    }
    match (Shape::of(old, schema), Shape::of(new, schema)) {
        (Shape::Fields(old), Shape::Fields(new)) => compare_fields(old, new, schema),
        (Shape::Items(old), Shape::Items(new)) => compare_items(&old, &new, schema),
        (Shape::Leaf, Shape::Items(new)) if old.is_null() => compare_items(&[], &new, schema),
        _ => {
            changes.modified.member = true;
            changes
        }
    }
}

fn compare_fields(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    schema: Option<&Schema>,
) -> Changes {
    let mut changes = Changes::default();
    for (name, field) in new {
        let (below, step) = (shape::below(schema, name), || Step::field(name));
        match old.get(name) {
            Some(old) => changes.attach(step, compare(old, field, below)),
            None => changes.added.attach(step(), shape::every_place(field, below)),
        }
    }
    for (name, field) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        let places = shape::every_place(field, shape::below(schema, name));
        changes.removed.attach(Step::field(name), places);
    }
    changes
}

fn compare_items(old: &[Part<'_>], new: &[Part<'_>], schema: Option<&Schema>) -> Changes {
    let mut changes = Changes::default();
    let below = shape::items(schema);
    let before: BTreeMap<&Step, &Value> = old.iter().map(|(step, part)| (step, *part)).collect();
    let after: BTreeMap<&Step, &Value> = new.iter().map(|(step, part)| (step, *part)).collect();
    for (step, part) in &after {
        match before.get(step) {
            Some(old) => changes.attach(|| (*step).clone(), compare(old, part, below)),
            None => changes.added.attach((*step).clone(), shape::every_place(part, below)),
        }
    }
    for (step, part) in before.iter().filter(|(step, _)| !after.contains_key(*step)) {
        changes.removed.attach((*step).clone(), shape::every_place(part, below));
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
            "items": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
                },
            },
            "args": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        Schema::from_openapi(&document).unwrap()
    }

    #[rstest]
    #[case(
        json!({"labels": {"a": "1"}}),
        json!({"labels": {"b": "2"}}),
        json!({"labels": {"a": "1", "b": "2"}})
    )]
    #[case(json!({"args": ["a", "b"]}), json!({"args": ["c"]}), json!({"args": ["c"]}))]
    #[case(
        json!({"tags": ["a", "b"]}),
        json!({"tags": ["c", "b"]}),
        json!({"tags": ["a", "c", "b"]})
    )]
    #[case(
        json!({"tags": ["x", "a", "y"]}),
        json!({"tags": ["y", "x"]}),
        json!({"tags": ["y", "x", "a"]})
    )]
    #[case(
        json!({"items": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]}),
        json!({"items": [{"name": "b"}]}),
        json!({"items": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]})
    )]
    #[case(json!({"labels": {"a": "1"}}), json!({"labels": null}), json!({"labels": {"a": "1"}}))]
    #[case(
        json!({"items": [{"name": "a"}]}),
        json!({"items": null}),
        json!({"items": [{"name": "a"}]})
    )]
    #[case(json!({"args": ["a"]}), json!({"args": null}), json!({"args": null}))]
    #[case(json!({"labels": {}}), json!({"labels": null}), json!({"labels": null}))]
    fn a_configuration_is_merged_into_the_live_object(
        #[case] live: Value,
        #[case] config: Value,
        #[case] expected: Value,
    ) {
        assert_eq!(merge(&live, &config, Some(&schema())), expected);
    }

    #[test]
    fn changes_are_reported_by_path() {
        let old = json!({"labels": {"a": "1", "b": "1"}, "items": [{"name": "a", "weight": 1}]});
        let new = json!({
            "labels": {"a": "2", "c": "1"}, "items": [{"name": "a", "weight": 1}, {"name": "b"}],
        });
        let changes = compare(&old, &new, Some(&schema()));
        assert_eq!(changes.modified.paths(), [".labels.a"]);
        assert_eq!(changes.removed.paths(), [".labels.b"]);
        assert_eq!(
            changes.added.paths(),
            [".items[name=\"b\"]", ".items[name=\"b\"].name", ".labels.c"]
        );
    }

    #[test]
    fn null_is_an_empty_list() {
        let new = json!({"items": [{"name": "a"}], "args": ["a"]});
        let changes = compare(&json!({"items": null, "args": null}), &new, Some(&schema()));
        assert_eq!(changes.added.paths(), [".items[name=\"a\"]", ".items[name=\"a\"].name"]);
        assert_eq!(changes.modified.paths(), [".args"]);
    }

    #[test]
    fn removing_a_field_removes_its_children() {
        let value = json!({
            "items": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}], "tags": ["x", "y"],
        });
        let places = json!({
            "f:items": {"k:{\"name\":\"a\"}": {}, "k:{\"name\":\"b\"}": {"f:weight": {}}},
            "f:tags": {"v:\"x\"": {}},
        });
        let places = FieldSet::from_fields_v1(&places).unwrap();
        let left = remove(&value, &places, Some(&schema()));
        assert_eq!(left, json!({"items": [{"name": "b"}], "tags": ["y"]}));
    }
}
