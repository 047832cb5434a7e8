//! Sizes of values and the places of the schema that limit them.
//!
//! The estimate follows kube-apiserver, because each difference accepts or rejects other
//! definitions. A value without a limit is as large as a request.

use super::super::{Format, Kind, Schema};
use super::device::Part;
use super::value;

/// The maximum size of a request, and therefore of a value, in bytes.
const REQUEST: u64 = 3 * 1024 * 1024;
/// The maximum size without the quotes or brackets of the value.
const CONTENT: u64 = REQUEST - 2;

/// The smallest and the largest size of a value, in characters, bytes, items or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    pub(super) const ONE: Self = Self::exactly(1);

    pub(super) const fn exactly(size: u64) -> Self {
        Self { min: size, max: size }
    }

    pub(super) const fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Returns the smallest range that contains both.
    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Multiplies a size by a fraction and rounds up.
pub(super) fn scale(size: u64, factor: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are not negative, and the cast saturates as the estimate requires"
    )]
    let scaled = (size as f64 * factor).ceil() as u64;
    scaled
}

/// The part of the schema that an expression selects.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'s> {
    /// The expression is no selection.
    None,
    /// The value of a schema.
    At(&'s Schema),
    /// The key of a map.
    Key,
    /// A part of the variable `device`.
    Device(Part),
    /// A selection that the schema does not declare.
    Undeclared,
}

impl<'s> Place<'s> {
    /// Returns the limit of the schema for values at this place.
    pub(super) fn size(self) -> Option<Range> {
        match self {
            Self::At(schema) => Some(Range::up_to(limit(schema))),
            Self::Key => Some(Range::up_to(0)),
            Self::Device(part) => Some(part.size()),
            Self::None | Self::Undeclared => None,
        }
    }

    /// Returns the place of a field.
    pub(super) fn field(self, name: &str, root: Self) -> Self {
        if let Self::Device(part) = self {
            return part.field(name).map_or(Self::Undeclared, Self::Device);
        }
        self.below(root, |schema| field(schema, name))
    }

    /// Returns the place of the items of a list, or of the values of a map.
    pub(super) fn contents(self, root: Self) -> Self {
        match self {
            Self::Device(part) => part.contents().map_or(Self::Undeclared, Self::Device),
            _ => self.below(root, contents),
        }
    }

    /// Returns the size of the items of a list at this place.
    pub(super) fn item_size(self) -> Option<Range> {
        match self {
            Self::At(schema) => contents(schema).map(Self::At)?.size(),
            Self::Device(part) => Some(part.contents()?.size()),
            Self::None | Self::Key | Self::Undeclared => None,
        }
    }

    /// Returns the place of the keys of a map.
    pub(super) fn keys(self, root: Self) -> Self {
        match self {
            Self::None => root,
            Self::Device(part) => part.keys().map_or(Self::Undeclared, Self::Device),
            Self::At(schema) if schema.kind == Some(Kind::Object) && !is_structure(schema) => {
                Self::Key
            }
            _ => Self::Undeclared,
        }
    }

    /// kube-apiserver treats a selection in the result of a function as the root.
    fn below(self, root: Self, child: impl FnOnce(&'s Schema) -> Option<&'s Schema>) -> Self {
        match self {
            Self::None => root,
            Self::At(schema) => child(schema).map_or(Self::Undeclared, Self::At),
            Self::Key | Self::Device(_) | Self::Undeclared => Self::Undeclared,
        }
    }
}

/// Returns the declared field that an expression names.
pub(super) fn field<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    let declared = schema.properties.iter().filter(|_| is_structure(schema));
    declared
        .filter(|(field, child)| value::is_visible(schema, field) && is_exposed(child))
        .find(|(field, _)| value::names_field(name, field))
        .map(|(_, child)| &**child)
}

fn contents(schema: &Schema) -> Option<&Schema> {
    match schema.kind {
        _ if schema.int_or_string || is_structure(schema) => None,
        Some(Kind::Array) => schema.items.as_deref(),
        Some(Kind::Object) => schema.additional_properties.as_deref(),
        _ => None,
    }
}

/// Returns the maximum number of values of a schema in an object, if no list or map above it has a
/// limit.
pub fn cardinality(schema: &Schema) -> u64 {
    REQUEST / (least_bytes(schema) + 1)
}

/// Returns the factor by which a list or map multiplies the values below it; `None` without a
/// limit.
pub fn multiplicity(parent: &Schema) -> Option<u64> {
    match parent.kind {
        Some(Kind::Object) if parent.additional_properties.is_some() => {
            parent.limits.max_properties
        }
        Some(Kind::Array) => parent.limits.max_items,
        _ => Some(1),
    }
}

