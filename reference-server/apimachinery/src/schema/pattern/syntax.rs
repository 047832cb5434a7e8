//! Finds the first mistake of a pattern, with the message of the package `regexp/syntax` of Go.

mod classes;

use std::fmt;

use super::is_property;
use super::repetition::{MAX_DEPTH, MAX_REPETITIONS, MAX_SIZE, Part, Repetition, repetition};

const CHARACTER_RANGE: &str = "invalid character class range";
const ESCAPE: &str = "invalid escape sequence";
const CAPTURE: &str = "invalid named capture";
const PERL: &str = "invalid or unsupported Perl syntax";
const NESTED: &str = "invalid nested repetition operator";
const COUNT: &str = "invalid repeat count";
const BRACKET: &str = "missing closing ]";
const PARENTHESIS: &str = "missing closing )";
const ARGUMENT: &str = "missing argument to repetition operator";
const BACKSLASH: &str = "trailing backslash at end of expression";
const UNEXPECTED: &str = "unexpected )";
const DEPTH: &str = "expression nests too deeply";
const SIZE: &str = "expression too large";

/// A mistake, and the part of the pattern that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mistake<'p> {
    why: &'static str,
    part: &'p str,
}

impl fmt::Display for Mistake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.why, self.part)
    }
}

type Checked<'p, T = ()> = Result<T, Mistake<'p>>;

fn mistake<'p, T>(why: &'static str, part: &'p str) -> Checked<'p, T> {
    Err(Mistake { why, part })
}

/// Returns the first mistake of a pattern.
pub(super) fn check(pattern: &str) -> Checked<'_> {
    let mut parser = Parser { whole: pattern, rest: pattern, groups: vec![Group::default()] };
    parser.all()?;
    match parser.groups.len() {
        1 => Ok(()),
        _ => mistake(PARENTHESIS, pattern),
    }
}

/// An open group.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// The parts before the last one.
    before: Part,
    /// The part that a repetition operator repeats.
    last: Option<Part>,
    captures: bool,
}

impl Group {
    fn push(&mut self, part: Part) {
        self.close();
        self.last = Some(part);
    }

    /// Adds the last part to the others.
    fn close(&mut self) {
        self.before = self.before.and(self.last.take().unwrap_or_default());
    }
}

struct Parser<'p> {
    whole: &'p str,
    rest: &'p str,
    groups: Vec<Group>,
}

