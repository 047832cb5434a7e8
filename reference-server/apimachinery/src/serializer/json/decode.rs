//! The strict decoder. It returns a tree of [`Value`] and the paths of duplicate keys.

use std::fmt::{self, Write as _};
use std::mem;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Number, Value};

/// The maximum nesting depth of arrays and objects.
///
/// kube-apiserver permits 10,000 levels. Validation, comparison and drop take a stack frame for
/// each level, so this limit is lower. No schema describes objects near it.
pub const MAX_DEPTH: usize = 500;

/// The levels that managed fields add to an object: their path, and that of the field.
const MANAGED_DEPTH: usize = 16;

/// The maximum total size of the keys on the path to a value, in bytes. Each mistake reports its
/// path, and a body can contain as many mistakes as bytes.
const MAX_PATH: usize = 16 * 1024;

/// The maximum number of recorded duplicates. It limits the memory for the warnings about one body.
const MAX_DUPLICATES: usize = 100;
/// The maximum total size of the paths that are checked for duplicates, in bytes.
const MAX_PATHS: usize = 1024 * 1024;

/// A decoded body.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The tree. A duplicate key has its last value.
    pub value: Value,
    /// The paths of duplicate keys, such as `spec.containers[0].name`, in the order of the body.
    pub duplicates: Vec<String>,
}

/// The reason why a body is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body is empty or contains only white space.
    #[error("unexpected end of JSON input (<empty>)")]
    Empty,
    /// The text ends inside a value.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`].
    #[error("exceeded max depth of {MAX_DEPTH}")]
    TooDeep,
    /// The keys on the path to a value exceed 16 KiB in total.
    #[error("exceeded max length of a path, {MAX_PATH} bytes")]
    TooLong,
    /// The text is not JSON, contains more than one value, or contains a number outside the range
    /// of a double.
    #[error("{message} at line {line} column {column}")]
    Syntax {
        /// The message of the parser.
        message: String,
        /// The line of the error, from 1.
        line: usize,
        /// The column of the error in bytes, from 1.
        column: usize,
    },
}

/// Decodes `bytes`, which must contain exactly one JSON value.
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(DecodeError::Empty);
    }
    read(bytes, &mut Notes::default())
}

/// Decodes text that this server wrote or encoded. It ignores duplicates. Managed fields can make
/// an accepted object deeper, and their keys contain values of the object.
pub fn parse(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut notes = Notes { is_own: true, ..Notes::default() };
    read(bytes, &mut notes).map(|decoded| decoded.value)
}

fn read(bytes: &[u8], notes: &mut Notes) -> Result<Decoded, DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    deserializer.disable_recursion_limit();
    let root = Node { place: Place::Root, depth: 0, length: 0, notes: &mut *notes };
    let result =
        root.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    match result {
        Ok(value) => Ok(Decoded { value, duplicates: mem::take(&mut notes.duplicates) }),
        Err(_) if notes.too_deep => Err(DecodeError::TooDeep),
        Err(_) if notes.too_long => Err(DecodeError::TooLong),
        Err(error) => Err(error.into()),
    }
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        if error.classify() == Category::Eof {
            return Self::UnexpectedEnd;
        }
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        Self::Syntax { message, line: error.line(), column: error.column() }
    }
}

/// The findings of the decoder besides the tree.
#[derive(Default)]
struct Notes {
    /// The text comes from this server.
    is_own: bool,
    duplicates: Vec<String>,
    /// The size of the paths that were checked, in bytes.
    checked_bytes: usize,
    too_deep: bool,
    too_long: bool,
}

/// The path of a value: a linked list on the stack. The text is built only for a duplicate.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Key(Place::Root, key) => f.write_str(key),
            Place::Key(parent, key) => write!(f, "{parent}.{key}"),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Node<'a> {
    place: Place<'a>,
    depth: usize,
    /// The total size of the keys above, in bytes.
    length: usize,
    notes: &'a mut Notes,
}

