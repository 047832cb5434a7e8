use rstest::rstest;

use super::*;
use kubeproof_apimachinery::schema::CauseReason::{self, *};

/// Returns the errors of a schema with only the property `a`.
fn mistakes(property: &Value) -> Vec<(String, CauseReason)> {
    let document = json!({"type": "object", "properties": {"a": property}});
    let errors = validate(&document, false, Path::Root);
    errors.into_iter().map(|error| (error.field, error.reason)).collect()
}

#[rstest]
#[case(json!({"type": "string"}), &[])]
#[case(json!({}), &[("type", FieldValueRequired)])]
#[case(json!({"x-kubernetes-preserve-unknown-fields": true}), &[])]
#[case(json!({"x-kubernetes-preserve-unknown-fields": false, "type": "object"}),
       &[("x-kubernetes-preserve-unknown-fields", FieldValueInvalid)])]
#[case(json!({"x-kubernetes-int-or-string": true}), &[])]
#[case(
    json!({"x-kubernetes-int-or-string": true, "type": "string"}),
    &[]
)]
#[case(
    json!({
        "x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
    }),
    &[]
)]
#[case(json!({"type": "text"}), &[("type", FieldValueNotSupported)])]
#[case(
    json!({
        "type": "object", "properties": {"b": {"type": "string"}},
        "additionalProperties": {"type": "string"},
    }),
    &[("additionalProperties", FieldValueForbidden)]
)]
#[case(
    json!({"type": "object", "additionalProperties": {}}),
    &[("additionalProperties.type", FieldValueRequired)]
)]
#[case(json!({"type": "array"}), &[("items", FieldValueRequired)])]
#[case(json!({"type": "array", "items": {}}), &[("items.type", FieldValueRequired)])]
#[case(
    json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
    &[("uniqueItems", FieldValueForbidden)]
)]
#[case(json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
       &[("x-kubernetes-list-map-keys", FieldValueRequired)])]
#[case(
    json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
    }),
    &[("items.properties[k].default", FieldValueRequired)]
)]
#[case(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
       &[("items.x-kubernetes-map-type", FieldValueInvalid)])]
#[case(json!({"type": "integer", "default": "one"}), &[("default", FieldValueTypeInvalid)])]
#[case(
    json!({"type": "integer", "maximum": 3, "default": 4}),
    &[("default", FieldValueInvalid)]
)]
#[case(json!({"type": "object", "default": {"x": 1}}), &[("default", FieldValueInvalid)])]
#[case(json!({"type": "string", "pattern": "("}), &[("pattern", FieldValueInvalid)])]
#[case(
    json!({"type": "string", "anyOf": [{"type": "string"}]}),
    &[("anyOf[0].type", FieldValueForbidden)]
)]
#[case(json!({"type": "string", "$ref": "#/definitions/x"}), &[("$ref", FieldValueForbidden)])]
fn mistakes_name_their_keyword(#[case] property: Value, #[case] expected: &[(&str, CauseReason)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(keyword, reason)| (format!("properties[a].{keyword}"), *reason))
        .collect();
    assert_eq!(mistakes(&property), expected);
}

#[rstest]
#[case(json!({"type": "string"}), "type")]
#[case(json!({}), "type")]
#[case(
    json!({"type": "object", "additionalProperties": {"type": "string"}}),
    "additionalProperties"
)]
#[case(
    json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
        },
    }),
    "properties[metadata]"
)]
fn the_root_is_an_object_with_metadata_of_its_own(#[case] document: Value, #[case] field: &str) {
    let errors = validate(&document, false, Path::Root);
    assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), [field]);
}
