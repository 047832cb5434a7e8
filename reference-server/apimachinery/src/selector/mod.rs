//! Label selectors and field selectors: parsing of query parameters, and matching of objects.
//!
//! Parsing is strict. A misread selector would silently select too much, and `DELETE` of a
//! collection takes one.

mod field;
mod label;
mod lexer;
mod name;

pub use field::{FieldOperator, FieldSelector, FieldTerm};
pub use label::{LabelSelector, Labels, Operator, Requirement};

/// The error for an invalid selector (400, reason `BadRequest`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text breaks the grammar.
    #[error(
        "unable to parse requirement: found '{found}' at offset {offset}, expected: {expected}"
    )]
    Unexpected {
        /// The token at the error; empty at the end of the text.
        found: String,
        /// The offset of the token in bytes.
        offset: usize,
        /// The permitted tokens.
        expected: &'static str,
    },
    /// A key or value is not valid for a label.
    #[error("unable to parse requirement: {what}: Invalid value: {value:?}: {rule}")]
    Invalid {
        /// The part: `key` or `values[0][app]`.
        what: String,
        /// The text of the part.
        value: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// The selector has too many requirements.
    #[error("unable to parse requirement: a selector may have {0} requirements")]
    TooMany(usize),
    /// A term of a field selector has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash in a field selector precedes a character that needs no escape.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    BadEscape(String),
    /// The resource does not support selection by this field.
    #[error("{field:?} is not a known field selector: only {known}")]
    UnknownField {
        /// The requested field.
        field: String,
        /// The supported fields, quoted and separated by commas.
        known: String,
    },
}