impl Node<'_> {
    fn enter<E: de::Error>(&mut self) -> Result<(), E> {
        let more = if self.notes.is_own { MANAGED_DEPTH } else { 0 };
        if self.depth == MAX_DEPTH + more {
            self.notes.too_deep = true;
            return Err(E::custom("too deep"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // The parser does not accept minus zero as an integer. All other code treats it as zero.
        if value == 0.0 {
            return Ok(0.into());
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Node {
            place: Place::Index(&self.place, items.len()),
            depth: self.depth + 1,
            length: self.length,
            notes: self.notes,
        })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let place = Place::Key(&self.place, &key);
            let length = self.length + key.len();
            if !self.notes.is_own && length > MAX_PATH {
                self.notes.too_long = true;
                return Err(de::Error::custom("too long"));
            }
            if !self.notes.is_own
                && self.notes.duplicates.len() < MAX_DUPLICATES
                && self.notes.checked_bytes < MAX_PATHS
                && object.contains_key(&key)
            {
                let mut path = String::new();
                write!(path, "{place}").map_err(de::Error::custom)?;
                self.notes.checked_bytes += path.len();
                if !self.notes.duplicates.contains(&path) {
                    self.notes.duplicates.push(path);
                }
            }
            let node = Node { place, depth: self.depth + 1, length, notes: self.notes };
            let value = access.next_value_seed(node)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_of_two_equal_keys_wins_and_its_path_is_reported_once() {
        let text = br#"{"data":{"a":"1","a":"2","a":"3"},"items":[{"x":0},{"x":1,"x":2}]}"#;
        let decoded = decode(text).unwrap();
        assert_eq!(decoded.value, json!({"data": {"a": "3"}, "items": [{"x": 0}, {"x": 2}]}));
        assert_eq!(decoded.duplicates, ["data.a", "items[1].x"]);
    }

    #[test]
    fn literals_are_values() {
        assert_eq!(parse(b"[true, false, null]").unwrap(), json!([true, false, null]));
    }

    #[test]
    fn integers_stay_exact_and_doubles_stay_doubles() {
        let value =
            parse(br"[9223372036854775807,-9223372036854775808,18446744073709551615,3.0,1e0]")
                .unwrap();
        assert_eq!(value[0].as_i64(), Some(i64::MAX));
        assert_eq!(value[1].as_i64(), Some(i64::MIN));
        assert_eq!(value[2].as_u64(), Some(u64::MAX));
        assert!(value[3].is_f64() && value[4].is_f64(), "{value}");
    }

    #[test]
    fn nesting_beyond_the_limit_is_rejected_without_stack_overflow() {
        let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
        assert!(decode(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(decode(&nested(MAX_DEPTH + 1)), Err(DecodeError::TooDeep));
        assert_eq!(decode(&b"[".repeat(3_000_000)), Err(DecodeError::TooDeep));
        assert_eq!(decode(&br#"{"a":"#.repeat(1_000_000)), Err(DecodeError::TooDeep));
    }

    #[rstest::rstest]
    #[case::empty("", "unexpected end of JSON input (<empty>)")]
    #[case::blank(" \n", "unexpected end of JSON input (<empty>)")]
    #[case::cut_off("{\"kind\":", "unexpected end of JSON input")]
    #[case::word("nonsense", "expected ident at line 1 column 2")]
    #[case::trailing("{} trailing", "trailing characters at line 1 column 4")]
    #[case::two_values("{}{}", "trailing characters at line 1 column 3")]
    #[case::byte_order_mark("\u{feff}{}", "expected value at line 1 column 1")]
    #[case::comma("[1,]", "trailing comma at line 1 column 4")]
    #[case::huge("1e400", "number out of range at line 1 column 5")]
    fn text_that_is_not_one_json_value_is_rejected(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(decode(text.as_bytes()).unwrap_err().to_string(), expected);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_rejected() {
        let error = decode(b"{\"a\":\"\xff\"}").unwrap_err();
        assert!(matches!(error, DecodeError::Syntax { line: 1, .. }), "{error}");
    }

    #[test]
    fn the_total_size_of_the_keys_on_a_path_is_limited() {
        let nested = |length: usize| {
            format!(r#"{{"{}":[{{"{}":0}}]}}"#, "a".repeat(length), "b".repeat(100))
        };
        assert!(decode(nested(MAX_PATH - 100).as_bytes()).is_ok());
        assert_eq!(decode(nested(MAX_PATH - 99).as_bytes()), Err(DecodeError::TooLong));
        // Sibling keys do not add up to a path.
        let wide = (0..20)
            .map(|n| format!(r#""{n}{}":0"#, "a".repeat(1000)))
            .collect::<Vec<_>>()
            .join(",");
        assert!(decode(format!("{{{wide}}}").as_bytes()).is_ok());
    }

    #[test]
    fn own_text_may_be_deeper_and_have_longer_keys() {
        let long = format!(r#"{{"{}":0}}"#, "a".repeat(MAX_PATH + 1));
        assert_eq!(decode(long.as_bytes()), Err(DecodeError::TooLong));
        assert!(parse(long.as_bytes()).is_ok());
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let deep = nested(MAX_DEPTH + MANAGED_DEPTH);
        assert_eq!(decode(deep.as_bytes()), Err(DecodeError::TooDeep));
        assert!(parse(deep.as_bytes()).is_ok());
        let deeper = nested(MAX_DEPTH + MANAGED_DEPTH + 1);
        assert_eq!(parse(deeper.as_bytes()), Err(DecodeError::TooDeep));
    }

    #[test]
    fn the_work_for_a_repeated_key_is_limited() {
        let key = "k".repeat(MAX_PATH - 10);
        let pairs = vec![format!(r#""{key}":0"#); 150].join(",");
        let text = format!(r#"{{{pairs},"b":1,"b":2}}"#);
        assert_eq!(decode(text.as_bytes()).unwrap().duplicates, [key]);
    }

    #[test]
    fn the_number_of_reported_duplicates_is_limited() {
        let pairs =
            (0..500).map(|i| format!("\"k{i}\":0,\"k{i}\":1")).collect::<Vec<_>>().join(",");
        let decoded = decode(format!("{{{pairs}}}").as_bytes()).unwrap();
        assert_eq!(decoded.duplicates.len(), MAX_DUPLICATES);
    }
}
