//! Parses a text to a value, without the positions that only faults need.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Duplicate, Fault, read};

/// Parses a text that must be exactly one JSON value. Returns the value and its first duplicate
/// key. Of duplicate keys, the last one counts.
pub(crate) fn parse(text: &[u8]) -> Result<(Value, Option<Duplicate>), Fault> {
    // serde_json is several times as fast, and accepts no text that the reader rejects.
    if let Ok(Unique(value)) = serde_json::from_slice(text) {
        return Ok((value, None));
    }
    let mut document = read(text)?;
    let first = (!document.duplicates.is_empty()).then(|| document.duplicates.swap_remove(0));
    Ok((document.into_value(), first))
}

/// A value without duplicate keys.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, Unique(value))) = members.next_entry::<String, Unique>()? {
            if all.insert(key, value).is_some() {
                return Err(A::Error::custom("a duplicate key"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(r#"{"b": [1, -1, 2.5, 18446744073709551615, -0], "a": {"\u00e9": null, "é/": [true]}}"#)]
    #[case("[1e400, 12345678901234567890123]")]
    #[case(r#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 2}"#)]
    #[case("\"\u{e9}\"\n")]
    fn the_value_is_that_of_the_reader(#[case] text: &str) {
        let (value, duplicate) = parse(text.as_bytes()).unwrap();
        let document = read(text.as_bytes()).unwrap();
        assert_eq!(duplicate, document.duplicates.first().cloned());
        assert_eq!(value, document.into_value());
    }

    #[test]
    fn deep_values_are_read() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(parse(deep.as_bytes()).unwrap().0.is_array());
    }

    #[test]
    fn a_fault_has_its_place() {
        let fault = parse(b"{\"a\": [1,]}").unwrap_err();
        assert_eq!(fault.at.byte, 9);
        assert_eq!(parse(b"null").unwrap().0, json!(null));
    }
}
