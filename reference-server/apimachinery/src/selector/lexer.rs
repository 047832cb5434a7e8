//! The tokens of a label selector.

/// A token and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    pub(super) offset: usize,
}

/// `in` and `notin` are words. The parser decides by their position whether they are operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Open,
    Close,
    Comma,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
    End,
}

/// Reads tokens with one token of lookahead.
pub(super) struct Lexer<'t> {
    text: &'t str,
    next: Token<'t>,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, next: scan(text, 0) }
    }

    pub(super) fn peek(&self) -> Token<'t> {
        self.next
    }

    pub(super) fn take(&mut self) -> Token<'t> {
        let token = self.next;
        self.next = scan(self.text, token.offset + token.text.len());
        token
    }

    pub(super) fn take_if(&mut self, kind: Kind) -> Option<Token<'t>> {
        (self.next.kind == kind).then(|| self.take())
    }
}

fn scan(text: &str, from: usize) -> Token<'_> {
    let rest = &text[from..];
    let offset = from + (rest.len() - rest.trim_start().len());
    let rest = &text[offset..];
    let is_special = |c: char| matches!(c, '(' | ')' | ',' | '!' | '=' | '>' | '<');
    let (kind, length) = match rest.as_bytes() {
        [] => (Kind::End, 0),
        [b'(', ..] => (Kind::Open, 1),
        [b')', ..] => (Kind::Close, 1),
        [b',', ..] => (Kind::Comma, 1),
        [b'=', b'=', ..] => (Kind::Equals, 2),
        [b'=', ..] => (Kind::Equals, 1),
        [b'!', b'=', ..] => (Kind::NotEquals, 2),
        [b'!', ..] => (Kind::Not, 1),
        [b'>', ..] => (Kind::Greater, 1),
        [b'<', ..] => (Kind::Less, 1),
        _ => (
            Kind::Word,
            rest.find(|c: char| is_special(c) || c.is_whitespace()).unwrap_or(rest.len()),
        ),
    };
    Token { kind, text: &rest[..length], offset }
}
