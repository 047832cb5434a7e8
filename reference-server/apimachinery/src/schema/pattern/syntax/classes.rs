//! Character classes in brackets.

use super::super::CLASSES;
use super::{BRACKET, CHARACTER_RANGE, Checked, Parser, mistake};

impl<'p> Parser<'p> {
    pub(super) fn class(&mut self) -> Checked<'p> {
        let start = self.rest;
        self.skip(if start.starts_with("[^") { 2 } else { 1 });
        let mut is_first = true;
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            if self.named_class()? || self.set()? {
                continue;
            }
            let range = self.rest;
            let low = self.class_character(start)?;
            let mut ahead = self.rest.chars();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|end| end != ']') {
                self.skip(1);
                if self.class_character(start)? < low {
                    return mistake(CHARACTER_RANGE, self.since(range));
                }
            }
        }
        self.skip(1);
        Ok(())
    }

    /// Parses a class such as `[:alpha:]`. Reports whether there is one.
    fn named_class(&mut self) -> Checked<'p, bool> {
        let start = self.rest;
        let Some((name, rest)) = start.strip_prefix("[:").and_then(|it| it.split_once(":]")) else {
            return Ok(false);
        };
        self.rest = rest;
        if !CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return mistake(CHARACTER_RANGE, self.since(start));
        }
        Ok(true)
    }

    /// Parses a character of the class that begins at `class`.
    fn class_character(&mut self, class: &'p str) -> Checked<'p, u32> {
        match self.rest.chars().next() {
            None => mistake(BRACKET, class),
            Some('\\') => self.escape(),
            Some(character) => {
                self.skip(character.len_utf8());
                Ok(u32::from(character))
            }
        }
    }
}
