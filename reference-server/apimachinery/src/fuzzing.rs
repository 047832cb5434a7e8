//! Entry points for fuzzing the parsers of client input.
//!
//! The fuzz targets call these functions with bytes, and the tests below call them with generated
//! text. Each function panics when the input violates an invariant.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::patch;
use crate::request::yaml;
use crate::schema::Schema;
use crate::schema::definitions::Definitions;
use crate::selector::{FieldSelector, LabelSelector};
use crate::serializer::{json, protobuf};

/// The limit for the JSON of a YAML document of a few megabytes, in bytes.
const MOST_OF_YAML: usize = 64 * 1024 * 1024;

/// Checks the strict JSON decoder. Accepted text is valid for `serde_json` too, and survives a
/// round trip.
pub fn json(bytes: &[u8]) {
    let Ok(decoded) = json::decode(bytes) else { return };
    assert!(json::depth(&decoded.value) <= json::MAX_DEPTH);
    let mut theirs = serde_json::Deserializer::from_slice(bytes);
    theirs.disable_recursion_limit();
    let theirs = <Value as serde::Deserialize>::deserialize(&mut theirs).expect("JSON");
    // The only permitted difference: zero compares equal with any sign and fraction.
    let one_zero = |value: &Value| value.to_string().replace("-0.0", "0").replace("0.0", "0");
    assert_eq!(one_zero(&decoded.value), one_zero(&theirs));
    let again =
        json::decode(decoded.value.to_string().as_bytes()).expect("what was written can be read");
    assert_eq!((&again.value, again.duplicates.as_slice()), (&decoded.value, [].as_slice()));
    if let Ok(indented) = json::pretty(&decoded.value, 1 << 20) {
        assert_eq!(json::parse(&indented), Ok(decoded.value));
    }
}

/// Checks the YAML decoder. Its output is bounded, and is JSON.
pub fn yaml(bytes: &[u8]) {
    let Ok(text) = yaml::to_json(bytes) else { return };
    assert!(text.len() <= MOST_OF_YAML, "{} bytes", text.len());
    // The JSON may exceed the depth limit.
    let _ = json::decode(&text);
}

/// Checks the patches. The input is an array of a document and a patch. A patch returns an object
/// or an error, and never an object that exceeds the depth limit.
pub fn patches(bytes: &[u8]) {
    let Ok(Value::Array(both)) = json::parse(bytes) else { return };
    let [document, patch] = both.as_slice() else { return };
    let schema = schema();
    let merged = patch::merge::apply(document, patch);
    if let Ok(merged) = &merged {
        assert_eq!(
            patch::merge::apply(merged, patch).as_ref(),
            Ok(merged),
            "merged twice is merged once"
        );
    }
    let strategic = patch::strategic::apply(document, patch, &schema);
    for patched in [patch::json::apply(document, patch), merged, strategic].into_iter().flatten() {
        let text = patched.to_string();
        assert!(text.len() <= 64 * 1024 * 1024);
    }
}

/// A schema with each kind of list that strategic merge patch supports.
fn schema() -> Schema {
    let list = |strategy: &str, key: &str| {
        json!({
            "type": "array",
            "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "x-kubernetes-patch-strategy": strategy, "x-kubernetes-patch-merge-key": key,
        })
    };
    let mut schema = Schema::from_openapi(&json!({
        "type": "object",
        "properties": {
            "a": list("merge", "k"), "b": list("replace", "k"), "c": list("merge", ""),
        },
    }))
    .expect("a schema");
    // OpenAPI documents cannot declare these keywords. Only built-in types have them.
    for (name, merge_key) in [("a", Some("k")), ("c", None)] {
        if let Some(field) = schema.properties.get_mut(name) {
            let mut list = Schema::clone(field);
            list.patch_strategy.merge = true;
            list.patch_merge_key = merge_key;
            *field = list.into();
        }
    }
    schema
}

