//! Compares what a client sent with what a server returns.

use serde_json::{Map, Value};

use super::schema::{Schema, escaped};

/// The first place where two values differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// JSON Pointer.
    pub(super) at: String,
    /// `None` if the member must be absent.
    pub(super) expected: Option<Value>,
    /// `None` if the member is absent.
    pub(super) actual: Option<Value>,
}

/// Parts of metadata that each write can change.
pub(super) const OF_WRITE: [&str; 3] =
    ["/metadata/resourceVersion", "/metadata/managedFields", "/metadata/generation"];

/// Parts of metadata that differ between two objects with the same content.
pub(super) const OF_OBJECT: [&str; 8] = [
    "/metadata/resourceVersion",
    "/metadata/managedFields",
    "/metadata/generation",
    "/metadata/uid",
    "/metadata/creationTimestamp",
    "/metadata/name",
    "/metadata/selfLink",
    "/status",
];

/// Returns the first difference outside of the ignored pointers.
pub(super) fn difference(expected: &Value, actual: &Value, ignored: &[&str]) -> Option<Difference> {
    differ(expected, actual, "", ignored)
}

fn differ(expected: &Value, actual: &Value, at: &str, ignored: &[&str]) -> Option<Difference> {
    if ignored.contains(&at) {
        return None;
    }
    let differs = || {
        let (expected, actual) = (Some(expected.clone()), Some(actual.clone()));
        Some(Difference { at: at.to_owned(), expected, actual })
    };
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(found)) => {
            let names = wanted.keys().chain(found.keys().filter(|k| !wanted.contains_key(*k)));
            names.into_iter().find_map(|name| {
                let at = format!("{at}/{}", escaped(name));
                match (wanted.get(name), found.get(name)) {
                    (Some(wanted), Some(found)) => differ(wanted, found, &at, ignored),
                    _ if ignored.contains(&at.as_str()) => None,
                    (wanted, found) => {
                        Some(Difference { at, expected: wanted.cloned(), actual: found.cloned() })
                    }
                }
            })
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.find_map(|(index, (wanted, found))| {
                differ(wanted, found, &format!("{at}/{index}"), ignored)
            })
        }
        _ if is_same(expected, actual) => None,
        _ => differs(),
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one == other,
            _ => one.as_f64() == other.as_f64(),
        },
        _ => one == other,
    }
}

/// Returns the first sent value that the received object lacks. Servers add defaults. Built-in
/// types omit members with empty values.
pub(super) fn lost(schema: &Schema, sent: &Value, received: &Value) -> Option<Difference> {
    lost_below(schema, sent, received, "")
}

fn lost_below(schema: &Schema, sent: &Value, received: &Value, at: &str) -> Option<Difference> {
    match (sent, received) {
        (Value::Object(members), Value::Object(found)) => {
            members.iter().find_map(|(name, member)| {
                let place = format!("{at}/{}", escaped(name));
                match found.get(name) {
                    Some(found) => lost_below(schema, member, found, &place),
                    None if may_omit(schema, at, member) => None,
                    None => {
                        Some(Difference { at: place, expected: Some(member.clone()), actual: None })
                    }
                }
            })
        }
        (Value::Array(items), Value::Array(found)) if items.len() == found.len() => {
            let mut pairs = items.iter().zip(found).enumerate();
            pairs.find_map(|(index, (item, found))| {
                lost_below(schema, item, found, &format!("{at}/{index}"))
            })
        }
        _ if is_same(sent, received) => None,
        (_, Value::Null) if !schema.is_complete && is_empty(sent) => None,
        _ => Some(Difference {
            at: at.to_owned(),
            expected: Some(sent.clone()),
            actual: Some(received.clone()),
        }),
    }
}

/// Reports whether a server may omit a member of the object at this place.
fn may_omit(schema: &Schema, parent: &str, member: &Value) -> bool {
    if parent.starts_with("/metadata") {
        return is_empty(member)
            && !["/metadata/labels", "/metadata/annotations"].contains(&parent);
    }
    let is_map = || schema.at(parent).is_some_and(|node| schema.is_map(node));
    !schema.is_complete && is_empty(member) && !is_map()
}

