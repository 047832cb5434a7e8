use std::sync::Arc;

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::schema::CauseReason::{self, *};

fn schema() -> Schema {
    let document = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "required": ["size"],
            "minProperties": 1,
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 100},
                "even": {
                    "type": "integer", "multipleOf": 2, "exclusiveMaximum": true, "maximum": 10,
                },
                "color": {"type": "string", "enum": ["red", "green"]},
                "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
                "when": {"type": "string", "format": "date-time"},
                "tags": {
                    "type": "array", "maxItems": 2, "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "ports": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port"],
                    "items": {"type": "object", "required": ["port"], "properties": {
                        "port": {"type": "integer"}, "name": {"type": "string", "maxLength": 3},
                    }},
                },
                "labels": {
                    "type": "object", "maxProperties": 2,
                    "additionalProperties": {"type": "string"},
                },
                "any": {"x-kubernetes-int-or-string": true},
                "ratio": {"type": "number"},
                "nullable": {"type": "string", "nullable": true},
                "either": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
            },
        }},
    });
    Schema::from_openapi(&document).unwrap()
}

/// Returns the mistakes of a spec. It gets a valid size unless it sets one.
fn mistakes(mut spec: Value) -> Vec<FieldError> {
    if let Some(fields) = spec.as_object_mut().filter(|fields| !fields.contains_key("size")) {
        fields.insert("size".to_owned(), json!(1));
    }
    schema().validate(&json!({ "spec": spec }), None)
}

#[rstest]
#[case(json!({"size": 100, "color": "green", "name": "abcde", "when": "2024-01-02T03:04:05Z"}))]
#[case(json!({"size": 2.0, "even": 8, "any": 5, "ratio": 1, "nullable": null}))]
#[case(json!({
    "any": "50%", "ratio": 1.5, "tags": ["a", "b"], "ports": [{"port": 1}, {"port": 2}],
}))]
#[case(json!({"labels": {"a": "b"}, "either": {"a": "x"}}))]
fn valid_objects_are_accepted(#[case] spec: Value) {
    assert_eq!(mistakes(spec), []);
}

#[rstest]
#[case(json!("text"), "spec", FieldValueTypeInvalid, "must be of type object: \"string\"")]
#[case(
    json!({"size": "x"}),
    "spec.size",
    FieldValueTypeInvalid,
    "spec.size in body must be of type integer: \"string\""
)]
#[case(
    json!({"size": 1.5}),
    "spec.size",
    FieldValueTypeInvalid,
    "must be of type integer: \"number\""
)]
#[case(
    json!({"size": null}),
    "spec.size",
    FieldValueTypeInvalid,
    "must be of type integer: \"null\""
)]
#[case(
    json!({"size": 0}),
    "spec.size",
    FieldValueInvalid,
    "Invalid value: 0: spec.size in body should be greater than or equal to 1"
)]
#[case(json!({"size": 101}), "spec.size", FieldValueInvalid, "should be less than or equal to 100")]
#[case(json!({"even": 3}), "spec.even", FieldValueInvalid, "should be a multiple of 2")]
#[case(json!({"even": 10}), "spec.even", FieldValueInvalid, "should be less than 10")]
#[case(
    json!({"color": "blue"}),
    "spec.color",
    FieldValueNotSupported,
    "supported values: \"red\", \"green\""
)]
#[case(json!({"name": "ABC"}), "spec.name", FieldValueInvalid, "should match '^[a-z]+$'")]
#[case(json!({"name": "abcdef"}), "spec.name", FieldValueTooLong, "may not be more than 5 bytes")]
#[case(json!({"name": "a"}), "spec.name", FieldValueInvalid, "should be at least 2 chars long")]
#[case(
    json!({"when": "nope"}),
    "spec.when",
    FieldValueTypeInvalid,
    "must be of type date-time: \"nope\""
)]
#[case(
    json!({"tags": ["a", "b", "c"]}),
    "spec.tags",
    FieldValueTooMany,
    "must have at most 2 items"
)]
#[case(
    json!({"tags": ["a", 1]}),
    "spec.tags[1]",
    FieldValueTypeInvalid,
    "must be of type string: \"integer\""
)]
#[case(json!({"tags": ["a", "a"]}), "spec.tags[1]", FieldValueDuplicate, "Duplicate value: \"a\"")]
#[case(
    json!({"ports": [{"port": 1}, {"port": 1}]}),
    "spec.ports[1]",
    FieldValueDuplicate,
    "Duplicate value: {\"port\":1}"
)]
#[case(json!({"ports": [{}]}), "spec.ports[0].port", FieldValueRequired, "Required value")]
#[case(
    json!({"labels": {"a": 1}}),
    "spec.labels.a",
    FieldValueTypeInvalid,
    "must be of type string"
)]
#[case(
    json!({"labels": {"a": "", "b": "", "c": ""}}),
    "spec.labels",
    FieldValueTooMany,
    "at most 2"
)]
#[case(
    json!({"any": true}),
    "spec.any",
    FieldValueTypeInvalid,
    "must be of type integer,string: \"boolean\""
)]
#[case(
    json!({"either": {"a": "x", "b": "y"}}),
    "spec.either",
    FieldValueInvalid,
    "one and only one"
)]
#[case(json!({"either": {}}), "spec.either", FieldValueInvalid, "one and only one")]
fn a_mistake_has_a_field_a_reason_and_a_message(
    #[case] spec: Value,
    #[case] field: &str,
    #[case] reason: CauseReason,
    #[case] message: &str,
) {
    let errors = mistakes(spec);
    let [error] = errors.as_slice() else { panic!("one mistake expected: {errors:?}") };
    assert_eq!((error.field.as_str(), error.reason), (field, reason));
    assert!(error.message.contains(message), "{}", error.message);
}

