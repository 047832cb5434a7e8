//! Label selectors and field selectors: from the text in a query to a test on an object.
//!
//! Parsing is strict, since a selector that is misread silently selects too much: `DELETE` of a collection takes one.

mod field;
mod label;
mod lexer;
mod name;

pub use field::{FieldOperator, FieldSelector, FieldTerm};
pub use label::{LabelSelector, Labels, Operator, Requirement};

/// Why the text of a selector is refused (400, reason `BadRequest`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text breaks the grammar.
    #[error("unable to parse requirement: found '{found}' at offset {offset}, expected: {expected}")]
    Unexpected {
        /// The token that was found; empty at the end of the text.
        found: String,
        /// Where it starts, in bytes.
        offset: usize,
        /// What could have stood there.
        expected: &'static str,
    },
    /// A key or value is not one that a label can have.
    #[error("unable to parse requirement: {what}: Invalid value: {value:?}: {rule}")]
    Invalid {
        /// Which part: `key`, or `values[0][app]`.
        what: String,
        /// The part itself.
        value: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// More requirements than a selector may have.
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
    /// A backslash in a field selector stands before something that needs no escape.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    BadEscape(String),
    /// The resource cannot be selected by this field.
    #[error("{field:?} is not a known field selector: only {known}")]
    UnknownField {
        /// The field that was asked for.
        field: String,
        /// The fields that could be, quoted and separated by commas.
        known: String,
    },
}
