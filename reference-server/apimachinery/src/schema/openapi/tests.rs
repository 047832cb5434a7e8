use rstest::rstest;

use super::*;
use crate::schema::CauseReason;
use crate::schema::build::{int32, list, object, string};

#[test]
fn a_document_survives_a_round_trip() {
    let document = json!({
        "type": "object",
        "description": "all of it",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {
                    "size": {
                        "type": "integer", "format": "int32", "minimum": 1, "maximum": 9,
                        "default": 3,
                    },
                    "name": {
                        "type": "string", "pattern": "^[a-]$", "minLength": 1, "nullable": true,
                    },
                    "any": {
                        "x-kubernetes-int-or-string": true,
                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                    },
                    "list": {
                        "type": "array", "maxItems": 4,
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                        "items": {
                            "type": "object", "required": ["k"],
                            "properties": {"k": {"type": "string"}},
                        },
                    },
                    "map": {
                        "type": "object", "additionalProperties": {"type": "number"},
                        "x-kubernetes-map-type": "atomic",
                    },
                    "kept": {"type": "string", "externalDocs": {"url": "https://example.com"}},
                },
            },
        },
    });
    assert_eq!(Schema::from_openapi(&document).unwrap().to_openapi(), document);
}

#[test]
fn built_in_types_publish_their_merge_keys() {
    let schema =
        object("Test").need("ports", list(object("Port").need("port", int32())).merge_by("port"));
    assert_eq!(
        schema.field("text", string()).to_openapi()["properties"]["ports"],
        json!({
            "type": "array",
            "items": {
                "type": "object", "required": ["port"],
                "properties": {
                    "port": {"type": "integer", "format": "int32"},
                },
            },
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
            "x-kubernetes-patch-merge-key": "port", "x-kubernetes-patch-strategy": "merge",
        })
    );
}

/// A pattern can have 8 KiB and compile to 8 MiB. A schema can have 1024 different patterns of at
/// most 48 KiB each.
#[rstest]
#[case(1, "a".repeat(8 * 1024), None)]
#[case(1, "a".repeat(8 * 1024 + 1), Some("may not be more than 8192 bytes"))]
#[case(1, r"\w{2}".to_owned(), None)]
#[case(1, r"\w{20}".to_owned(), None)]
#[case(1, r"\w{1000}".to_owned(), None)]
#[case(1, r"(\pL{100}){10}".to_owned(), Some("exceeds the size limit"))]
#[case(1024, "a".to_owned(), None)]
#[case(1025, "a".to_owned(), Some("too large together"))]
#[case(1030, "a".to_owned(), Some("too large together"))]
fn patterns_are_bounded(
    #[case] fields: usize,
    #[case] pattern: String,
    #[case] expected: Option<&str>,
) {
    // Equal patterns count once.
    let differing = |n: usize| if n == 0 { pattern.clone() } else { format!("{pattern}{n}") };
    let field = |n| (format!("f{n}"), json!({"type": "string", "pattern": differing(n)}));
    let document = json!({"properties": (0..fields).map(field).collect::<Map<_, _>>()});
    let errors = Schema::from_openapi(&document).err().unwrap_or_default();
    assert_eq!(errors.len(), usize::from(expected.is_some()), "{errors:?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

#[rstest]
#[case(
    json!({"properties": {"a": {"type": "text"}}}),
    "properties[a].type",
    CauseReason::FieldValueNotSupported
)]
#[case(json!({"items": {"pattern": "("}}), "items.pattern", CauseReason::FieldValueInvalid)]
#[case(json!({"nullable": "yes"}), "nullable", CauseReason::FieldValueInvalid)]
#[case(json!({"properties": {"a": 1}}), "properties[a]", CauseReason::FieldValueInvalid)]
#[case(
    json!({"x-kubernetes-list-type": "bag"}),
    "x-kubernetes-list-type",
    CauseReason::FieldValueNotSupported
)]
fn an_invalid_document_is_rejected_with_its_path(
    #[case] document: Value,
    #[case] field: &str,
    #[case] reason: CauseReason,
) {
    let errors = Schema::from_openapi(&document).unwrap_err();
    assert_eq!((errors[0].field.as_str(), errors[0].reason), (field, reason));
}
