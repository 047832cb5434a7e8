//! The schema tree, for built-in and custom resources.
//!
//! The server walks this tree to find unknown fields, to prune, to default and to validate a body.
//! Built-in types and every `metadata` are *typed*: the server decodes them into a fixed structure.
//! A wrong JSON type is a malformed body (400), null means absent, and empty values are omitted.
//! Other objects are validated as data (422), and null is a value.

pub mod build;
pub mod built_in;
mod constraints;
mod decode;
mod defaults;
pub mod definitions;
mod embedded;
mod format;
pub mod keywords;
pub mod meta;
mod openapi;
mod order;
mod pattern;
mod prune;
pub mod quantity;
pub mod rules;
mod rules_file;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use self::constraints::{Check, Constraints};
pub use self::decode::TypeError;
pub use self::format::{Format, go_duration};
pub use self::order::Union;
pub use self::pattern::Pattern;
pub use self::rules::{Judgement, Rule};
pub use self::rules_file::{Rules, RulesError};
pub use crate::field::{CauseReason, FieldError, Path};

/// One node of a schema.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent facts, each a keyword of the schema"
)]
pub struct Schema {
    /// The name in published documents (`io.k8s.api.core.v1.PodSpec`). Unnamed nodes are inlined.
    pub name: Option<&'static str>,
    /// The JSON type; `None` for int-or-string and for values of any type.
    pub kind: Option<Kind>,
    /// The declared fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// The names of the required fields.
    pub required: Vec<String>,
    /// The schema of the values of a map.
    pub additional_properties: Option<Arc<Schema>>,
    /// The schema of the items of a list.
    pub items: Option<Arc<Schema>>,
    /// The default of an absent field.
    pub default: Option<Value>,
    /// Null is a permitted value.
    pub nullable: bool,
    /// The permitted values; empty for no restriction.
    pub enumeration: Vec<Value>,
    /// Limits on numbers, lengths and counts.
    pub limits: Limits,
    /// A regular expression that must match some part of a string.
    pub pattern: Option<Pattern>,
    /// The format of a string or number.
    pub format: Option<Format>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// The identity rule for the items of a list.
    pub list_type: ListType,
    /// The fields that identify the items of a list map.
    pub list_map_keys: Vec<String>,
    /// Patches replace the map as a whole.
    pub atomic_map: bool,
    /// The field by which strategic merge patch identifies list items.
    pub patch_merge_key: Option<&'static str>,
    /// The strategy of strategic merge patch for this value.
    pub patch_strategy: PatchStrategy,
    /// The value is the schema of a CRD. It is recursive, so its type is not a `Schema`.
    pub is_json_schema: bool,
    /// The object is decoded into a fixed structure. See the module documentation.
    pub typed: bool,
    /// An empty value is written (in Go: a pointer, or a field without `omitempty`).
    pub keep_empty: bool,
    /// An absent value is null (in Go: a list, a map or a time without `omitempty`).
    pub write_null: bool,
    /// An object always has the field, at least with its zero value (in Go: a field that is no
    /// pointer).
    pub always_set: bool,
    /// Zero and false are not written (in Go: a number or boolean with `omitempty`).
    pub omit_zero: bool,
    /// Schemas that must all match (value validations only).
    pub all_of: Vec<Schema>,
    /// At least one of these schemas must match (value validations only).
    pub any_of: Vec<Schema>,
    /// Exactly one of these schemas must match (value validations only).
    pub one_of: Vec<Schema>,
    /// A schema that must not match (value validations only).
    pub not: Option<Box<Schema>>,
    /// The CEL rules (`x-kubernetes-validations`).
    pub rules: Vec<Arc<Rule>>,
    /// The mistakes in expressions of rules. Only rules without mistakes are evaluated.
    pub broken_rules: Vec<FieldError>,
    /// This schema or one below it has rules.
    pub has_rules: bool,
    /// What the validation of a built-in type requires beyond the published keywords.
    pub constraints: Constraints,
    /// The fields in the order in which kube-apiserver checks them. It is empty for other types.
    pub order: Vec<&'static str>,
    /// An object has one of these fields.
    pub union: Option<Union>,
    /// The limits of `metadata.name` and `metadata.generateName` that a definition declares. They
    /// are not published.
    pub metadata_limits: Option<Arc<Schema>>,
    /// The server removes the field from each write, because its feature is off.
    pub disabled: bool,
    /// Keywords that are published unchanged: `x-kubernetes-validations`, `externalDocs` and
    /// others.
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
    /// An integer.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// Limits on numbers, lengths and counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The lowest permitted number.
    pub minimum: Option<f64>,
    /// The highest permitted number.
    pub maximum: Option<f64>,
    /// The minimum itself is not permitted.
    pub exclusive_minimum: bool,
    /// The maximum itself is not permitted.
    pub exclusive_maximum: bool,
    /// A divisor of the number.
    pub multiple_of: Option<f64>,
    /// The minimum number of characters.
    pub min_length: Option<u64>,
    /// The maximum number of characters.
    pub max_length: Option<u64>,
    /// The minimum number of items.
    pub min_items: Option<u64>,
    /// The maximum number of items.
    pub max_items: Option<u64>,
    /// All items must differ.
    pub unique_items: bool,
    /// The minimum number of fields.
    pub min_properties: Option<u64>,
    /// The maximum number of fields.
    pub max_properties: Option<u64>,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Not declared. Means atomic.
    #[default]
    Unset,
    /// Patches replace the list as a whole.
    Atomic,
    /// The list is a set of scalars.
    Set,
    /// The list contains objects that their list map keys identify.
    Map,
}

/// `x-kubernetes-patch-strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged item by item, not replaced.
    pub merge: bool,
    /// Fields that `$retainKeys` does not list are removed.
    pub retain_keys: bool,
    /// A patch replaces the object as a whole.
    pub replace: bool,
}

impl Kind {
    /// Returns the name of the type in OpenAPI.
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

    /// Returns the type of a value; `None` for null.
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
    /// Returns the schema of a field: the declared one, or else that of the map values.
    pub fn child(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(self.additional_properties.as_ref()).map(AsRef::as_ref)
    }
}

/// Converts a number like `2.0` to an integer. Returns `None` if it has a fraction or is too large
/// to be exact.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked and the fraction is zero"
)]
fn whole_number(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}
