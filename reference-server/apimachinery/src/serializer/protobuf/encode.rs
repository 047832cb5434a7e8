//! Encodes JSON as protobuf.

use serde_json::{Map, Value};

use super::MAX_DEPTH;
use super::envelope::Unknown;
use super::error::EncodeError;
use super::shape::Shape;
use super::{kinds, scalar, wire};
use crate::schema::definitions::{Definition, Definitions, Field, Type};

/// Encodes an object in the envelope of its kind. Fields without a definition are omitted.
pub fn encode(definitions: &Definitions, object: &Value) -> Result<Vec<u8>, EncodeError> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let definition = kinds::find(definitions, api_version, kind).ok_or_else(|| {
        EncodeError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() }
    })?;
    let raw = Encoder { definitions, depth: 0 }.message(definition, object)?;
    Ok(Unknown { api_version, kind, raw: &raw }.to_bytes())
}

/// Encodes a watch event, without the length in front. The event itself has no envelope.
pub fn watch_event(
    definitions: &Definitions,
    event: &str,
    object: &Value,
) -> Result<Vec<u8>, EncodeError> {
    let mut extension = Vec::new();
    wire::bytes(&mut extension, 1, &encode(definitions, object)?);
    let mut out = Vec::with_capacity(extension.len() + 32);
    wire::bytes(&mut out, 1, event.as_bytes());
    wire::bytes(&mut out, 2, &extension);
    Ok(out)
}

#[derive(Clone, Copy)]
struct Encoder<'d> {
    definitions: &'d Definitions,
    /// The nesting depth of messages.
    depth: usize,
}

impl Encoder<'_> {
    fn message(&self, definition: &Definition, value: &Value) -> Result<Vec<u8>, EncodeError> {
        if self.depth == MAX_DEPTH {
            return Err(EncodeError::expected("fewer levels of objects"));
        }
        let field = |number| definition.numbered(number);
        let mut out = Vec::new();
        match (Shape::of(definition), value) {
            (Shape::SchemaOrBool, Value::Bool(allows)) => {
                wire::varint(&mut out, 1, (*allows).into());
            }
            (Shape::SchemaOrBool, schema) => {
                wire::varint(&mut out, 1, 1);
                self.one(field(2), schema, &mut out)?;
            }
            (Shape::SchemaOrList, Value::Array(_)) => self.one(field(2), value, &mut out)?,
            (Shape::SchemaOrList, _) => self.one(field(1), value, &mut out)?,
            (Shape::Object, Value::Object(object)) => self.fields(definition, object, &mut out)?,
            (Shape::Object, _) => return Err(EncodeError::expected("an object")),
        }
        Ok(out)
    }

    fn one(
        &self,
        field: Option<&Field>,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        field.map_or(Ok(()), |field| self.value(&field.ty, field.number, value, out))
    }

    fn fields(
        &self,
        definition: &Definition,
        object: &Map<String, Value>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        for field in definition.fields.iter().filter(|field| field.number > 0) {
            if field.inline {
                self.inline(field, object, out)?;
            } else if let Some(value) = object.get(field.name).filter(|value| !value.is_null()) {
                self.value(&field.ty, field.number, value, out)
                    .map_err(|error| error.below(field.name))?;
            }
        }
        Ok(())
    }

    /// Encodes a message whose fields are fields of the enclosing object in JSON.
    fn inline(
        &self,
        field: &Field,
        object: &Map<String, Value>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let Type::Message(name) = &field.ty else { return Ok(()) };
        let Some(definition) = self.definitions.get(name) else { return Ok(()) };
        let mut message = Vec::new();
        self.fields(definition, object, &mut message)?;
        if !message.is_empty() {
            wire::bytes(out, field.number, &message);
        }
        Ok(())
    }

    fn value(
        &self,
        ty: &Type,
        number: u32,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        match ty {
            Type::List(ty) => {
                let items = value.as_array().ok_or(EncodeError::expected("a list"))?;
                self.items(ty, number, items, out)
            }
            Type::Map(ty) => {
                let object = value.as_object().ok_or(EncodeError::expected("an object"))?;
                for (key, value) in object {
                    let mut entry = Vec::new();
                    wire::bytes(&mut entry, 1, key.as_bytes());
                    self.item(ty, 2, value, &mut entry)?;
                    wire::bytes(out, number, &entry);
                }
                Ok(())
            }
            Type::Message(name) => {
                let message = match self.definitions.get(name) {
                    Some(definition) => {
                        Self { depth: self.depth + 1, ..*self }.message(definition, value)?
                    }
                    None => return Ok(()),
                };
                wire::bytes(out, number, &message);
                Ok(())
            }
            Type::WrappedList(ty) => {
                let items = value.as_array().ok_or(EncodeError::expected("a list"))?;
                let mut wrapper = Vec::new();
                self.items(ty, 1, items, &mut wrapper)?;
                wire::bytes(out, number, &wrapper);
                Ok(())
            }
            ty => scalar::encode(ty, number, value, out),
        }
    }

    fn items(
        &self,
        ty: &Type,
        number: u32,
        items: &[Value],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        for (at, item) in items.iter().enumerate() {
            self.item(ty, number, item, out).map_err(|error| error.below(&format!("[{at}]")))?;
        }
        Ok(())
    }

    /// Encodes an item of a list or map. Null is the zero value.
    fn item(
        &self,
        ty: &Type,
        number: u32,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        if !value.is_null() {
            return self.value(ty, number, value, out);
        }
        match scalar::zero(ty) {
            Value::Null => wire::bytes(out, number, b""),
            zero => return scalar::encode(ty, number, &zero, out),
        }
        Ok(())
    }
}
