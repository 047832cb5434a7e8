//! Shows values in messages: short, and lists as tallies.

use cel::common::ast::operators;
use kubeproof_cases::plural;
use serde_json::Value;

use crate::values::{dotted, segments};

/// Characters of a text in a message.
const LONGEST_TEXT: usize = 80;

/// Characters of an object or a list in a message.
const LONGEST_VALUE: usize = 120;

/// Items of a list that a message shows one by one.
const FEW: usize = 4;

/// Distinct values that a tally shows.
const GROUPS: usize = 6;

/// Shows a value on one line.
pub(crate) fn short(value: &Value) -> String {
    match value {
        Value::String(text) => limited(&format!("{text:?}"), LONGEST_TEXT),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(items) if items.iter().all(is_scalar) && items.len() > FEW => {
            format!("{} items ({})", items.len(), tally(items))
        }
        Value::Array(items) if items.iter().all(is_scalar) => {
            let items: Vec<String> = items.iter().map(short).collect();
            format!("[{}]", items.join(", "))
        }
        other => limited(&other.to_string(), LONGEST_VALUE),
    }
}

/// Shows the values of a list, equal ones once with their number: `200 ×2, 409 ×18`.
pub(crate) fn tally(values: &[Value]) -> String {
    let groups = groups(values);
    let all_differ = groups.len() == values.len();
    shown(groups, |text, count| match count {
        1 if all_differ => text.to_owned(),
        count => format!("{text} ×{count}"),
    })
}

/// Shows how often each value of a list occurs: `a occurs twice, b occurs 3 times`.
pub(super) fn occurrences(values: &[Value]) -> String {
    shown(groups(values), |text, count| match count {
        2 => format!("{text} occurs twice"),
        count => format!("{text} occurs {}", plural(count, "time")),
    })
}

/// Returns the distinct values as text, with their numbers, the most frequent first.
fn groups(values: &[Value]) -> Vec<(String, &Value, usize)> {
    let mut groups: Vec<(String, &Value, usize)> = Vec::new();
    let mut places: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for value in values {
        let text = plain(value);
        let place = *places.entry(text.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, _, count)) => *count += 1,
            None => groups.push((text, value, 1)),
        }
    }
    groups.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    groups
}

/// Lists the first groups, numbers in their order.
fn shown(mut groups: Vec<(String, &Value, usize)>, show: impl Fn(&str, usize) -> String) -> String {
    let others = groups.len().saturating_sub(GROUPS);
    groups.truncate(GROUPS);
    if groups.iter().all(|(_, value, _)| value.is_number()) {
        groups.sort_by(|(_, a, _), (_, b, _)| number(a).total_cmp(&number(b)));
    }
    let mut shown: Vec<String> = groups.iter().map(|(text, _, count)| show(text, *count)).collect();
    if others > 0 {
        shown.push(format!("and {}", plural(others, "other value")));
    }
    shown.join(", ")
}

/// Shows a value within a text of a case: texts without quotes, lists as tallies.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => limited(text, LONGEST_TEXT),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) if items.iter().all(is_scalar) => tally(items),
        other => short(other),
    }
}

/// Returns the first place where two values differ, as a JSON Pointer, with both values there.
pub(super) fn first_difference<'v>(
    expected: &'v Value,
    actual: &'v Value,
) -> (String, Option<&'v Value>, Option<&'v Value>) {
    match (expected, actual) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                match b.get(name) {
                    Some(other) if other == value => {}
                    Some(other) => return below(name, first_difference(value, other)),
                    None => return (format!("/{name}"), Some(value), None),
                }
            }
            let extra = b.iter().find(|(name, _)| !a.contains_key(*name));
            match extra {
                Some((name, value)) => (format!("/{name}"), None, Some(value)),
                None => (String::new(), Some(expected), Some(actual)),
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            match a.iter().zip(b).position(|(one, other)| one != other) {
                Some(at) => below(&at.to_string(), first_difference(&a[at], &b[at])),
                None => (String::new(), Some(expected), Some(actual)),
            }
        }
        _ => (String::new(), Some(expected), Some(actual)),
    }
}

fn below<'v>(
    name: &str,
    (pointer, expected, actual): (String, Option<&'v Value>, Option<&'v Value>),
) -> (String, Option<&'v Value>, Option<&'v Value>) {
    (format!("/{name}{pointer}"), expected, actual)
}

/// Limits a text, and marks what is left out.
fn limited(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}

pub(super) fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// Describes the first difference between two values.
pub(super) fn difference(wanted: &Value, found: &Value) -> String {
    let (pointer, want, got) = first_difference(wanted, found);
    let place = dotted(&segments(&pointer));
    match (want, got) {
        (Some(want), Some(got)) => format!("{place} is {}, expected {}", short(got), short(want)),
        (Some(want), None) => format!("{place} is missing, expected {}", short(want)),
        (None, Some(got)) => format!("{place} is {}, expected none", short(got)),
        (None, None) => "they differ".to_owned(),
    }
}

/// Returns the words between a value and the expected one.
pub(super) fn word_of(operator: &str) -> &'static str {
    match operator {
        operators::LESS => "less than ",
        operators::LESS_EQUALS => "at most ",
        operators::GREATER => "more than ",
        operators::GREATER_EQUALS => "at least ",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!([409, 200, 409, 200, 409]), "200 ×2, 409 ×3")]
    #[case(json!(["a", "b", "b"]), "b ×2, a ×1")]
    #[case(json!(["a", "b"]), "a, b")]
    #[case(
        json!([1, 2, 3, 4, 5, 6, 7, 7]),
        "1 ×1, 2 ×1, 3 ×1, 4 ×1, 5 ×1, 7 ×2, and 1 other value"
    )]
    #[case(json!([null, ""]), "null, \"\"")]
    fn equal_values_are_counted(#[case] values: Value, #[case] expected: &str) {
        assert_eq!(tally(values.as_array().unwrap()), expected);
    }

    #[rstest]
    #[case(json!("a"), "\"a\"")]
    #[case(json!(["a", 1]), "[\"a\", 1]")]
    #[case(json!([]), "an empty list")]
    #[case(json!([1, 1, 1, 1, 2]), "5 items (1 ×4, 2 ×1)")]
    #[case(json!({"a": {"b": 1}}), "{\"a\":{\"b\":1}}")]
    fn values_fit_on_a_line(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(short(&value), expected);
    }

    #[test]
    fn long_values_are_shortened() {
        assert_eq!(
            short(&json!("x".repeat(80))).chars().count(),
            80 + "… (82 characters)".chars().count()
        );
        let object = json!({"a": "x".repeat(500)});
        assert!(short(&object).ends_with("… (508 characters)"), "{}", short(&object));
    }

    #[rstest]
    #[case(
        json!({"a": {"b": [1, 2]}}),
        json!({"a": {"b": [1, 3]}}),
        "/a/b/1",
        Some(json!(2)),
        Some(json!(3))
    )]
    #[case(json!({"a": 1, "b": 2}), json!({"a": 1}), "/b", Some(json!(2)), None)]
    #[case(json!({"a": 1}), json!({"a": 1, "b": 2}), "/b", None, Some(json!(2)))]
    #[case(json!([1]), json!([1, 2]), "", Some(json!([1])), Some(json!([1, 2])))]
    fn the_first_difference_is_found(
        #[case] expected: Value,
        #[case] actual: Value,
        #[case] pointer: &str,
        #[case] one: Option<Value>,
        #[case] other: Option<Value>,
    ) {
        let found = first_difference(&expected, &actual);
        assert_eq!(found, (pointer.to_owned(), one.as_ref(), other.as_ref()));
    }
}
