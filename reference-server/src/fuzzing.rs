//! What reads what strangers send, as functions of bytes: for the fuzz targets, and for tests that make the bytes up.
//!
//! Each panics when a rule is broken that holds for all input.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::schema::Schema;
use crate::selector::{FieldSelector, LabelSelector};
use crate::streams;
use crate::{Faults, body, json, patch};

/// What a few megabytes of YAML may stand for at most, in bytes of JSON.
const MOST_OF_YAML: usize = 64 * 1024 * 1024;

/// The strict reader of JSON: what it takes is JSON to others too, and reads the same when it is written again.
pub fn json(bytes: &[u8]) {
    let Ok(decoded) = json::decode(bytes) else { return };
    assert!(json::depth(&decoded.value) <= json::MAX_DEPTH);
    let mut theirs = serde_json::Deserializer::from_slice(bytes);
    theirs.disable_recursion_limit();
    let theirs = <Value as serde::Deserialize>::deserialize(&mut theirs).expect("JSON");
    // The one difference: zero is one number here, whatever its sign and its fraction.
    let one_zero = |value: &Value| value.to_string().replace("-0.0", "0").replace("0.0", "0");
    assert_eq!(one_zero(&decoded.value), one_zero(&theirs));
    let again = json::decode(decoded.value.to_string().as_bytes()).expect("what was written can be read");
    assert_eq!((&again.value, again.duplicates.as_slice()), (&decoded.value, [].as_slice()));
    if let Ok(indented) = json::pretty(&decoded.value, 1 << 20) {
        assert_eq!(json::parse(&indented), Ok(decoded.value));
    }
}

/// A body in YAML: what comes of it is bounded, and is JSON.
pub fn yaml(bytes: &[u8]) {
    let Ok(text) = body::json_of_yaml(bytes, Faults::none()) else { return };
    assert!(text.len() <= MOST_OF_YAML, "{} bytes", text.len());
    // It may be too deep.
    let _ = json::decode(&text);
}

/// A document and a patch, as an array of both: a patch gives an object or a reason, and never one that is too deep to be read.
pub fn patches(bytes: &[u8]) {
    let Ok(Value::Array(both)) = json::parse(bytes) else { return };
    let [document, patch] = both.as_slice() else { return };
    let none = Faults::none();
    let schema = schema();
    let merged = patch::merge::apply(document, patch, none);
    if let Ok(merged) = &merged {
        assert_eq!(
            patch::merge::apply(merged, patch, none).as_ref(),
            Ok(merged),
            "merged twice is merged once"
        );
    }
    let strategic = patch::strategic::apply(document, patch, &schema, none);
    for patched in [patch::json::apply(document, patch, none), merged, strategic].into_iter().flatten() {
        let text = patched.to_string();
        assert!(text.len() <= 64 * 1024 * 1024);
    }
}

