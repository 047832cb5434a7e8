//! Conversion of objects to CEL values with the types of the schema.
//!
//! In a field of type number, `1` becomes a CEL double. A date becomes a timestamp. A field
//! whose name is not an identifier has an escaped name. Undeclared fields are hidden.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::Value as Cel;
use cel::common::types::{CelList, CelMap, CelMapKey, CelNull};
use cel::common::value::Val;
use cel::objects::{Key, Map};
use chrono::{DateTime, TimeDelta};
use serde_json::{Number, Value};

use super::super::format::{BASE64, duration};
use super::super::{Format, Kind, ListType, Schema, whole_number};
use super::containers::{Object, Unordered};
use super::size::is_structure;

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

/// Returns the name under which an object stores the field that an expression names.
pub(super) fn canonical(name: &str) -> Option<String> {
    let field = unescaped(name)?;
    Some(escaped(&field).unwrap_or(field))
}

/// Reports whether an expression can name a field in this way. A reserved word needs no escapes
/// after a dot.
pub(super) fn names_field(name: &str, field: &str) -> bool {
    escaped(field).is_some_and(|escaped| escaped == name)
        || name == field && RESERVED.contains(&field)
}

/// Converts `value` to the types that its schema declares.
pub(super) fn typed(schema: &Schema, value: &Value) -> Box<dyn Val> {
    match (schema.kind, value) {
        (Some(Kind::Object), Value::Object(fields)) => match &schema.additional_properties {
            Some(values) if !is_structure(schema) => {
                let entry = |(name, value): (&String, &Value)| {
                    (CelMapKey::String(name.clone().into()), typed(values, value))
                };
                Box::new(CelMap::from(fields.iter().map(entry).collect::<HashMap<_, _>>()))
            }
            _ => Box::new(object(schema, fields)),
        },
        (Some(Kind::Array), Value::Array(items)) => match &schema.items {
            Some(child) => {
                let items = items.iter().map(|item| typed(child, item)).collect();
                match schema.list_type {
                    ListType::Set => Box::new(Unordered::set(items)),
                    ListType::Map => Box::new(Unordered::list_map(items, &schema.list_map_keys)),
                    ListType::Unset | ListType::Atomic => Box::new(CelList::from(items)),
                }
            }
            None => boxed(untyped(value)),
        },
        // An integer may be written with a fraction of zero.
        (Some(Kind::Integer), Value::Number(number)) => boxed(
            number
                .as_i64()
                .or_else(|| number.as_f64().and_then(whole_number))
                .map_or_else(|| double(number), Cel::Int),
        ),
        (Some(Kind::Number), Value::Number(number)) => boxed(double(number)),
        (Some(Kind::String), Value::String(text)) => {
            let formatted = schema.format.as_ref().and_then(|format| formatted(format, text));
            boxed(formatted.unwrap_or_else(|| untyped(value)))
        }
        _ => boxed(untyped(value)),
    }
}

fn object(schema: &Schema, fields: &serde_json::Map<String, Value>) -> Object {
    let (mut declared, mut hidden) = (Vec::new(), BTreeMap::new());
    for (name, value) in fields {
        match schema.properties.get(name).filter(|_| is_visible(schema, name)) {
            Some(child) => {
                let value = (!value.is_null()).then(|| typed(child, value));
                declared.push((name.as_str(), value));
            }
            None => {
                hidden.insert(name.clone(), value.clone());
            }
        }
    }
    Object::new(declared, hidden)
}

fn boxed(value: Cel) -> Box<dyn Val> {
    Box::<dyn Val>::try_from(value).unwrap_or_else(|_| Box::new(CelNull))
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

/// Returns the field of an escaped name. Returns `None` for unknown escapes.
pub(super) fn unescaped(name: &str) -> Option<String> {
    let mut field = String::new();
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let escape = rest.strip_prefix("__").and_then(|rest| {
            let end = rest.find('_').filter(|end| *end > 0)?;
            let tail = rest[end..].strip_prefix("__")?;
            Some((&rest[..end], tail))
        });
        let Some((word, tail)) = escape else {
            field.push(character);
            rest = &rest[character.len_utf8()..];
            continue;
        };
        match word {
            "underscores" => field.push_str("__"),
            "dot" => field.push('.'),
            "dash" => field.push('-'),
            "slash" => field.push('/'),
            word if RESERVED.contains(&word) && word.len() + 4 == name.len() => {
                field.push_str(word);
            }
            _ => return None,
        }
        rest = tail;
    }
    Some(field)
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

    #[rstest]
    #[case("size", Some("size"))]
    #[case("a__dot__b__slash__c__dash__d", Some("a.b/c-d"))]
    #[case("a__underscores__b", Some("a__b"))]
    #[case("a__b", Some("a__b"))]
    #[case("___dot__", Some("_."))]
    #[case("__namespace__", Some("namespace"))]
    #[case("namespace", Some("namespace"))]
    #[case("a__if__", None)]
    #[case("__other__", None)]
    fn escapes_have_one_meaning(#[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(unescaped(name).as_deref(), expected);
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
            "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}));
        let object = json!({
            "ratio": 1, "size": 2.0, "max-size": 3, "when": "2026-01-01T00:00:00Z", "data": "aGk=",
            "port": "http", "nothing": null, "map": {"a": null}, "free": {"a-b": 1},
            "undeclared": 1,
        });
        let object = typed(&schema.unwrap(), &object);
        let fields = Cel::try_from(object.as_ref());
        let Ok(Cel::Map(fields)) = fields else { panic!("an object: {fields:?}") };
        let field = |name: &str| fields.get(&Key::from(name)).cloned();
        assert_eq!(field("ratio"), Some(Cel::Float(1.0)));
        assert_eq!(field("size"), Some(Cel::Int(2)));
        assert_eq!(field("max__dash__size"), Some(Cel::Int(3)));
        assert!(matches!(field("when"), Some(Cel::Timestamp(_))));
        assert_eq!(field("data"), Some(Cel::Bytes(Arc::new(b"hi".to_vec()))));
        assert_eq!(field("nothing"), None);
        assert_eq!(field("undeclared"), None);
        let Some(Cel::Map(map)) = field("map") else { panic!("a map") };
        assert_eq!(map.get(&Key::from("a")), Some(&Cel::Null));
        let Some(Cel::Map(free)) = field("free") else { panic!("an object") };
        assert_eq!(free.get(&Key::from("a-b")), None);
    }
}
