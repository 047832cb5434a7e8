//! Translates patterns of Go into the syntax of the crate `regex`.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use super::repetition::repetition;

/// The maximum length of a repetition such as `{2,3}`. Larger numbers are mistakes.
const MAX_BRACES: usize = 32;
/// The maximum length of the name of a class.
const MAX_CLASS: usize = 16;

/// Returns a valid pattern of Go in the syntax of the crate `regex`.
pub(super) fn translate(pattern: &str) -> String {
    let mut translator = Translator { rest: pattern.chars().peekable(), out: String::new() };
    translator.all();
    translator.out
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
}

impl Translator<'_> {
    fn all(&mut self) {
        while let Some(next) = self.rest.next() {
            match next {
                '\\' => self.escape(false),
                '[' => self.class(),
                '(' => self.group(),
                '{' => self.brace(),
                other => self.out.push(other),
            }
        }
    }

    /// Copies a repetition. Other braces are characters.
    fn brace(&mut self) {
        let rest: String = self.rest.clone().take(MAX_BRACES).collect();
        let counts = repetition(&format!("{{{rest}"));
        self.out.push_str(if counts.is_some() { "{" } else { "\\{" });
        for _ in 1..counts.map_or(0, |counts| counts.length) {
            self.out.extend(self.rest.next());
        }
    }

    /// Copies the parenthesis and its flags.
    fn group(&mut self) {
        self.out.push('(');
        let mut ahead = self.rest.clone();
        if ahead.next_if_eq(&'?').is_none() {
            return;
        }
        let head: String = ahead.take_while(|c| !matches!(c, ':' | ')' | '>')).collect();
        let named = head.strip_prefix("P<").or_else(|| head.strip_prefix('<'));
        // A match has no names, and Go permits a repeated name.
        let length = 1 + head.chars().count() + usize::from(named.is_some());
        self.rest.by_ref().take(length).for_each(drop);
        if named.is_some() {
            return;
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
    }

    /// Translates the character class after `[`.
    fn class(&mut self) {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        while let Some(next) = self.rest.next() {
            match next {
                ']' if !first => {
                    self.out.push(']');
                    return;
                }
                '[' if self.rest.peek() == Some(&':') => self.named_class(),
                next => {
                    let is_character = self.class_item(next);
                    if is_character && self.begins_range() {
                        self.rest.next();
                        self.out.push('-');
                        if let Some(end) = self.rest.next() {
                            self.class_item(end);
                        }
                    }
                }
            }
            first = false;
        }
    }

    /// Copies `[:alpha:]`. Without an end, the bracket is a literal.
    fn named_class(&mut self) {
        let rest: String = self.rest.clone().take(MAX_CLASS).collect();
        let end = rest.find(":]").filter(|end| *end > 0);
        let Some(end) = end else {
            self.out.push_str("\\[");
            return;
        };
        self.out.push('[');
        for _ in 0..end + 2 {
            self.out.extend(self.rest.next());
        }
    }

    /// Translates an item of a class. Returns whether it is a single character.
    fn class_item(&mut self, item: char) -> bool {
        match item {
            '\\' => {
                let is_set = self.rest.peek().is_some_and(|c| "dDwWsSpP".contains(*c));
                self.escape(true);
                return !is_set;
            }
            '[' | ']' | '^' | '-' | '&' | '~' => self.out.extend(['\\', item]),
            _ => self.out.push(item),
        }
        true
    }

    /// Reports whether a hyphen and the end of a range follow.
    fn begins_range(&self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next() == Some('-') && ahead.next().is_some_and(|end| end != ']')
    }

    /// Translates the escape sequence after a backslash.
    fn escape(&mut self, within_class: bool) {
        let Some(next) = self.rest.next() else { return };
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
            'p' | 'P' => self.property(next),
            'x' if self.rest.peek() == Some(&'{') => self.hexadecimal(),
            other => self.out.extend(['\\', other]),
        }
    }

    /// Copies the number after `\x`. Go also accepts the numbers of surrogates.
    fn hexadecimal(&mut self) {
        let braced: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
        let number = u32::from_str_radix(braced.trim_start_matches('{'), 16).unwrap_or_default();
        let character = char::from_u32(number).map_or(0xfffd, u32::from);
        // Writing to a string cannot fail.
        let _ = write!(self.out, r"\x{{{character:x}}}");
    }

    /// Copies a category or script after `\p`. Go writes `\p{^Han}` for `\P{Han}`.
    fn property(&mut self, letter: char) {
        let braced: String = if self.rest.peek() == Some(&'{') {
            self.rest.by_ref().take_while(|c| *c != '}').collect()
        } else {
            self.rest.next().into_iter().collect()
        };
        let name = braced.trim_start_matches('{');
        let (name, negated) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        let letter = match (letter, negated) {
            ('p', true) => 'P',
            (_, true) => 'p',
            (letter, false) => letter,
        };
        self.out.extend(['\\', letter, '{']);
        self.out.push_str(name);
        self.out.push('}');
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
