//! The keywords of schemas in the manifest of a CRD, with the types of their values.
//!
//! A schema has schemas in it, so the type of a schema cannot be a [`Schema`](super::Schema).

use serde_json::{Map, Value};

use super::Path;
use super::decode::{TypeError, mismatch};

/// The type of the value of a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    /// A text that differs from an absent one if it is empty.
    KeptText,
    Flag,
    /// A flag that differs from an absent one if it is false.
    KeptFlag,
    Number,
    Count,
    Texts,
    Any,
    List,
    Object,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrFlag,
    SchemaOrList,
    Rules,
}

use Shape::{
    Any, Count, Flag, KeptFlag, KeptText, List, Number, Object, Rules, SchemaMap, SchemaOrFlag,
    SchemaOrList, Schemas, Text, Texts,
};

/// All keywords of a schema in a manifest. Others are unknown fields, which the server removes.
const KEYWORDS: [(&str, Shape); 46] = [
    ("$ref", KeptText),
    ("$schema", Text),
    ("additionalItems", SchemaOrFlag),
    ("additionalProperties", SchemaOrFlag),
    ("allOf", Schemas),
    ("anyOf", Schemas),
    ("default", Any),
    ("definitions", SchemaMap),
    ("dependencies", Object),
    ("description", Text),
    ("enum", List),
    ("example", Any),
    ("exclusiveMaximum", Flag),
    ("exclusiveMinimum", Flag),
    ("externalDocs", Object),
    ("format", Text),
    ("id", Text),
    ("items", SchemaOrList),
    ("maxItems", Count),
    ("maxLength", Count),
    ("maxProperties", Count),
    ("maximum", Number),
    ("minItems", Count),
    ("minLength", Count),
    ("minProperties", Count),
    ("minimum", Number),
    ("multipleOf", Number),
    ("not", Shape::Schema),
    ("nullable", Flag),
    ("oneOf", Schemas),
    ("pattern", Text),
    ("patternProperties", SchemaMap),
    ("properties", SchemaMap),
    ("required", Texts),
    ("title", Text),
    ("type", Text),
    ("uniqueItems", Flag),
    ("x-kubernetes-embedded-resource", Flag),
    ("x-kubernetes-int-or-string", Flag),
    ("x-kubernetes-list-map-keys", Texts),
    ("x-kubernetes-list-type", KeptText),
    ("x-kubernetes-map-type", KeptText),
    ("x-kubernetes-patch-merge-key", Text),
    ("x-kubernetes-patch-strategy", Text),
    ("x-kubernetes-preserve-unknown-fields", KeptFlag),
    ("x-kubernetes-validations", Rules),
];

/// The fields of a rule. The text of a rule is always written.
const RULE_FIELDS: [(&str, Shape); 6] = [
    ("fieldPath", Text),
    ("message", Text),
    ("messageExpression", Text),
    ("optionalOldSelf", KeptFlag),
    ("reason", KeptText),
    ("rule", KeptText),
];

/// Removes the unknown keywords of a schema, and the values that are the same as absent ones.
pub fn normalize(document: &mut Value) {
    normalize_fields(document, &KEYWORDS);
}

/// Checks the types of the keywords of a schema at `path`.
///
/// # Errors
///
/// The first value of a wrong type.
pub(super) fn check_types(document: &Value, path: Path<'_>) -> Result<(), TypeError> {
    check_fields(document, &KEYWORDS, path)
}

fn normalize_fields(document: &mut Value, known: &[(&str, Shape)]) {
    let Some(fields) = document.as_object_mut() else { return };
    fields.retain(|name, value| {
        let shape = known.iter().find(|(known, _)| known == name).map(|(_, shape)| *shape);
        shape.is_some_and(|shape| {
            shape.normalize(value);
            !value.is_null() && !shape.is_absent(value)
        })
    });
}

fn check_fields(
    document: &Value,
    known: &[(&str, Shape)],
    path: Path<'_>,
) -> Result<(), TypeError> {
    let fields = match document {
        Value::Object(fields) => fields,
        Value::Null => return Ok(()),
        _ => return Err(mismatch(document, path, "object")),
    };
    for (name, value) in fields {
        if let Some((_, shape)) = known.iter().find(|(known, _)| known == name) {
            shape.check(value, path.field(name))?;
        }
    }
    Ok(())
}

impl Shape {
    fn normalize(self, value: &mut Value) {
        match (self, value) {
            (SchemaMap, Value::Object(map)) => map.values_mut().for_each(normalize),
            (Schemas | SchemaOrList, Value::Array(list)) => list.iter_mut().for_each(normalize),
            (Rules, Value::Array(list)) => {
                for rule in list {
                    normalize_fields(rule, &RULE_FIELDS);
                }
            }
            (Self::Schema | SchemaOrFlag | SchemaOrList, value) => normalize(value),
            _ => {}
        }
    }

    /// Reports whether the server does not write the value.
    fn is_absent(self, value: &Value) -> bool {
        match self {
            Text => value == "",
            Flag => value == false,
            List | Texts | Schemas | Rules => value.as_array().is_some_and(Vec::is_empty),
            SchemaMap => value.as_object().is_some_and(Map::is_empty),
            _ => false,
        }
    }

