//! Patterns for JSON values. The harness matches them.

use crate::template::{JsonTemplate, Template};

/// A structural expectation.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Equal to this value, after its variables are filled in. It is no object or array.
    Value(JsonTemplate),
    /// Each named member matches; others are ignored.
    Object(Vec<(Template, Pattern)>),
    /// As many items, each matching.
    Array(Vec<Pattern>),
    /// The member is not there.
    Absent,
    /// The member is there, whatever it holds.
    Present,
    /// A string that the regular expression matches somewhere.
    Match(TextPattern),
    /// Of this type.
    Type(JsonType),
    /// At least one matches.
    OneOf(Vec<Pattern>),
    /// Does not match.
    Not(Box<Pattern>),
    /// An array all of whose items match.
    Each(Box<Pattern>),
    /// An array in which each of these is matched by an item.
    Some(Vec<Pattern>),
    /// An array, object or string of this length.
    Size(usize),
    /// Equal, with no further members at any depth.
    Exactly(JsonTemplate),
}

/// A pattern for text.
#[derive(Clone, Debug)]
pub enum TextPattern {
    /// Equal to this.
    Equal(Template),
    /// A regular expression, variables filled in as literal text before it is compiled.
    Regex(Template),
}

/// The types that a pattern can ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JsonType {
    /// A JSON array.
    Array,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// `null`.
    Null,
    /// Any number.
    Number,
    /// A JSON object.
    Object,
    /// A string.
    String,
    /// A string that is an RFC 3339 date and time.
    Timestamp,
    /// A string that has the form of a UUID.
    Uuid,
}
