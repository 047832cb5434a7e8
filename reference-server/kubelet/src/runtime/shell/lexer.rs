//! Splits text into words and operators.

use super::parser;
use super::syntax::{Form, Part, SyntaxError, Word};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    Operator(&'static str),
    Redirect(u8, &'static str),
}

// Longer operators come first.
const OPERATORS: [&str; 8] = ["&&", "||", "\n", ";", "&", "|", "(", ")"];
const REDIRECTS: [&str; 5] = [">>", ">&", "<&", ">", "<"];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    Lexer { rest: text }.all()
}

/// Parses the text inside `$((…))`, which may contain expansions.
fn quoted(text: &str) -> Result<Word, SyntaxError> {
    let mut word = Word::default();
    let mut lexer = Lexer { rest: text };
    while !lexer.rest.is_empty() {
        lexer.double_quoted(&mut word)?;
    }
    Ok(word)
}

struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    fn all(mut self) -> Result<Vec<Token>, SyntaxError> {
        let mut tokens = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if self.take("\\\n") {
                continue;
            }
            if self.rest.starts_with('#') {
                self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
            }
            if self.rest.is_empty() {
                return Ok(tokens);
            }
            tokens.push(self.token()?);
        }
    }

    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn character(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let character = chars.next();
        self.rest = chars.as_str();
        character
    }

    fn token(&mut self) -> Result<Token, SyntaxError> {
        if self.rest.starts_with("<<") {
            return Err(SyntaxError::Unsupported("a here-document"));
        }
        if self.rest.starts_with(";;") {
            return Err(SyntaxError::Unsupported("case"));
        }
        if let Some(operator) = OPERATORS.into_iter().find(|operator| self.take(operator)) {
            return Ok(Token::Operator(operator));
        }
        let digit =
            self.rest.starts_with(['0', '1', '2']) && self.rest[1..].starts_with(['<', '>']);
        let stream = if digit { self.character() } else { None };
        if let Some(redirect) = REDIRECTS.into_iter().find(|redirect| self.take(redirect)) {
            let stream = match stream {
                Some('0') => 0,
                Some('1') => 1,
                Some('2') => 2,
                _ => u8::from(redirect.starts_with('>')),
            };
            return Ok(Token::Redirect(stream, redirect));
        }
        self.word().map(Token::Word)
    }

    fn word(&mut self) -> Result<Word, SyntaxError> {
        let mut word = Word::default();
        while let Some(next) = self.rest.chars().next() {
            match next {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    let (text, rest) =
                        self.rest[1..].split_once('\'').ok_or(SyntaxError::Incomplete)?;
                    self.rest = rest;
                    word.0.push(Part::Text { text: text.to_owned(), quoted: true });
                }
                '"' => {
                    self.rest = &self.rest[1..];
                    // Empty quotes are a word.
                    word.0.push(Part::Text { text: String::new(), quoted: true });
                    while !self.take("\"") {
                        if self.rest.is_empty() {
                            return Err(SyntaxError::Incomplete);
                        }
                        self.double_quoted(&mut word)?;
                    }
                }
                '\\' => {
                    self.rest = &self.rest[1..];
                    match self.character().ok_or(SyntaxError::Incomplete)? {
                        '\n' => {}
                        escaped => {
                            word.0.push(Part::Text { text: escaped.to_string(), quoted: true });
                        }
                    }
                }
                '`' => return Err(SyntaxError::Unsupported("a command in backticks")),
                '$' => self.expansion(&mut word, false)?,
                _ => {
                    let end = self
                        .rest
                        .find(|c| " \t\n;|&()<>'\"\\`$".contains(c))
                        .unwrap_or(self.rest.len());
                    let (text, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    word.0.push(Part::Text { text: text.to_owned(), quoted: false });
                }
            }
        }
        Ok(word)
    }

    /// Reads one piece of a text in double quotes.
    fn double_quoted(&mut self, word: &mut Word) -> Result<(), SyntaxError> {
        if self.rest.starts_with('$') {
            return self.expansion(word, true);
        }
        if self.rest.starts_with('`') {
            return Err(SyntaxError::Unsupported("a command in backticks"));
        }
        let mut text = String::new();
        if self.take("\\") {
            match self.character().ok_or(SyntaxError::Incomplete)? {
                '\n' => {}
                escaped @ ('$' | '"' | '\\' | '`') => text.push(escaped),
                other => text.extend(['\\', other]),
            }
        } else {
            let end = self.rest.find(['$', '"', '\\', '`']).unwrap_or(self.rest.len());
            let (plain, rest) = self.rest.split_at(end);
            text.push_str(plain);
            self.rest = rest;
        }
        word.0.push(Part::Text { text, quoted: true });
        Ok(())
    }

    /// Reads an expansion after `$`.
    fn expansion(&mut self, word: &mut Word, quoted_here: bool) -> Result<(), SyntaxError> {
        self.rest = &self.rest[1..];
        let quoted_flag = quoted_here;
        if self.rest.starts_with("((") {
            let inner = self.enclosed('(', ')')?;
            let inner = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
            let text = inner.ok_or(SyntaxError::Incomplete)?;
            word.0.push(Part::Number { expression: quoted(text)?, quoted: quoted_flag });
            return Ok(());
        }
        if self.rest.starts_with('(') {
            let list = parser::parse(self.enclosed('(', ')')?)?;
            word.0.push(Part::Output { list, quoted: quoted_flag });
            return Ok(());
        }
        let (name, form) = if self.rest.starts_with('{') {
            braced(self.enclosed('{', '}')?)?
        } else {
            let length = match self.rest.chars().next() {
                Some('?' | '#' | '@' | '*' | '$' | '!' | '-') => 1,
                Some(digit) if digit.is_ascii_digit() => 1,
                _ => name_length(self.rest),
            };
            let (name, rest) = self.rest.split_at(length);
            self.rest = rest;
            (name.to_owned(), Form::Plain)
        };
        word.0.push(if name.is_empty() {
            Part::Text { text: "$".to_owned(), quoted: true }
        } else {
            Part::Parameter { name, form, quoted: quoted_flag }
        });
        Ok(())
    }

    /// Returns the text up to the closing bracket.
    fn enclosed(&mut self, open: char, close: char) -> Result<&'a str, SyntaxError> {
        let text = self.rest;
        let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
        for (at, c) in text.char_indices() {
            match (c, quote) {
                _ if escaped => escaped = false,
                ('\\', quote) if quote != Some('\'') => escaped = true,
                (c, Some(open)) if c == open => quote = None,
                ('\'' | '"', None) => quote = Some(c),
                (c, None) if c == open => depth += 1,
                (c, None) if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        self.rest = &text[at + close.len_utf8()..];
                        return Ok(&text[open.len_utf8()..at]);
                    }
                }
                _ => {}
            }
        }
        Err(SyntaxError::Incomplete)
    }
}

