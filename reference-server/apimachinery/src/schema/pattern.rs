//! Regular expressions in the syntax of Go, which kube-apiserver uses for patterns and CEL.
//!
//! Both syntaxes descend from RE2. [`translate`] rewrites the differences: Go has no nested classes
//! and class operators, its Perl classes are ASCII, and a brace can be a literal. It rejects what
//! only the crate `regex` accepts: other flags and escapes, and stacked or large repetitions.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

/// The maximum number of repetitions that Go accepts.
const MAX_REPETITIONS: u32 = 1000;

/// The names of classes such as `[:alpha:]`.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The properties of the crate `regex` that are no categories or scripts, without separators.
const NO_CATEGORIES: [&str; 14] = [
    "alphabetic",
    "dash",
    "emoji",
    "extender",
    "hexdigit",
    "ideographic",
    "idcontinue",
    "idstart",
    "lowercase",
    "math",
    "uppercase",
    "whitespace",
    "xidcontinue",
    "xidstart",
];

/// A pattern that does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// Go rejects the pattern.
    #[error("error parsing regexp: {0}")]
    Syntax(String),
    /// The compiled pattern exceeds the limit for its size.
    #[error("the compiled pattern exceeds the size limit of {0} bytes")]
    TooLarge(usize),
}

/// A compiled pattern, with its text in the syntax of Go.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Arc<str>,
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern, as [`compile`] does.
    pub(crate) fn compile(pattern: &str, size: usize) -> Result<Self, PatternError> {
        Ok(Self { text: pattern.into(), regex: compile(pattern, size)? })
    }

    /// Returns the pattern as the author of the schema wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// Compiles a pattern in the syntax of Go. `size` limits the memory of the compiled pattern.
pub(crate) fn compile(pattern: &str, size: usize) -> Result<Regex, PatternError> {
    let translated = translate(pattern)?;
    let mut builder = RegexBuilder::new(&translated);
    builder.octal(true).size_limit(size).dfa_size_limit(size);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(limit) => PatternError::TooLarge(limit),
        other => PatternError::Syntax(other.to_string()),
    })
}

