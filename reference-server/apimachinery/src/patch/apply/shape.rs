//! The units of ownership in a value.
//!
//! The schema defines the units. A scalar, an atomic map or a list without keys has one owner set
//! for the whole value. Other objects are owned field by field, and list maps and sets item by
//! item. Without a schema, objects are granular and lists are atomic.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Step};
use crate::schema::{ListType, Schema};

pub(super) enum Shape<'a> {
    /// The value is owned as a whole.
    Leaf,
    /// The value is owned field by field.
    Fields(&'a Map<String, Value>),
    /// The value is owned item by item. The items are in their order, each with its step.
    Items(Vec<(Step, &'a Value)>),
}

/// A list contains two items with the same key or value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate entries for key {0}")]
pub(super) struct Duplicate(String);

impl<'a> Shape<'a> {
    pub(super) fn of(value: &'a Value, schema: Option<&Schema>) -> Self {
        match value {
            Value::Object(fields) if schema.is_none_or(|schema| !schema.atomic_map) => {
                Self::Fields(fields)
            }
            Value::Array(items) => match schema.map(|schema| (schema, keying(schema))) {
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

/// Returns the keys of a list that is owned item by item; empty for a set.
pub(super) fn keying(schema: &Schema) -> Option<&[String]> {
    let map = schema.list_type == ListType::Map
        || (schema.list_type == ListType::Unset && !schema.list_map_keys.is_empty());
    let merged = schema.patch_strategy.merge && schema.patch_merge_key.is_none();
    let set = schema.list_type == ListType::Set || (schema.list_type == ListType::Unset && merged);
    match (map, set) {
        (true, _) => Some(&schema.list_map_keys),
        (false, true) => Some(&[]),
        _ => None,
    }
}

/// Returns the step to an item. A key without a value has its default, or the zero value of a field
/// that every object has. Returns `None` for an item without its keys, which validation rejects.
pub(super) fn step(item: &Value, schema: &Schema, keys: &[String]) -> Option<Step> {
    if keys.is_empty() {
        return Some(Step::Item(item.to_string()));
    }
    let fields = item.as_object()?;
    let absent = |key: &String| {
        let key = schema.items.as_ref()?.properties.get(key)?;
        let default = key.default.as_ref().map(Cow::Borrowed);
        default.or_else(|| key.always_set.then(|| Cow::Owned(key.zero())))
    };
    let value = |key: &String| fields.get(key).map(Cow::Borrowed).or_else(|| absent(key));
    let found: BTreeMap<_, _> = keys.iter().filter_map(|key| Some((key, value(key)?))).collect();
    let text = serde_json::to_string(&found).ok()?;
    (!found.is_empty()).then_some(Step::Keys(text))
}

/// Returns the schema of a field.
pub(super) fn below<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a Schema> {
    schema.and_then(|schema| schema.child(name))
}

/// Returns the schema of the items of a list.
pub(super) fn items(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|schema| schema.items.as_deref())
}

/// Returns the fields that a value sets, and which its applier therefore owns.
pub(super) fn stated(value: &Value, schema: Option<&Schema>) -> FieldSet {
    let mut set = FieldSet::default();
    match Shape::of(value, schema) {
        Shape::Leaf => set.member = true,
        Shape::Fields(fields) => {
            for (name, field) in fields {
                let declared = schema.is_some_and(|schema| schema.properties.contains_key(name));
                let mut child = stated(field, below(schema, name));
                // A map key is a member of its own, in addition to its value.
                child.member |= !declared || field.as_object().is_some_and(Map::is_empty);
                set.attach(Step::field(name), child);
            }
        }
        Shape::Items(list) => {
            for (step, item) in list {
                let mut child = stated(item, items(schema));
                child.member = true;
                set.attach(step, child);
            }
        }
    }
    set
}

/// Returns all fields of a value, including the inner ones.
pub(super) fn every_place(value: &Value, schema: Option<&Schema>) -> FieldSet {
    let mut set = FieldSet::leaf();
    match Shape::of(value, schema) {
        Shape::Leaf => {}
        Shape::Fields(fields) => {
            for (name, field) in fields {
                set.attach(Step::field(name), every_place(field, below(schema, name)));
            }
        }
        Shape::Items(list) => {
            for (step, item) in list {
                set.attach(step, every_place(item, items(schema)));
            }
        }
    }
    set
}

/// Returns the object that has only the fields which its type always has, with their zero values.
/// Creating an object adds the other fields to it.
pub(super) fn bare(schema: &Schema) -> Value {
    if schema.properties.is_empty() {
        return schema.zero();
    }
    let mut fields = Map::new();
    for (name, field) in schema.properties.iter().filter(|_| schema.typed) {
        if field.write_null {
            fields.insert(name.clone(), Value::Null);
        } else if field.always_set {
            fields.insert(name.clone(), bare(field));
        }
    }
    Value::Object(fields)
}

/// Adds the declared fields that are in the set only by their children. They exist as long as their
/// children.
pub(super) fn with_declared(set: &FieldSet, schema: Option<&Schema>) -> FieldSet {
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

/// Adds the paths of the lists and objects in a value that have one owner as a whole.
pub(super) fn atomics(value: &Value, schema: Option<&Schema>, at: &str, found: &mut Vec<String>) {
    match Shape::of(value, schema) {
        Shape::Leaf if value.is_array() || value.is_object() => found.push(at.to_owned()),
        Shape::Leaf => {}
        Shape::Fields(fields) => {
            for (name, field) in fields {
                atomics(field, below(schema, name), &format!("{at}.{name}"), found);
            }
        }
        Shape::Items(list) => {
            for (_, item) in list {
                atomics(item, items(schema), &format!("{at}[]"), found);
            }
        }
    }
}

/// Rejects a list that contains the same item twice.
pub(super) fn duplicates(value: &Value, schema: Option<&Schema>) -> Result<(), Duplicate> {
    match Shape::of(value, schema) {
        Shape::Leaf => Ok(()),
        Shape::Fields(fields) => {
            fields.iter().try_for_each(|(name, field)| duplicates(field, below(schema, name)))
        }
        Shape::Items(list) => {
            let mut seen = std::collections::BTreeSet::new();
            for (step, item) in list {
                duplicates(item, items(schema))?;
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
                "ports": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": {"type": "string"},
                        },
                    },
                },
                "tags": {
                    "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
                },
                "args": {"type": "array", "items": {"type": "string"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {
                    "type": "object", "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}},
                },
            }},
        }});
        Schema::from_openapi(&document).unwrap()
    }

    #[test]
    fn the_schema_defines_the_owned_units() {
        let value = json!({"spec": {
            "ports": [{"port": 80, "name": "http"}], "tags": ["x"], "args": ["a"],
            "labels": {"l": "1"}, "whole": {"a": "1"},
        }});
        let expected = json!({"f:spec": {
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}},
            },
            "f:tags": {"v:\"x\"": {}}, "f:args": {}, "f:labels": {"f:l": {}}, "f:whole": {},
        }});
        assert_eq!(stated(&value, Some(&schema())).to_fields_v1(), expected);
    }

    #[test]
    fn a_default_completes_the_key_of_an_item() {
        let twice = json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}});
        assert!(duplicates(&twice, Some(&schema())).is_err());
        let differ = json!({"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}});
        assert_eq!(duplicates(&differ, Some(&schema())), Ok(()));
    }
}
