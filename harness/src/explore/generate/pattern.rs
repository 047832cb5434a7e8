//! Texts that match a regular expression.

use rand::RngExt;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::Generator;

/// The most repetitions of a part.
const REPEATED: u32 = 4;

impl Generator<'_> {
    /// Returns a text that matches. `None` for an expression that this program cannot read.
    pub(super) fn matching(&mut self, pattern: &str) -> Option<String> {
        let hir = regex_syntax::parse(pattern).ok()?;
        let mut text = String::new();
        self.write(&hir, &mut text)?;
        Some(text)
    }

    fn write(&mut self, hir: &Hir, text: &mut String) -> Option<()> {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(class) => text.push(self.letter(class)?),
            HirKind::Repetition(part) => {
                let most = part.max.unwrap_or(part.min + REPEATED).min(part.min + REPEATED);
                for _ in 0..self.random.random_range(part.min..=most.max(part.min)) {
                    self.write(&part.sub, text)?;
                }
            }
            HirKind::Capture(part) => self.write(&part.sub, text)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.write(part, text)?;
                }
            }
            HirKind::Alternation(parts) => {
                let part = self.one_of(parts)?;
                self.write(&part, text)?;
            }
        }
        Some(())
    }

    fn letter(&mut self, class: &Class) -> Option<char> {
        let ranges: Vec<(char, char)> = match class {
            Class::Unicode(class) => class.iter().map(|r| (r.start(), r.end())).collect(),
            Class::Bytes(class) => {
                class.iter().map(|r| (char::from(r.start()), char::from(r.end()))).collect()
            }
        };
        // Large classes, such as a dot, have control characters.
        let readable = |(start, end): &(char, char)| {
            (*start <= '~' && *end >= ' ').then(|| ((*start).max(' '), (*end).min('~')))
        };
        let plain: Vec<(char, char)> = ranges.iter().filter_map(readable).collect();
        let (start, end) = self.one_of(if plain.is_empty() { &ranges } else { &plain })?;
        Some(self.random.random_range(start..=end))
    }
}