/// Each limit, on both sides of the boundary.
#[rstest]
#[case(json!({"type": "array", "uniqueItems": true}), json!([1, 2]), json!([1, 1]))]
#[case(json!({"type": "array", "uniqueItems": false}), json!([1, 1]), json!("x"))]
#[case(json!({"type": "array", "minItems": 2}), json!([1, 1]), json!([1]))]
#[case(json!({"type": "object", "minProperties": 1}), json!({"a": 1}), json!({}))]
#[case(json!({"type": "string", "minLength": 2}), json!("ab"), json!("a"))]
#[case(json!({"type": "string", "minLength": 2, "maxLength": 2}), json!("äö"), json!("äöü"))]
#[case(json!({"type": "number", "minimum": 0.5}), json!(0.5), json!(0.25))]
#[case(
    json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}),
    json!(0.75),
    json!(0.5)
)]
#[case(json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}), json!(4), json!(2))]
#[case(json!({"type": "number", "multipleOf": 0.1}), json!(0.3), json!(0.35))]
#[case(json!({"type": "number", "multipleOf": 1}), json!(2), json!(1e-9))]
#[case(
    json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    }),
    json!({"apiVersion": "v1", "kind": "A"}),
    json!({"apiVersion": "v1"})
)]
#[case(
    json!({"type": "integer", "format": "int32"}),
    json!(2_147_483_647),
    json!(2_147_483_648_i64)
)]
#[case(
    json!({"type": "integer", "format": "int32"}),
    json!(-2_147_483_648_i64),
    json!(-2_147_483_649_i64)
)]
#[case(json!({"type": "integer", "format": "int64"}), json!(2_147_483_648_i64), json!(1.5))]
#[case(json!({"type": "number", "format": "float"}), json!(3.4e38), json!(3.5e38))]
#[case(json!({"type": "number", "format": "double"}), json!(3.5e38), json!("x"))]
#[case(json!({"type": "integer", "enum": [1, 2]}), json!(1.0), json!(3))]
#[case(json!({"type": "number", "enum": [1.5]}), json!(1.5), json!(2.5))]
#[case(
    json!({"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^x"}]}),
    json!("x"),
    json!("y")
)]
#[case(
    json!({"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^x"}]}),
    json!("yy"),
    json!("")
)]
#[case(
    json!({"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^x"}]}),
    json!("xy"),
    json!("x")
)]
#[case(json!({"type": "string", "not": {"pattern": "^x"}}), json!("y"), json!("x"))]
fn limits_are_exact(#[case] limit: Value, #[case] good: Value, #[case] bad: Value) {
    let schema =
        Schema::from_openapi(&json!({"type": "object", "properties": {"f": limit}})).unwrap();
    let mistakes = |value: &Value| schema.validate(&json!({ "f": value }), None).len();
    assert_eq!((mistakes(&good), mistakes(&bad)), (0, 1));
}

