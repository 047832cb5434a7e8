//! The static types of expressions, derived from the schema.

use std::fmt;

use super::super::{Format, Kind, Schema};
use super::device::Part;
use super::size;

#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    /// The type is known only during evaluation.
    Dyn,
    /// The value of an attribute of a device. Unlike values of `Dyn`, it has no items.
    Any,
    /// The variable of selectors of devices.
    Device,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    /// The type of `type(x)`.
    Meta,
    List(Box<Type<'s>>),
    /// Keys and values.
    Map(Box<Type<'s>>, Box<Type<'s>>),
    /// With declared fields.
    Object(&'s Schema),
    Optional(Box<Type<'s>>),
    /// One of the types that Kubernetes adds, by its name in signatures.
    Kind(&'static str),
}

impl<'s> Type<'s> {
    /// Returns the type that a schema declares.
    pub(super) fn of(schema: &'s Schema) -> Self {
        if schema.int_or_string {
            return Self::Dyn;
        }
        match (schema.kind, &schema.format) {
            (None, _) => Self::Dyn,
            (Some(Kind::Boolean), _) => Self::Bool,
            (Some(Kind::Integer), _) => Self::Int,
            (Some(Kind::Number), _) => Self::Double,
            (Some(Kind::String), Some(Format::DateTime | Format::Date)) => Self::Timestamp,
            (Some(Kind::String), Some(Format::Duration)) => Self::Duration,
            (Some(Kind::String), Some(Format::Byte)) => Self::Bytes,
            (Some(Kind::String), _) => Self::String,
            (Some(Kind::Array), _) => {
                let items = schema.items.as_deref().map_or(Self::Dyn, Self::of);
                Self::List(Box::new(items))
            }
            (Some(Kind::Object), _) => match &schema.additional_properties {
                Some(values) if !size::is_structure(schema) => {
                    Self::Map(Box::new(Self::String), Box::new(Self::of(values)))
                }
                _ => Self::Object(schema),
            },
        }
    }

    /// Reports whether values are texts or bytes.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }

    /// Returns the type of a field. The error is a message about an unknown field.
    pub(super) fn field(&self, name: &str) -> Result<Type<'s>, String> {
        match self {
            Self::Dyn | Self::Any => Ok(Self::Dyn),
            Self::Device => Part::type_of(name).ok_or_else(|| format!("undefined field '{name}'")),
            Self::Map(_, values) => Ok((**values).clone()),
            Self::Optional(inner) => Ok(Self::Optional(Box::new(inner.field(name)?))),
            Self::Object(schema) => size::field(schema, name)
                .map(Self::of)
                .ok_or_else(|| format!("undefined field '{name}'")),
            other => Err(format!("type '{other}' does not support field selection")),
        }
    }

    /// Reports whether the types have values in common.
    pub(super) fn agrees(&self, other: &Type<'_>) -> bool {
        match (self, other) {
            (Self::Null, other) => other.can_be_null(),
            (one, Type::Null) => one.can_be_null(),
            (Self::Any | Self::Dyn, _)
            | (_, Type::Any | Type::Dyn)
            | (Self::Device, Type::Device)
            | (Self::Bool, Type::Bool)
            | (Self::Int, Type::Int)
            | (Self::Uint, Type::Uint)
            | (Self::Double, Type::Double)
            | (Self::String, Type::String)
            | (Self::Bytes, Type::Bytes)
            | (Self::Timestamp, Type::Timestamp)
            | (Self::Duration, Type::Duration)
            | (Self::Meta, Type::Meta) => true,
            (Self::List(a), Type::List(b)) | (Self::Optional(a), Type::Optional(b)) => a.agrees(b),
            (Self::Map(a, b), Type::Map(c, d)) => a.agrees(c) && b.agrees(d),
            (Self::Object(a), Type::Object(b)) => std::ptr::eq(*a, *b),
            (Self::Kind(a), Type::Kind(b)) => a == b,
            _ => false,
        }
    }

    /// Reports whether the type is known only during evaluation.
    pub(super) fn is_dynamic(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    /// Reports whether a value can be compared with null. Those of the simple types cannot.
    fn can_be_null(&self) -> bool {
        !matches!(
            self,
            Self::Bool
                | Self::Int
                | Self::Uint
                | Self::Double
                | Self::String
                | Self::Bytes
                | Self::Meta
                | Self::List(_)
                | Self::Map(..)
        )
    }

    /// Returns the common type of two alternatives.
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.join_item(*b))),
            (Self::Map(key, value), Self::Map(other_key, other)) => {
                Self::Map(Box::new(key.join_item(*other_key)), Box::new(value.join_item(*other)))
            }
            (Self::Null, other) | (other, Self::Null) => other,
            (one, other) if one.agrees(&other) && !matches!(other, Self::Dyn) => one,
            _ => Self::Dyn,
        }
    }

    /// Returns the common type of two item types. The items of an empty list can have any type.
    pub(super) fn join_item(self, other: Self) -> Self {
        match (self, other) {
            (Self::Dyn, other) | (other, Self::Dyn) => other,
            (one, other) => one.join(other),
        }
    }

    /// Reports whether all values have the same size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool
            | Self::Int
            | Self::Uint
            | Self::Double
            | Self::Timestamp
            | Self::Duration => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::Device => f.write_str("kubernetes.DRADevice"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Meta => f.write_str("type"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional({inner})"),
            Self::Kind(name) => f.write_str(name),
        }
    }
}
