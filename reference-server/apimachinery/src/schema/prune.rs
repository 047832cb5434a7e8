//! Unknown fields: detection, and removal (pruning).

use serde_json::{Map, Value};

use super::{Format, Kind, Path, Schema, format, quantity, whole_number};

/// The published name of a lifecycle.
const LIFECYCLE: &str = "io.k8s.api.core.v1.Lifecycle";

impl Schema {
    /// Returns the paths of the fields that the schema does not declare, such as
    /// `spec.items[0].bogus`.
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

    /// Removes the fields that the type does not have. In typed objects it also removes nulls and
    /// empty values, and normalizes quantities and times. Two bodies with the same meaning become
    /// equal.
    pub fn prune(&self, value: &mut Value) {
        self.prune_node(value, (false, false), 0);
    }

    fn prune_node(
        &self,
        value: &mut Value,
        (within_typed, within_free): (bool, bool),
        depth: usize,
    ) {
        let typed = within_typed || self.typed;
        let within = (typed, self.preserve_unknown || within_free);
        match value {
            Value::Object(fields) => self.prune_fields(fields, (typed, false), depth),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    if typed && item.is_null() {
                        *item = schema.zero();
                    }
                    schema.prune_node(item, within, depth + 1);
                }
            }
            scalar if typed => self.canonicalize(scalar),
            scalar => respell(scalar),
        }
    }

    fn prune_fields(
        &self,
        fields: &mut Map<String, Value>,
        (typed, inherited): (bool, bool),
        depth: usize,
    ) {
        let keeps_unknown = (self.preserve_unknown) || inherited;
        if !keeps_unknown {
            fields.retain(|name, _| self.child(name).is_some());
        }
        if typed {
            fields.retain(|name, field| {
                self.properties.get(name).is_none_or(|schema| !schema.has_only_disabled(field))
            });
        }
        for (name, field) in fields.iter_mut() {
            let Some(schema) = self.child(name) else {
                respell(field);
                continue;
            };
            if typed && field.is_null() && !self.properties.contains_key(name) {
                *field = schema.zero();
            }
            schema.prune_node(field, (typed, self.preserve_unknown || inherited), depth + 1);
        }
        if typed {
            fields.retain(|name, field| {
                let schema = self.properties.get(name);
                schema.is_none_or(|schema| !schema.disabled && schema.writes(field))
            });
        }
    }

    /// Reports whether a lifecycle of a container sets disabled fields and no others.
    /// kube-apiserver removes such a lifecycle, but keeps other objects without fields.
    fn has_only_disabled(&self, value: &Value) -> bool {
        let is_disabled =
            |name: &String| self.properties.get(name).is_some_and(|schema| schema.disabled);
        let set = value.as_object().into_iter().flatten().filter(|(_, field)| !field.is_null());
        let mut names = set.map(|(name, _)| name).peekable();
        self.name == Some(LIFECYCLE) && names.peek().is_some() && names.all(is_disabled)
    }

    /// Reports whether a typed object writes this value of one of its fields.
    pub(super) fn writes(&self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            _ if self.keep_empty || self.is_raw() => true,
            Value::String(text) => !text.is_empty(),
            Value::Bool(is_set) => *is_set || !self.omit_zero,
            Value::Number(number) => !self.omit_zero || number.as_f64() != Some(0.0),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty() || self.additional_properties.is_none(),
        }
    }

    /// Reports whether any JSON value is decoded, although only objects are valid.
    pub(super) fn is_raw(&self) -> bool {
        self.preserve_unknown && self.kind == Some(Kind::Object)
    }

    /// Returns the zero value of the type. In a typed object, it replaces null in lists and maps.
    pub(crate) fn zero(&self) -> Value {
        match self.kind {
            Some(Kind::Object) => Value::Object(Map::new()),
            Some(Kind::Array) => Value::Array(Vec::new()),
            Some(Kind::String) if self.format == Some(Format::Quantity) => Value::from("0"),
            Some(Kind::String) => Value::from(""),
            Some(Kind::Integer | Kind::Number) => Value::from(0),
            Some(Kind::Boolean) => Value::from(false),
            None => Value::Null,
        }
    }

    fn canonicalize(&self, value: &mut Value) {
        let is_time = matches!(self.format, Some(Format::DateTime | Format::MicroTime));
        if is_time && value.as_str().is_some_and(format::is_zero_time) {
            *value = Value::Null;
            return;
        }
        let canonical = match (&self.format, &*value) {
            (Some(Format::Quantity), Value::String(text)) => quantity::canonical(text),
            (Some(Format::Quantity), Value::Number(number)) => {
                quantity::canonical(&number.to_string())
            }
            (Some(Format::DateTime), Value::String(text)) => format::canonical_time(text),
            (Some(Format::MicroTime), Value::String(text)) => format::canonical_micro_time(text),
            (Some(Format::Byte), Value::String(text)) => format::canonical_base64(text),
            _ => None,
        };
        if let Some(canonical) = canonical {
            *value = Value::String(canonical);
        }
    }
}

