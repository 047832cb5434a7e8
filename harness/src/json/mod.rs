//! A strict JSON reader.
//!
//! `serde_json` keeps only the last of two equal keys, and converts every number. A conformance
//! suite must see both. This reader keeps number text, key order, duplicates and the position of
//! each value; [`Document::into_value`] drops them.

mod memory_estimate;
mod number;
mod reader;
mod text;
mod value;

use std::fmt;
use std::ops::Range;

use serde_json::Value;

pub(crate) use self::memory_estimate::weight;
pub(crate) use self::value::parse;

/// Maximum depth. API objects are never as deep, and readers recurse.
pub(crate) const MAX_DEPTH: usize = 256;

/// Maximum number of reported duplicates.
const MAX_DUPLICATES: usize = 64;

/// A body that is valid JSON.
#[derive(Clone, Debug)]
pub(crate) struct Document<'a> {
    /// The value of the whole text.
    pub root: Node<'a>,
    /// Duplicate keys in text order, up to a limit.
    pub duplicates: Vec<Duplicate>,
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'a> {
    /// The value.
    pub kind: Kind<'a>,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

/// The kinds of JSON values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as written.
    Number(&'a str),
    /// A string with resolved escapes.
    String(String),
    /// The items.
    Array(Vec<Node<'a>>),
    /// Members in text order, including duplicates.
    Object(Vec<Member<'a>>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member<'a> {
    /// The key with resolved escapes.
    pub key: String,
    /// The bytes of the key, including quotes.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node<'a>,
}

/// A key that occurs twice in an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Duplicate {
    /// JSON Pointer of the member.
    pub pointer: String,
    /// Position of the second key.
    pub at: Position,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate key {} at {}", self.pointer, self.at)
    }
}

/// A position in a text. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The offset in bytes, from 0.
    pub byte: usize,
}

impl Position {
    /// Returns the position of a byte in a text.
    pub(crate) fn of(text: &[u8], byte: usize) -> Self {
        let before = &text[..byte.min(text.len())];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |newline| newline + 1);
        // Continuation bytes do not start a character.
        let column = before[line_start..].iter().filter(|&&b| b & 0xC0 != 0x80).count() + 1;
        let line = before.split(|&b| b == b'\n').count();
        Self { line, column, byte: before.len() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {} (byte {})", self.line, self.column, self.byte)
    }
}

/// Why a text is invalid JSON.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message} at {at}")]
pub(crate) struct Fault {
    /// What was found, and what was expected.
    pub message: String,
    /// Where.
    pub at: Position,
}

/// Reads a text that must be exactly one JSON value.
pub(crate) fn read(text: &[u8]) -> Result<Document<'_>, Fault> {
    read_to_depth(text, MAX_DEPTH)
}

/// Like [`read`], with another depth limit.
pub(crate) fn read_to_depth(text: &[u8], max_depth: usize) -> Result<Document<'_>, Fault> {
    reader::Reader::new(text, max_depth).document()
}

impl Document<'_> {
    /// Returns the value with numbers converted, and with the last of duplicate keys.
    pub(crate) fn into_value(self) -> Value {
        self.root.into_value()
    }
}

impl Node<'_> {
    fn into_value(self) -> Value {
        match self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(truth) => Value::Bool(truth),
            Kind::Number(text) => number::to_value(text),
            Kind::String(text) => Value::String(text),
            Kind::Array(items) => Value::Array(items.into_iter().map(Node::into_value).collect()),
            Kind::Object(members) => Value::Object(
                members.into_iter().map(|member| (member.key, member.value.into_value())).collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
