//! Conversion of objects to CEL values with the types of the schema.
//!
//! `1` in a field of type number becomes a CEL double, and a date becomes a timestamp. A field
//! whose name is not an identifier has an escaped name. Undeclared fields are omitted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::Value as Cel;
use cel::objects::{Key, Map};
use chrono::{DateTime, TimeDelta};
use serde_json::{Number, Value};

use super::super::format::{BASE64, duration};
use super::super::{Format, Kind, Schema, whole_number};

/// Reserved words of CEL, which cannot be field names.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Returns the name of a field in expressions. Returns `None` if expressions cannot access it.
pub(super) fn escaped(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::new();
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let mut taken = character.len_utf8();
        match character {
            '_' if rest.starts_with("__") => {
                out.push_str("__underscores__");
                taken = 2;
            }
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            'a'..='z' | 'A'..='Z' | '_' => out.push(character),
            '0'..='9' if !out.is_empty() => out.push(character),
            _ => return None,
        }
        rest = &rest[taken..];
    }
    (!out.is_empty()).then_some(out)
}

/// Reports whether expressions can access a field of `metadata`.
pub(super) fn is_visible(schema: &Schema, field: &str) -> bool {
    schema.name != Some("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        || matches!(field, "name" | "generateName")
}

/// Converts `value` to the types that its schema declares.
pub(super) fn typed(schema: &Schema, value: &Value) -> Cel {
    match (schema.kind, value) {
        (Some(Kind::Object), Value::Object(fields))
            if !schema.properties.is_empty() || !schema.preserve_unknown =>
        {
            let field = |(name, value): (&String, &Value)| {
                let declared = schema.properties.get(name).filter(|_| is_visible(schema, name));
                match (declared, &schema.additional_properties) {
                    (Some(schema), _) => Some((escaped(name)?, typed(schema, value))),
                    (None, Some(schema)) => Some((name.clone(), typed(schema, value))),
                    (None, None) => None,
                }
            };
            map(fields.iter().filter_map(field))
        }
        (Some(Kind::Array), Value::Array(items)) => match &schema.items {
            Some(schema) => {
                Cel::List(Arc::new(items.iter().map(|item| typed(schema, item)).collect()))
            }
            None => untyped(value),
        },
        // An integer may be written with a fraction of zero.
        (Some(Kind::Integer), Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_f64().and_then(whole_number))
            .map_or_else(|| double(number), Cel::Int),
        (Some(Kind::Number), Value::Number(number)) => double(number),
        (Some(Kind::String), Value::String(text)) => schema
            .format
            .as_ref()
            .and_then(|format| formatted(format, text))
            .unwrap_or_else(|| untyped(value)),
        _ => untyped(value),
    }
}

fn formatted(format: &Format, text: &str) -> Option<Cel> {
    match format {
        Format::DateTime => DateTime::parse_from_rfc3339(text).ok().map(Cel::Timestamp),
        Format::Date => {
            DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")).ok().map(Cel::Timestamp)
        }
        Format::Duration => {
            duration::nanoseconds(text).map(TimeDelta::nanoseconds).map(Cel::Duration)
        }
        Format::Byte => BASE64.decode(text).ok().map(|bytes| Cel::Bytes(Arc::new(bytes))),
        _ => None,
    }
}

/// Converts a value without a schema.
pub(super) fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => number.as_i64().map_or_else(|| double(number), Cel::Int),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(fields) => {
            map(fields.iter().map(|(name, value)| (name.clone(), untyped(value))))
        }
    }
}

/// Converts a result to JSON. The error is a message for the user.
pub(super) fn to_json(value: &Cel) -> Result<Value, String> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => Value::Bool(*value),
        Cel::Int(number) => (*number).into(),
        Cel::UInt(number) => (*number).into(),
        Cel::Float(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Cel::String(text) => Value::String(text.to_string()),
        Cel::Bytes(bytes) => Value::String(STANDARD.encode(bytes.as_slice())),
        Cel::Timestamp(time) => Value::String(time.to_rfc3339()),
        Cel::List(items) => items.iter().map(to_json).collect::<Result<_, _>>()?,
        Cel::Map(map) => {
            let field = |(key, value): (&Key, &Cel)| match key {
                Key::String(name) => Ok((name.to_string(), to_json(value)?)),
                _ => Err("a map with keys that are no strings".to_owned()),
            };
            let fields = map.map.iter().map(field).collect::<Result<BTreeMap<_, _>, _>>()?;
            Value::Object(fields.into_iter().collect())
        }
        other => return Err(format!("a value of type {} has no JSON form", other.type_of())),
    })
}

/// Returns the field of an escaped name.
pub(super) fn unescaped(name: &str) -> String {
    let inner = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
    if let Some(word) = inner.filter(|word| RESERVED.contains(word)) {
        return word.to_owned();
    }
    let escapes = [("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")];
    let name = escapes.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to));
    name.replace("__underscores__", "__")
}

fn double(number: &Number) -> Cel {
    Cel::Float(number.as_f64().unwrap_or(f64::NAN))
}

fn map(fields: impl Iterator<Item = (String, Cel)>) -> Cel {
    let map: HashMap<Key, Cel> =
        fields.map(|(name, value)| (Key::String(Arc::new(name)), value)).collect();
    Cel::Map(Map { map: Arc::new(map) })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("size", Some("size"))]
    #[case("max-size", Some("max__dash__size"))]
    #[case("a.b/c", Some("a__dot__b__slash__c"))]
    #[case("a__b", Some("a__underscores__b"))]
    #[case("_a", Some("_a"))]
    #[case("namespace", Some("__namespace__"))]
    #[case("9lives", None)]
    #[case("größe", None)]
    #[case("", None)]
    fn field_names_are_escaped(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(escaped(name).as_deref(), expected);
    }

    #[test]
    fn values_have_the_type_of_their_schema() {
        let schema = Schema::from_openapi(&json!({"type": "object", "properties": {
            "ratio": {"type": "number"}, "size": {"type": "integer"},
            "max-size": {"type": "integer"},
            "when": {"type": "string", "format": "date-time"},
            "data": {"type": "string", "format": "byte"},
            "port": {"x-kubernetes-int-or-string": true},
            "nothing": {"type": "string", "nullable": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}));
        let object = json!({
            "ratio": 1, "size": 2.0, "max-size": 3, "when": "2026-01-01T00:00:00Z", "data": "aGk=",
            "port": "http", "nothing": null, "free": {"a-b": 1}, "undeclared": 1,
        });
        let Cel::Map(fields) = typed(&schema.unwrap(), &object) else { panic!("an object") };
        let field = |name: &str| fields.get(&Key::from(name)).cloned();
        assert_eq!(field("ratio"), Some(Cel::Float(1.0)));
        assert_eq!(field("size"), Some(Cel::Int(2)));
        assert_eq!(field("max__dash__size"), Some(Cel::Int(3)));
        assert!(matches!(field("when"), Some(Cel::Timestamp(_))));
        assert_eq!(field("data"), Some(Cel::Bytes(Arc::new(b"hi".to_vec()))));
        assert_eq!(field("nothing"), Some(Cel::Null));
        assert_eq!(field("undeclared"), None);
        let Some(Cel::Map(free)) = field("free") else { panic!("an object") };
        assert_eq!(free.get(&Key::from("a-b")), Some(&Cel::Int(1)));
    }
}
