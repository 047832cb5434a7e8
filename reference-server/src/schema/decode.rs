//! Whether a body can be decoded at all: the types of everything that is typed.
//!
//! The first mismatch ends it, as it does in a decoder, and the answer is 400. A custom resource goes through this for
//! its `metadata` only; the rest of it is data, whose types are a matter of validation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Format, Kind, Path, Schema, quantity};

/// A value that the type cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    /// Where it stands.
    pub field: String,
    /// What is wrong, the field included.
    pub message: String,
}

impl Schema {
    /// Checks that the typed parts of `value` have the types that the schema names.
    pub fn check_types(&self, value: &Value) -> Result<(), TypeError> {
        self.check_node(value, Path::Root, false)
    }

    fn check_node(&self, value: &Value, path: Path<'_>, within_typed: bool) -> Result<(), TypeError> {
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
            let fits = value.is_string() || value.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
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
            (Some(format @ (Format::DateTime | Format::MicroTime)), Some(text)) if !format.accepts(text) => {
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
    STANDARD.decode(text).map(drop).map_err(|reason| {
        let offset = match reason {
            base64::DecodeError::InvalidByte(offset, _)
            | base64::DecodeError::InvalidLastSymbol(offset, _) => offset,
            base64::DecodeError::InvalidLength(offset) => offset,
            base64::DecodeError::InvalidPadding => text.len(),
        };
        error(path, format!("illegal base64 data at input byte {offset} of field {path}"))
    })
}

fn mismatch(value: &Value, path: Path<'_>, expected: &str) -> TypeError {
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
