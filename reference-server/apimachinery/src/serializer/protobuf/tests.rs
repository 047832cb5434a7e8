//! Tests of the codec with a few definitions.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::definitions::Definitions;

const META: &str = "\
package io.k8s.apimachinery.pkg.apis.meta.v1

io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta
  1 name string
  8 creationTimestamp time
  11 labels {}string
  14 finalizers []string

io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions kind=/v1/DeleteOptions
  0 kind string
  1 gracePeriodSeconds int64 keep

io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata
  0 kind string
  1 metadata ObjectMeta
";

const SAMPLE: &str = "\
package io.example.v1

io.example.v1.Sample kind=example.com/v1/Sample
  1 metadata io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta
  2 replicas int32 keep
  3 ready bool
  4 sizes {}quantity
  5 source Source inline
  6 ports []Port
  7 numbers []int64
  8 extra {}wrapped[]string
  9 verbs wrapped[]string
  10 data rawextension
  11 schema JSONSchemaProps
  12 port intorstring
  13 ratios []double
  0 onlyInJson string

io.example.v1.Source
  1 secret Secret
  2 path string

io.example.v1.Secret
  1 value {}bytes
  2 mode int32 keep

io.example.v1.Port
  1 port int32 keep
  2 name string

io.example.v1.JSONSchemaProps
  1 id string
  2 items JSONSchemaPropsOrArray
  3 additionalItems JSONSchemaPropsOrBool
  4 dependencies {}JSONSchemaPropsOrStringArray
  5 default json

io.example.v1.JSONSchemaPropsOrArray
  1 schema JSONSchemaProps
  2 jSONSchemas []JSONSchemaProps

io.example.v1.JSONSchemaPropsOrBool
  1 allows bool keep
  2 schema JSONSchemaProps

io.example.v1.JSONSchemaPropsOrStringArray
  1 schema JSONSchemaProps
  2 property []string
";

fn definitions() -> Definitions {
    Definitions::parse(&[("meta", META), ("sample", SAMPLE)]).expect("definitions")
}

fn sample(fields: &Value) -> Value {
    let mut object = json!({"kind": "Sample", "apiVersion": "example.com/v1"});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object
}

/// Returns the envelope of a message.
fn enveloped(message: &[u8]) -> Vec<u8> {
    let unknown = envelope::Unknown { api_version: "", kind: "", raw: message };
    unknown.to_bytes()
}

fn read(message: &[u8]) -> Result<Value, DecodeError> {
    decode(&definitions(), &enveloped(message), ("example.com/v1", "Sample"))
}

#[rstest::rstest]
#[case::nothing(json!({}))]
#[case::metadata(json!({"metadata": {
    "name": "a", "creationTimestamp": "2026-11-22T21:54:47Z", "labels": {"a": "", "b": "c"},
    "finalizers": ["x", ""],
}}))]
#[case::kept_zero(json!({"replicas": 0, "ready": true}))]
#[case::inlined(json!({"secret": {"value": {"a": "AP8="}, "mode": -1}, "path": "p"}))]
#[case::lists(json!({
    "ports": [{"port": 0}, {"port": 80, "name": "http"}], "numbers": [0, -1, 5], "ratios": [0.5],
}))]
#[case::wrapped(json!({"extra": {"a": [], "b": ["", "x"]}, "verbs": []}))]
#[case::special(json!({"sizes": {"cpu": "100m"}, "port": "http", "data": {"x": [null]}}))]
#[case::embedded_text(json!({"data": "k8s"}))]
#[case::schema(json!({"schema": {
    "items": {"id": "a"}, "additionalItems": false, "default": [1],
    "dependencies": {"a": ["b"], "c": {"id": "d"}},
}}))]
#[case::schemas(json!({"schema": {
    "items": [{"id": "a"}, {}], "additionalItems": {"id": "b", "additionalItems": true},
}}))]
fn objects_survive_a_round_trip(#[case] fields: Value) {
    let object = sample(&fields);
    let bytes = encode(&definitions(), &object).unwrap();
    assert_eq!(decode(&definitions(), &bytes, ("", "")), Ok(object));
}

#[test]
fn values_that_protobuf_lacks_disappear() {
    let object = sample(&json!({
        "onlyInJson": "a", "unknown": 1, "ready": false, "ports": [], "sizes": {}, "verbs": null,
        "metadata": {"creationTimestamp": null},
    }));
    let bytes = encode(&definitions(), &object).unwrap();
    let expected = sample(&json!({"metadata": {}}));
    assert_eq!(decode(&definitions(), &bytes, ("", "")), Ok(expected));
}

#[test]
fn repeated_messages_are_merged_and_the_last_scalar_counts() {
    let mut message = Vec::new();
    // metadata.name, metadata.finalizers, metadata.name
    for metadata in [b"\x0a\x01a".as_slice(), b"\x72\x01x", b"\x0a\x01b\x72\x01y"] {
        wire::bytes(&mut message, 1, metadata);
    }
    wire::varint(&mut message, 3, 1);
    wire::varint(&mut message, 3, 0);
    // source.path in two parts
    wire::bytes(&mut message, 5, b"\x12\x01p");
    wire::bytes(&mut message, 5, b"\x0a\x00");
    let expected = json!({
        "metadata": {"name": "b", "finalizers": ["x", "y"]}, "path": "p", "secret": {},
    });
    assert_eq!(read(&message), Ok(sample(&expected)));
}