/// Reports whether a change of an object changed something else, too: a member that the client did
/// not send differs between the responses before and after.
pub(super) fn has_side_effect(before: &Value, sent: &Value, after: &Value) -> bool {
    match (before, sent, after) {
        (Value::Object(before), Value::Object(sent), Value::Object(after)) => {
            let mut names = after.keys().chain(before.keys());
            names.any(|name| match (before.get(name), sent.get(name), after.get(name)) {
                (before, None, after) => before != after,
                (Some(before), Some(sent), Some(after)) => has_side_effect(before, sent, after),
                _ => false,
            })
        }
        (Value::Array(before), Value::Array(sent), Value::Array(after)) => {
            let items = before.iter().zip(sent).zip(after);
            items.into_iter().any(|((before, sent), after)| has_side_effect(before, sent, after))
        }
        _ => false,
    }
}

/// Reports whether built-in types omit a member with this value.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
    }
}

/// Removes null and empty collections; for built-in types, all empty members.
pub(super) fn compact(schema: &Schema, value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        other => !schema.is_complete && is_empty(other),
    };
    match value {
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, member)| (name.clone(), compact(schema, member)));
            let kept: Map<String, Value> =
                members.filter(|(_, member)| !is_empty(member)).collect();
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(|item| compact(schema, item)).collect(),
        other => other.clone(),
    }
}

/// Returns the object without these members.
pub(super) fn without(object: &Value, pointers: &[&str]) -> Value {
    let mut object = object.clone();
    for pointer in pointers {
        super::generate::remove(&mut object, pointer);
    }
    object
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::text(json!({"a": "X"}), json!({"a": "x"}), Some("/a"))]
    #[case::order(json!({"a": [1, 2]}), json!({"a": [2, 1]}), Some("/a/0"))]
    #[case::missing(json!({"a/b": 1}), json!({}), Some("/a~1b"))]
    #[case::added(json!({}), json!({"a": 1}), Some("/a"))]
    #[case::wide(json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64), Some(""))]
    #[case::same_number(json!(1.0), json!(1), None)]
    #[case::ignored(json!({"status": 1}), json!({}), None)]
    fn values_differ(#[case] expected: Value, #[case] actual: Value, #[case] at: Option<&str>) {
        let found = difference(&expected, &actual, &["/status"]);
        assert_eq!(found.map(|difference| difference.at).as_deref(), at);
    }

    #[rstest]
    #[case::nothing(json!({"a": 1}), json!({"a": 1}), json!({"a": 1, "default": 1}), false)]
    #[case::new_member(json!({"a": 1, "b": {"c": 1}}), json!({"a": 1, "b": {"c": 1, "d": 2}}),
        json!({"a": 1, "default": 1, "b": {"c": 1, "d": 2}}), false)]
    #[case::alias(json!({"a": 1}), json!({"a": 1, "name": "x"}),
        json!({"a": 1, "default": 1, "name": "x", "alias": "x"}), true)]
    #[case::other_default(json!({"a": 1}), json!({"a": 1, "b": 1}),
        json!({"a": 1, "b": 1, "default": 2}), true)]
    #[case::in_a_list(json!({"a": [{"b": 1}]}), json!({"a": [{"b": 2}]}),
        json!({"default": 1, "a": [{"b": 2, "alias": 2}]}), true)]
    fn side_effects_are_changes_that_were_not_sent(
        #[case] base: Value,
        #[case] sent: Value,
        #[case] after: Value,
        #[case] is_expected: bool,
    ) {
        let mut before = base;
        before["default"] = json!(1);
        assert_eq!(has_side_effect(&before, &sent, &after), is_expected);
    }

    #[rstest]
    #[case::defaults(json!({"spec": {"a": 1}}), json!({"spec": {"a": 1, "b": 2}}), None)]
    #[case::item(json!({"spec": {"a": [1, 2]}}), json!({"spec": {"a": [1]}}), Some("/spec/a"))]
    #[case::zero(json!({"spec": {"a": ""}}), json!({"spec": {}}), Some("/spec/a"))]
    #[case::label(
        json!({"metadata": {"labels": {"a": ""}}}),
        json!({"metadata": {"labels": {}}}),
        Some("/metadata/labels/a")
    )]
    #[case::no_labels(json!({"metadata": {"labels": {}}}), json!({"metadata": {}}), None)]
    fn servers_keep_what_was_sent(
        #[case] sent: Value,
        #[case] received: Value,
        #[case] at: Option<&str>,
    ) {
        let schema = Schema::complete(json!({"type": "object"}));
        let found = lost(&schema, &sent, &received);
        assert_eq!(found.map(|difference| difference.at).as_deref(), at);
    }
}
