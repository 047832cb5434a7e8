//! The text of a file, and the way from a byte of a value back to a byte of the file.

use std::ops::Range;
use std::sync::Arc;

use crate::yaml::Span;

/// A file that was read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// As messages name it.
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    /// The first byte of each line but the first.
    line_starts: Arc<[usize]>,
}

impl Source {
    pub(crate) fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let line_starts = text.match_indices('\n').map(|(newline, _)| newline + 1).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// Line and column of a byte.
    pub(crate) fn span(&self, offset: usize) -> Span {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let (earlier, _) =
            self.line_starts.split_at(self.line_starts.partition_point(|at| *at <= before.len()));
        let line_start = earlier.last().copied().unwrap_or_default();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span {
            line: count(earlier.len() + 1),
            column: count(before[line_start..].chars().count() + 1),
        }
    }
}

/// A YAML scalar: its value, and the bytes of the value in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar<'a> {
    pub(crate) source: &'a Source,
    pub(crate) value: &'a str,
    /// The scalar in the file, quotes included; of a block scalar, from its first character on.
    pub(crate) place: &'a Range<usize>,
}

impl Scalar<'_> {
    /// The place of a byte of the value.
    ///
    /// YAML folds lines, strips indentation and resolves escapes, and parsers keep no record of it.
    /// This function therefore compares the two texts byte by byte. At an escape they differ, and
    /// the result is the start of the scalar.
    pub(crate) fn offset(&self, index: usize) -> usize {
        let file = self.source.text.as_bytes();
        let value = self.value.as_bytes();
        let start = self.place.start;
        let indentation =
            file[..start.min(file.len())].iter().rev().take_while(|byte| **byte != b'\n').count();
        // A quote that is the value's own begins a block scalar, as JSON text may.
        let quote = file.get(start).copied().filter(|byte| matches!(byte, b'"' | b'\''));
        let quote = quote.filter(|quote| value.first() != Some(quote));
        let mut at = start + usize::from(quote.is_some());
        for (i, expected) in value.iter().enumerate() {
            let Some(found) = file.get(at) else { return start };
            if i == index && *expected != b'\n' && found == expected {
                return at;
            }
            match (expected, found) {
                (b'\n', _) => {
                    if i == index {
                        return at;
                    }
                    let Some(end) = file[at..].iter().position(|byte| *byte == b'\n') else {
                        return start;
                    };
                    at += end + 1;
                    at += spaces(&file[at..]).min(indentation);
                }
                (b'\'', b'\'') if quote == Some(b'\'') => at += 2,
                (expected, found) if expected == found => at += 1,
                (b' ', b'\n' | b'\r') => {
                    at += file[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                    if i == index {
                        return at;
                    }
                }
                _ => return start,
            }
        }
        if index >= value.len() { at } else { start }
    }

    /// The place of a part of the value.
    pub(crate) fn range(&self, part: Range<usize>) -> Range<usize> {
        let start = self.offset(part.start);
        let end = if part.end > part.start { self.offset(part.end - 1) + 1 } else { start };
        start..end.max(start)
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Range<usize> {
        let end = self.place.end.min(self.source.text.len());
        let text = self.source.text.get(self.place.start..end).unwrap_or_default();
        self.place.start..self.place.start + text.trim_end().len()
    }
}

fn spaces(text: &[u8]) -> usize {
    text.iter().take_while(|byte| **byte == b' ').count()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::yaml;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct File {
        x: yaml::Located<String>,
    }

    /// The byte that the value has at `!` must be the byte that the file has at `!`.
    #[rstest]
    #[case::plain("x: abc !d\n")]
    #[case::folded_plain("x: abc &&\n   def !g\n")]
    #[case::single_quoted("x: 'it''s !'\n")]
    #[case::double_quoted("x: \"a !\"\n")]
    #[case::block("x: |\n  {\"a\":\n     \"!\"}\n")]
    #[case::block_with_blank_lines("x: |\n  a\n\n  b !\n")]
    #[case::block_of_a_string("x: |\n  \"a!\"\n")]
    #[case::folded_block("x: >\n  a\n  b !\n")]
    fn values_are_found_in_the_file(#[case] text: &str) {
        let source = Source::new("f.yaml", text);
        let node = yaml::read(&source).expect("the file is YAML");
        let file: File = node.to_type().expect("the file has a text");
        let scalar = Scalar { source: &source, value: &file.x.value, place: &file.x.place };
        let index = file.x.value.find('!').expect("the value has a mark");
        assert_eq!(scalar.offset(index), text.find('!').expect("the file has a mark"));
    }

    #[test]
    fn behind_an_escape_the_start_of_the_scalar_is_the_answer() {
        let source = Source::new("f.yaml", "x: \"a\\tb !\"\n");
        let node = yaml::read(&source).expect("the file is YAML");
        let file: File = node.to_type().expect("the file has a text");
        let scalar = Scalar { source: &source, value: &file.x.value, place: &file.x.place };
        assert_eq!(scalar.offset(4), 3);
    }

    #[test]
    fn columns_count_characters() {
        let source = Source::new("f.yaml", "a\nüb");
        assert_eq!(source.span(4), Span { line: 2, column: 2 });
    }
}
