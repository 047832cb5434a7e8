//! The keywords of schemas in a manifest.

use serde_json::{Map, Value};

/// All keywords of a schema in a manifest. Others are unknown fields, which the server removes.
const KNOWN: [&str; 46] = [
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "definitions",
    "dependencies",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Removes the unknown fields of a schema.
pub(super) fn drop_unknown(document: &mut Value) {
    let Some(keywords) = document.as_object_mut() else { return };
    keywords.retain(|keyword, value| KNOWN.contains(&keyword.as_str()) && !value.is_null());
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" => {
                for child in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    drop_unknown(child);
                }
            }
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array_mut().into_iter().flatten().for_each(drop_unknown);
            }
            "items" | "additionalProperties" | "not" => drop_unknown(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
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
        drop_unknown(&mut document);
        assert_eq!(
            document,
            json!({
                "type": "object",
                "properties": {"bogus": {"type": "string", "default": {"color": "red"}}},
                "anyOf": [{"required": ["bogus"]}],
            })
        );
    }
}
