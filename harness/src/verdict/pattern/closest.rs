//! Finds the value that a pattern permits and that differs least from the actual one, for diffs.

use kubeproof_cases::pattern::{Pattern, TextPattern};
use serde_json::{Map, Value};

use super::{matches, words};
use crate::values::{Undefined, Values};

/// Returns the actual value with each mismatch replaced by what the pattern expects there.
///
/// A value is `None` where a field must be absent. Text in angle brackets describes what is no
/// single value, such as `<text matching /^a/>`.
pub(crate) fn closest(
    pattern: &Pattern,
    actual: Option<&Value>,
    values: &Values,
) -> Result<Option<Value>, Undefined> {
    if matches(pattern, actual, values)?.is_ok() {
        return Ok(actual.cloned());
    }
    Ok(match (pattern, actual) {
        (Pattern::Absent, _) => None,
        (Pattern::Object(members), Some(Value::Object(object))) => {
            let mut object = object.clone();
            for (name, pattern) in members {
                let name = values.render(name)?;
                match closest(pattern, object.get(&name), values)? {
                    Some(value) => object.insert(name, value),
                    None => object.remove(&name),
                };
            }
            Some(Value::Object(object))
        }
        (Pattern::Array(patterns), Some(Value::Array(items))) if patterns.len() == items.len() => {
            let pairs = patterns.iter().zip(items);
            Some(list(pairs.map(|(pattern, item)| closest(pattern, Some(item), values)))?)
        }
        (Pattern::Each(pattern), Some(Value::Array(items))) => {
            Some(list(items.iter().map(|item| closest(pattern, Some(item), values)))?)
        }
        (Pattern::Some(patterns), Some(Value::Array(items))) => {
            let mut all = items.clone();
            for pattern in patterns {
                if !super::any_matches("", pattern, items, values)? {
                    all.push(in_brackets(&words::item(pattern, values)?));
                }
            }
            Some(Value::Array(all))
        }
        _ => alone(pattern, values)?,
    })
}

/// Returns what a pattern expects, without an actual value of the same shape.
fn alone(pattern: &Pattern, values: &Values) -> Result<Option<Value>, Undefined> {
    Ok(Some(match pattern {
        Pattern::Absent => return Ok(None),
        Pattern::Value(value) | Pattern::Exactly(value) => values.render_json(value)?,
        Pattern::Match(TextPattern::Equal(text)) => Value::String(values.render(text)?),
        Pattern::Object(members) => {
            let mut object = Map::new();
            for (name, pattern) in members {
                if let Some(value) = alone(pattern, values)? {
                    object.insert(values.render(name)?, value);
                }
            }
            Value::Object(object)
        }
        Pattern::Array(patterns) => list(patterns.iter().map(|pattern| alone(pattern, values)))?,
        _ => in_brackets(&words::in_words(pattern, values)?),
    }))
}

fn list(items: impl Iterator<Item = Result<Option<Value>, Undefined>>) -> Result<Value, Undefined> {
    Ok(Value::Array(items.filter_map(Result::transpose).collect::<Result<_, _>>()?))
}

/// Marks a text as a description.
pub(crate) fn in_brackets(words: &str) -> Value {
    Value::String(format!("<{words}>"))
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::pattern::JsonType;
    use rstest::rstest;
    use serde_json::json;

    use super::super::tests::{object, text, value};
    use super::*;

    fn matching(regex: &str) -> Pattern {
        Pattern::Match(TextPattern::Regex(text(regex)))
    }

    #[rstest]
    #[case::as_expected(matching("^a"), json!("ab"), json!("ab"))]
    #[case::a_value(value(&json!("a")), json!("b"), json!("a"))]
    #[case::a_text(matching("^a"), json!("b"), json!("<text matching /^a/>"))]
    #[case::a_type(Pattern::Type(JsonType::Uuid), json!(1), json!("<a value of type uuid>"))]
    #[case::members(
        object(vec![
            ("absent", Pattern::Absent),
            ("missing", Pattern::Present),
            ("same", matching("^a")),
            ("unlike", value(&json!(1))),
        ]),
        json!({"absent": 1, "same": "a", "unlike": 2, "other": 3}),
        json!({"missing": "<any value>", "same": "a", "unlike": 1, "other": 3})
    )]
    #[case::items(
        Pattern::Array(vec![value(&json!(1)), value(&json!(2))]),
        json!([1, 3]),
        json!([1, 2])
    )]
    #[case::more_items(
        Pattern::Array(vec![value(&json!(1)), Pattern::Present]),
        json!([1]),
        json!([1, "<any value>"])
    )]
    #[case::each_item(
        Pattern::Each(Box::new(object(vec![("a", value(&json!(1)))]))),
        json!([{"a": 1, "b": 2}, {"a": 2, "b": 3}]),
        json!([{"a": 1, "b": 2}, {"a": 1, "b": 3}])
    )]
    #[case::some_items(
        Pattern::Some(vec![value(&json!("a")), value(&json!("b"))]),
        json!(["a"]),
        json!(["a", "<the item \"b\">"])
    )]
    #[case::another_shape(
        object(vec![("a", object(vec![("b", value(&json!(1))), ("c", Pattern::Absent)]))]),
        json!({"a": []}),
        json!({"a": {"b": 1}})
    )]
    fn only_mismatches_are_replaced(
        #[case] pattern: Pattern,
        #[case] actual: Value,
        #[case] expected: Value,
    ) {
        assert_eq!(closest(&pattern, Some(&actual), &Values::new()), Ok(Some(expected)));
    }
}
