//! Defaulting: what an absent field becomes.
//!
//! A default is filled in wherever its parent exists, so a default object is itself filled in. An explicit value is never
//! touched. Null counts as absent, unless the field is nullable: then null is what the client asked for.

use serde_json::Value;

use super::Schema;
use crate::faults::{Fault, Faults};

impl Schema {
    /// Fills in the defaults at every depth.
    pub fn apply_defaults(&self, value: &mut Value, faults: Faults) {
        if faults.on(Fault::DefaultsNotApplied) {
            return;
        }
        match value {
            Value::Object(fields) => {
                if !faults.on(Fault::NullsKept) {
                    fields.retain(|name, field| !field.is_null() || self.holds_null(name, faults));
                }
                for (name, schema) in &self.properties {
                    let Some(default) = &schema.default else { continue };
                    let nullable = schema.nullable && !faults.on(Fault::NullableIgnored);
                    let absent = fields.get(name).is_none_or(|field| field.is_null() && !nullable);
                    let listed =
                        |value: &Value| schema.enumeration.is_empty() || schema.enumeration.contains(value);
                    let mended =
                        faults.on(Fault::InvalidValuesDefaulted) && !fields.get(name).is_none_or(listed);
                    if absent || mended || faults.on(Fault::DefaultsOverrideValues) {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                for (name, field) in fields.iter_mut() {
                    if let Some(schema) = self.child(name) {
                        schema.replace_null(field);
                        schema.apply_defaults(field, faults);
                    }
                }
            }
            Value::Array(items) if !faults.on(Fault::DefaultsSkipListItems) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    schema.replace_null(item);
                    schema.apply_defaults(item, faults);
                }
            }
            _ => {}
        }
    }

    /// The default takes the place of a null that may not be.
    fn replace_null(&self, value: &mut Value) {
        if let (true, false, Some(default)) = (value.is_null(), self.nullable, &self.default) {
            *value = default.clone();
        }
    }

    /// Whether a field that is null stays so; where it does not, the default takes its place or nothing does.
    fn holds_null(&self, name: &str, faults: Faults) -> bool {
        let nullable = !faults.on(Fault::NullableIgnored);
        self.child(name).is_none_or(|schema| (schema.nullable && nullable) || schema.default.is_some())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let document = json!({
            "type": "object",
            "properties": {
                "color": {"type": "string", "default": "red"},
                "nullable": {"type": "string", "nullable": true, "default": "d"},
                "plain": {"type": "string"},
                "empty": {"type": "string", "nullable": true},
                "colors": {"type": "object", "additionalProperties": {"type": "string", "default": "blue"}},
                "list": {"type": "array", "items": {"type": "string", "default": "blue"}},
                "nest": {"type": "object", "default": {}, "properties": {"in": {"type": "string", "default": "x"}}},
                "optional": {"type": "object", "properties": {"in": {"type": "string", "default": "x"}}},
                "items": {"type": "array", "items": {
                    "type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}},
                }},
                "byName": {"type": "object", "additionalProperties": {
                    "type": "object", "properties": {"on": {"type": "boolean", "default": true}},
                }},
            },
        });
        Schema::from_openapi(&document).unwrap()
    }

    fn filled(mut value: Value, faults: Faults) -> Value {
        schema().apply_defaults(&mut value, faults);
        value
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
    #[case(json!({"optional": {}, "items": [{}, {"protocol": "UDP"}], "byName": {"a": {}, "b": {"on": false}}}),
           json!({
               "color": "red", "nullable": "d", "nest": {"in": "x"}, "optional": {"in": "x"},
               "items": [{"protocol": "TCP"}, {"protocol": "UDP"}], "byName": {"a": {"on": true}, "b": {"on": false}},
           }))]
    fn absent_fields_are_filled_in(#[case] value: Value, #[case] expected: Value) {
        assert_eq!(filled(value, Faults::none()), expected);
    }

    #[rstest]
    #[case(Fault::DefaultsNotApplied, json!({}), "/color", None)]
    #[case(Fault::DefaultsSkipListItems, json!({"items": [{}]}), "/items/0/protocol", None)]
    #[case(Fault::DefaultsOverrideValues, json!({"color": "green"}), "/color", Some(json!("red")))]
    #[case(Fault::NullableIgnored, json!({"nullable": null}), "/nullable", Some(json!("d")))]
    fn faults(
        #[case] fault: Fault,
        #[case] value: Value,
        #[case] pointer: &str,
        #[case] expected: Option<Value>,
    ) {
        let faulty = filled(value.clone(), Faults::none().with(fault));
        assert_eq!(faulty.pointer(pointer), expected.as_ref());
        assert_ne!(filled(value, Faults::none()).pointer(pointer), expected.as_ref());
    }
}
