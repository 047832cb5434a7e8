//! Validates the defaults of a schema.

use kubeproof_apimachinery::schema::{FieldError, Path, Schema};
use serde_json::Value;

/// Returns the errors of the defaults in `document`: each must be valid, without unknown fields.
pub(super) fn validate(document: &Value, schema: &Schema, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(default) = &schema.default {
        let at = path.field("default");
        if !schema.unknown_fields(default).is_empty() {
            errors.push(FieldError::invalid(at, default, "must not have unknown fields"));
        }
        let wrong = schema.validate_at(default, None, at);
        if wrong.is_empty() {
            errors.extend(schema.rule_violations_at(default, at));
        }
        let outer = at.to_string();
        errors.extend(wrong.into_iter().map(|error| error.shown_within(&outer)));
    }
    // Maps cannot have defaults in their values, because the keys are unknown.
    if let Some(items) = &schema.items {
        errors.extend(validate(&document["items"], items, path.field("items")));
    }
    let properties = path.field("properties");
    for (name, child) in document["properties"].as_object().into_iter().flatten() {
        if let Some(schema) = schema.properties.get(name).filter(|schema| !schema.typed) {
            errors.extend(validate(child, schema, properties.key(name)));
        }
    }
    errors
}
