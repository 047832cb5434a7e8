//! What a type cannot hold: which fields those are, and the object without them.

use serde_json::{Map, Value};

use super::{Format, Kind, Path, Schema, format, quantity};
use crate::faults::{Fault, Faults};

impl Schema {
    /// The fields of `value` that the schema does not know, as paths like `spec.items[0].bogus`.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        let mut unknown = Vec::new();
        self.collect_unknown(value, Path::Root, &mut unknown);
        unknown
    }

    fn collect_unknown(&self, value: &Value, path: Path<'_>, unknown: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    match self.child(name) {
                        Some(schema) => schema.collect_unknown(field, path.field(name), unknown),
                        None if self.preserve_unknown => {}
                        None => unknown.push(path.field(name).to_string()),
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (index, item) in items.iter().enumerate() {
                    schema.collect_unknown(item, path.index(index), unknown);
                }
            }
            _ => {}
        }
    }

    /// Removes what the type cannot hold. In typed objects that includes nulls and empty values, and quantities and
    /// times take their canonical spelling, so that two bodies which mean the same become the same.
    pub fn prune(&self, value: &mut Value, faults: Faults) {
        self.prune_node(value, false, 0, faults);
    }

    fn prune_node(&self, value: &mut Value, within_typed: bool, depth: usize, faults: Faults) {
        let typed = within_typed || self.typed;
        match value {
            Value::Object(fields) => self.prune_fields(fields, typed, depth, faults),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    if typed && item.is_null() {
                        *item = schema.zero();
                    }
                    schema.prune_node(item, typed, depth + 1, faults);
                }
            }
            scalar if typed => self.canonicalize(scalar),
            _ => {}
        }
    }

    fn prune_fields(&self, fields: &mut Map<String, Value>, typed: bool, depth: usize, faults: Faults) {
        let keeps_unknown = self.preserve_unknown
            || faults.on(Fault::UnknownFieldsKept)
            || (depth > 0 && faults.on(Fault::PruningTopLevelOnly));
        if !keeps_unknown {
            fields.retain(|name, _| self.child(name).is_some());
        }
        for (name, field) in fields.iter_mut() {
            let Some(schema) = self.child(name) else { continue };
            if typed && field.is_null() && !self.properties.contains_key(name) {
                *field = schema.zero();
            }
            schema.prune_node(field, typed, depth + 1, faults);
        }
        if typed {
            fields.retain(|name, field| self.properties.get(name).is_none_or(|schema| schema.writes(field)));
        }
    }

    /// Whether a typed object writes this value of one of its fields.
    fn writes(&self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            _ if self.keep_empty => true,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty() || self.additional_properties.is_none(),
            _ => true,
        }
    }

    /// What a null item of a typed list, or a null value of a typed map, stands for.
    pub(super) fn zero(&self) -> Value {
        match self.kind {
            Some(Kind::Object) => Value::Object(Map::new()),
            Some(Kind::Array) => Value::Array(Vec::new()),
            Some(Kind::String) => Value::from(""),
            Some(Kind::Integer | Kind::Number) => Value::from(0),
            Some(Kind::Boolean) => Value::from(false),
            None => Value::Null,
        }
    }

    fn canonicalize(&self, value: &mut Value) {
        let canonical = match (&self.format, &*value) {
            (Some(Format::Quantity), Value::String(text)) => quantity::canonical(text),
            (Some(Format::Quantity), Value::Number(number)) => quantity::canonical(&number.to_string()),
            (Some(Format::DateTime), Value::String(text)) => format::canonical_time(text),
            (Some(Format::MicroTime), Value::String(text)) => format::canonical_micro_time(text),
            _ => None,
        };
        if let Some(canonical) = canonical {
            *value = Value::String(canonical);
        }
    }
}
