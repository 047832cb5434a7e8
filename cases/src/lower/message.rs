//! Messages of checks: text with CEL expressions in `${..}`.

use std::ops::Range;

use super::Lowering;
use crate::case::{Message, MessagePart};
use crate::yaml::{Located, Scalar};

const CODE: &str = "malformed-message";

impl Lowering<'_> {
    /// Parses the message of a check. Only failed expressions need one.
    pub(super) fn message(&mut self, raw: &Located<String>, has_cel: bool) -> Option<Message> {
        if !has_cel {
            self.error(&raw.place, CODE, "only a check with `cel` takes a message")
                .set_help("remove it; the other checks describe what they expect");
            return None;
        }
        let source = self.source;
        let scalar = Scalar { source, value: &raw.value, place: &raw.place };
        let mut parts = Vec::new();
        let mut from = 0;
        for found in expressions(&raw.value) {
            let Some(inner) = found.inner else {
                let place = scalar.range(found.whole);
                self.error(&place, CODE, "`${` is never closed by `}`");
                return None;
            };
            if from < found.whole.start {
                parts.push(MessagePart::Text(raw.value[from..found.whole.start].to_owned()));
            }
            from = found.whole.end;
            let value = raw.value[inner.clone()].to_owned();
            let text = Located { value, place: scalar.range(inner) };
            parts.push(MessagePart::Value(self.expression(&text)?));
        }
        if parts.is_empty() {
            let place = scalar.whole();
            self.error(&place, CODE, "the message shows no value")
                .set_help("add the value that decides, such as `${created.status}`");
            return None;
        }
        if from < raw.value.len() {
            parts.push(MessagePart::Text(raw.value[from..].to_owned()));
        }
        Some(Message { text: raw.value.clone(), parts })
    }
}

/// An expression of a message.
#[derive(Debug, Eq, PartialEq)]
struct Found {
    /// With `${` and `}`.
    whole: Range<usize>,
    /// `None` if it is never closed.
    inner: Option<Range<usize>>,
}

/// Finds `${..}`. Braces and quotes of an expression belong to it.
fn expressions(text: &str) -> Vec<Found> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("${").map(|found| at + found) {
        let Some(length) = length_of(&text[start + 2..]) else {
            all.push(Found { whole: start..text.len(), inner: None });
            break;
        };
        let inner = start + 2..start + 2 + length;
        at = inner.end + 1;
        all.push(Found { whole: start..at, inner: Some(inner) });
    }
    all
}

/// Returns the bytes before the closing brace.
fn length_of(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            (Some(_) | None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a ${b} c", &["b"])]
    #[case("${a}${b.c(d, {'x': 1})}", &["a", "b.c(d, {'x': 1})"])]
    #[case("${a == '}'} of ${\"{\" + b}", &["a == '}'", "\"{\" + b"])]
    #[case("$a {b}", &[])]
    fn expressions_end_at_their_own_brace(#[case] text: &str, #[case] expected: &[&str]) {
        let found: Vec<&str> =
            expressions(text).iter().map(|found| &text[found.inner.clone().unwrap()]).collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("${a")]
    #[case("${a} ${'}")]
    fn an_open_expression_is_found(#[case] text: &str) {
        assert_eq!(expressions(text).last().and_then(|found| found.inner.clone()), None);
    }
}
