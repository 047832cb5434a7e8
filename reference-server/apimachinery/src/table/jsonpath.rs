//! The dialect of `JSONPath` in printer columns and selectable fields of CRDs.
//!
//! It supports `.spec.size`, `.metadata.labels['app\.kubernetes\.io/name']`, `.items[0]`, `[-1]`,
//! `[0:2]`, `[*]`, `['a','b']`, `..name` and filters such as
//! `.status.conditions[?(@.type=="Ready")].status`. Missing keys yield no values and no error.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// The error for an invalid path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} at offset {offset}")]
pub struct JsonPathError {
    /// The expected token.
    expected: &'static str,
    /// The offset in bytes.
    offset: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The fields with these names.
    Fields(Vec<String>),
    /// Every field or item.
    All,
    /// The value itself and all its descendants.
    Descendants,
    /// One item. Negative indexes count from the end.
    Index(i64),
    /// The start, the end and the step of a slice.
    Slice(Option<i64>, Option<i64>, usize),
    /// The items that match a filter.
    Filter(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    /// `None` for a test of existence.
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path, with or without braces and `$`.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::path(text)
    }

    /// Returns all values at the path.
    pub fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        self.steps.iter().fold(vec![root], |values, step| {
            let mut found = Vec::new();
            for value in values {
                step.walk(value, &mut found);
            }
            found
        })
    }

    /// Returns the first value at the path.
    pub fn first<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.find(root).into_iter().next()
    }
}

impl Step {
    fn walk<'v>(&self, value: &'v Value, found: &mut Vec<&'v Value>) {
        match (self, value) {
            (Self::Fields(names), Value::Object(object)) => {
                found.extend(names.iter().filter_map(|name| object.get(name)));
            }
            (Self::All, Value::Object(object)) => found.extend(object.values()),
            (Self::All, Value::Array(items)) => found.extend(items),
            (Self::Descendants, value) => descend(value, found),
            (Self::Index(index), Value::Array(items)) => {
                found.extend(position(*index, items.len()).and_then(|at| items.get(at)));
            }
            (Self::Slice(from, to, step), Value::Array(items)) => {
                let bound = |index: &Option<i64>, default| match index {
                    None => default,
                    Some(index) => position(*index, items.len()).unwrap_or(0).min(items.len()),
                };
                let (from, to) = (bound(from, 0), bound(to, items.len()));
                found.extend(items.get(from..to).unwrap_or_default().iter().step_by(*step));
            }
            (Self::Filter(filter), Value::Array(items)) => {
                found.extend(items.iter().filter(|item| filter.passes(item)));
            }
            _ => {}
        }
    }
}

fn descend<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    found.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, found)),
        Value::Object(object) => object.values().for_each(|item| descend(item, found)),
        _ => {}
    }
}

/// Returns the position of an index in a list of this length. Returns `None` if it is before the
/// start.
fn position(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

impl Filter {
    fn passes(&self, item: &Value) -> bool {
        let Some(left) = self.left.value(item) else { return false };
        let Some((comparison, right)) = &self.comparison else { return true };
        let Some(right) = right.value(item) else { return false };
        let order = match (left, right) {
            (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (a, b) if a == b => Some(Ordering::Equal),
            _ => None,
        };
        match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

impl Operand {
    fn value<'v>(&'v self, item: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Path(path) => path.first(item),
            Self::Literal(value) => Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(path: &str) -> Value {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "x", "b c": "y"}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "age": 5},
                {"type": "Synced", "status": "False", "age": 12},
            ]},
            "list": [0, 1, 2, 3],
        });
        JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect()
    }

    #[rstest::rstest]
    #[case(".list", json!([[0, 1, 2, 3]]))]
    #[case("{.list[1]}", json!([1]))]
    #[case("$.list[-1]", json!([3]))]
    #[case(".list[1:3]", json!([1, 2]))]
    #[case(".list[-2:]", json!([2, 3]))]
    #[case(".list[::2]", json!([0, 2]))]
    #[case(".list[9]", json!([]))]
    #[case(".list[-9]", json!([]))]
    #[case(".list[3:1]", json!([]))]
    #[case(".list[*]", json!([0, 1, 2, 3]))]
    #[case(".missing.deeper[0]", json!([]))]
    #[case(r".metadata.labels.app\.kubernetes\.io/name", json!(["x"]))]
    #[case(r".metadata.labels['app\.kubernetes\.io/name']", json!(["x"]))]
    #[case(r#".metadata.labels["app.kubernetes.io/name"]"#, json!(["x"]))]
    #[case(".metadata.labels['b c','app.kubernetes.io/name']", json!(["y", "x"]))]
    #[case(".metadata.labels.*", json!(["x", "y"]))]
    #[case(".status.conditions[*].type", json!(["Ready", "Synced"]))]
    #[case(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]))]
    #[case(".status.conditions[?( @.type != 'Ready' )].status", json!(["False"]))]
    #[case(".status.conditions[?(@.age > 7)].type", json!(["Synced"]))]
    #[case(".status.conditions[?(@.age<=5)].type", json!(["Ready"]))]
    #[case(".status.conditions[?(@.none)].type", json!([]))]
    #[case("..status", json!([{"conditions": [
        {"type": "Ready", "status": "True", "age": 5},
        {"type": "Synced", "status": "False", "age": 12},
    ]}, "True", "False"]))]
    fn finds(#[case] path: &str, #[case] expected: Value) {
        assert_eq!(found(path), expected);
    }

    #[rstest::rstest]
    #[case("spec.size", "a '.' or '[' at offset 0")]
    #[case(".spec[", "an index, name, filter or '*' at offset 6")]
    #[case(".spec[0", "']' at offset 7")]
    #[case(".spec['a", "a closing quote at offset 8")]
    #[case(".spec[?(@.a==)]", "a path, string, number, true or false at offset 13")]
    #[case(".spec[?(@.a=1)]", "a comparison or ')' at offset 11")]
    #[case(".spec.", "a field name at offset 6")]
    #[case("{.spec", "'}' at offset 6")]
    #[case(".list[::0]", "a step above zero at offset 8")]
    fn invalid_text_is_rejected(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(JsonPath::parse(path).unwrap_err().to_string(), expected);
    }
}
