//! What an expression can be, as far as a schema tells.
//!
//! A type carries how large its values can grow, since the worst cost of an expression is a matter of sizes.

use std::fmt;

use super::super::{Format, Kind, Schema};
use super::value;

/// No request is larger, so no value is.
pub(super) const REQUEST: u64 = 3 * 1024 * 1024;

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    /// Known only when it is evaluated.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    /// With most characters.
    String(u64),
    /// With most bytes.
    Bytes(u64),
    Timestamp,
    Duration,
    /// What `type(x)` gives.
    Meta,
    /// With most items.
    List(Box<Type<'s>>, u64),
    /// With most entries; keys and values.
    Map(Box<Type<'s>>, Box<Type<'s>>, u64),
    /// With declared fields.
    Object(&'s Schema),
    Optional(Box<Type<'s>>),
    /// One of the kinds that Kubernetes adds, by its name in signatures.
    Kind(&'static str),
}

impl<'s> Type<'s> {
    /// What a schema declares.
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
            (Some(Kind::String), Some(Format::Byte)) => Self::Bytes(most(schema)),
            (Some(Kind::String), _) => Self::String(most(schema)),
            (Some(Kind::Array), _) => {
                let items = schema.items.as_deref().map_or(Self::Dyn, Self::of);
                Self::List(Box::new(items), most(schema))
            }
            (Some(Kind::Object), _) => match &schema.additional_properties {
                Some(values) => {
                    Self::Map(Box::new(Self::String(REQUEST)), Box::new(Self::of(values)), most(schema))
                }
                None => Self::Object(schema),
            },
        }
    }

    /// The type of a field; an error in words if there is none.
    pub(super) fn field(&self, name: &str) -> Result<Type<'s>, String> {
        match self {
            Self::Dyn => Ok(Self::Dyn),
            Self::Map(_, values, _) => Ok((**values).clone()),
            Self::Optional(inner) => Ok(Self::Optional(Box::new(inner.field(name)?))),
            Self::Object(schema) => {
                let declared = schema
                    .properties
                    .iter()
                    .find(|(field, _)| value::escaped(field).is_some_and(|escaped| escaped == name))
                    .filter(|(field, _)| value::is_visible(schema, field));
                declared
                    .map(|(_, schema)| Self::of(schema))
                    .ok_or_else(|| format!("undefined field '{name}'"))
            }
            other => Err(format!("type '{other}' does not support field selection")),
        }
    }

    /// Whether a value of one can be a value of the other.
    pub(super) fn agrees(&self, other: &Type<'_>) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Null, _)
            | (_, Type::Dyn | Type::Null)
            | (Self::Bool, Type::Bool)
            | (Self::Int, Type::Int)
            | (Self::Uint, Type::Uint)
            | (Self::Double, Type::Double)
            | (Self::String(_), Type::String(_))
            | (Self::Bytes(_), Type::Bytes(_))
            | (Self::Timestamp, Type::Timestamp)
            | (Self::Duration, Type::Duration)
            | (Self::Meta, Type::Meta) => true,
            (Self::List(a, _), Type::List(b, _)) | (Self::Optional(a), Type::Optional(b)) => a.agrees(b),
            (Self::Map(a, b, _), Type::Map(c, d, _)) => a.agrees(c) && b.agrees(d),
            (Self::Object(a), Type::Object(b)) => std::ptr::eq(*a, *b),
            (Self::Kind(a), Type::Kind(b)) => a == b,
            _ => false,
        }
    }

    /// The type of something that is the one or the other.
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::List(a, m), Self::List(b, n)) => Self::List(Box::new(a.join_item(*b)), m.max(n)),
            (Self::Map(key, value, m), Self::Map(other_key, other, n)) => {
                Self::Map(Box::new(key.join_item(*other_key)), Box::new(value.join_item(*other)), m.max(n))
            }
            (Self::String(m), Self::String(n)) => Self::String(m.max(n)),
            (Self::Bytes(m), Self::Bytes(n)) => Self::Bytes(m.max(n)),
            (Self::Null, other) | (other, Self::Null) => other,
            (one, other) if one.agrees(&other) && !matches!(other, Self::Dyn) => one,
            _ => Self::Dyn,
        }
    }

    /// The same for items: those of an empty list may become anything.
    pub(super) fn join_item(self, other: Self) -> Self {
        match (self, other) {
            (Self::Dyn, other) | (other, Self::Dyn) => other,
            (one, other) => one.join(other),
        }
    }

    /// How many units a value can have: characters, items, entries.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::String(size) | Self::Bytes(size) | Self::List(_, size) | Self::Map(_, _, size) => *size,
            Self::Dyn => REQUEST,
            Self::Optional(inner) => inner.size(),
            Self::Object(schema) => schema.properties.len() as u64,
            _ => 1,
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String(_) => f.write_str("string"),
            Self::Bytes(_) => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Meta => f.write_str("type"),
            Self::List(item, _) => write!(f, "list({item})"),
            Self::Map(key, value, _) => write!(f, "map({key}, {value})"),
            Self::Object(_) => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional({inner})"),
            Self::Kind(name) => f.write_str(name),
        }
    }
}

/// How many units a value can have that fits into one request.
fn most(schema: &Schema) -> u64 {
    let limits = &schema.limits;
    match schema.kind {
        Some(Kind::Array) => {
            let item = schema.items.as_deref().map_or(1, least_bytes);
            limits.max_items.unwrap_or(REQUEST / (item + 1))
        }
        Some(Kind::Object) => {
            let value = schema.additional_properties.as_deref().map_or(1, least_bytes);
            limits.max_properties.unwrap_or(REQUEST / (value + 4))
        }
        _ if !schema.enumeration.is_empty() => schema
            .enumeration
            .iter()
            .filter_map(serde_json::Value::as_str)
            .map(|text| text.len() as u64)
            .max()
            .unwrap_or(0),
        _ => limits.max_length.unwrap_or(REQUEST),
    }
}

/// How many values of a schema fit into one place of its parent, at most.
pub(crate) fn multiplicity(parent: &Schema) -> u64 {
    match (&parent.items, &parent.additional_properties) {
        (None, None) => 1,
        _ => most(parent),
    }
}

/// The fewest bytes in which a value can be written.
fn least_bytes(schema: &Schema) -> u64 {
    match schema.kind {
        Some(Kind::Object) => {
            let fields = schema.required.iter().map(|name| {
                let value = schema.properties.get(name).map_or(1, |schema| least_bytes(schema));
                name.len() as u64 + value + 4
            });
            2 + fields.sum::<u64>()
        }
        Some(Kind::Array | Kind::String) => 2,
        Some(Kind::Boolean) => 4,
        _ => 1,
    }
}