/// Checks the syntax of a pattern without compiling it for matching.
pub(crate) fn check(pattern: &str) -> Result<(), PatternError> {
    match compile(pattern, 1 << 20) {
        Ok(_) | Err(PatternError::TooLarge(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns a pattern of Go in the syntax of the crate `regex`.
fn translate(pattern: &str) -> Result<String, PatternError> {
    let mut translator = Translator { rest: pattern.chars().peekable(), out: String::new() };
    translator.all().map_err(PatternError::Syntax)?;
    Ok(translator.out)
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
}

/// What stands before the next character.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// A part that may be repeated, or the start.
    Part,
    /// A repetition. A question mark makes it lazy.
    Repetition,
    LazyRepetition,
}

impl Translator<'_> {
    fn all(&mut self) -> Result<(), String> {
        let mut before = Before::Part;
        while let Some(next) = self.rest.next() {
            let repeats = match next {
                '*' | '+' | '?' => true,
                '{' => is_repetition(self.rest.clone())?,
                _ => false,
            };
            before = match before {
                Before::Repetition if next == '?' => Before::LazyRepetition,
                _ if !repeats => Before::Part,
                Before::Part => Before::Repetition,
                _ => return Err(format!("invalid nested repetition operator: `{next}`")),
            };
            match next {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '{' if repeats => {
                    self.out.push('{');
                    self.out.extend(self.rest.by_ref().take_while(|c| *c != '}'));
                    self.out.push('}');
                }
                '{' => self.out.push_str("\\{"),
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    /// Copies the parenthesis. Go has only the flags `imsU`, and names of letters and digits.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        let mut ahead = self.rest.clone();
        if ahead.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        let head: String = ahead.take_while(|c| !matches!(c, ':' | ')' | '>')).collect();
        let named = head.strip_prefix("P<").or_else(|| head.strip_prefix('<'));
        let flags = |text: &str| text.chars().all(|flag| "imsU".contains(flag));
        let is_known = match (named, head.split_once('-')) {
            (Some(name), _) => name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()),
            (None, Some((on, off))) => flags(on) && flags(off) && !off.is_empty(),
            (None, None) => flags(&head),
        };
        if !is_known {
            return Err(format!("invalid or unsupported Perl syntax: `(?{head}`"));
        }
        // A match has no names, and Go permits a repeated name.
        let length = 1 + head.chars().count() + usize::from(named.is_some());
        self.rest.by_ref().take(length).for_each(drop);
        if named.is_some() {
            return Ok(());
        }
        // Go permits repeated flags and no flags.
        let (on, off) = head.split_once('-').unwrap_or((&head, ""));
        self.out.push('?');
        for flag in ['i', 'm', 's', 'U'] {
            if on.contains(flag) && !off.contains(flag) {
                self.out.push(flag);
            }
        }
        if head.contains('-') {
            self.out.push('-');
            self.out.extend(['i', 'm', 's', 'U'].into_iter().filter(|flag| off.contains(*flag)));
        }
        if head.is_empty() && self.rest.peek() == Some(&')') {
            self.out.push(':');
        }
        Ok(())
    }

    /// Translates the character class after `[`.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        while let Some(next) = self.rest.next() {
            match next {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.rest.peek() == Some(&':') => self.named_class()?,
                next => {
                    let is_character = self.class_item(next)?;
                    if is_character && self.begins_range() {
                        self.rest.next();
                        self.out.push('-');
                        if let Some(end) = self.rest.next()
                            && !self.class_item(end)?
                        {
                            return Err("invalid character class range".to_owned());
                        }
                    }
                }
            }
            first = false;
        }
        Ok(())
    }

    /// Copies `[:alpha:]`. Without an end, the bracket is a literal.
    fn named_class(&mut self) -> Result<(), String> {
        let name: String = self.rest.clone().take_while(|c| *c != ']').collect();
        let Some(class) = name.strip_prefix(':').and_then(|name| name.strip_suffix(':')) else {
            self.out.push_str("\\[");
            return Ok(());
        };
        if !CLASSES.contains(&class.strip_prefix('^').unwrap_or(class)) {
            return Err(format!("invalid character class range: `[{name}]`"));
        }
        self.out.push('[');
        for _ in 0..=name.chars().count() {
            self.out.extend(self.rest.next());
        }
        Ok(())
    }

    /// Translates an item of a class. Returns whether it is a single character.
    fn class_item(&mut self, item: char) -> Result<bool, String> {
        match item {
            '\\' => {
                let is_set = self.rest.peek().is_some_and(|c| "dDwWsSpP".contains(*c));
                self.escape(true)?;
                return Ok(!is_set);
            }
            '[' | ']' | '^' | '-' | '&' | '~' => self.out.extend(['\\', item]),
            _ => self.out.push(item),
        }
        Ok(true)
    }

    /// Reports whether a hyphen and the end of a range follow.
    fn begins_range(&self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next() == Some('-') && ahead.next().is_some_and(|end| end != ']')
    }

    /// Translates the escape sequence after a backslash.
    fn escape(&mut self, within_class: bool) -> Result<(), String> {
        let Some(next) = self.rest.next() else {
            self.out.push('\\');
            return Ok(());
        };
        match next {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str(r"[\t\n\f\r ]"),
            'S' => self.out.push_str(r"[^\t\n\f\r ]"),
            'b' if !within_class => self.out.push_str(r"(?-u:\b)"),
            'B' if !within_class => self.out.push_str(r"(?-u:\B)"),
            'Q' if !within_class => self.quoted(),
            '<' | '>' => self.out.push(next),
            'p' | 'P' => self.property(next)?,
            'A' | 'z' if !within_class => self.out.extend(['\\', next]),
            // A single digit is a reference in other syntaxes.
            '1'..='7' if !self.rest.peek().is_some_and(|c| ('0'..='7').contains(c)) => {
                return Err(format!("invalid escape sequence: `\\{next}`"));
            }
            'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | '0'..='7' => {
                self.out.extend(['\\', next]);
            }
            other if !other.is_ascii_alphanumeric() => self.out.extend(['\\', other]),
            other => return Err(format!("invalid escape sequence: `\\{other}`")),
        }
        Ok(())
    }

    /// Copies a category or script after `\p`. Go writes `\p{^Han}` for `\P{Han}`.
    fn property(&mut self, letter: char) -> Result<(), String> {
        if self.rest.peek() != Some(&'{') {
            self.out.extend(['\\', letter]);
            return Ok(());
        }
        let braced: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
        let name = braced.trim_start_matches('{');
        let (name, negated) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        let plain: String =
            name.chars().filter(|c| !"_- ".contains(*c)).collect::<String>().to_lowercase();
        if name.contains(['=', ':', '!']) || NO_CATEGORIES.contains(&plain.as_str()) {
            return Err(format!("invalid character class range: `\\{letter}{braced}}}`"));
        }
        let letter = match (letter, negated) {
            ('p', true) => 'P',
            (_, true) => 'p',
            (letter, false) => letter,
        };
        self.out.extend(['\\', letter, '{']);
        self.out.push_str(name);
        self.out.push('}');
        Ok(())
    }

    /// Copies the literal text between `\Q` and `\E`.
    fn quoted(&mut self) {
        let mut text = String::new();
        while let Some(next) = self.rest.next() {
            if next == '\\' && self.rest.next_if_eq(&'E').is_some() {
                break;
            }
            text.push(next);
        }
        self.out.push_str(&regex::escape(&text));
    }
}

/// Reports whether the text after `{` is `2}`, `2,}` or `2,3}`.
fn is_repetition(mut text: Peekable<Chars<'_>>) -> Result<bool, String> {
    let bounds: String = text.by_ref().take_while(|c| *c != '}' && c.is_ascii()).take(24).collect();
    let (low, high) = bounds.split_once(',').unwrap_or((&bounds, &bounds));
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !is_number(low) || !(high.is_empty() || is_number(high)) {
        return Ok(false);
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= MAX_REPETITIONS);
    let is_valid = match (number(low), number(high)) {
        (Some(low), Some(high)) => low <= high,
        (Some(_), None) => high.is_empty(),
        _ => false,
    };
    if is_valid { Ok(true) } else { Err(format!("invalid repeat count: `{{{bounds}}}`")) }
}

#[cfg(test)]
mod tests;