/// Returns the maximum size of a value. Numbers and structures have no size.
fn limit(schema: &Schema) -> u64 {
    let limits = &schema.limits;
    // A character has up to four bytes.
    let text = limits.max_length.map(|length| length.saturating_mul(4));
    if schema.int_or_string {
        return text.unwrap_or(CONTENT);
    }
    match (schema.kind, &schema.format) {
        (Some(Kind::Array), _) => limits
            .max_items
            .unwrap_or_else(|| CONTENT / (schema.items.as_deref().map_or(1, least_bytes) + 1)),
        (Some(Kind::Object), _) => match &schema.additional_properties {
            Some(values) if !is_structure(schema) => {
                // An entry has a key of two bytes, two quotes, a colon and a comma.
                limits.max_properties.unwrap_or_else(|| CONTENT / (least_bytes(values) + 6))
            }
            _ => 0,
        },
        (Some(Kind::String), Some(Format::Byte)) => limits.max_length.unwrap_or(CONTENT),
        (Some(Kind::String), Some(Format::Duration | Format::DateTime)) => 32,
        (Some(Kind::String), Some(Format::Date)) => 12,
        (Some(Kind::String), _) => text.unwrap_or_else(|| longest_word(schema)),
        _ => 0,
    }
}

fn longest_word(schema: &Schema) -> u64 {
    let words = schema.enumeration.iter();
    let lengths = words.map(|word| word.as_str().map_or(0, |text| text.len() as u64));
    lengths.max().unwrap_or(CONTENT)
}

/// Returns the minimum length of a value as JSON, in bytes. Required fields without a default
/// count.
fn least_bytes(schema: &Schema) -> u64 {
    if schema.int_or_string {
        return 1;
    }
    match (schema.kind, &schema.format) {
        (Some(Kind::Object), _) if is_structure(schema) => {
            let fields = schema.required.iter().filter_map(|name| {
                let field = schema.properties.get(name)?;
                let counts = is_exposed(field) && field.default.is_none();
                counts.then(|| name.len() as u64 + least_bytes(field) + 4)
            });
            2 + fields.sum::<u64>()
        }
        (Some(Kind::String), Some(Format::Duration)) => 3,
        (Some(Kind::String), Some(Format::Date)) => 12,
        (Some(Kind::String), Some(Format::DateTime)) => 21,
        (Some(Kind::Array | Kind::Object | Kind::String), _) => 2,
        (Some(Kind::Boolean), _) => 4,
        _ => 1,
    }
}

/// Reports whether an object has fields, and no entries. Expressions see no entries of
/// `additionalProperties: true`.
pub(super) fn is_structure(schema: &Schema) -> bool {
    let values = schema.additional_properties.as_deref();
    schema.kind == Some(Kind::Object) && values.is_none_or(is_anything)
}

fn is_anything(schema: &Schema) -> bool {
    schema.kind.is_none() && schema.preserve_unknown && !schema.int_or_string
}

/// Reports whether expressions can read a value. They cannot read values without a type.
pub(super) fn is_exposed(schema: &Schema) -> bool {
    match schema.kind {
        _ if schema.int_or_string => true,
        None => false,
        Some(Kind::Array) => schema.items.as_deref().is_some_and(is_exposed),
        Some(Kind::Object) => {
            let values = schema.additional_properties.as_deref();
            values.is_none_or(|values| is_anything(values) || is_exposed(values))
        }
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn schema(document: &Value) -> Schema {
        Schema::from_openapi(document).expect("a schema")
    }

    #[rstest]
    #[case(json!({"type": "string"}), CONTENT)]
    #[case(json!({"type": "string", "maxLength": 5}), 20)]
    #[case(json!({"type": "string", "enum": ["a", "abc"]}), 3)]
    #[case(json!({"type": "string", "format": "date-time"}), 32)]
    #[case(json!({"type": "string", "format": "byte", "maxLength": 5}), 5)]
    #[case(json!({"x-kubernetes-int-or-string": true, "maxLength": 2}), 8)]
    #[case(json!({"type": "array", "maxItems": 3, "items": {"type": "string"}}), 3)]
    #[case(json!({"type": "array", "items": {"type": "boolean"}}), CONTENT / 5)]
    #[case(
        json!({"type": "array", "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}},
        }}),
        CONTENT / 13,
    )]
    #[case(json!({"type": "object", "additionalProperties": {"type": "string"}}), CONTENT / 8)]
    #[case(json!({"type": "object", "properties": {"a": {"type": "string"}}}), 0)]
    #[case(json!({"type": "integer"}), 0)]
    fn a_schema_limits_the_size_of_its_values(#[case] document: Value, #[case] expected: u64) {
        assert_eq!(limit(&schema(&document)), expected);
    }

    #[rstest]
    #[case(json!({"type": "string"}), REQUEST / 3, Some(1))]
    #[case(json!({"type": "array", "items": {"type": "string"}}), REQUEST / 3, None)]
    #[case(
        json!({"type": "array", "maxItems": 7, "items": {"type": "string"}}),
        REQUEST / 3,
        Some(7),
    )]
    fn lists_multiply_the_values_below_them(
        #[case] document: Value,
        #[case] count: u64,
        #[case] factor: Option<u64>,
    ) {
        let schema = schema(&document);
        assert_eq!((cardinality(&schema), multiplicity(&schema)), (count, factor));
    }

    #[test]
    fn scaled_sizes_are_rounded_up_and_saturate() {
        assert_eq!((scale(0, 0.1), scale(1, 0.1), scale(31, 0.1)), (0, 1, 4));
        assert_eq!(scale(u64::MAX, 1.0), u64::MAX);
    }
}
