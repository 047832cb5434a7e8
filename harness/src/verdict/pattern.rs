//! Matches JSON values against patterns, and finds the first mismatch.

mod closest;
mod words;

use kubeproof_cases::pattern::{JsonType, Pattern, TextPattern};
use kubeproof_cases::plural;
use kubeproof_cases::template::Template;
use regex::Regex;
use serde_json::{Map, Value, json};

pub(crate) use self::closest::{closest, in_brackets};
pub(crate) use self::words::{noun_in_words, text_in_words};
use super::decode::short;
use crate::event::Symptom;
use crate::values::{Segment, Undefined, Values, dotted, segments};

/// The first place where a value differs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mismatch {
    /// A JSON Pointer; empty for the whole.
    pub at: String,
    /// Description of the expected value.
    pub expected: String,
    /// The actual value; `None` if absent.
    pub actual: Option<Value>,
}

impl Mismatch {
    fn new(at: &str, expected: impl Into<String>, actual: Option<&Value>) -> Self {
        Self { at: at.to_owned(), expected: expected.into(), actual: actual.cloned() }
    }

    /// Describes the mismatch: `metadata.name is "b", expected "a"`.
    pub(crate) fn in_words(&self) -> String {
        self.in_words_of("the body")
    }

    /// Like [`Self::in_words`], with a name for the whole value.
    pub(crate) fn in_words_of(&self, whole: &str) -> String {
        let place = if self.at.is_empty() { whole.to_owned() } else { self.place() };
        match &self.actual {
            Some(Value::Array(items)) if items.iter().any(Value::is_object) => {
                format!("{place} has {}, expected {}", plural(items.len(), "item"), self.expected)
            }
            Some(actual) => {
                let shown = named(actual).unwrap_or_else(|| short(actual));
                format!("{place} is {shown}, expected {}", self.expected)
            }
            None => format!("{place} is missing{}", self.expectation()),
        }
    }

    /// Describes the mismatch of a response to a request, such as ``the response of `create` ``.
    pub(crate) fn in_response(&self, response: &str) -> String {
        match &self.actual {
            Some(_) => self.in_words(),
            None => format!("{} is missing in {response}{}", self.place(), self.expectation()),
        }
    }

    /// Returns what kind of mismatch it is.
    pub(crate) fn symptom(&self) -> Symptom {
        let part = |segment: &Segment| match segment {
            Segment::Index(_) => "[]".to_owned(),
            Segment::Member(name) => format!(".{name}"),
        };
        let field: String = segments(&self.at).iter().map(part).collect();
        let field = match field.trim_start_matches('.') {
            "" => "body".to_owned(),
            field => field.to_owned(),
        };
        match self.actual {
            Some(_) => Symptom::WrongField { field },
            None => Symptom::MissingField { field },
        }
    }

    fn expectation(&self) -> String {
        match self.expected.as_str() {
            "any value" => String::new(),
            expected => format!(", expected {expected}"),
        }
    }

    /// Returns the place as a path: `spec.items[2].name`.
    fn place(&self) -> String {
        match dotted(&segments(&self.at)).as_str() {
            "" => "the body".to_owned(),
            place => place.to_owned(),
        }
    }
}

/// Shows a whole API object by its kind and its name. Its JSON would be too long.
fn named(value: &Value) -> Option<String> {
    let kind = value.get("kind")?.as_str()?;
    let name = value.pointer("/metadata/name")?.as_str()?;
    let version = value.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let version = version.map(|version| format!(" with resourceVersion {version}"));
    Some(format!("the {kind} {name:?}{}", version.unwrap_or_default()))
}

/// Matches an optional value against a pattern.
///
/// The outer error is an undefined variable of the case.
pub(crate) fn matches(
    pattern: &Pattern,
    actual: Option<&Value>,
    values: &Values,
) -> Result<Result<(), Mismatch>, Undefined> {
    match_at("", pattern, actual, values)
}

/// Matches a text against a pattern.
pub(crate) fn text_matches(
    pattern: &TextPattern,
    actual: &str,
    values: &Values,
) -> Result<bool, Undefined> {
    Ok(match pattern {
        TextPattern::Equal(text) => values.render(text)? == actual,
        TextPattern::Regex(text) => {
            Regex::new(&values.render_regex(text)?).is_ok_and(|regex| regex.is_match(actual))
        }
    })
}

/// Returns the pattern as JSON in the notation of case files.
pub(crate) fn describe(pattern: &Pattern, values: &Values) -> Result<Value, Undefined> {
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

/// Returns the part of a value that the pattern mentions, for diffs.
pub(super) fn project(
    pattern: &Pattern,
    actual: &Value,
    values: &Values,
) -> Result<Value, Undefined> {
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
        (Pattern::Array(patterns), Value::Array(items)) if patterns.len() == items.len() => {
            Value::Array(
                patterns
                    .iter()
                    .zip(items)
                    .map(|(p, v)| project(p, v, values))
                    .collect::<Result<_, _>>()?,
            )
        }
        _ => actual.clone(),
    })
}