/// Checks the protobuf decoder. An object that it accepts survives a round trip.
pub fn protobuf(definitions: &Definitions, bytes: &[u8]) {
    let Ok(object) = protobuf::decode(definitions, bytes, ("v1", "Pod")) else { return };
    let encoded = protobuf::encode(definitions, &object).expect("what was read can be written");
    let again = protobuf::decode(definitions, &encoded, ("", "")).expect("and read again");
    assert_eq!(again, object);
    assert_eq!(protobuf::encode(definitions, &again), Ok(encoded));
}

/// Checks the selectors of both kinds. Each selector that parses can be matched against labels.
pub fn selectors(text: &str) {
    let labels: BTreeMap<String, String> = [("a", ""), ("b", "1"), ("example.com/c", "x")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    if let Ok(selector) = LabelSelector::parse(text) {
        selector.matches(&labels);
        assert!(!selector.is_empty() || text.trim().is_empty());
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        selector.matches(|field| labels.get(field).cloned().unwrap_or_default());
        assert_eq!(selector.is_empty(), text.split(',').all(str::is_empty));
    }
}

/// Checks validation rules. Each rule is rejected or has a cost.
pub fn rules(text: &str) {
    let rule = json!([{ "rule": text, "messageExpression": text }]);
    for kind in ["string", "integer", "array"] {
        let spec = json!({
            "type": kind, "items": { "type": "string" }, "x-kubernetes-validations": rule,
        });
        let _ = Schema::from_openapi(&json!({ "type": "object", "properties": { "spec": spec } }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Builds texts from the tokens of a language. They get further into a parser than random text.
    fn words(words: Vec<&'static str>) -> impl Strategy<Value = String> {
        vec(prop_oneof![8 => select(words).prop_map(str::to_owned), 1 => "\\PC"], 0..20)
            .prop_map(|words| words.concat())
    }

    fn json_text() -> impl Strategy<Value = String> {
        words(vec![
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"a\"",
            "\"a\":",
            "\"\\u00e9\"",
            "\"\\ud800\"",
            "0",
            "-0",
            "-0.0",
            "1e5",
            "1E400",
            "1e-400",
            "9223372036854775808",
            "18446744073709551616",
            "0.1",
            "01",
            "null",
            "true",
            "false",
            " ",
            "\n",
            "{\"a\":1,\"a\":2}",
        ])
    }

    /// A document and a patch that share field names.
    fn patched() -> impl Strategy<Value = String> {
        let names = || {
            select(vec![
                "a",
                "b",
                "c",
                "d",
                "k",
                "$patch",
                "$retainKeys",
                "$setElementOrder/a",
                "$deleteFromPrimitiveList/c",
            ])
        };
        let leaf = prop_oneof![
            Just(json!(null)),
            (0..3).prop_map(Value::from),
            select(vec!["x", "delete", "replace", "merge", "a", "k"]).prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(4, 30, 4, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(names(), inner, 0..4).prop_map(|map| map
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()),
            ]
        });
        (value.clone(), value).prop_map(|(document, patch)| json!([document, patch]).to_string())
    }

    proptest! {
        #[test]
        fn any_json(text in json_text()) {
            json(text.as_bytes());
        }

        #[test]
        fn any_yaml(text in words(vec![
            "a: ", "- ", "? ", "\n", "\n  ", "&a ", "*a", "[", "]", "{", "}", ",", "!!int ",
            "!!binary ", "'", "\"", "|\n ", ">\n ", "---\n", "...\n",
            "<<: ", "~", "0x1f", "1e3", ".inf", ".nan", "#", "%YAML 1.2\n", "null", "yes",
        ])) {
            yaml(text.as_bytes());
        }

        #[test]
        fn any_patch(text in patched()) {
            patches(text.as_bytes());
        }

        #[test]
        fn any_selector(text in words(vec![
            "a", "b=1", "!", "=", "==", "!=", " in ", " notin ", "(", ")", ",", " ", ">", "<", "1",
            "example.com/c", "\\",
        ])) {
            selectors(&text);
        }
    }
}
