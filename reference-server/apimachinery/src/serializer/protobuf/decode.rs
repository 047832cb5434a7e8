//! Decodes protobuf into JSON.

use serde_json::{Map, Value};

use super::MAX_DEPTH;
use super::envelope::{MAGIC, Unknown};
use super::error::{DecodeError, Problem};
use super::shape::Shape;
use super::wire::{Fields, Wire};
use super::{kinds, scalar, text};
use crate::schema::definitions::{Definition, Definitions, Field, Type};
use crate::serializer::json;

/// Decodes an enveloped object. An envelope without version or kind has those of `default`, a pair
/// of API version and kind.
pub fn decode(
    definitions: &Definitions,
    bytes: &[u8],
    default: (&str, &str),
) -> Result<Value, DecodeError> {
    enveloped(definitions, bytes, default, 0)
}

fn enveloped(
    definitions: &Definitions,
    bytes: &[u8],
    default: (&str, &str),
    depth: usize,
) -> Result<Value, DecodeError> {
    let unknown = Unknown::parse(bytes)?;
    let or = |found, default| if str::is_empty(found) { default } else { found };
    let (api_version, kind) = (or(unknown.api_version, default.0), or(unknown.kind, default.1));
    let definition = kinds::find(definitions, api_version, kind).ok_or_else(|| {
        DecodeError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() }
    })?;
    let mut object = Map::new();
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), api_version.into());
    Decoder { definitions }.fields(definition, unknown.raw, &mut object, depth + 1)?;
    Ok(Value::Object(object))
}

struct Decoder<'d> {
    definitions: &'d Definitions,
}

