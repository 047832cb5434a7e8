//! Finds the end of a JSON document without building it.
//!
//! The scanner follows the grammar of objects and arrays, so that it finds the end of a malformed
//! document early. It does not validate numbers, words and escapes. The parser does.

use crate::json::MAX_DEPTH;

/// The state between two chunks.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    state: State,
    /// The open brackets.
    open: Vec<Bracket>,
}

/// The result of a scan.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Scanned {
    /// The document ends in a later chunk.
    Incomplete,
    /// The length of the rest of the document. It may be malformed.
    End(usize),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Bracket {
    Object,
    Array,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// Before a document.
    #[default]
    Between,
    /// In a text that is neither an object nor an array. It ends at a newline.
    Plain,
    /// In a string. The second value is true after a backslash.
    Text { key: bool, escaped: bool },
    /// In a number or a word.
    Word,
    /// Before a token of an object or an array.
    Before(Expected),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expected {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

/// The effect of a byte.
enum Step {
    Continue(State),
    /// The document ends before this byte.
    EndBefore,
    /// The document ends with this byte.
    EndAfter,
}

impl Scanner {
    /// Reports whether the last document has ended.
    pub(super) fn is_between(&self) -> bool {
        self.state == State::Between
    }

    /// Scans the bytes that follow those of the last call.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Scanned {
        for (at, byte) in bytes.iter().enumerate() {
            let length = match self.step(*byte) {
                Step::Continue(state) => {
                    self.state = state;
                    continue;
                }
                Step::EndBefore => at,
                Step::EndAfter => at + 1,
            };
            *self = Self::default();
            return Scanned::End(length);
        }
        Scanned::Incomplete
    }

    fn step(&mut self, byte: u8) -> Step {
        match (self.state, byte) {
            (State::Between, b'{' | b'[') => self.open(byte),
            (State::Between, byte) if byte.is_ascii_whitespace() => Step::Continue(State::Between),
            (State::Plain, b'\n') => Step::EndBefore,
            (State::Between | State::Plain, _) => Step::Continue(State::Plain),
            // A raw newline in a string is malformed. The next line may be an event again.
            (State::Text { .. }, b'\n') => Step::EndAfter,
            (State::Text { key, escaped: true }, _) => text(key),
            (State::Text { key, escaped: false }, b'\\') => {
                Step::Continue(State::Text { key, escaped: true })
            }
            (State::Text { key: true, .. }, b'"') => before(Expected::Colon),
            (State::Text { key: false, .. }, b'"') => before(Expected::CommaOrEnd),
            (state @ State::Text { .. }, _) => Step::Continue(state),
            (State::Word, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.') => {
                Step::Continue(State::Word)
            }
            (State::Word, _) => self.token(Expected::CommaOrEnd, byte),
            (State::Before(expected), _) => self.token(expected, byte),
        }
    }

    /// Handles a byte outside of strings, numbers and words.
    fn token(&mut self, expected: Expected, byte: u8) -> Step {
        use Expected::{Colon, CommaOrEnd, Key, KeyOrEnd, Value, ValueOrEnd};
        match (expected, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => before(expected),
            (Value | ValueOrEnd, b'{' | b'[') => self.open(byte),
            (Value | ValueOrEnd, b'"') => text(false),
            (Value | ValueOrEnd, b'a'..=b'z' | b'0'..=b'9' | b'-') => Step::Continue(State::Word),
            (Key | KeyOrEnd, b'"') => text(true),
            (Colon, b':') => before(Value),
            (CommaOrEnd, b',') => match self.open.last() {
                Some(Bracket::Object) => before(Key),
                _ => before(Value),
            },
            (KeyOrEnd | CommaOrEnd, b'}') => self.close(Bracket::Object),
            (ValueOrEnd | CommaOrEnd, b']') => self.close(Bracket::Array),
            _ => Step::EndAfter,
        }
    }

    fn open(&mut self, byte: u8) -> Step {
        // The parser rejects the document, too.
        if self.open.len() > MAX_DEPTH {
            return Step::EndAfter;
        }
        let (bracket, expected) = match byte {
            b'{' => (Bracket::Object, Expected::KeyOrEnd),
            _ => (Bracket::Array, Expected::ValueOrEnd),
        };
        self.open.push(bracket);
        before(expected)
    }

    fn close(&mut self, bracket: Bracket) -> Step {
        match self.open.pop() {
            Some(open) if open == bracket && !self.open.is_empty() => before(Expected::CommaOrEnd),
            // The end of the document, or a wrong bracket.
            _ => Step::EndAfter,
        }
    }
}

fn before(expected: Expected) -> Step {
    Step::Continue(State::Before(expected))
}

fn text(key: bool) -> Step {
    Step::Continue(State::Text { key, escaped: false })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::object("{}", 2)]
    #[case::nested("{\"a\":[{},[]],\"b\":null}", 22)]
    #[case::numbers("[-1.5e+3,true]", 14)]
    #[case::white_space("[\r\n\t1 ]", 7)]
    #[case::escaped_quote("[\"\\\"]\"]", 7)]
    #[case::escaped_backslash("[\"\\\\\"]", 6)]
    #[case::no_key("{1", 2)]
    #[case::no_colon("{\"a\"1", 5)]
    #[case::no_comma("[1 2", 4)]
    #[case::open_comma("[1,]", 4)]
    #[case::other_bracket("[}", 2)]
    #[case::newline_in_a_string("[\"\n", 3)]
    fn a_document_ends_at_its_bracket_or_its_mistake(#[case] text: &str, #[case] length: usize) {
        let whole = format!("{text}{{}}");
        assert_eq!(Scanner::default().scan(whole.as_bytes()), Scanned::End(length));
    }

    #[rstest]
    #[case("")]
    #[case("{\"a\"")]
    #[case("{\"a\": \"x\\")]
    #[case("[12")]
    #[case("<html>")]
    fn other_text_is_incomplete(#[case] text: &str) {
        assert_eq!(Scanner::default().scan(text.as_bytes()), Scanned::Incomplete);
    }

    #[test]
    fn deep_documents_end_early() {
        let text = "[".repeat(2 * MAX_DEPTH);
        let scanned = Scanner::default().scan(text.as_bytes());
        assert!(matches!(scanned, Scanned::End(length) if length <= MAX_DEPTH + 2), "{scanned:?}");
    }
}