impl<'p> Parser<'p> {
    fn all(&mut self) -> Checked<'p> {
        let mut last_operator = None;
        while let Some(next) = self.rest.chars().next() {
            let start = self.rest;
            let mut operator = None;
            match next {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.skip(1);
                    self.group().close();
                }
                '[' => {
                    self.class()?;
                    self.push(Part::CHARACTER);
                }
                '*' | '+' | '?' => operator = Some((1, None)),
                '{' => match repetition(start) {
                    Some(repetition) => {
                        operator = Some((repetition.length, Some(repetition)));
                    }
                    None => self.character(next),
                },
                '\\' => self.escaped()?,
                other => self.character(other),
            }
            last_operator = match operator {
                Some((length, counts)) => {
                    self.skip(length);
                    self.repeat(start, counts, last_operator)?;
                    Some(start)
                }
                None => None,
            };
        }
        Ok(())
    }

    /// Returns the text from `start` to here.
    fn since(&self, start: &'p str) -> &'p str {
        &start[..start.len() - self.rest.len()]
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    fn character(&mut self, character: char) {
        self.skip(character.len_utf8());
        self.push(Part::CHARACTER);
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    fn group(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn push(&mut self, part: Part) {
        self.group().push(part);
    }

    /// Checks a repetition operator that begins at `start`. `last` is the operator before it.
    fn repeat(
        &mut self,
        start: &'p str,
        counts: Option<Repetition>,
        last: Option<&'p str>,
    ) -> Checked<'p> {
        if let Some(counts) = counts {
            let limit = MAX_REPETITIONS;
            let max = counts.max.unwrap_or(counts.min);
            if u64::from(counts.min) > limit || u64::from(max) > limit || counts.min > max {
                return mistake(COUNT, self.since(start));
            }
        }
        if self.rest.starts_with('?') {
            self.skip(1);
        }
        if let Some(last) = last {
            return mistake(NESTED, self.since(last));
        }
        let Some(argument) = self.group().last.take() else {
            return mistake(ARGUMENT, self.since(start));
        };
        let part = argument.repeated(counts);
        let counts_more = counts.is_some_and(|it| it.min >= 2 || it.max.is_some_and(|it| it >= 2));
        let pattern = self.whole;
        match part {
            part if part.depth > MAX_DEPTH => mistake(DEPTH, pattern),
            part if part.size > MAX_SIZE => mistake(SIZE, pattern),
            part if counts_more && part.repetitions > MAX_REPETITIONS => {
                mistake(COUNT, self.since(start))
            }
            part => {
                self.push(part);
                Ok(())
            }
        }
    }

    fn open(&mut self) -> Checked<'p> {
        let start = self.rest;
        if !start.starts_with("(?") {
            self.skip(1);
            self.groups.push(Group { captures: true, ..Group::default() });
            return Ok(());
        }
        let name = start.strip_prefix("(?P<").or_else(|| start.strip_prefix("(?<"));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let Some((name, rest)) = name.split_once('>') else {
                return mistake(CAPTURE, start);
            };
            self.rest = rest;
            if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                return mistake(CAPTURE, self.since(start));
            }
            self.groups.push(Group { captures: true, ..Group::default() });
            return Ok(());
        }
        self.skip(2);
        self.flags(start)
    }

    /// Parses the flags of a group, which begins at `start`.
    fn flags(&mut self, start: &'p str) -> Checked<'p> {
        let (mut is_negative, mut has_flag) = (false, false);
        while let Some(next) = self.next() {
            match next {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_negative => (is_negative, has_flag) = (true, false),
                ':' | ')' if has_flag || !is_negative => {
                    if next == ':' {
                        self.groups.push(Group::default());
                    }
                    return Ok(());
                }
                _ => return mistake(PERL, self.since(start)),
            }
        }
        mistake(PERL, start)
    }

    fn close(&mut self) -> Checked<'p> {
        self.skip(1);
        let mut group = match self.groups.pop() {
            Some(group) if !self.groups.is_empty() => group,
            _ => return mistake(UNEXPECTED, self.whole),
        };
        group.close();
        let mut part = group.before;
        if group.captures {
            part.depth += 1;
            part.size = part.size.saturating_add(2);
        }
        if part.depth > MAX_DEPTH {
            return mistake(DEPTH, self.whole);
        }
        self.push(part);
        Ok(())
    }

    /// Parses what follows a backslash outside of a class.
    fn escaped(&mut self) -> Checked<'p> {
        let start = self.rest;
        match start[1..].chars().next() {
            Some('A' | 'b' | 'B' | 'z') => self.skip(2),
            Some('C') => return mistake(ESCAPE, &start[..2]),
            Some('Q') => {
                self.skip(2);
                let (text, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                text.chars().for_each(|_| self.push(Part::CHARACTER));
                self.rest = rest;
                return Ok(());
            }
            _ if self.set()? => {}
            _ => {
                self.escape()?;
            }
        }
        self.push(Part::CHARACTER);
        Ok(())
    }

    /// Parses a set of characters such as `\d` or `\p{Greek}`. Reports whether there is one.
    fn set(&mut self) -> Checked<'p, bool> {
        let start = self.rest;
        match start.strip_prefix('\\').and_then(|rest| rest.chars().next()) {
            Some('d' | 'D' | 's' | 'S' | 'w' | 'W') => self.skip(2),
            Some('p' | 'P') => {
                self.skip(2);
                let name = if self.rest.starts_with('{') {
                    let Some((name, rest)) = self.rest[1..].split_once('}') else {
                        return mistake(CHARACTER_RANGE, start);
                    };
                    self.rest = rest;
                    name
                } else {
                    let name = self.rest;
                    self.next();
                    self.since(name)
                };
                if !is_property(name.strip_prefix('^').unwrap_or(name)) {
                    return mistake(CHARACTER_RANGE, self.since(start));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses an escaped character. Returns the character.
    fn escape(&mut self) -> Checked<'p, u32> {
        let start = self.rest;
        self.skip(1);
        let Some(next) = self.next() else { return mistake(BACKSLASH, "") };
        let is_octal = |text: &str| text.starts_with(|c: char| ('0'..='7').contains(&c));
        match next {
            '0' => return Ok(self.octal(0)),
            '1'..='7' if is_octal(self.rest) => {
                return Ok(self.octal(next.to_digit(8).unwrap_or_default()));
            }
            'x' => {
                if let Some(character) = self.hexadecimal() {
                    return Ok(character);
                }
            }
            'a' => return Ok(7),
            'f' => return Ok(12),
            'n' => return Ok(10),
            'r' => return Ok(13),
            't' => return Ok(9),
            'v' => return Ok(11),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => {
                return Ok(u32::from(other));
            }
            _ => {}
        }
        mistake(ESCAPE, self.since(start))
    }

    /// Parses up to two more octal digits.
    fn octal(&mut self, first: u32) -> u32 {
        let mut value = first;
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|digit| digit.to_digit(8)) else {
                break;
            };
            value = value * 8 + digit;
            self.skip(1);
        }
        value
    }

    /// Parses the number after `\x`. Stops behind the first wrong character.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.next()?;
        if first != '{' {
            let second = self.next();
            return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
        }
        let (mut value, mut count) = (0, 0);
        loop {
            match self.next()? {
                '}' => return (count > 0).then_some(value),
                digit => value = value * 16 + digit.to_digit(16)?,
            }
            count += 1;
            if value > u32::from(char::MAX) {
                return None;
            }
        }
    }
}
