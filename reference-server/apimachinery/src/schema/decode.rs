//! Type checks of the typed parts of a body.
//!
//! Like a decoder, the check stops at the first mismatch, and the response is 400. In a custom
//! resource it covers only `metadata`. Schema validation checks the types of the other fields.

use serde_json::Value;

use super::format::decode_base64;
use super::{Format, Kind, Path, Schema, keywords, quantity};

/// A value of the wrong JSON type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    /// The path of the value.
    pub field: String,
    /// The message, including the path.
    pub message: String,
}

impl Schema {
    /// Checks that the typed parts of `value` have the JSON types of the schema.
    pub fn check_types(&self, value: &Value) -> Result<(), TypeError> {
        self.check_node(value, Path::Root, false)
    }

    fn check_node(
        &self,
        value: &Value,
        path: Path<'_>,
        within_typed: bool,
    ) -> Result<(), TypeError> {
        if self.is_json_schema {
            return keywords::check_types(value, path);
        }
        let typed = within_typed || self.typed;
        if typed && !value.is_null() && !self.preserve_unknown {
            self.check_scalar(value, path)?;
        }
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    if let Some(schema) = self.child(name) {
                        schema.check_node(field, path.field(name), typed)?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return Ok(()) };
                for (index, item) in items.iter().enumerate() {
                    schema.check_node(item, path.index(index), typed)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_scalar(&self, value: &Value, path: Path<'_>) -> Result<(), TypeError> {
        if self.int_or_string {
            let fits =
                value.is_string() || value.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
            return if fits { Ok(()) } else { Err(mismatch(value, path, "int32 or string")) };
        }
        if self.format == Some(Format::Quantity) {
            return check_quantity(value, path);
        }
        let Some(kind) = self.kind else { return Ok(()) };
        let fits = match kind {
            Kind::Integer => self.holds_integer(value),
            Kind::Number => value.is_number(),
            kind => Kind::of(value) == Some(kind),
        };
        if !fits {
            return Err(mismatch(value, path, self.type_name(kind)));
        }
        match (self.format.as_ref(), value.as_str()) {
            (Some(Format::Byte), Some(text)) => check_base64(text, path),
            (Some(format @ (Format::DateTime | Format::MicroTime)), Some(text))
                if !format.decodes(text) =>
            {
                Err(error(
                    path,
                    format!(
                        "parsing time {} in field {path}: not of the form {}",
                        Value::from(text),
                        format.example()
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    fn holds_integer(&self, value: &Value) -> bool {
        let Some(number) = value.as_i64() else { return false };
        self.format != Some(Format::Int32) || i32::try_from(number).is_ok()
    }

    fn type_name(&self, kind: Kind) -> &'static str {
        match (kind, &self.format) {
            (Kind::Integer, Some(Format::Int32)) => "int32",
            (Kind::Integer, _) => "int64",
            (Kind::Boolean, _) => "bool",
            (kind, _) => kind.as_str(),
        }
    }
}

fn check_quantity(value: &Value, path: Path<'_>) -> Result<(), TypeError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(mismatch(value, path, "quantity")),
    };
    match quantity::canonical(&text) {
        Some(_) => Ok(()),
        None => Err(error(
            path,
            format!(
                "quantities must match the regular expression '{}', field {path} has {}",
                quantity::PATTERN,
                Value::from(text)
            ),
        )),
    }
}

fn check_base64(text: &str, path: Path<'_>) -> Result<(), TypeError> {
    decode_base64(text).map(drop).map_err(|reason| {
        let offset = match reason {
            base64::DecodeError::InvalidByte(offset, _)
            | base64::DecodeError::InvalidLastSymbol(offset, _)
            | base64::DecodeError::InvalidLength(offset) => offset,
            base64::DecodeError::InvalidPadding => text.len(),
        };
        error(path, format!("illegal base64 data at input byte {offset} of field {path}"))
    })
}

pub(super) fn mismatch(value: &Value, path: Path<'_>, expected: &str) -> TypeError {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if expected.starts_with("int") => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    let place = match path {
        Path::Root => "the object".to_owned(),
        path => format!("field {path}"),
    };
    error(path, format!("json: cannot unmarshal {found} into {place} of type {expected}"))
}

fn error(path: Path<'_>, message: String) -> TypeError {
    TypeError { field: path.to_string(), message }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::schema::build::{anything, int_or_string, time};
    use crate::schema::build::{
        boolean, bytes, int32, int64, list, map, micro_time, object, string,
    };
    use crate::schema::meta::with_type_meta;

    fn typed() -> Schema {
        object("Test")
            .field("flag", boolean())
            .field("small", int32())
            .field("large", int64())
            .field("ratio", Schema { kind: Some(Kind::Number), ..Schema::default() })
            .field("data", map(bytes()))
            .field("labels", map(string()))
            .field("items", list(object("Item").field("port", int_or_string())))
            .field("at", time())
            .field("exactly", micro_time())
            .field("free", anything())
            .field("amount", crate::schema::build::quantity())
    }

    #[rstest]
    #[case(json!({"small": 2_147_483_647, "large": 2_147_483_648_i64, "ratio": 1, "flag": true}))]
    #[case(json!({"small": null, "labels": null, "items": [{"port": 1}, {"port": "http"}, null]}))]
    #[case(json!({"data": {"k": "QQ=="}, "amount": 0.5, "free": {"x": [1, "2"]}}))]
    #[case(json!({"at": "2024-01-02T03:04:05+02:00", "exactly": "2024-01-02T03:04:05.000000Z"}))]
    #[case(json!({"unknown": {"of": "any type"}}))]
    fn values_of_the_declared_type_are_accepted(#[case] value: Value) {
        assert_eq!(typed().check_types(&value), Ok(()));
    }

    #[rstest]
    #[case(json!([]), "", "cannot unmarshal array into the object of type object")]
    #[case(json!({"flag": "true"}), "flag", "cannot unmarshal string into field flag of type bool")]
    #[case(
        json!({"small": 2_147_483_648_i64}),
        "small",
        "cannot unmarshal number 2147483648 into field small of type int32"
    )]
    #[case(
        json!({"small": 3.0}),
        "small",
        "cannot unmarshal number 3.0 into field small of type int32"
    )]
    #[case(
        json!({"small": "3"}),
        "small",
        "cannot unmarshal string into field small of type int32"
    )]
    #[case(
        json!({"labels": "str"}),
        "labels",
        "cannot unmarshal string into field labels of type object"
    )]
    #[case(
        json!({"labels": {"a": 1}}),
        "labels.a",
        "cannot unmarshal number into field labels.a of type string"
    )]
    #[case(json!({"items": {}}), "items", "cannot unmarshal object into field items of type array")]
    #[case(json!({"items": [{"port": true}]}), "items[0].port", "cannot unmarshal bool")]
    #[case(json!({"data": {"k": "not base64!"}}), "data.k", "illegal base64 data at input byte 3")]
    #[case(json!({"amount": "abc"}), "amount", "quantities must match the regular expression")]
    #[case(json!({"at": "yesterday"}), "at", "parsing time \"yesterday\"")]
    #[case(json!({"exactly": "2024-01-02T03:04:05Z"}), "exactly", "2006-01-02T15:04:05.000000Z")]
    fn values_of_another_type_are_rejected(
        #[case] value: Value,
        #[case] field: &str,
        #[case] message: &str,
    ) {
        let error = typed().check_types(&value).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.message.contains(message), "{}", error.message);
    }

    #[test]
    fn only_the_metadata_of_a_custom_resource_is_type_checked() {
        let document = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        let schema = with_type_meta(Schema::from_openapi(&document).unwrap());
        assert_eq!(schema.check_types(&json!({"spec": "a string"})), Ok(()));
        assert_eq!(
            schema.check_types(&json!({"metadata": {"name": 1}})).unwrap_err().field,
            "metadata.name"
        );
    }
}