/// The outcome of a match. The outer error is an undefined variable of the case.
type Match = Result<Result<(), Mismatch>, Undefined>;

fn match_at(at: &str, pattern: &Pattern, actual: Option<&Value>, values: &Values) -> Match {
    // The description is expensive, so it is rendered only for a mismatch.
    let check = |holds: bool, expected: &dyn Fn() -> Result<String, Undefined>| {
        Ok(if holds { Ok(()) } else { Err(Mismatch::new(at, expected()?, actual)) })
    };
    match pattern {
        Pattern::Absent => check(actual.is_none(), &|| Ok("no such field".to_owned())),
        Pattern::Present => check(actual.is_some(), &|| Ok("any value".to_owned())),
        Pattern::Value(expected) => {
            let expected = values.render_json(expected)?;
            let holds = actual.is_some_and(|actual| equal(&expected, actual));
            check(holds, &|| Ok(expected.to_string()))
        }
        Pattern::Exactly(expected) => {
            let expected = values.render_json(expected)?;
            let holds = actual.is_some_and(|actual| equal(&expected, actual));
            check(holds, &|| Ok(format!("exactly {expected}")))
        }
        Pattern::Object(members) => match_members(at, members, actual, values),
        Pattern::Array(patterns) => match_items(at, patterns, actual, values),
        Pattern::Match(text) => {
            let holds = match actual {
                Some(Value::String(actual)) => text_matches(text, actual, values)?,
                _ => false,
            };
            check(holds, &|| text_in_words(text, values))
        }
        Pattern::Type(kind) => {
            let holds = actual.is_some_and(|actual| is_of_type(actual, *kind));
            check(holds, &|| Ok(format!("a value of type {}", type_name(*kind))))
        }
        Pattern::OneOf(patterns) => {
            for pattern in patterns {
                if match_at(at, pattern, actual, values)?.is_ok() {
                    return Ok(Ok(()));
                }
            }
            check(false, &|| words::in_words(pattern, values))
        }
        Pattern::Not(inner) => {
            let holds = match_at(at, inner, actual, values)?.is_err();
            check(holds, &|| words::in_words(pattern, values))
        }
        Pattern::Each(inner) => match_each(at, inner, actual, values),
        Pattern::Some(patterns) => match_some(at, patterns, actual, values),
        Pattern::Size(size) => {
            check(actual.and_then(length) == Some(*size), &|| Ok(format!("a length of {size}")))
        }
    }
}

fn match_members(
    at: &str,
    members: &[(Template, Pattern)],
    actual: Option<&Value>,
    values: &Values,
) -> Match {
    let Some(Value::Object(object)) = actual else {
        return Ok(Err(Mismatch::new(at, "an object", actual)));
    };
    for (name, pattern) in members {
        let name = values.render(name)?;
        let inner = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        if let Err(found) = match_at(&inner, pattern, object.get(&name), values)? {
            return Ok(Err(found));
        }
    }
    Ok(Ok(()))
}

fn match_items(at: &str, patterns: &[Pattern], actual: Option<&Value>, values: &Values) -> Match {
    let Some(Value::Array(items)) = actual else {
        return Ok(Err(Mismatch::new(at, "an array", actual)));
    };
    if items.len() != patterns.len() {
        return Ok(Err(Mismatch::new(at, plural(patterns.len(), "item"), actual)));
    }
    for (index, (pattern, item)) in patterns.iter().zip(items).enumerate() {
        if let Err(found) = match_at(&format!("{at}/{index}"), pattern, Some(item), values)? {
            return Ok(Err(found));
        }
    }
    Ok(Ok(()))
}

fn match_each(at: &str, pattern: &Pattern, actual: Option<&Value>, values: &Values) -> Match {
    let Some(Value::Array(items)) = actual else {
        return Ok(Err(Mismatch::new(at, "an array", actual)));
    };
    for (index, item) in items.iter().enumerate() {
        if let Err(found) = match_at(&format!("{at}/{index}"), pattern, Some(item), values)? {
            return Ok(Err(found));
        }
    }
    Ok(Ok(()))
}

fn match_some(at: &str, patterns: &[Pattern], actual: Option<&Value>, values: &Values) -> Match {
    let Some(Value::Array(items)) = actual else {
        return Ok(Err(Mismatch::new(at, "an array", actual)));
    };
    for pattern in patterns {
        if !any_matches(at, pattern, items, values)? {
            return Ok(Err(Mismatch::new(at, words::item(pattern, values)?, actual)));
        }
    }
    Ok(Ok(()))
}

fn any_matches(
    at: &str,
    pattern: &Pattern,
    items: &[Value],
    values: &Values,
) -> Result<bool, Undefined> {
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

/// Compares values, with `1` equal to `1.0`.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && (a.is_f64() != b.is_f64()))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
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
        // jiff accepts more than RFC 3339, such as a missing zone, so the shape is checked, too.
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

#[cfg(test)]
mod tests;
