//! Whether a JSON value matches a pattern, and where it first does not.

use kubeproof_cases::pattern::{JsonType, Pattern, TextPattern};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::values::{Undefined, Values};

/// The first place at which a value is not as asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// A JSON Pointer; empty for the whole.
    pub at: String,
    /// What was asked for there, in words.
    pub expected: String,
    /// What is there; `None`: nothing.
    pub actual: Option<Value>,
}

impl Mismatch {
    fn new(at: &str, expected: impl Into<String>, actual: Option<&Value>) -> Self {
        Self { at: at.to_owned(), expected: expected.into(), actual: actual.cloned() }
    }

    /// `/metadata/name: expected "a", got "b"`.
    pub fn in_words(&self) -> String {
        let at = if self.at.is_empty() { "the body" } else { &self.at };
        match &self.actual {
            Some(actual) => format!("{at}: expected {}, got {}", self.expected, shorten(&actual.to_string())),
            None => format!("{at}: expected {}, but it is absent", self.expected),
        }
    }
}

/// Matches a value (`None`: there is none) against a pattern.
///
/// The outer result is about the case: a variable without a value.
pub fn matches(
    pattern: &Pattern,
    actual: Option<&Value>,
    values: &Values,
) -> Result<Result<(), Mismatch>, Undefined> {
    match_at("", pattern, actual, values)
}

/// Matches text against a pattern.
pub(crate) fn text_matches(pattern: &TextPattern, actual: &str, values: &Values) -> Result<bool, Undefined> {
    Ok(match pattern {
        TextPattern::Equal(text) => values.render(text)? == actual,
        TextPattern::Regex(text) => {
            Regex::new(&values.render_regex(text)?).is_ok_and(|regex| regex.is_match(actual))
        }
    })
}

/// A text pattern as messages show it.
pub(crate) fn describe_text(pattern: &TextPattern, values: &Values) -> Result<String, Undefined> {
    Ok(match pattern {
        TextPattern::Equal(text) => format!("{:?}", values.render(text)?),
        TextPattern::Regex(text) => format!("text matching /{}/", values.render_regex(text)?),
    })
}

/// The pattern as JSON, its variables filled in, in the notation of case files.
pub fn describe(pattern: &Pattern, values: &Values) -> Result<Value, Undefined> {
    let all = |patterns: &[Pattern]| -> Result<Value, Undefined> {
        Ok(Value::Array(patterns.iter().map(|p| describe(p, values)).collect::<Result<_, _>>()?))
    };
    Ok(match pattern {
        Pattern::Value(value) => values.render_json(value)?,
        Pattern::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, pattern)| Ok((values.render(name)?, describe(pattern, values)?)))
                .collect::<Result<Map<_, _>, Undefined>>()?,
        ),
        Pattern::Array(items) => all(items)?,
        Pattern::Absent => json!({"$absent": true}),
        Pattern::Present => json!({"$present": true}),
        Pattern::Match(TextPattern::Equal(text)) => Value::String(values.render(text)?),
        Pattern::Match(TextPattern::Regex(text)) => json!({"$match": values.render_regex(text)?}),
        Pattern::Type(kind) => json!({"$type": type_name(*kind)}),
        Pattern::OneOf(patterns) => json!({"$oneOf": all(patterns)?}),
        Pattern::Not(pattern) => json!({"$not": describe(pattern, values)?}),
        Pattern::Each(pattern) => json!({"$each": describe(pattern, values)?}),
        Pattern::Some(patterns) => json!({"$some": all(patterns)?}),
        Pattern::Size(size) => json!({"$size": size}),
        Pattern::Exactly(value) => json!({"$exactly": values.render_json(value)?}),
    })
}

/// The part of a value that a pattern speaks of: what a diff should show.
pub(super) fn project(pattern: &Pattern, actual: &Value, values: &Values) -> Result<Value, Undefined> {
    Ok(match (pattern, actual) {
        (Pattern::Object(members), Value::Object(object)) => {
            let mut part = Map::new();
            for (name, pattern) in members {
                let name = values.render(name)?;
                if let Some(value) = object.get(&name) {
                    let value = project(pattern, value, values)?;
                    part.insert(name, value);
                }
            }
            Value::Object(part)
        }
        (Pattern::Array(patterns), Value::Array(items)) if patterns.len() == items.len() => Value::Array(
            patterns.iter().zip(items).map(|(p, v)| project(p, v, values)).collect::<Result<_, _>>()?,
        ),
        _ => actual.clone(),
    })
}