/// Messages about typed objects show both ends of a range. Null and absent are the same in
/// them.
#[rstest]
#[case(json!(1), &[])]
#[case(json!(65_535), &[])]
#[case(json!(null), &[])]
#[case(json!(0), &["must be between 1 and 65535, inclusive"])]
#[case(json!(65_536), &["must be between 1 and 65535, inclusive"])]
#[case(json!(-7), &["must be between 1 and 65535, inclusive"])]
fn typed_range_messages_show_both_bounds(#[case] port: Value, #[case] expected: &[&str]) {
    let mut schema = Schema::from_openapi(&json!({
        "type": "object",
        "properties": {"port": {"type": "integer", "minimum": 1, "maximum": 65_535}},
    }))
    .unwrap();
    schema.typed = true;
    let errors = schema.validate(&json!({ "port": port }), None);
    let messages: Vec<_> =
        errors.iter().map(|error| error.message.rsplit(": ").next().unwrap_or_default()).collect();
    assert_eq!(messages, expected);
}

/// In a typed object an empty value counts as missing, unless its field keeps empty values.
#[rstest]
#[case(json!({}), &["kept", "list", "text"], &["kept", "list", "text"])]
#[case(json!({"kept": null, "list": null, "text": null}), &[], &["kept", "list", "text"])]
#[case(json!({"kept": "", "list": [], "text": ""}), &[], &["list", "text"])]
#[case(json!({"kept": [], "list": [1], "text": "x"}), &[], &[])]
#[case(json!({"kept": 0, "list": {}, "text": false}), &[], &[])]
fn required_fields_may_not_be_empty_in_typed_objects(
    #[case] value: Value,
    #[case] untyped: &[&str],
    #[case] typed: &[&str],
) {
    let anything = json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true});
    let document = json!({
        "type": "object", "required": ["kept", "list", "text"],
        "properties": {"kept": anything, "list": anything, "text": anything},
    });
    let mut schema = Schema::from_openapi(&document).unwrap();
    Arc::make_mut(schema.properties.get_mut("kept").unwrap()).keep_empty = true;
    for (is_typed, expected) in [(false, untyped), (true, typed)] {
        schema.typed = is_typed;
        let errors = schema.validate(&value, None);
        let missing: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(missing, expected, "typed: {is_typed}");
    }
}

#[rstest]
#[case(json!("1Gi"), true)]
#[case(json!(1), true)]
#[case(json!(0.5), true)]
#[case(json!(true), false)]
fn a_quantity_may_be_a_number(#[case] value: Value, #[case] accepted: bool) {
    let schema = Schema {
        kind: Some(Kind::String),
        format: Some(Format::Quantity),
        typed: true,
        ..Schema::default()
    };
    assert_eq!(schema.validate(&value, None).is_empty(), accepted);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let fields: Vec<_> = mistakes(json!({"size": 0, "color": "blue", "tags": [1]}))
        .into_iter()
        .map(|error| error.field)
        .collect();
    assert_eq!(fields, ["spec.color", "spec.size", "spec.tags[0]"]);
    let errors = schema().validate(&json!({"spec": {"color": "red"}}), None);
    assert_eq!(errors, [FieldError::required("spec.size", "")]);
}

#[test]
fn unchanged_parts_are_not_validated_again() {
    let old = json!({"spec": {"size": 500, "name": "a", "ports": [{"port": 1, "name": "long"}]}});
    let mut new = old.clone();
    new["spec"]["color"] = json!("red");
    new["spec"]["ports"] = json!([{"port": 2}, {"port": 1, "name": "long"}]);
    assert_eq!(schema().validate(&new, Some(&old)), []);
    new["spec"]["ports"][0]["name"] = json!("long");
    assert_eq!(schema().validate(&new, Some(&old))[0].field, "spec.ports[0].name");
    new["spec"]["ports"] = old["spec"]["ports"].clone();
    new["spec"]["size"] = json!(501);
    assert_eq!(schema().validate(&new, Some(&old))[0].field, "spec.size");
}
