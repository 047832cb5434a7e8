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
                fields.retain(|name, field| !field.is_null() || self.holds_null(name, faults));
                for (name, schema) in &self.properties {
                    let Some(default) = &schema.default else { continue };
                    let absent = fields.get(name).is_none_or(|field| field.is_null() && !schema.nullable);
                    if absent || faults.on(Fault::DefaultsOverrideValues) {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                for (name, field) in fields.iter_mut() {
                    if let Some(schema) = self.child(name) {
                        schema.apply_defaults(field, faults);
                    }
                }
            }
            Value::Array(items) if !faults.on(Fault::DefaultsSkipListItems) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    if let (true, false, Some(default)) = (item.is_null(), schema.nullable, &schema.default) {
                        *item = default.clone();
                    }
                    schema.apply_defaults(item, faults);
                }
            }
            _ => {}
        }
    }

    /// Whether a field that is null stays so; where it does not, the default takes its place or nothing does.
    fn holds_null(&self, name: &str, faults: Faults) -> bool {
        let nullable = !faults.on(Fault::NullableIgnored);
        self.child(name).is_none_or(|schema| (schema.nullable && nullable) || schema.default.is_some())
    }
}
