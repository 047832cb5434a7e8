//! Defaulting of absent fields.
//!
//! A default applies wherever its parent exists, so the fields of a default object get their
//! defaults too. An explicit value is never changed. Null counts as absent, unless the field is
//! nullable. Typed objects have null for the absent lists and times that Go writes so.

use serde_json::Value;

use super::Schema;

impl Schema {
    /// Fills in the defaults at every depth.
    pub fn apply_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, field| !field.is_null() || self.holds_null(name));
                for (name, schema) in &self.properties {
                    if self.typed && schema.write_null && !fields.contains_key(name) {
                        fields.insert(name.clone(), Value::Null);
                    }
                    let Some(default) = &schema.default else { continue };
                    let absent =
                        fields.get(name).is_none_or(|field| field.is_null() && !schema.nullable);
                    // Typed objects omit an empty default, too.
                    if absent && (!self.typed || schema.writes(default)) {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                for (name, field) in fields.iter_mut() {
                    if let Some(schema) = self.child(name) {
                        schema.replace_null(field);
                        schema.apply_defaults(field);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    schema.replace_null(item);
                    schema.apply_defaults(item);
                }
            }
            _ => {}
        }
    }

    /// Replaces null by the default in a field that is not nullable.
    fn replace_null(&self, value: &mut Value) {
        if let (true, false, Some(default)) = (value.is_null(), self.nullable, &self.default) {
            *value = default.clone();
        }
    }

    /// Reports whether a null field keeps its value. Otherwise it gets the default, or is removed.
    fn holds_null(&self, name: &str) -> bool {
        self.child(name).is_none_or(|schema| schema.nullable || schema.default.is_some())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::schema::build::{list, object, string};

    fn schema() -> Schema {
        let document = json!({
            "type": "object",
            "properties": {
                "color": {"type": "string", "default": "red"},
                "nullable": {"type": "string", "nullable": true, "default": "d"},
                "plain": {"type": "string"},
                "empty": {"type": "string", "nullable": true},
                "colors": {
                    "type": "object", "additionalProperties": {"type": "string", "default": "blue"},
                },
                "list": {"type": "array", "items": {"type": "string", "default": "blue"}},
                "nest": {
                    "type": "object", "default": {},
                    "properties": {"in": {"type": "string", "default": "x"}},
                },
                "optional": {
                    "type": "object", "properties": {"in": {"type": "string", "default": "x"}},
                },
                "items": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"protocol": {"type": "string", "default": "TCP"}},
                }},
                "byName": {"type": "object", "additionalProperties": {
                    "type": "object", "properties": {"on": {"type": "boolean", "default": true}},
                }},
            },
        });
        Schema::from_openapi(&document).unwrap()
    }

    fn filled(mut value: Value) -> Value {
        schema().apply_defaults(&mut value);
        value
    }

    #[test]
    fn a_typed_object_has_null_for_absent_lists() {
        let part = Schema { write_null: true, ..list(string()) };
        let schema = object("Role").field("rules", part);
        for value in [json!({}), json!({"rules": null}), json!({"rules": []})] {
            let mut value = value;
            schema.prune(&mut value);
            schema.apply_defaults(&mut value);
            assert_eq!(value, json!({"rules": null}));
        }
    }

    #[rstest]
    #[case(json!({}), json!({"color": "red", "nullable": "d", "nest": {"in": "x"}}))]
    #[case(json!({"color": "", "nullable": "", "nest": {"in": ""}}),
           json!({"color": "", "nullable": "", "nest": {"in": ""}}))]
    #[case(json!({"color": null, "nullable": null, "nest": null, "plain": null}),
           json!({"color": "red", "nullable": null, "nest": {"in": "x"}}))]
    #[case(json!({"color": "", "nullable": null, "nest": {"in": ""}, "empty": null, "plain": null,
                  "colors": {"a": null, "b": "x"}, "list": [null, "x"]}),
           json!({"color": "", "nullable": null, "nest": {"in": ""}, "empty": null,
                  "colors": {"a": "blue", "b": "x"}, "list": ["blue", "x"]}))]
    #[case(
        json!({
            "optional": {}, "items": [{}, {"protocol": "UDP"}],
            "byName": {"a": {}, "b": {"on": false}},
        }),
        json!({
            "color": "red", "nullable": "d", "nest": {"in": "x"}, "optional": {"in": "x"},
            "items": [{"protocol": "TCP"}, {"protocol": "UDP"}],
            "byName": {"a": {"on": true}, "b": {"on": false}},
        })
    )]
    fn absent_fields_are_filled_in(#[case] value: Value, #[case] expected: Value) {
        assert_eq!(filled(value), expected);
    }
}
