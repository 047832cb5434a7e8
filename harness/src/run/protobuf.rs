//! Writes messages of protobuf from the numbers and values of their fields.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The start of every body, before the message `runtime.Unknown`.
const MAGIC: &[u8] = b"k8s\0";

/// The wire types of numbers, and of values with a length.
const VARINT: u64 = 0;
const LENGTH: u64 = 2;

/// Puts a message into the envelope of Kubernetes, which names its type.
pub(super) fn enveloped(api_version: &str, kind: &str, message: &Value) -> Bytes {
    let mut body = MAGIC.to_vec();
    field(&mut body, 1, &json!({"1": api_version, "2": kind}));
    field(&mut body, 2, message);
    body.into()
}

/// Appends a field. A list repeats it.
fn field(out: &mut Vec<u8>, number: u64, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(value) => scalar(out, number, u64::from(*value)),
        Value::Number(value) => {
            // A negative number has the bits of its two's complement.
            let bits = value.as_i64().map(i64::cast_unsigned).or_else(|| value.as_u64());
            scalar(out, number, bits.unwrap_or_default());
        }
        Value::String(text) => delimited(out, number, text.as_bytes()),
        Value::Array(items) => {
            for item in items {
                field(out, number, item);
            }
        }
        Value::Object(members) => delimited(out, number, &message(members)),
    }
}

fn message(members: &Map<String, Value>) -> Vec<u8> {
    let mut fields: Vec<(u64, &Value)> =
        members.iter().filter_map(|(number, value)| Some((number.parse().ok()?, value))).collect();
    fields.sort_by_key(|(number, _)| *number);
    let mut out = Vec::new();
    for (number, value) in fields {
        field(&mut out, number, value);
    }
    out
}

fn scalar(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3 | VARINT);
    varint(out, value);
}

fn delimited(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    varint(out, number << 3 | LENGTH);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends seven bits per byte, the lowest first. All bytes but the last have the highest bit.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    let lowest = |value: u64| value.to_le_bytes()[0];
    while value > 0x7f {
        out.push(lowest(value) | 0x80);
        value >>= 7;
    }
    out.push(lowest(value));
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::text(json!({"1": "ab"}), b"\x0a\x02ab")]
    #[case::number(json!({"2": 300}), b"\x10\xac\x02")]
    #[case::negative(json!({"1": -1}), b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")]
    #[case::boolean(json!({"1": true}), b"\x08\x01")]
    #[case::repeated(json!({"3": ["a", "b"]}), b"\x1a\x01a\x1a\x01b")]
    #[case::message(json!({"1": {"1": "a"}}), b"\x0a\x03\x0a\x01a")]
    #[case::fields_by_number(json!({"10": "b", "9": "a"}), b"\x4a\x01a\x52\x01b")]
    #[case::number_of_two_bytes(json!({"16": "a"}), b"\x82\x01\x01a")]
    fn fields_have_their_wire_form(#[case] fields: Value, #[case] expected: &[u8]) {
        assert_eq!(message(fields.as_object().expect("an object")), expected);
    }

    #[test]
    fn long_values_have_a_length_of_several_bytes() {
        let fields = json!({"1": "x".repeat(200)});
        let written = message(fields.as_object().expect("an object"));
        assert_eq!(written[..3], [0x0a, 0xc8, 0x01]);
        assert_eq!(written.len(), 203);
    }

    #[test]
    fn envelopes_name_the_type() {
        let body = enveloped("v1", "ConfigMap", &json!({"2": {"1": "a"}}));
        assert_eq!(*body, *b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x12\x03\x0a\x01a");
    }
}
