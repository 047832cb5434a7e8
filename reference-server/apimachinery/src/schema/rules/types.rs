//! The static types of expressions, derived from the schema.

use std::fmt;

use super::super::{Format, Kind, Schema};
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
    /// The type of a type: `int` has the type `type(int)`.
    Meta(Box<Type<'s>>),
    List(Box<Type<'s>>),
    /// Keys and values.
    Map(Box<Type<'s>>, Box<Type<'s>>),
    /// With declared fields.
    Object(&'s Schema),
    Optional(Box<Type<'s>>),
    /// One of the types that Kubernetes adds, by its name in signatures.
    Kind(&'static str),
    /// A type that other parts of the expression determine.
    Variable(usize),
    /// The type of an expression with a mistake, which agrees with all types.
    Error,
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

    /// Returns the type of values without parts that has this name in expressions and signatures.
    pub(super) fn scalar(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            _ => return None,
        })
    }

    /// Reports whether values are texts or bytes.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }

    /// Reports whether the types can have values in common.
    pub(super) fn agrees(&self, other: &Type<'_>) -> bool {
        match (self, other) {
            (Self::Null, other) => other.can_be_null(),
            (one, Type::Null) => one.can_be_null(),
            (one, other) if one.is_open() || other.is_open() => true,
            (Self::List(a), Type::List(b)) | (Self::Optional(a), Type::Optional(b)) => a.agrees(b),
            (Self::Map(a, b), Type::Map(c, d)) => a.agrees(c) && b.agrees(d),
            (one, other) => one == other,
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Any | Self::Dyn | Self::Error | Self::Variable(_))
    }

    /// Reports whether a value can be compared with null. Those of the simple types cannot.
    pub(super) fn can_be_null(&self) -> bool {
        !matches!(
            self,
            Self::Bool
                | Self::Int
                | Self::Uint
                | Self::Double
                | Self::String
                | Self::Bytes
                | Self::Meta(_)
                | Self::List(_)
                | Self::Map(..)
        )
    }

    /// Returns a type with other variables.
    pub(super) fn replaced(&self, variable: &dyn Fn(usize) -> Self) -> Self {
        let boxed = |ty: &Self| Box::new(ty.replaced(variable));
        match self {
            Self::Variable(index) => variable(*index),
            Self::Meta(inner) => Self::Meta(boxed(inner)),
            Self::List(item) => Self::List(boxed(item)),
            Self::Map(key, value) => Self::Map(boxed(key), boxed(value)),
            Self::Optional(inner) => Self::Optional(boxed(inner)),
            other => other.clone(),
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

    /// Returns the name of a value of this type at runtime.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Meta(_) => "type".to_owned(),
            Self::List(_) => "list".to_owned(),
            Self::Map(..) => "map".to_owned(),
            Self::Optional(_) => "optional_type".to_owned(),
            other => other.to_string(),
        }
    }
}

/// Two types are equal if they describe the same values. Objects have the type of one schema.
impl PartialEq<Type<'_>> for Type<'_> {
    fn eq(&self, other: &Type<'_>) -> bool {
        match (self, other) {
            (Self::List(a), Type::List(b))
            | (Self::Optional(a), Type::Optional(b))
            | (Self::Meta(a), Type::Meta(b)) => a == b,
            (Self::Map(a, b), Type::Map(c, d)) => a == c && b == d,
            (Self::Object(a), Type::Object(b)) => std::ptr::eq(*a, *b),
            (Self::Kind(a), Type::Kind(b)) => a == b,
            (Self::Variable(a), Type::Variable(b)) => a == b,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Variable(_) => f.write_str("dyn"),
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
            Self::Meta(inner) => write!(f, "type({inner})"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Kind(name) => match *name {
                "IP" | "CIDR" => write!(f, "net.{name}"),
                "Format" => f.write_str("kubernetes.NamedFormat"),
                "Quantity" | "Semver" | "URL" => write!(f, "kubernetes.{name}"),
                name => write!(f, "kubernetes.authorization.{name}"),
            },
            Self::Error => f.write_str("!error!"),
        }
    }
}