fn match_at(
    at: &str,
    pattern: &Pattern,
    actual: Option<&Value>,
    values: &Values,
) -> Result<Result<(), Mismatch>, Undefined> {
    let mismatch = |expected: String| Ok(Err(Mismatch::new(at, expected, actual)));
    match pattern {
        Pattern::Absent => {
            if actual.is_some() {
                return mismatch("nothing".into());
            }
        }
        Pattern::Present => {
            if actual.is_none() {
                return mismatch("any value".into());
            }
        }
        Pattern::Value(expected) => {
            let expected = values.render_json(expected)?;
            if !actual.is_some_and(|actual| equal(&expected, actual)) {
                return mismatch(expected.to_string());
            }
        }
        Pattern::Exactly(expected) => {
            let expected = values.render_json(expected)?;
            if !actual.is_some_and(|actual| equal(&expected, actual)) {
                return mismatch(format!("exactly {expected}"));
            }
        }
        Pattern::Object(members) => {
            let Some(Value::Object(object)) = actual else { return mismatch("an object".into()) };
            for (name, pattern) in members {
                let name = values.render(name)?;
                let inner = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                if let Err(found) = match_at(&inner, pattern, object.get(&name), values)? {
                    return Ok(Err(found));
                }
            }
        }
        Pattern::Array(patterns) => {
            let Some(Value::Array(items)) = actual else { return mismatch("an array".into()) };
            if items.len() != patterns.len() {
                return mismatch(format!("{} items", patterns.len()));
            }
            for (index, (pattern, item)) in patterns.iter().zip(items).enumerate() {
                if let Err(found) = match_at(&format!("{at}/{index}"), pattern, Some(item), values)? {
                    return Ok(Err(found));
                }
            }
        }
        Pattern::Match(text) => {
            let Some(Value::String(actual)) = actual else {
                return mismatch(describe_text(text, values)?);
            };
            if !text_matches(text, actual, values)? {
                return mismatch(describe_text(text, values)?);
            }
        }
        Pattern::Type(kind) => {
            if !actual.is_some_and(|actual| is_of_type(actual, *kind)) {
                return mismatch(format!("a value of type {}", type_name(*kind)));
            }
        }
        Pattern::OneOf(patterns) => {
            for pattern in patterns {
                if match_at(at, pattern, actual, values)?.is_ok() {
                    return Ok(Ok(()));
                }
            }
            return mismatch(format!("one of {}", describe(pattern, values)?["$oneOf"]));
        }
        Pattern::Not(inner) => {
            if match_at(at, inner, actual, values)?.is_ok() {
                return mismatch(format!("anything but {}", describe(inner, values)?));
            }
        }
        Pattern::Each(inner) => {
            let Some(Value::Array(items)) = actual else { return mismatch("an array".into()) };
            for (index, item) in items.iter().enumerate() {
                if let Err(found) = match_at(&format!("{at}/{index}"), inner, Some(item), values)? {
                    return Ok(Err(found));
                }
            }
        }
        Pattern::Some(patterns) => {
            let Some(Value::Array(items)) = actual else { return mismatch("an array".into()) };
            for pattern in patterns {
                if !any_matches(at, pattern, items, values)? {
                    return mismatch(format!("an item that matches {}", describe(pattern, values)?));
                }
            }
        }
        Pattern::Size(size) => {
            if actual.and_then(length) != Some(*size) {
                return mismatch(format!("a length of {size}"));
            }
        }
    }
    Ok(Ok(()))
}