#[test]
fn numbers_are_packed_or_not_and_unknown_fields_are_skipped() {
    let mut message = Vec::new();
    wire::varint(&mut message, 7, 1);
    wire::bytes(&mut message, 7, &[2, 3]);
    wire::varint(&mut message, 7, 4);
    wire::bytes(&mut message, 13, &[0.5_f64, 1.0].map(f64::to_le_bytes).concat());
    wire::bytes(&mut message, 99, b"unknown");
    wire::double(&mut message, 100, 1.0);
    let expected = json!({"numbers": [1, 2, 3, 4], "ratios": [0.5, 1.0]});
    assert_eq!(read(&message), Ok(sample(&expected)));
}

#[test]
fn entries_without_key_or_value_have_zero_values() {
    let mut message = Vec::new();
    wire::bytes(&mut message, 8, b"\x0a\x01a");
    wire::bytes(&mut message, 4, b"");
    wire::bytes(&mut message, 5, b"\x0a\x02\x0a\x00");
    let expected = json!({
        "extra": {"a": []}, "sizes": {"": "0"}, "secret": {"value": {"": ""}},
    });
    assert_eq!(read(&message), Ok(sample(&expected)));
}

#[test]
fn an_embedded_object_may_be_protobuf() {
    let inner = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
    let mut message = Vec::new();
    let mut extension = Vec::new();
    wire::bytes(&mut extension, 1, &encode(&definitions(), &inner).unwrap());
    wire::bytes(&mut message, 10, &extension);
    assert_eq!(read(&message), Ok(sample(&json!({"data": inner}))));
}

#[test]
fn options_and_metadata_are_kinds_of_every_group() {
    for (api_version, kind) in
        [("policy/v1", "DeleteOptions"), ("meta.k8s.io/v1beta1", "PartialObjectMetadata")]
    {
        assert!(is_known(&definitions(), api_version, kind), "{api_version} {kind}");
    }
    for api_version in ["v1", "example.com/v1"] {
        assert!(!is_known(&definitions(), api_version, "ObjectMeta"), "{api_version}");
    }
    let error = encode(&definitions(), &json!({"kind": "Foo"})).unwrap_err();
    assert_eq!(error.to_string(), r#"no protobuf message for kind "Foo" in version """#);
}

#[rstest::rstest]
#[case::string(&[0x0a, 0x03, 0x0a, 0x01, 0xff], "metadata.name: a string is not UTF-8")]
#[case::item(&[0x32, 0x00, 0x32, 0x02, 0x0a, 0x00], "ports[1].port: wrong wire type")]
#[case::end(&[0x32, 0x02, 0x08], "unexpected end of data")]
#[case::inline(&[0x28, 0x02], "source: wrong wire type")]
#[case::json(&[0x52, 0x03, 0x0a, 0x01, b'{'], "data: malformed JSON: unexpected end of JSON input")]
fn errors_have_the_path_of_their_field(#[case] message: &[u8], #[case] expected: &str) {
    assert_eq!(read(message).unwrap_err().to_string(), expected);
}

#[test]
fn an_error_of_a_value_has_its_path() {
    let object = sample(&json!({"ports": [{"port": 1}, {"port": "http"}]}));
    let error = encode(&definitions(), &object).unwrap_err();
    assert_eq!(error.to_string(), "ports[1].port: expected an integer of 32 bits");
}

#[test]
fn nesting_is_limited() {
    let nested = |levels: usize| {
        let mut schema = Vec::new();
        for _ in 0..levels {
            let mut list = Vec::new();
            wire::bytes(&mut list, 2, &schema);
            schema = Vec::new();
            wire::bytes(&mut schema, 2, &list);
        }
        let mut message = Vec::new();
        wire::bytes(&mut message, 11, &schema);
        read(&message)
    };
    let value = nested(32).unwrap();
    assert_eq!(crate::serializer::json::depth(&value), 66);
    let error = nested(10_000).unwrap_err();
    assert!(error.to_string().ends_with("exceeded max depth"), "{error:.100}");
}

#[test]
fn objects_with_too_many_levels_have_no_encoding() {
    let mut schema = json!({});
    while crate::serializer::json::depth(&schema) < crate::serializer::json::MAX_DEPTH {
        schema = json!({"items": [schema]});
    }
    let error = encode(&definitions(), &sample(&json!({"schema": schema}))).unwrap_err();
    assert!(error.to_string().ends_with("expected fewer levels of objects"), "{error:.100}");
}

#[test]
fn a_watch_event_has_an_enveloped_object_and_no_envelope() {
    let object = sample(&json!({"replicas": 1}));
    let event = watch_event(&definitions(), "ADDED", &object).unwrap();
    let object = encode(&definitions(), &object).unwrap();
    let mut expected = b"\x0a\x05ADDED\x12".to_vec();
    expected.push(u8::try_from(object.len() + 2).unwrap());
    expected.extend([0x0a, u8::try_from(object.len()).unwrap()]);
    expected.extend(object);
    assert_eq!(event, expected);
}

/// Fields of the sample with any content. They get further into the decoder than random bytes.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop::collection::vec(any::<u8>(), 0..8);
    leaf.prop_recursive(4, 40, 6, |inner| {
        let field =
            (1..15_u8, 0..4_u8, inner, any::<u64>()).prop_map(|(number, form, value, bits)| {
                let mut field = Vec::new();
                match form {
                    0 => wire::varint(&mut field, number.into(), bits),
                    1 => wire::double(&mut field, number.into(), f64::from_bits(bits)),
                    _ => wire::bytes(&mut field, number.into(), &value),
                }
                field
            });
        prop::collection::vec(field, 0..6).prop_map(|fields| fields.concat())
    })
}

proptest! {
    #[test]
    fn any_bytes_are_an_object_or_an_error(message in message()) {
        let (api_version, kind) = ("example.com/v1", "Sample");
        let unknown = envelope::Unknown { api_version, kind, raw: &message };
        crate::fuzzing::protobuf(&definitions(), &unknown.to_bytes());
    }
}
