//! A strict reader for JSON as it came over the wire.
//!
//! `serde_json` keeps the last of two equal keys without a word and turns every number into a machine
//! number. A suite that judges what a server writes has to see both, so this reader keeps number text,
//! key order, every duplicate and the bytes each value stands at; [`Document::into_value`] gives them up.

mod number;
mod reader;
mod text;
mod weight;

use std::fmt;
use std::ops::Range;

use serde_json::Value;

pub use weight::weight;

/// Deeper nesting than this is refused: no API object comes near, and readers of ours recurse.
pub const MAX_DEPTH: usize = 256;

/// So many duplicate keys are told. Whoever sends a million has made the point.
const MAX_DUPLICATES: usize = 64;

/// A body that is JSON.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The value of the whole text.
    pub root: Node<'a>,
    /// Keys that an object holds more than once, in the order of the text; of very many, some.
    pub duplicates: Vec<Duplicate>,
}

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// The value.
    pub kind: Kind<'a>,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

/// The kinds of JSON values.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(&'a str),
    /// A string, escapes resolved.
    String(String),
    /// The items.
    Array(Vec<Node<'a>>),
    /// The members in the order of the text, duplicates included.
    Object(Vec<Member<'a>>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'a> {
    /// The key, escapes resolved.
    pub key: String,
    /// The bytes of the key, quotes included.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node<'a>,
}

/// A key that an object holds a second time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Duplicate {
    /// JSON Pointer of the member.
    pub pointer: String,
    /// Where the second key stands.
    pub at: Position,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate key {} at {}", self.pointer, self.at)
    }
}

/// A place in a text; lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The offset in bytes, from 0.
    pub byte: usize,
}

impl Position {
    /// The place of a byte in a text.
    pub fn of(text: &[u8], byte: usize) -> Self {
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

/// Why a text is not JSON.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message} at {at}")]
pub struct Fault {
    /// What was met, and what was expected.
    pub message: String,
    /// Where.
    pub at: Position,
}

/// Reads a text that must be exactly one JSON value.
pub fn read(text: &[u8]) -> Result<Document<'_>, Fault> {
    read_to_depth(text, MAX_DEPTH)
}

/// As [`read`], with a depth limit of the caller's.
pub fn read_to_depth(text: &[u8], max_depth: usize) -> Result<Document<'_>, Fault> {
    reader::Reader::new(text, max_depth).document()
}

impl Document<'_> {
    /// The value, as everything after the reader sees it: of duplicate keys the last, numbers as machine numbers.
    pub fn into_value(self) -> Value {
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