/// Normalizes numbers without a declared type, at every depth. Whole numbers lose their fraction.
/// Numbers that do not fit into 64 bits become doubles.
fn respell(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() => {
            let number = number.as_f64();
            let whole = number.and_then(whole_number);
            if let Some(respelt) = whole.map(Value::from).or_else(|| number.map(Value::from)) {
                *value = respelt;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(respell),
        Value::Object(fields) => fields.values_mut().for_each(respell),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::schema::build::{list, map, object, quantity, string, time};

    fn custom() -> Schema {
        let document = json!({
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {
                    "size": {"type": "integer"},
                    "items": {
                        "type": "array",
                        "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                    },
                    "byName": {"type": "object", "additionalProperties": {
                        "type": "object", "properties": {"a": {"type": "string"}},
                    }},
                    "raw": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {
                            "known": {"type": "object", "properties": {"a": {"type": "string"}}},
                        },
                    },
                    "template": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": true,
                        "x-kubernetes-preserve-unknown-fields": true,
                    },
                }},
            },
        });
        Schema::from_openapi(&document).unwrap()
    }

    #[rstest]
    #[case(json!({"spec": {"size": 1}}), &[], json!({"spec": {"size": 1}}))]
    #[case(
        json!({"bogus": 1, "spec": {"bogus": 1}}),
        &["bogus", "spec.bogus"],
        json!({"spec": {}})
    )]
    #[case(json!({"spec": {"items": [{"a": "x"}, {"b": 1}]}}), &["spec.items[1].b"],
           json!({"spec": {"items": [{"a": "x"}, {}]}}))]
    #[case(json!({"spec": {"byName": {"n": {"a": "x", "b": 1}}}}), &["spec.byName.n.b"],
           json!({"spec": {"byName": {"n": {"a": "x"}}}}))]
    #[case(
        json!({"spec": {"raw": {"free": {"x": 1}, "known": {"a": "x", "b": 1}}}}),
        &["spec.raw.known.b"],
        json!({"spec": {"raw": {"free": {"x": 1}, "known": {"a": "x"}}}})
    )]
    #[case(
        json!({
            "spec": {
                "template": {
                    "kind": "Pod", "metadata": {"name": "x", "bogus": 1}, "spec": {"y": 1},
                },
            },
        }),
        &["spec.template.metadata.bogus"],
        json!({"spec": {"template": {"kind": "Pod", "metadata": {"name": "x"}, "spec": {"y": 1}}}})
    )]
    #[case(json!({"Spec": {}}), &["Spec"], json!({}))]
    #[case(json!({"spec": {"raw": {"free": [{"x": 2.0}, [-0.5, 9_007_199_254_740_993_i64]]}}}), &[],
           json!({"spec": {"raw": {"free": [{"x": 2}, [-0.5, 9_007_199_254_740_993_i64]]}}}))]
    #[case(json!({"spec": {"size": 2.0}}), &[], json!({"spec": {"size": 2}}))]
    fn unknown_fields_are_reported_and_pruned(
        #[case] mut value: Value,
        #[case] unknown: &[&str],
        #[case] pruned: Value,
    ) {
        assert_eq!(custom().unknown_fields(&value), unknown);
        custom().prune(&mut value);
        assert_eq!(value, pruned);
    }

    #[test]
    fn a_custom_resource_keeps_its_nulls_and_empty_values() {
        let mut value = json!({"spec": {"size": null, "items": []}});
        custom().prune(&mut value);
        assert_eq!(value, json!({"spec": {"size": null, "items": []}}));
    }

    #[test]
    fn typed_objects_are_normalized() {
        let schema = object("Test")
            .field("text", string())
            .field("kept", string().written_when_empty())
            .field("list", list(object("Item").field("a", string())))
            .field("map", map(string()))
            .field("amounts", map(quantity()))
            .field("struct", object("Struct").field("a", string()))
            .field("at", time());
        let mut value = json!({
            "text": "", "kept": "", "list": [null, {"a": null}], "map": {"k": null}, "struct": {},
            "amounts": {"k": null}, "at": "2024-01-02T03:04:05.9+02:00",
        });
        schema.prune(&mut value);
        assert_eq!(
            value,
            json!({
                "kept": "", "list": [{}, {}], "map": {"k": ""}, "struct": {},
                "amounts": {"k": "0"}, "at": "2024-01-02T01:04:05Z",
            })
        );
        let mut value = json!({"list": [], "map": {}, "at": null});
        schema.prune(&mut value);
        assert_eq!(value, json!({}));
    }
    #[rstest]
    #[case(json!({"hooks": {"signal": "S"}}), json!({}))]
    #[case(json!({"hooks": {"signal": "S", "stop": "x"}}), json!({"hooks": {"stop": "x"}}))]
    #[case(json!({"hooks": {"signal": null}}), json!({"hooks": {}}))]
    #[case(json!({"hooks": {}}), json!({"hooks": {}}))]
    #[case(json!({"at": "0001-01-01T00:00:00Z"}), json!({}))]
    fn disabled_fields_and_zero_times_are_not_written(
        #[case] mut value: Value,
        #[case] expected: Value,
    ) {
        let signal = Schema { disabled: true, ..string() };
        let hooks = object(LIFECYCLE).field("signal", signal).field("stop", string());
        object("Test").field("hooks", hooks).field("at", time()).prune(&mut value);
        assert_eq!(value, expected);
    }
}
