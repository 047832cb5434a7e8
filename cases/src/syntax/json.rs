//! A small JSON reader that keeps the place of every value and reports duplicate members.
//!
//! `serde_json` keeps no places, and accepts duplicate members.

use std::ops::Range;

use serde_json::Number;

/// A value and its bytes in the text.
#[derive(Debug)]
pub(crate) struct Json {
    pub(crate) value: JsonValue,
    pub(crate) place: Range<usize>,
}

/// The value.
#[derive(Debug)]
pub(crate) enum JsonValue {
    Null,
    Bool(bool),
    Number(Number),
    String(JsonString),
    Array(Vec<Json>),
    Object(Vec<(JsonString, Json)>),
}

/// A string, unescaped, and its bytes in the text with the quotes.
#[derive(Debug)]
pub(crate) struct JsonString {
    pub(crate) value: String,
    pub(crate) place: Range<usize>,
}

/// What is wrong with a text.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct JsonError {
    pub(crate) message: String,
    pub(crate) place: Range<usize>,
    pub(crate) kind: JsonErrorKind,
}

/// Whether anything could be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum JsonErrorKind {
    /// Not JSON.
    Syntax,
    /// JSON with a name that occurs twice in one object.
    Duplicate,
}

/// Deeper than this, no body that is written by hand goes.
const MAX_DEPTH: usize = 100;

/// Reads a whole text. Of errors of syntax there is one, of duplicate names there are as many as
/// there are.
pub(crate) fn read(text: &str) -> Result<Json, Vec<JsonError>> {
    let mut reader = Reader { text, at: 0, depth: 0, duplicates: Vec::new() };
    match reader.document() {
        Ok(json) if reader.duplicates.is_empty() => Ok(json),
        Ok(_) => Err(reader.duplicates),
        Err(error) => {
            reader.duplicates.push(error);
            Err(reader.duplicates)
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    duplicates: Vec<JsonError>,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Json, JsonError> {
        self.space();
        if self.at == self.text.len() {
            return Err(self.expected("a JSON value, found nothing"));
        }
        let json = self.value()?;
        self.space();
        if self.at < self.text.len() {
            return Err(self.expected("the end of the JSON text"));
        }
        Ok(json)
    }

    fn value(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        if self.depth == MAX_DEPTH {
            return Err(self.expected("less than 100 levels of nesting"));
        }
        self.depth += 1;
        let value = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => JsonValue::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", JsonValue::Bool(true))?,
            Some(b'f') => self.word("false", JsonValue::Bool(false))?,
            Some(b'n') => self.word("null", JsonValue::Null)?,
            _ => return Err(self.expected("a JSON value")),
        };
        self.depth -= 1;
        Ok(Json { value, place: start..self.at })
    }

    fn object(&mut self) -> Result<JsonValue, JsonError> {
        self.at += 1;
        let mut members: Vec<(JsonString, Json)> = Vec::new();
        self.space();
        if self.take(b'}') {
            return Ok(JsonValue::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a member name in double quotes"));
            }
            let name = self.string()?;
            if members.iter().any(|(other, _)| other.value == name.value) {
                self.duplicates.push(JsonError {
                    message: format!("this object has the member `{}` twice", name.value),
                    place: name.place.clone(),
                    kind: JsonErrorKind::Duplicate,
                });
            }
            self.space();
            if !self.take(b':') {
                return Err(self.expected("`:`"));
            }
            self.space();
            let value = self.value()?;
            members.push((name, value));
            self.space();
            if self.take(b'}') {
                return Ok(JsonValue::Object(members));
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn array(&mut self) -> Result<JsonValue, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.take(b']') {
            return Ok(JsonValue::Array(items));
        }
        loop {
            self.space();
            items.push(self.value()?);
            self.space();
            if self.take(b']') {
                return Ok(JsonValue::Array(items));
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Result<JsonString, JsonError> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None | Some(b'\n') => return Err(self.expected("the closing `\"` of this string")),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let raw = self.text.get(start..self.at).unwrap_or_default();
        let value = serde_json::from_str(raw).map_err(|error| JsonError {
            message: format!("not a JSON string: {}", without_position(&error)),
            place: start..self.at,
            kind: JsonErrorKind::Syntax,
        })?;
        Ok(JsonString { value, place: start..self.at })
    }

    fn number(&mut self) -> Result<JsonValue, JsonError> {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        self.at += rest
            .iter()
            .take_while(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
            .count();
        serde_json::from_str(&self.text[start..self.at]).map(JsonValue::Number).map_err(|error| {
            JsonError {
                message: format!("not a JSON number: {}", without_position(&error)),
                place: start..self.at,
                kind: JsonErrorKind::Syntax,
            }
        })
    }

    fn word(&mut self, word: &str, value: JsonValue) -> Result<JsonValue, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.expected("a JSON value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, what: &str) -> JsonError {
        let at = self.at.min(self.text.trim_end().len());
        let len =
            self.text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        JsonError {
            message: format!("not JSON: expected {what}"),
            place: at..at + len,
            kind: JsonErrorKind::Syntax,
        }
    }
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::missing_comma(r#"{"a": 1 "b": 2}"#, "expected `,` or `}`", 8)]
    #[case::trailing_comma(r#"{"a": 1,}"#, "member name", 8)]
    #[case::unquoted(r"{a: 1}", "member name", 1)]
    #[case::open_string("[\"a\n]", "closing", 3)]
    #[case::bad_escape(r#"["\q"]"#, "not a JSON string", 1)]
    #[case::leading_zero("[01]", "not a JSON number", 1)]
    #[case::empty("  ", "found nothing", 0)]
    #[case::trailing_text("{} x", "the end", 3)]
    #[case::word("[nul]", "a JSON value", 1)]
    #[case::bare_variable(r#"{"a": ${x}}"#, "a JSON value", 6)]
    fn what_is_not_json_is_said_where_it_stands(
        #[case] text: &str,
        #[case] message: &str,
        #[case] at: usize,
    ) {
        let errors = read(text).expect_err("this is not JSON");
        assert!(errors[0].message.contains(message), "{}", errors[0].message);
        assert_eq!(errors[0].place.start, at);
    }

    #[test]
    fn every_duplicate_is_reported() {
        let errors =
            read(r#"{"a": 1, "a": {"b": 1, "b": 2}, "\u0061": 3}"#).expect_err("names occur twice");
        assert_eq!(errors.iter().map(|error| error.place.start).collect::<Vec<_>>(), [9, 23, 32]);
        assert!(errors.iter().all(|error| error.kind == JsonErrorKind::Duplicate));
    }

    #[test]
    fn nesting_is_bounded() {
        assert!(read(&"[".repeat(100_000)).is_err());
    }
}
