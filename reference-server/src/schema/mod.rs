//! The schema tree: one type for built-in resources and for custom ones.
//!
//! Every operation of the server on a body is a walk over this tree: which fields it does not know, what it drops,
//! what it fills in, what it refuses. Two kinds of object differ, and the tree says which: a *typed* object is
//! decoded into a fixed structure (built-in types, every `metadata`), so a wrong JSON type is a broken body (400),
//! null means absent, and an empty value is not written. Any other object is validated as data (422), and its nulls
//! count.

pub mod build;
mod decode;
mod defaults;
mod embedded;
mod field;
mod format;
pub mod meta;
mod openapi;
mod prune;
pub mod quantity;
pub(crate) mod rules;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

pub use self::decode::TypeError;
pub use self::field::{CauseReason, FieldError, Path};
pub use self::format::Format;
pub use self::rules::Rule;

/// One node of a schema.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts, each a keyword of the schema")]
pub struct Schema {
    /// Name of the definition in published documents (`io.k8s.api.core.v1.PodSpec`); unnamed nodes are inlined.
    pub name: Option<&'static str>,
    /// JSON type; none for a value of any type and for int-or-string.
    pub kind: Option<Kind>,
    /// Fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// Names of the fields that must be there.
    pub required: Vec<String>,
    /// Schema of the values of a map.
    pub additional_properties: Option<Arc<Schema>>,
    /// Schema of the items of a list.
    pub items: Option<Arc<Schema>>,
    /// The value an absent field takes.
    pub default: Option<Value>,
    /// Null is a value of its own.
    pub nullable: bool,
    /// The only values allowed; empty for no restriction.
    pub enumeration: Vec<Value>,
    /// Limits on numbers, lengths and counts.
    pub limits: Limits,
    /// A regular expression that a string must match somewhere.
    pub pattern: Option<Regex>,
    /// Format of a string or number.
    pub format: Option<Format>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// How the items of a list are told apart.
    pub list_type: ListType,
    /// The fields that tell the items of a list map apart.
    pub list_map_keys: Vec<String>,
    /// The map is replaced as a whole.
    pub atomic_map: bool,
    /// The field by which strategic merge patch tells list items apart.
    pub patch_merge_key: Option<&'static str>,
    /// What strategic merge patch does here.
    pub patch_strategy: PatchStrategy,
    /// The object is decoded into a fixed structure; see the module's text.
    pub typed: bool,
    /// An empty value is written all the same (a pointer, or a field without `omitempty`, in the usual servers).
    pub keep_empty: bool,
    /// Every schema of this list must hold (value validations only).
    pub all_of: Vec<Schema>,
    /// At least one schema of this list must hold (value validations only).
    pub any_of: Vec<Schema>,
    /// Exactly one schema of this list must hold (value validations only).
    pub one_of: Vec<Schema>,
    /// A schema that must not hold (value validations only).
    pub not: Option<Box<Schema>>,
    /// Rules in an expression language (`x-kubernetes-validations`).
    pub rules: Vec<Arc<Rule>>,
    /// What is wrong with the rules that could not be read; these are never evaluated.
    pub broken_rules: Vec<FieldError>,
    /// There are rules here or below.
    pub has_rules: bool,
    /// Keywords which are published as they were read: `x-kubernetes-validations`, `externalDocs`, ...
    pub extra: BTreeMap<String, Value>,
}

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{}`
    Object,
    /// `[]`
    Array,
    /// `""`
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// Limits on numbers, lengths and counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Lowest number.
    pub minimum: Option<f64>,
    /// Highest number.
    pub maximum: Option<f64>,
    /// The minimum itself is too low.
    pub exclusive_minimum: bool,
    /// The maximum itself is too high.
    pub exclusive_maximum: bool,
    /// A divisor of the number.
    pub multiple_of: Option<f64>,
    /// Fewest characters.
    pub min_length: Option<u64>,
    /// Most characters.
    pub max_length: Option<u64>,
    /// Fewest items.
    pub min_items: Option<u64>,
    /// Most items.
    pub max_items: Option<u64>,
    /// No two items are equal.
    pub unique_items: bool,
    /// Fewest fields.
    pub min_properties: Option<u64>,
    /// Most fields.
    pub max_properties: Option<u64>,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Not said, which means atomic.
    #[default]
    Unset,
    /// Replaced as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects told apart by their list map keys.
    Map,
}

/// `x-kubernetes-patch-strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged item by item rather than replaced.
    pub merge: bool,
    /// Fields of an object that `$retainKeys` does not name are removed.
    pub retain_keys: bool,
}

impl Kind {
    /// The keyword of the schema language.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type of a value; none for null.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Boolean),
            Value::Number(number) if number.is_f64() => Some(Self::Number),
            Value::Number(_) => Some(Self::Integer),
            Value::String(_) => Some(Self::String),
            Value::Array(_) => Some(Self::Array),
            Value::Object(_) => Some(Self::Object),
        }
    }
}

impl Schema {
    /// The schema of a field by its name: a declared one, else that of the map's values.
    pub fn child(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(self.additional_properties.as_ref()).map(AsRef::as_ref)
    }
}

/// The integer that a number like `2.0` means; none if it has a fraction or is too large to be exact.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked and the fraction is zero")]
fn whole_number(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}
