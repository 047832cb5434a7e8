//! The terms of label and field selectors.

use std::cmp::Ordering;

/// A term of a label selector, as far as faults distinguish them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Term<'a> {
    /// `key` and `!key`
    Exists,
    NotEquals(&'a str),
    In(&'a str, Vec<&'a str>),
    NotIn(&'a str),
    /// `key>bound` and `key<bound`
    Compares {
        key: &'a str,
        order: Ordering,
        bound: &'a str,
    },
    Other,
}

pub(crate) fn parse(term: &str) -> Term<'_> {
    let term = term.trim();
    if let Some((before, values)) = term.split_once('(') {
        let mut words = before.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => {
                Term::In(key, values.trim_end_matches(')').split(',').map(str::trim).collect())
            }
            (Some(key), Some("notin"), None) => Term::NotIn(key),
            _ => Term::Other,
        };
    }
    if let Some((key, _)) = term.split_once("!=") {
        return Term::NotEquals(key.trim());
    }
    for (sign, order) in [('>', Ordering::Greater), ('<', Ordering::Less)] {
        if let Some((key, bound)) = term.split_once(sign) {
            return Term::Compares { key: key.trim(), order, bound: bound.trim() };
        }
    }
    let key = term.strip_prefix('!').unwrap_or(term);
    let is_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !key.is_empty() && key.chars().all(is_key) { Term::Exists } else { Term::Other }
}

/// The terms of a label selector: commas in parentheses separate values.
pub(crate) fn label_terms(selector: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    split(selector, |c, _| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// The terms of a field selector: a backslash escapes a comma.
pub(crate) fn field_terms(selector: &str) -> Vec<&str> {
    split(selector, |c, before| c == ',' && before != Some('\\'))
}

/// Splits a text at the characters for which `ends` is true.
fn split(text: &str, mut ends: impl FnMut(char, Option<char>) -> bool) -> Vec<&str> {
    let (mut terms, mut start, mut before) = (Vec::new(), 0, None);
    for (index, c) in text.char_indices() {
        if ends(c, before) {
            terms.push(&text[start..index]);
            start = index + 1;
        }
        before = Some(c);
    }
    terms.push(&text[start..]);
    terms.retain(|term| !term.is_empty());
    terms
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn selectors_are_split_into_terms() {
        assert_eq!(label_terms("a in (b,c),!d, e=f"), ["a in (b,c)", "!d", " e=f"]);
        assert_eq!(field_terms(r"a=b\,c,d!=e"), [r"a=b\,c", "d!=e"]);
    }

    #[rstest]
    #[case("a", Term::Exists)]
    #[case("!example.com/a", Term::Exists)]
    #[case("a!=b", Term::NotEquals("a"))]
    #[case("a in (b, c)", Term::In("a", vec!["b", "c"]))]
    #[case("a notin (b)", Term::NotIn("a"))]
    #[case("a > 1", Term::Compares { key: "a", order: Ordering::Greater, bound: "1" })]
    #[case("a<1", Term::Compares { key: "a", order: Ordering::Less, bound: "1" })]
    #[case("a=b", Term::Other)]
    #[case("a b", Term::Other)]
    fn terms_have_kinds(#[case] text: &str, #[case] expected: Term<'_>) {
        assert_eq!(parse(text), expected);
    }
}
