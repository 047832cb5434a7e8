//! What an object is made of in the eyes of ownership: what stands alone, and what is owned piece by piece.
//!
//! The schema decides. A scalar, an atomic map and a list without keys are owned as a whole. Other objects are owned field
//! by field, list maps and sets item by item. Where there is no schema, objects are granular and lists atomic.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Step};
use crate::schema::{ListType, Schema};
use crate::{Fault, Faults};

/// A value with its parts.
pub(crate) enum Shape<'a> {
    /// Owned as a whole.
    Leaf,
    /// Owned field by field.
    Fields(&'a Map<String, Value>),
    /// Owned item by item, each under its step, in their order.
    Items(Vec<(Step, &'a Value)>),
}

/// Two items of a list that may not be the same are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate entries for key {0}")]
pub(crate) struct Duplicate(String);

impl<'a> Shape<'a> {
    pub(crate) fn of(value: &'a Value, schema: Option<&Schema>, faults: Faults) -> Self {
        match value {
            Value::Object(fields) if schema.is_none_or(|schema| !schema.atomic_map) => Self::Fields(fields),
            Value::Array(items) => match schema.map(|schema| (schema, keying(schema, faults))) {
                Some((schema, Some(keys))) => items
                    .iter()
                    .map(|item| Some((step(item, schema, keys)?, item)))
                    .collect::<Option<_>>()
                    .map_or(Self::Leaf, Self::Items),
                _ => Self::Leaf,
            },
            _ => Self::Leaf,
        }
    }
}

/// The keys of a list that is owned item by item; none of them for a set.
fn keying(schema: &Schema, faults: Faults) -> Option<&[String]> {
    let map = schema.list_type == ListType::Map
        || (schema.list_type == ListType::Unset && !schema.list_map_keys.is_empty());
    let merged = schema.patch_strategy.merge && schema.patch_merge_key.is_none();
    let set = schema.list_type == ListType::Set || (schema.list_type == ListType::Unset && merged);
    match (map, set) {
        (true, _) if !faults.on(Fault::ApplyReplacesListMaps) => Some(&schema.list_map_keys),
        (false, true) if !faults.on(Fault::ApplyReplacesSets) => Some(&[]),
        _ if faults.on(Fault::ApplyMergesAtomicLists) => Some(&[]),
        _ => None,
    }
}

/// The step to an item; none when it lacks its keys, which validation will say.
fn step(item: &Value, schema: &Schema, keys: &[String]) -> Option<Step> {
    if keys.is_empty() {
        return Some(Step::Item(item.to_string()));
    }
    let fields = item.as_object()?;
    let default = |key: &String| schema.items.as_ref()?.properties.get(key)?.default.as_ref();
    let found = keys.iter().filter_map(|key| Some((key, fields.get(key).or_else(|| default(key))?)));
    let found: BTreeMap<_, _> = found.collect();
    let text = serde_json::to_string(&found).ok()?;
    (!found.is_empty()).then_some(Step::Keys(text))
}

/// The schema of what a field holds.
pub(crate) fn below<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a Schema> {
    schema.and_then(|schema| schema.child(name))
}

/// The schema of the items of a list.
pub(crate) fn items(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|schema| schema.items.as_deref())
}

/// The fields that a value says something about: those that an applier owns.
pub(crate) fn stated(value: &Value, schema: Option<&Schema>, faults: Faults) -> FieldSet {
    let mut set = FieldSet::default();
    match Shape::of(value, schema, faults) {
        Shape::Leaf => set.member = true,
        Shape::Fields(fields) => {
            for (name, field) in fields {
                let declared = schema.is_some_and(|schema| schema.properties.contains_key(name));
                let mut child = stated(field, below(schema, name), faults);
                // A key of a map is there or not, besides what it holds.
                child.member |= !declared || field.as_object().is_some_and(Map::is_empty);
                set.attach(Step::field(name), child);
            }
        }
        Shape::Items(list) => {
            for (step, item) in list {
                let mut child = stated(item, items(schema), faults);
                child.member = true;
                set.attach(step, child);
            }
        }
    }
    set
}

/// Every place of a value, the ones in between too.
pub(crate) fn every_place(value: &Value, schema: Option<&Schema>, faults: Faults) -> FieldSet {
    let mut set = FieldSet::leaf();
    match Shape::of(value, schema, faults) {
        Shape::Leaf => {}
        Shape::Fields(fields) => {
            for (name, field) in fields {
                set.attach(Step::field(name), every_place(field, below(schema, name), faults));
            }
        }
        Shape::Items(list) => {
            for (step, item) in list {
                set.attach(step, every_place(item, items(schema), faults));
            }
        }
    }
    set
}

/// The set with the declared fields that it only has something below of: these come and go with what they hold.
pub(crate) fn with_declared(set: &FieldSet, schema: Option<&Schema>) -> FieldSet {
    let mut result = set.clone();
    for (step, child) in &mut result.children {
        let next = match step {
            Step::Field(name) => {
                child.member |= schema.is_some_and(|schema| schema.properties.contains_key(name));
                below(schema, name)
            }
            _ => items(schema),
        };
        *child = with_declared(child, next);
    }
    result
}

/// Says where a list has the same item twice.
pub(crate) fn duplicates(value: &Value, schema: Option<&Schema>, faults: Faults) -> Result<(), Duplicate> {
    match Shape::of(value, schema, faults) {
        Shape::Leaf => Ok(()),
        Shape::Fields(fields) => {
            fields.iter().try_for_each(|(name, field)| duplicates(field, below(schema, name), faults))
        }
        Shape::Items(list) => {
            let mut seen = std::collections::BTreeSet::new();
            for (step, item) in list {
                duplicates(item, items(schema), faults)?;
                if let Some(twice) = seen.replace(step) {
                    return Err(Duplicate(twice.to_string()));
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let document = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {"type": "object", "properties": {
                        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"},
                    }}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "args": {"type": "array", "items": {"type": "string"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
            }},
        }});
        Schema::from_openapi(&document).unwrap()
    }

    #[test]
    fn the_schema_says_what_is_owned_piece_by_piece() {
        let value = json!({"spec": {
            "ports": [{"port": 80, "name": "http"}], "tags": ["x"], "args": ["a"], "labels": {"l": "1"}, "whole": {"a": "1"},
        }});
        let expected = json!({"f:spec": {
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}}},
            "f:tags": {"v:\"x\"": {}}, "f:args": {}, "f:labels": {"f:l": {}}, "f:whole": {},
        }});
        assert_eq!(stated(&value, Some(&schema()), Faults::none()).to_fields_v1(), expected);
    }

    #[test]
    fn a_default_completes_the_key_of_an_item() {
        let twice = json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}});
        assert!(duplicates(&twice, Some(&schema()), Faults::none()).is_err());
        let differ = json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}});
        assert_eq!(duplicates(&differ, Some(&schema()), Faults::none()), Ok(()));
    }
}