fn any_matches(at: &str, pattern: &Pattern, items: &[Value], values: &Values) -> Result<bool, Undefined> {
    for item in items {
        if match_at(at, pattern, Some(item), values)?.is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => Some(items.len()),
        Value::Object(members) => Some(members.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    }
}

/// Equality in which `1` and `1.0` are one number, as JSON has it.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && (a.is_f64() != b.is_f64()))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

fn is_of_type(value: &Value, kind: JsonType) -> bool {
    match (kind, value) {
        (JsonType::Array, Value::Array(_))
        | (JsonType::Boolean, Value::Bool(_))
        | (JsonType::Null, Value::Null)
        | (JsonType::Number, Value::Number(_))
        | (JsonType::Object, Value::Object(_))
        | (JsonType::String, Value::String(_)) => true,
        (JsonType::Integer, Value::Number(number)) => number.is_i64() || number.is_u64(),
        // jiff takes what RFC 3339 forbids (a missing zone, a space): the pattern is the stricter half.
        (JsonType::Timestamp, Value::String(text)) => is_rfc3339(text),
        (JsonType::Uuid, Value::String(text)) => is_uuid(text),
        _ => false,
    }
}

fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b't')
        && bytes[13] == b':'
        && bytes[16] == b':';
    shaped && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(index, c)| match index {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}

fn type_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "array",
        JsonType::Boolean => "boolean",
        JsonType::Integer => "integer",
        JsonType::Null => "null",
        JsonType::Number => "number",
        JsonType::Object => "object",
        JsonType::String => "string",
        JsonType::Timestamp => "timestamp",
        JsonType::Uuid => "uuid",
    }
}

