//! Email addresses of RFC 5322, as Go's `net/mail` parses one.
//!
//! An address may have a name (`Ann <ann@example.com>`), comments, and a group around it.

use std::net::Ipv4Addr;

/// Reports whether a text is one email address.
pub(super) fn is_email(text: &str) -> bool {
    let mut rest = Rest(text);
    rest.address(true) == Some(1) && rest.comments() && rest.0.is_empty()
}

/// The text behind what was read.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Reads an address or a group, and returns the number of addresses.
    fn address(&mut self, may_be_group: bool) -> Option<usize> {
        self.spaces();
        let start = *self;
        if self.plain_address() {
            self.spaces();
            return Some(1);
        }
        *self = start;
        if !self.0.starts_with('<') && !self.phrase() {
            return None;
        }
        self.spaces();
        if may_be_group && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.plain_address() && self.take('>')).then_some(1)
    }

    /// Reads the addresses of a group behind its colon.
    fn group(&mut self) -> Option<usize> {
        self.spaces();
        if self.take(';') {
            return self.comments().then_some(0);
        }
        let mut count = 0;
        loop {
            count += self.address(false)?;
            if !self.comments() {
                return None;
            }
            if self.take(';') {
                return self.comments().then_some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// Reads `local@domain`.
    fn plain_address(&mut self) -> bool {
        self.spaces();
        let has_local = if self.0.starts_with('"') {
            self.quoted().is_some_and(|length| length > 0)
        } else {
            self.atom(true)
        };
        if !has_local || !self.take('@') {
            return false;
        }
        self.spaces();
        if self.0.starts_with('[') { self.literal() } else { self.atom(true) }
    }

    /// Reads the words of a name.
    fn phrase(&mut self) -> bool {
        let mut count = 0;
        loop {
            self.spaces();
            let is_word = match self.0.chars().next() {
                Some('"') => self.quoted().is_some(),
                _ => self.atom(false),
            };
            if !is_word {
                return count > 0;
            }
            count += 1;
        }
    }

    /// Reads characters without a special meaning. A strict atom has dots between words only.
    fn atom(&mut self, strict: bool) -> bool {
        let is_text =
            |c: char| !c.is_ascii() || c.is_ascii_graphic() && !r#"()<>[]:;@\,""#.contains(c);
        let end = self.0.find(|c| !is_text(c)).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        self.0 = rest;
        let has_words = !strict || !atom.split('.').any(str::is_empty);
        !atom.is_empty() && has_words
    }

    /// Reads a text in quotes, and returns its length.
    fn quoted(&mut self) -> Option<usize> {
        let (mut length, mut is_escaped) = (0, false);
        for (at, c) in self.0.char_indices().skip(1) {
            match c {
                _ if is_escaped => is_escaped = false,
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(length);
                }
                '\\' => is_escaped = true,
                _ => {}
            }
            if c.is_ascii_control() && c != '\t' {
                return None;
            }
            length += 1;
        }
        None
    }

    /// Reads an IPv4 address in brackets.
    fn literal(&mut self) -> bool {
        let Some((address, rest)) = self.0[1..].split_once(']') else { return false };
        self.0 = rest;
        address.parse::<Ipv4Addr>().is_ok()
    }

    /// Skips spaces and comments. It returns whether all comments end.
    fn comments(&mut self) -> bool {
        self.spaces();
        while self.0.starts_with('(') {
            if !self.comment() {
                return false;
            }
            self.spaces();
        }
        true
    }

    /// Reads a comment with the comments inside.
    fn comment(&mut self) -> bool {
        let (mut depth, mut is_escaped) = (0_usize, false);
        for (at, c) in self.0.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '(' => depth += 1,
                ')' if depth == 1 => {
                    self.0 = &self.0[at + 1..];
                    return true;
                }
                ')' => depth -= 1,
                _ => {}
            }
        }
        false
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, wanted: char) -> bool {
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}