/// Parses the text of `${…}`.
fn braced(text: &str) -> Result<(String, Form), SyntaxError> {
    if let Some(name) =
        text.strip_prefix('#').filter(|name| !name.is_empty() && name_length(name) == name.len())
    {
        return Ok((name.to_owned(), Form::Length));
    }
    let length = if text.starts_with(['?', '#', '@', '*', '$']) { 1 } else { name_length(text) };
    let length =
        if length == 0 { text.chars().take_while(char::is_ascii_digit).count() } else { length };
    let (name, operator) = text.split_at(length);
    if name.is_empty() {
        return Err(SyntaxError::Unexpected(format!("${{{text}}}")));
    }
    let form = if operator.is_empty() {
        Form::Plain
    } else if let Some(word) = operator.strip_prefix(":-") {
        Form::Default { word: quoted(word)?, also_empty: true }
    } else if let Some(word) = operator.strip_prefix('-') {
        Form::Default { word: quoted(word)?, also_empty: false }
    } else if let Some(word) =
        operator.strip_prefix(['%', '#']).filter(|word| !word.contains(['%', '#', '*', '?', '[']))
    {
        Form::Without { word: quoted(word)?, end: operator.starts_with('%') }
    } else {
        return Err(SyntaxError::Unsupported("this form of a parameter"));
    };
    Ok((name.to_owned(), form))
}

/// Returns the length of the name at the start of the text.
pub(super) fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}