/// Cuts what would fill a screen.
pub(crate) fn shorten(text: &str) -> String {
    const LIMIT: usize = 200;
    if text.chars().count() <= LIMIT {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LIMIT).collect();
    format!("{cut}… ({} bytes)", text.len())
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::template::{JsonTemplate, Part, Template};
    use rstest::rstest;

    use super::*;

    fn text(value: &str) -> Template {
        Template { parts: vec![Part::Text(value.to_owned())], ..Template::default() }
    }

    fn value(value: &Value) -> Pattern {
        fn template(value: &Value) -> JsonTemplate {
            match value {
                Value::Null => JsonTemplate::Null,
                Value::Bool(value) => JsonTemplate::Bool(*value),
                Value::Number(value) => JsonTemplate::Number(value.clone()),
                Value::String(value) => JsonTemplate::String(text(value)),
                Value::Array(items) => JsonTemplate::Array(items.iter().map(template).collect()),
                Value::Object(members) => {
                    JsonTemplate::Object(members.iter().map(|(n, v)| (text(n), template(v))).collect())
                }
            }
        }
        Pattern::Value(template(value))
    }

    fn exactly(value: &Value) -> Pattern {
        let Pattern::Value(template) = self::value(value) else { unreachable!("it is a value") };
        Pattern::Exactly(template)
    }

    fn object(members: Vec<(&str, Pattern)>) -> Pattern {
        Pattern::Object(members.into_iter().map(|(name, pattern)| (text(name), pattern)).collect())
    }

    fn holds(pattern: &Pattern, actual: &Value) -> bool {
        matches(pattern, Some(actual), &Values::new()).unwrap().is_ok()
    }

    #[test]
    fn objects_match_as_subsets_and_arrays_item_by_item() {
        let pattern = object(vec![("a", Pattern::Array(vec![value(&json!(1)), object(vec![])]))]);
        assert!(holds(&pattern, &json!({"a": [1, {"x": 1}], "b": 2})));
        assert!(!holds(&pattern, &json!({"a": [1]})));
        assert!(!holds(&pattern, &json!({"a": [{"x": 1}, 1]})));
    }

    #[test]
    fn absent_null_and_present_differ() {
        let absent = object(vec![("a", Pattern::Absent)]);
        let present = object(vec![("a", Pattern::Present)]);
        assert!(holds(&absent, &json!({})));
        assert!(!holds(&absent, &json!({"a": null})));
        assert!(holds(&present, &json!({"a": null})));
        assert!(!holds(&present, &json!({})));
        assert!(!holds(&object(vec![("a", value(&json!(null)))]), &json!({})));
    }

    #[test]
    fn combinators_hold_only_for_what_they_say() {
        let each = Pattern::Each(Box::new(Pattern::Type(JsonType::Integer)));
        assert!(holds(&each, &json!([1, 2])));
        assert!(!holds(&each, &json!([1, 2.5])));
        assert!(!holds(&each, &json!({})));
        let some = Pattern::Some(vec![value(&json!("b")), value(&json!("a"))]);
        assert!(holds(&some, &json!(["a", "b", "c"])));
        assert!(!holds(&some, &json!(["a", "c"])));
        assert!(holds(&Pattern::Not(Box::new(value(&json!(1)))), &json!(2)));
        assert!(!holds(&Pattern::Not(Box::new(value(&json!(1)))), &json!(1.0)));
        assert!(!holds(&Pattern::Size(2), &json!([1])));
        assert!(!holds(&Pattern::OneOf(vec![value(&json!(1)), value(&json!(2))]), &json!(3)));
    }

    #[test]
    fn timestamps_need_a_zone_and_uuids_their_dashes() {
        let time = Pattern::Type(JsonType::Timestamp);
        assert!(holds(&time, &json!("2026-11-21T01:02:03Z")));
        assert!(holds(&time, &json!("2026-11-21T01:02:03.000001+02:00")));
        for wrong in ["2026-11-21", "2026-11-21T01:02:03", "2026-13-21T01:02:03Z", "21 Nov 2026 01:02:03 GMT"]
        {
            assert!(!holds(&time, &json!(wrong)), "{wrong}");
        }
        let uuid = Pattern::Type(JsonType::Uuid);
        assert!(holds(&uuid, &json!("123e4567-e89b-12d3-a456-426614174000")));
        assert!(!holds(&uuid, &json!("123e4567e89b12d3a456426614174000")));
    }

    #[test]
    fn a_mismatch_names_its_place() {
        let pattern = object(vec![("a/b", Pattern::Array(vec![object(vec![("c", value(&json!("x")))])]))]);
        let found = matches(&pattern, Some(&json!({"a/b": [{"c": "y"}]})), &Values::new()).unwrap();
        assert_eq!(found.unwrap_err().in_words(), r#"/a~1b/0/c: expected "x", got "y""#);
    }

    #[rstest]
    #[case(JsonType::Array, json!([]), "array")]
    #[case(JsonType::Boolean, json!(false), "boolean")]
    #[case(JsonType::Integer, json!(-1), "integer")]
    #[case(JsonType::Null, json!(null), "null")]
    #[case(JsonType::Number, json!(2.5), "number")]
    #[case(JsonType::Object, json!({}), "object")]
    #[case(JsonType::String, json!("a"), "string")]
    #[case(JsonType::Timestamp, json!("2026-11-21T01:02:03Z"), "timestamp")]
    #[case(JsonType::Uuid, json!("123e4567-e89b-12d3-a456-426614174000"), "uuid")]
    fn a_type_is_itself_and_named(#[case] kind: JsonType, #[case] of_it: Value, #[case] name: &str) {
        let pattern = Pattern::Type(kind);
        assert!(holds(&pattern, &of_it));
        let others =
            [json!([1]), json!(true), json!(3.5), json!(null), json!({"a": 1}), json!("x"), json!(u64::MAX)];
        for other in others {
            let same = std::mem::discriminant(&other) == std::mem::discriminant(&of_it);
            let narrower = matches!(kind, JsonType::Integer | JsonType::Timestamp | JsonType::Uuid);
            let expected =
                if kind == JsonType::Integer { other == json!(u64::MAX) } else { same && !narrower };
            assert_eq!(holds(&pattern, &other), expected, "{other}");
        }
        assert_eq!(describe(&pattern, &Values::new()).unwrap(), json!({"$type": name}));
        let missing = matches(&pattern, None, &Values::new()).unwrap().unwrap_err();
        assert_eq!(missing.expected, format!("a value of type {name}"));
    }

    #[rstest]
    #[case("123e4567")]
    #[case("123e4567-e89b-12d3-a456-42661417400g")]
    #[case("123e4567-e89b-12d3-a456+426614174000")]
    #[case("123e4567-e89b-12d3-a456-4266141740000")]
    fn what_is_no_uuid(#[case] text: &str) {
        assert!(!holds(&Pattern::Type(JsonType::Uuid), &json!(text)));
    }

    #[rstest]
    #[case(json!([1, 2]), Some(2))]
    #[case(json!({"a": 1, "b": 2, "c": 3}), Some(3))]
    #[case(json!("äöü"), Some(3))]
    #[case(json!(""), Some(0))]
    #[case(json!(2), None)]
    #[case(json!(null), None)]
    fn a_length_is_of_items_members_or_characters(#[case] of: Value, #[case] expected: Option<usize>) {
        for size in 0..5 {
            assert_eq!(holds(&Pattern::Size(size), &of), Some(size) == expected, "{size}");
        }
    }

    #[rstest]
    #[case(json!(1), json!(1.0), true)]
    #[case(json!(1), json!(2), false)]
    #[case(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), false)]
    #[case(json!([1, 2]), json!([1.0, 2]), true)]
    #[case(json!([1, 2]), json!([1]), false)]
    #[case(json!([1]), json!([1, 2]), false)]
    #[case(json!([1, 2]), json!([2, 1]), false)]
    #[case(json!({"a": 1, "b": [1]}), json!({"b": [1.0], "a": 1}), true)]
    #[case(json!({"a": 1}), json!({"a": 1, "b": 2}), false)]
    #[case(json!({"a": 1, "b": 2}), json!({"a": 1}), false)]
    #[case(json!({"a": 1}), json!({"a": 2}), false)]
    #[case(json!({"a": 1}), json!({"b": 1}), false)]
    #[case(json!("1"), json!(1), false)]
    #[case(json!(null), json!(null), true)]
    fn numbers_are_equal_by_value_at_any_depth(#[case] a: Value, #[case] b: Value, #[case] expected: bool) {
        assert_eq!(equal(&a, &b), expected);
        assert_eq!(equal(&b, &a), expected);
        assert_eq!(holds(&exactly(&a), &b), expected);
        assert_eq!(holds(&value(&a), &b), expected);
    }

    #[rstest]
    #[case(TextPattern::Equal(text("a.c")), "a.c", true, r#""a.c""#, json!("a.c"))]
    #[case(TextPattern::Equal(text("a.c")), "abc", false, r#""a.c""#, json!("a.c"))]
    #[case(TextPattern::Regex(text("a.c")), "xabcx", true, "text matching /a.c/", json!({"$match": "a.c"}))]
    #[case(TextPattern::Regex(text("^a.c$")), "xabcx", false, "text matching /^a.c$/", json!({"$match": "^a.c$"}))]
    #[case(TextPattern::Regex(text("(")), "(", false, "text matching /(/", json!({"$match": "("}))]
    fn text_is_compared_or_searched(
        #[case] pattern: TextPattern,
        #[case] actual: &str,
        #[case] expected: bool,
        #[case] words: &str,
        #[case] described: Value,
    ) {
        assert_eq!(text_matches(&pattern, actual, &Values::new()), Ok(expected));
        assert_eq!(describe_text(&pattern, &Values::new()), Ok(words.to_owned()));
        let pattern = Pattern::Match(pattern);
        assert_eq!(describe(&pattern, &Values::new()), Ok(described));
        assert_eq!(holds(&pattern, &json!(actual)), expected);
        let found = matches(&pattern, Some(&json!(1)), &Values::new()).unwrap().unwrap_err();
        assert_eq!(found.expected, words);
    }

    #[test]
    fn a_difference_shows_what_the_pattern_speaks_of() {
        let members = object(vec![("a", value(&json!(1))), ("gone", Pattern::Absent)]);
        let pattern = object(vec![("items", Pattern::Array(vec![members, value(&json!(2))]))]);
        let part = |actual: Value| project(&pattern, &actual, &Values::new()).unwrap();
        assert_eq!(
            part(json!({"items": [{"a": 3, "b": 4}, 5], "kind": "List"})),
            json!({"items": [{"a": 3}, 5]})
        );
        // Of another length, the whole array is the difference.
        assert_eq!(part(json!({"items": [{"a": 3, "b": 4}]})), json!({"items": [{"a": 3, "b": 4}]}));
        assert_eq!(part(json!("text")), json!("text"));
    }

    #[rstest]
    #[case(199, false)]
    #[case(200, false)]
    #[case(201, true)]
    fn long_text_is_cut(#[case] length: usize, #[case] cut: bool) {
        let text = "ä".repeat(length);
        let shown = shorten(&text);
        assert_eq!(shown == text, !cut);
        assert_eq!(shown.ends_with("… (402 bytes)"), cut, "{shown}");
        assert_eq!(shown.chars().filter(|c| *c == 'ä').count(), length.min(200));
    }
}