    fn check(self, value: &Value, path: Path<'_>) -> Result<(), TypeError> {
        let fits = match self {
            _ if value.is_null() => return Ok(()),
            SchemaOrFlag if value.is_boolean() => return Ok(()),
            Self::Schema | SchemaOrFlag => return check_types(value, path),
            SchemaOrList if !value.is_array() => return check_types(value, path),
            Schemas | SchemaOrList | Rules | Texts => return self.check_items(value, path),
            SchemaMap => return check_map(value, path),
            Any => true,
            Text | KeptText => value.is_string(),
            Flag | KeptFlag => value.is_boolean(),
            Number => value.is_number(),
            Count => value.is_i64() || value.is_u64(),
            List => value.is_array(),
            Object => value.is_object(),
        };
        if fits { Ok(()) } else { Err(mismatch(value, path, self.type_name())) }
    }

    fn check_items(self, value: &Value, path: Path<'_>) -> Result<(), TypeError> {
        let Some(items) = value.as_array() else {
            return Err(mismatch(value, path, self.type_name()));
        };
        for (index, item) in items.iter().enumerate() {
            let path = path.index(index);
            match self {
                Rules => check_fields(item, &RULE_FIELDS, path)?,
                Texts => Text.check(item, path)?,
                _ => check_types(item, path)?,
            }
        }
        Ok(())
    }

    fn type_name(self) -> &'static str {
        match self {
            Text | KeptText => "string",
            Flag | KeptFlag => "bool",
            Number => "float64",
            Count => "int64",
            Texts | List | Schemas | Rules => "array",
            Any | Object | Self::Schema | SchemaMap | SchemaOrFlag | SchemaOrList => "object",
        }
    }
}

fn check_map(value: &Value, path: Path<'_>) -> Result<(), TypeError> {
    let Some(schemas) = value.as_object() else {
        return Err(mismatch(value, path, SchemaMap.type_name()));
    };
    schemas.iter().try_for_each(|(name, schema)| check_types(schema, path.key(name)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_that_nobody_knows_are_dropped_and_fields_of_any_name_stay() {
        let mut document = json!({
            "type": "object",
            "bogus": 1,
            "nullable": null,
            "properties": {
                "bogus": {"type": "string", "color": "red", "default": {"color": "red"}},
            },
            "anyOf": [{"bogus": 1, "required": ["bogus"]}],
        });
        normalize(&mut document);
        assert_eq!(
            document,
            json!({
                "type": "object",
                "properties": {"bogus": {"type": "string", "default": {"color": "red"}}},
                "anyOf": [{"required": ["bogus"]}],
            })
        );
    }

    #[test]
    fn empty_values_stay_only_if_they_differ_from_absent_ones() {
        let mut document = json!({
            "format": "", "title": "", "nullable": false, "required": [], "enum": [], "oneOf": [],
            "properties": {}, "maxLength": 0, "x-kubernetes-list-type": "", "default": "",
            "x-kubernetes-preserve-unknown-fields": false, "not": {}, "additionalProperties": false,
            "x-kubernetes-validations": [{"rule": "", "message": "", "optionalOldSelf": false}],
        });
        normalize(&mut document);
        assert_eq!(
            document,
            json!({
                "maxLength": 0, "x-kubernetes-list-type": "", "default": "",
                "x-kubernetes-preserve-unknown-fields": false, "not": {},
                "additionalProperties": false,
                "x-kubernetes-validations": [{"rule": "", "optionalOldSelf": false}],
            })
        );
    }

    #[rstest]
    #[case(json!({"maxLength": "10"}), "maxLength", "string into field maxLength of type int64")]
    #[case(json!({"maxLength": 1.5}), "maxLength", "number 1.5 into field maxLength of type int64")]
    #[case(json!({"exclusiveMaximum": 5}), "exclusiveMaximum", "number into field")]
    #[case(json!({"required": "a"}), "required", "string into field required of type array")]
    #[case(json!({"required": [1]}), "required[0]", "of type string")]
    #[case(json!({"properties": {"a": {"type": 1}}}), "properties[a].type", "of type string")]
    #[case(json!({"items": [{"type": "a"}, 5]}), "items[1]", "of type object")]
    #[case(json!({"anyOf": {}}), "anyOf", "object into field anyOf of type array")]
    #[case(json!({"additionalProperties": "no"}), "additionalProperties", "string into field")]
    #[case(
        json!({"x-kubernetes-validations": [{"rule": true}]}),
        "x-kubernetes-validations[0].rule",
        "bool into field"
    )]
    fn values_of_another_type_are_rejected(
        #[case] document: Value,
        #[case] field: &str,
        #[case] message: &str,
    ) {
        let error = check_types(&document, Path::Root).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.message.contains(message), "{}", error.message);
    }

    #[test]
    fn values_of_the_declared_types_are_accepted() {
        let document = json!({
            "type": "object", "maxLength": 3, "minimum": 1.5, "nullable": true, "default": [1],
            "items": {"type": null}, "additionalProperties": true, "dependencies": {"a": ["b"]},
            "bogus": {"of": "any type"}, "x-kubernetes-validations": [{"rule": "true"}, null],
        });
        assert_eq!(check_types(&document, Path::Root), Ok(()));
    }
}
