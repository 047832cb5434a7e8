//! The recursive descent parser.

use std::ops::Range;

use super::{
    Document, Duplicate, Fault, Kind, MAX_DUPLICATES, Member, Node, Position, number, text,
};

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
    path: Vec<Segment>,
    duplicates: Vec<Duplicate>,
}

enum Segment {
    /// The position of the key, including quotes. Most keys are never read.
    Key(Range<usize>),
    Index(usize),
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], max_depth: usize) -> Self {
        Self {
            bytes,
            text: "",
            at: 0,
            depth: 0,
            max_depth,
            path: Vec::new(),
            duplicates: Vec::new(),
        }
    }

    pub(super) fn document(mut self) -> Result<Document<'a>, Fault> {
        match std::str::from_utf8(self.bytes) {
            Ok(text) => self.text = text,
            Err(error) => return Err(self.fault(error.valid_up_to(), "bytes that are not UTF-8")),
        }
        if self.text.starts_with('\u{FEFF}') {
            return Err(self.fault(0, "a byte order mark before the JSON"));
        }
        let root = self.value()?;
        self.blank();
        if self.at < self.bytes.len() {
            return Err(self.fault(self.at, "more text after the end of the JSON value"));
        }
        // Duplicates of an object are found after those of its members.
        self.duplicates.sort_by_key(|duplicate| duplicate.at.byte);
        Ok(Document { root, duplicates: self.duplicates })
    }

    fn value(&mut self) -> Result<Node<'a>, Fault> {
        self.blank();
        let start = self.at;
        let kind = match self.bytes.get(self.at) {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { kind, span: start..self.at })
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Kind<'a>, Fault>,
    ) -> Result<Kind<'a>, Fault> {
        if self.depth == self.max_depth {
            return Err(
                self.fault(self.at, &format!("nesting deeper than {} levels", self.max_depth))
            );
        }
        self.depth += 1;
        self.at += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn object(&mut self) -> Result<Kind<'a>, Fault> {
        let mut members: Vec<Member<'a>> = Vec::new();
        if self.close(b'}') {
            return Ok(Kind::Object(members));
        }
        loop {
            self.blank();
            let key_start = self.at;
            if self.bytes.get(self.at) != Some(&b'"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let key = self.string()?;
            let key_span = key_start..self.at;
            self.blank();
            if self.bytes.get(self.at) != Some(&b':') {
                return Err(self.unexpected("a colon after the key"));
            }
            self.at += 1;
            self.path.push(Segment::Key(key_span.clone()));
            let value = self.value()?;
            self.path.pop();
            members.push(Member { key, key_span, value });
            if self.last(b'}', "a comma or the end of the object")? {
                self.note_duplicates(&members);
                return Ok(Kind::Object(members));
            }
        }
    }

    fn note_duplicates(&mut self, members: &[Member<'a>]) {
        let mut by_key: Vec<&Member<'a>> = members.iter().collect();
        // A stable sort keeps the first of equal keys first.
        by_key.sort_by(|a, b| a.key.cmp(&b.key));
        let room = MAX_DUPLICATES - self.duplicates.len();
        for pair in by_key.windows(2).filter(|pair| pair[0].key == pair[1].key).take(room) {
            let again = &pair[1].key_span;
            self.path.push(Segment::Key(again.clone()));
            self.duplicates
                .push(Duplicate { pointer: self.pointer(), at: self.position(again.start) });
            self.path.pop();
        }
    }

    fn array(&mut self) -> Result<Kind<'a>, Fault> {
        let mut items = Vec::new();
        if self.close(b']') {
            return Ok(Kind::Array(items));
        }
        loop {
            self.path.push(Segment::Index(items.len()));
            items.push(self.value()?);
            self.path.pop();
            if self.last(b']', "a comma or the end of the array")? {
                return Ok(Kind::Array(items));
            }
        }
    }

    /// Skips the closing bracket of an empty list or object.
    fn close(&mut self, bracket: u8) -> bool {
        self.blank();
        let closes = self.bytes.get(self.at) == Some(&bracket);
        self.at += usize::from(closes);
        closes
    }

    /// Skips the separator after an item: true for the closing bracket, false for a comma.
    fn last(&mut self, bracket: u8, expected: &str) -> Result<bool, Fault> {
        self.blank();
        let closes = match self.bytes.get(self.at) {
            Some(b',') => false,
            Some(&byte) if byte == bracket => true,
            _ => return Err(self.unexpected(expected)),
        };
        self.at += 1;
        Ok(closes)
    }

    fn string(&mut self) -> Result<String, Fault> {
        let inside = self.at + 1;
        let (string, length) = text::read(&self.text[inside..])
            .map_err(|flaw| self.fault(inside + flaw.offset, &flaw.message))?;
        self.at = inside + length;
        Ok(string)
    }

    fn number(&mut self) -> Result<&'a str, Fault> {
        let length = number::scan(&self.bytes[self.at..])
            .map_err(|offset| self.fault(self.at + offset, "a number that is not JSON's"))?;
        let number = &self.text[self.at..self.at + length];
        self.at += length;
        Ok(number)
    }

    fn word(&mut self, word: &str, kind: Kind<'a>) -> Result<Kind<'a>, Fault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn blank(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |pointer, segment| match segment {
            Segment::Key(span) => {
                // The key was parsed before, so this succeeds.
                let key = text::read(&self.text[span.start + 1..])
                    .map(|(key, _)| key)
                    .unwrap_or_default();
                format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Segment::Index(index) => format!("{pointer}/{index}"),
        })
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let met = self.text[self.at..]
            .chars()
            .next()
            .map_or("the end of the text".to_owned(), |c| format!("{c:?}"));
        self.fault(self.at, &format!("expected {expected}, met {met}"))
    }

    fn position(&self, byte: usize) -> Position {
        Position::of(self.bytes, byte)
    }

    fn fault(&self, byte: usize, message: &str) -> Fault {
        Fault { message: message.to_owned(), at: self.position(byte) }
    }
}