/// A schema with each kind of list that a strategic patch knows.
fn schema() -> Schema {
    let list = |strategy: &str, key: &str| {
        json!({ "type": "array", "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                "x-kubernetes-patch-strategy": strategy, "x-kubernetes-patch-merge-key": key })
    };
    let mut schema = Schema::from_openapi(&json!({
        "type": "object",
        "properties": { "a": list("merge", "k"), "b": list("replace", "k"), "c": list("merge", "") },
    }))
    .expect("a schema");
    // Documents of strangers cannot ask for these: they are what built-in types say.
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

/// Selectors of both kinds: whatever is read can be held against labels.
pub fn selectors(text: &str) {
    let labels: BTreeMap<String, String> =
        [("a", ""), ("b", "1"), ("example.com/c", "x")].map(|(key, value)| (key.into(), value.into())).into();
    if let Ok(selector) = LabelSelector::parse(text) {
        selector.matches(&labels, Faults::none());
        assert!(!selector.is_empty() || text.trim().is_empty());
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        selector.matches(|field| labels.get(field).cloned().unwrap_or_default(), Faults::none());
        assert_eq!(selector.is_empty(), text.split(',').all(str::is_empty));
    }
}

/// A validation rule: it is refused, or its price is known.
pub fn rules(text: &str) {
    let rule = json!([{ "rule": text, "messageExpression": text }]);
    for kind in ["string", "integer", "array"] {
        let spec = json!({ "type": kind, "items": { "type": "string" }, "x-kubernetes-validations": rule });
        let _ = Schema::from_openapi(&json!({ "type": "object", "properties": { "spec": spec } }));
    }
}

/// The frames of SPDY and the header blocks in them: the same however the bytes come, and bounded.
pub fn spdy(bytes: &[u8]) {
    let whole = streams::fuzzing::spdy_frames([bytes]);
    let cut = bytes.first().map_or(1, |first| usize::from(*first).max(1));
    assert_eq!(streams::fuzzing::spdy_frames(bytes.chunks(cut)), whole);
}

/// Messages of a WebSocket and the channels in them.
pub fn websocket(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(streams::fuzzing::messages(Bytes::copy_from_slice(bytes)));
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Texts made of the words of a language, which get further than any text.
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

    /// A document and a patch that know each other.
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
                prop::collection::btree_map(names(), inner, 0..4)
                    .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            ]
        });
        (value.clone(), value).prop_map(|(document, patch)| json!([document, patch]).to_string())
    }

    /// Frames whose heads are right more often than not.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let control = (0..12_u8, any::<u8>(), vec(any::<u8>(), 0..20)).prop_map(|(kind, flags, body)| {
            let length = u8::try_from(body.len()).unwrap_or_default();
            [vec![0x80, 3, 0, kind, flags, 0, 0, length], body].concat()
        });
        let data = (0..4_u8, 0..2_u8, vec(any::<u8>(), 0..20)).prop_map(|(stream, flags, body)| {
            let length = u8::try_from(body.len()).unwrap_or_default();
            [vec![0, 0, 0, stream, flags, 0, 0, length], body].concat()
        });
        vec(prop_oneof![4 => control, 4 => data, 1 => vec(any::<u8>(), 0..10)], 0..10)
            .prop_map(|frames| frames.concat())
    }

    /// The same for WebSocket; clients mask.
    fn messages() -> impl Strategy<Value = Vec<u8>> {
        let frame = (
            select(vec![0x80_u8, 0x81, 0x82, 0x01, 0x02, 0x00, 0x88, 0x89, 0x8a, 0xc2]),
            vec(any::<u8>(), 0..126),
        );
        let frame = frame.prop_map(|(head, body)| {
            let length = u8::try_from(body.len()).unwrap_or_default();
            [vec![head, 0x80 | length, 0, 0, 0, 0], body].concat()
        });
        vec(prop_oneof![8 => frame, 1 => vec(any::<u8>(), 0..10)], 0..10).prop_map(|frames| frames.concat())
    }

    proptest! {
        #[test]
        fn any_json(text in json_text()) {
            json(text.as_bytes());
        }

        #[test]
        fn any_yaml(text in words(vec![
            "a: ", "- ", "? ", "\n", "\n  ", "&a ", "*a", "[", "]", "{", "}", ",", "!!int ", "!!binary ", "'", "\"", "|\n ", ">\n ", "---\n", "...\n",
            "<<: ", "~", "0x1f", "1e3", ".inf", ".nan", "#", "%YAML 1.2\n", "null", "yes",
        ])) {
            yaml(text.as_bytes());
        }

        #[test]
        fn any_patch(text in patched()) {
            patches(text.as_bytes());
        }

        #[test]
        fn any_selector(text in words(vec!["a", "b=1", "!", "=", "==", "!=", " in ", " notin ", "(", ")", ",", " ", ">", "<", "1", "example.com/c", "\\"])) {
            selectors(&text);
        }

        #[test]
        fn any_frames_of_spdy(bytes in frames()) {
            spdy(&bytes);
        }

        #[test]
        fn any_messages_of_a_websocket(bytes in messages()) {
            websocket(&bytes);
        }
    }
}
