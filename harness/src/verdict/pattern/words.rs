//! Describes patterns in words, for messages.

use kubeproof_cases::pattern::{Pattern, TextPattern};
use kubeproof_cases::template::Template;

use super::type_name;
use crate::values::{Segment, Undefined, Values, dotted};

/// Describes what a pattern expects, such as `no such field` or `an object with kind "Status"`.
pub(super) fn in_words(pattern: &Pattern, values: &Values) -> Result<String, Undefined> {
    Ok(match pattern {
        Pattern::Absent => "no such field".to_owned(),
        Pattern::Present => "any value".to_owned(),
        Pattern::Value(value) => values.render_json(value)?.to_string(),
        Pattern::Exactly(value) => format!("exactly {}", values.render_json(value)?),
        Pattern::Match(text) => text_in_words(text, values)?,
        Pattern::Type(kind) => format!("a value of type {}", type_name(*kind)),
        Pattern::Size(size) => format!("a length of {size}"),
        Pattern::Object(members) => with_members("an object", &[], members, values)?,
        Pattern::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Pattern::Array(items) => format!("the items {}", joined(&all(items, values)?, "and")),
        Pattern::OneOf(patterns) => joined(&all(patterns, values)?, "or"),
        Pattern::Not(inner) => format!("anything but {}", in_words(inner, values)?),
        Pattern::Each(inner) => format!("a list whose items are all {}", in_words(inner, values)?),
        Pattern::Some(patterns) => {
            let items: Result<Vec<_>, _> = patterns.iter().map(|p| item(p, values)).collect();
            format!("a list with {}", joined(&items?, "and"))
        }
    })
}

/// Describes something that matches a pattern, by its noun: `a frame with type "PING"`.
pub(crate) fn noun_in_words(
    noun: &str,
    pattern: &Pattern,
    values: &Values,
) -> Result<String, Undefined> {
    match pattern {
        Pattern::Object(members) => with_members(noun, &[], members, values),
        _ => Ok(format!("{noun} that is {}", in_words(pattern, values)?)),
    }
}

/// Describes an item of a list: `an item with kind "Pod"`.
pub(super) fn item(pattern: &Pattern, values: &Values) -> Result<String, Undefined> {
    Ok(match pattern {
        Pattern::Match(TextPattern::Regex(text)) => {
            format!("an item matching /{}/", regex(text, values)?)
        }
        Pattern::Value(_) | Pattern::Match(_) => format!("the item {}", in_words(pattern, values)?),
        _ => noun_in_words("an item", pattern, values)?,
    })
}

/// Describes a text pattern.
pub(crate) fn text_in_words(pattern: &TextPattern, values: &Values) -> Result<String, Undefined> {
    Ok(match pattern {
        TextPattern::Equal(text) => format!("{:?}", values.render(text)?),
        TextPattern::Regex(text) => format!("text matching /{}/", regex(text, values)?),
    })
}

/// Renders a regular expression on one line.
fn regex(text: &Template, values: &Values) -> Result<String, Undefined> {
    Ok(values.render_regex(text)?.replace('\n', "\\n").replace('\r', "\\r"))
}

fn all(patterns: &[Pattern], values: &Values) -> Result<Vec<String>, Undefined> {
    patterns.iter().map(|pattern| in_words(pattern, values)).collect()
}

fn with_members(
    noun: &str,
    path: &[Segment],
    members: &[(Template, Pattern)],
    values: &Values,
) -> Result<String, Undefined> {
    let mut phrases = Vec::new();
    add_members(path, members, values, &mut phrases)?;
    Ok(match phrases.as_slice() {
        [] => noun.to_owned(),
        phrases => format!("{noun} with {}", joined(phrases, "and")),
    })
}

/// Adds a phrase for each leaf, such as `metadata.name "a"` or `no status`.
fn add_members(
    path: &[Segment],
    members: &[(Template, Pattern)],
    values: &Values,
    phrases: &mut Vec<String>,
) -> Result<(), Undefined> {
    for (name, pattern) in members {
        let mut path = path.to_vec();
        path.push(Segment::Member(values.render(name)?));
        match pattern {
            Pattern::Object(members) if !members.is_empty() => {
                add_members(&path, members, values, phrases)?;
            }
            _ => phrases.push(member(&dotted(&path), pattern, values)?),
        }
    }
    Ok(())
}

fn member(path: &str, pattern: &Pattern, values: &Values) -> Result<String, Undefined> {
    Ok(match pattern {
        Pattern::Absent => format!("no {path}"),
        Pattern::Present => path.to_owned(),
        Pattern::Type(kind) => format!("{path} of type {}", type_name(*kind)),
        Pattern::Size(size) => format!("{path} of length {size}"),
        Pattern::Match(TextPattern::Regex(text)) => {
            format!("{path} matching /{}/", regex(text, values)?)
        }
        Pattern::Not(inner) => format!("{path} other than {}", in_words(inner, values)?),
        Pattern::Value(_) | Pattern::Exactly(_) | Pattern::Match(_) => {
            format!("{path} {}", in_words(pattern, values)?)
        }
        _ => format!("{path}: {}", in_words(pattern, values)?),
    })
}

/// Joins phrases: `a, b or c`.
fn joined(phrases: &[String], conjunction: &str) -> String {
    match phrases {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::pattern::JsonType;
    use rstest::rstest;
    use serde_json::json;

    use super::super::tests::{exactly, object, text, value};
    use super::*;

    fn matching(regex: &str) -> Pattern {
        Pattern::Match(TextPattern::Regex(text(regex)))
    }

    fn other_than(inner: Pattern) -> Pattern {
        Pattern::Not(Box::new(inner))
    }

    fn string(content: &str) -> Pattern {
        value(&json!(content))
    }

    #[rstest]
    #[case(Pattern::OneOf(vec![Pattern::Absent, string("a")]), r#"no such field or "a""#)]
    #[case(
        Pattern::OneOf(vec![string("a"), string("b"), string("c")]),
        r#""a", "b" or "c""#
    )]
    #[case(other_than(matching("^a\n")), r"anything but text matching /^a\n/")]
    #[case(Pattern::Some(vec![string("a")]), r#"a list with the item "a""#)]
    #[case(
        Pattern::Some(vec![object(vec![("field", matching("max")), ("reason", string("a"))])]),
        r#"a list with an item with field matching /max/ and reason "a""#
    )]
    #[case(
        object(vec![
            ("code", value(&json!(410))),
            ("metadata", object(vec![("name", other_than(string("a"))), ("uid", Pattern::Absent)])),
        ]),
        r#"an object with code 410, metadata.name other than "a" and no metadata.uid"#
    )]
    #[case(
        object(vec![
            ("items", Pattern::Size(2)),
            ("reason", Pattern::OneOf(vec![string("a"), string("b")])),
            ("uid", Pattern::Type(JsonType::Uuid)),
        ]),
        r#"an object with items of length 2, reason: "a" or "b" and uid of type uuid"#
    )]
    #[case(object(vec![]), "an object")]
    #[case(Pattern::Array(vec![]), "an empty list")]
    #[case(exactly(&json!({"a": 1})), r#"exactly {"a":1}"#)]
    fn patterns_have_words(#[case] pattern: Pattern, #[case] words: &str) {
        assert_eq!(in_words(&pattern, &Values::new()), Ok(words.to_owned()));
    }
}