impl Decoder<'_> {
    /// Decodes the fields of a message into an object, which may have fields already. `depth` is
    /// the nesting depth of the object.
    fn fields(
        &self,
        definition: &Definition,
        message: &[u8],
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        if depth > MAX_DEPTH {
            return Err(Problem::TooDeep.into());
        }
        let mut fields = Fields::of(message);
        while let Some((number, wire)) = fields.next()? {
            let Some(field) = definition.numbered(number) else { continue };
            if !field.inline {
                self.field(field, wire, object, depth).map_err(|error| error.below(field.name))?;
            } else if let (Type::Message(name), Wire::Bytes(message)) = (&field.ty, wire) {
                if let Some(definition) = self.definitions.get(name) {
                    self.fields(definition, message, object, depth + 1)?;
                }
            } else {
                return Err(DecodeError::from(Problem::WireType).below(field.name));
            }
        }
        Ok(())
    }

    fn field(
        &self,
        field: &Field,
        wire: Wire<'_>,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        // A message in two parts is merged. Of two scalars, the last one counts.
        let mut value = object.remove(field.name).unwrap_or_default();
        self.merge(&field.ty, wire, &mut value, depth)?;
        let omitted = match &field.ty {
            // Packed numbers may be empty, which is an absent list.
            Type::List(_) => value.as_array().is_some_and(Vec::is_empty),
            Type::Message(_) => false,
            _ => !field.keep_empty && scalar::is_zero(&value),
        };
        if !value.is_null() && !omitted {
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    /// Adds an occurrence of a field to its value. Null is the value of an absent field.
    fn merge(
        &self,
        ty: &Type,
        wire: Wire<'_>,
        value: &mut Value,
        depth: usize,
    ) -> Result<(), DecodeError> {
        match ty {
            Type::List(ty) => return self.items(ty, wire, list(value), depth + 1),
            Type::WrappedList(ty) => {
                let Wire::Bytes(message) = wire else { return Err(Problem::WireType.into()) };
                let (mut fields, items) = (Fields::of(message), list(value));
                while let Some((number, wire)) = fields.next()? {
                    if number == 1 {
                        self.items(ty, wire, items, depth + 1)?;
                    }
                }
            }
            Type::Map(ty) => {
                if value.is_null() {
                    *value = Value::Object(Map::new());
                }
                let Value::Object(entries) = value else { return Ok(()) };
                let Wire::Bytes(message) = wire else { return Err(Problem::WireType.into()) };
                let (key, value) = self.entry(ty, message, depth + 1)?;
                entries.insert(key, value);
            }
            Type::Message(name) => {
                let Wire::Bytes(message) = wire else { return Err(Problem::WireType.into()) };
                if let Some(definition) = self.definitions.get(name) {
                    return self.message(definition, message, value, depth);
                }
            }
            Type::RawExtension => {
                let Wire::Bytes(message) = wire else { return Err(Problem::WireType.into()) };
                *value = self.extension(scalar::bytes(message)?, depth)?;
            }
            ty => *value = scalar::decode(ty, wire)?.unwrap_or_default(),
        }
        if matches!(ty, Type::Json | Type::FieldsV1) && depth + json::depth(value) > json::MAX_DEPTH
        {
            return Err(Problem::TooDeep.into());
        }
        Ok(())
    }

    fn message(
        &self,
        definition: &Definition,
        message: &[u8],
        value: &mut Value,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let shape = Shape::of(definition);
        let mut object = match (shape, value.take()) {
            (Shape::Object, Value::Object(object)) => object,
            _ => Map::new(),
        };
        self.fields(definition, message, &mut object, depth + 1)?;
        let mut member = |number| object.remove(definition.numbered(number)?.name);
        *value = match shape {
            Shape::Object => Value::Object(object),
            Shape::SchemaOrBool => member(2).or_else(|| member(1)).unwrap_or(Value::Bool(false)),
            Shape::SchemaOrList => member(2).or_else(|| member(1)).unwrap_or_default(),
        };
        Ok(())
    }

    /// Adds one item, or many numbers of one packed field.
    fn items(
        &self,
        ty: &Type,
        wire: Wire<'_>,
        items: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut add = |wire| {
            let mut item = Value::Null;
            self.merge(ty, wire, &mut item, depth)
                .map_err(|error| error.below(&format!("[{}]", items.len())))?;
            items.push(item);
            Ok::<_, DecodeError>(())
        };
        let Wire::Bytes(packed) = wire else { return add(wire) };
        if !scalar::packs(ty) {
            return add(wire);
        }
        let mut numbers = Fields::of(packed);
        while let Some(number) = numbers.packed(*ty == Type::Double)? {
            add(number)?;
        }
        Ok(())
    }

    /// Decodes an entry of a map. An absent key or value is the zero value.
    fn entry(
        &self,
        ty: &Type,
        message: &[u8],
        depth: usize,
    ) -> Result<(String, Value), DecodeError> {
        let (mut key, mut value) = (String::new(), Value::Null);
        let mut fields = Fields::of(message);
        while let Some((number, wire)) = fields.next()? {
            match (number, wire) {
                (1, wire) => {
                    if let Some(Value::String(text)) = scalar::decode(&Type::String, wire)? {
                        key = text;
                    }
                }
                (2, wire) => self.merge(ty, wire, &mut value, depth)?,
                _ => {}
            }
        }
        if value.is_null() {
            value = self.absent(ty);
        }
        Ok((key, value))
    }

    fn absent(&self, ty: &Type) -> Value {
        match ty {
            Type::List(_) | Type::WrappedList(_) => Value::Array(Vec::new()),
            Type::Map(_) => Value::Object(Map::new()),
            Type::Message(name) => match self.definitions.get(name).map(Shape::of) {
                Some(Shape::SchemaOrBool) => Value::Bool(false),
                Some(Shape::SchemaOrList) => Value::Null,
                Some(Shape::Object) | None => Value::Object(Map::new()),
            },
            ty => scalar::zero(ty),
        }
    }

    /// Decodes an embedded object: JSON, or protobuf in an envelope.
    fn extension(&self, raw: &[u8], depth: usize) -> Result<Value, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(Problem::TooDeep.into());
        }
        let value = if raw.starts_with(&MAGIC) {
            enveloped(self.definitions, raw, ("", ""), depth)
                .map_err(|error| Problem::Embedded(Box::new(error)))?
        } else {
            text::parse(raw)?.unwrap_or_default()
        };
        if depth + json::depth(&value) > json::MAX_DEPTH {
            return Err(Problem::TooDeep.into());
        }
        Ok(value)
    }
}

/// Returns the items of a list. The value becomes a list if it is not one.
fn list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => items,
        _ => unreachable!("the value is a list"),
    }
}
