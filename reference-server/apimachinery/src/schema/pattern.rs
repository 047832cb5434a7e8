//! Regular expressions in the syntax of Go, which kube-apiserver uses for patterns.
//!
//! Both syntaxes descend from RE2. [`translate`] rewrites the differences: Go has no nested classes
//! and class operators, its Perl classes are ASCII, and a brace can be a literal.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// The maximum number of repetitions that Go accepts.
const MAX_REPETITIONS: u32 = 1000;

/// Compiles a pattern in the syntax of Go. `size` limits the memory of the compiled pattern.
pub(crate) fn compile(pattern: &str, size: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translate(pattern)).octal(true).size_limit(size).dfa_size_limit(size).build()
}

/// Returns a pattern of Go in the syntax of the crate `regex`.
fn translate(pattern: &str) -> String {
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
                '{' if !is_repetition(self.rest.clone()) => self.out.push_str("\\{"),
                other => self.out.push(other),
            }
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
        let name: String = self.rest.clone().take_while(|c| *c != ']').collect();
        if name.len() > 1 && name.ends_with(':') {
            self.out.push('[');
            for _ in 0..=name.chars().count() {
                self.out.extend(self.rest.next());
            }
        } else {
            self.out.push_str("\\[");
        }
    }

    /// Translates an item of a class. Returns whether it is a single character.
    fn class_item(&mut self, item: char) -> bool {
        match item {
            '\\' => {
                let is_set = self.rest.peek().is_some_and(|c| "dDwWsSpPQ".contains(*c));
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
        let Some(next) = self.rest.next() else {
            self.out.push('\\');
            return;
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
            'Q' => self.quoted(),
            '<' | '>' => self.out.push(next),
            other => self.out.extend(['\\', other]),
        }
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
fn is_repetition(text: Peekable<Chars<'_>>) -> bool {
    let bounds: String = text.take_while(|c| *c != '}' && c.is_ascii()).take(16).collect();
    let mut numbers = bounds.split(',');
    let is_number = |text: &str| text.parse::<u32>().is_ok_and(|number| number <= MAX_REPETITIONS);
    let low = numbers.next().is_some_and(is_number);
    let high = numbers.next().is_none_or(|high| high.is_empty() || is_number(high));
    low && high && numbers.next().is_none()
}

#[cfg(test)]
mod tests {
    use proptest::proptest;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("^[^][ ()]$", "a", true)]
    #[case("^[^][ ()]$", "[", false)]
    #[case("^[]a]$", "]", true)]
    #[case("^[a&&b]+$", "a&b", true)]
    #[case("^[+--]+$", "+,-", true)]
    #[case("^[a-c-]+$", "b-", true)]
    #[case(r"^[a-z0-9-\p{S}\p{L}]+$", "é-+", true)]
    #[case(r"^\d\w\s$", "1a ", true)]
    #[case(r"^\d$", "١", false)]
    #[case(r"^[\D]$", "1", false)]
    #[case(r"^[^\w]$", "é", true)]
    #[case("^[[:alpha:]]+$", "ab", true)]
    #[case("^[[:]+$", "[:", true)]
    #[case("^a{,2}$", "a{,2}", true)]
    #[case("^a{2}$", "aa", true)]
    #[case("^{a}$", "{a}", true)]
    #[case(r"^\Qa.b\E.$", "a.bc", true)]
    #[case(r"^\Qa.b\E$", "axb", false)]
    #[case(r"^\<a\>$", "<a>", true)]
    #[case(r"^[\x00-\x1F\x7F]+$", "\u{1}", true)]
    #[case(r"\bfoo\b", "a foo", true)]
    #[case(r"^\101$", "A", true)]
    fn patterns_have_the_meaning_of_go(
        #[case] pattern: &str,
        #[case] text: &str,
        #[case] matches: bool,
    ) {
        let regex = compile(pattern, 1 << 20).expect("a pattern");
        assert_eq!(regex.is_match(text), matches, "{}", translate(pattern));
    }

    #[rstest]
    #[case("[a")]
    #[case("(a")]
    #[case("a)")]
    #[case(r"\8")]
    #[case("[b-a]")]
    #[case("*")]
    fn invalid_patterns_are_rejected(#[case] pattern: &str) {
        assert!(compile(pattern, 1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn any_pattern_is_translated(
            pattern in r"(a|\[|\]|\^|-|\\|\{|\}|,|2|:|d|Q|E|&|\(|\)|é){0,12}"
        ) {
            let _ = compile(&pattern, 1 << 20);
        }
    }
}
