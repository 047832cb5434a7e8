//! Compares watch events with patterns.

use kubeproof_cases::case::EventPattern;
use serde_json::json;

use super::diff::diff;
use super::pattern::{Mismatch, closest, in_brackets, project};
use super::reported::{Reported, Tolerance, matches_but_reported};
use crate::exchange::WatchEvent;
use crate::values::{Undefined, Values};

/// Compares an event with a pattern, except for members that another case reports as missing.
pub(crate) fn event_matches(
    expected: &EventPattern,
    event: &WatchEvent,
    values: &Values,
    reported: &Reported,
) -> Result<Result<(), Mismatch>, Undefined> {
    let type_is_right = if expected.types.is_empty() {
        event.kind != "BOOKMARK"
    } else {
        expected.types.contains(&event.kind)
    };
    if !type_is_right {
        let asked =
            if expected.types.is_empty() { "an event".into() } else { expected.types.join(" or ") };
        return Ok(Err(Mismatch {
            at: "/type".into(),
            expected: asked,
            actual: Some(json!(event.kind)),
        }));
    }
    match &expected.object {
        Some(pattern) => {
            let tolerance = Tolerance::new(reported);
            matches_but_reported(pattern, Some(&event.object), values, &tolerance)
        }
        None => Ok(Ok(())),
    }
}

/// Returns a diff of an event and the closest one that matches a pattern.
pub(crate) fn event_diff(
    expected: &EventPattern,
    event: &WatchEvent,
    values: &Values,
) -> Option<String> {
    let kind = match expected.types.as_slice() {
        types if types.is_empty() || types.contains(&event.kind) => json!(event.kind),
        [one] => json!(one),
        several => in_brackets(&several.join(" or ")),
    };
    let (object, part) = match &expected.object {
        Some(pattern) => {
            let part = project(pattern, &event.object, values).ok()?;
            (closest(pattern, Some(&part), values).ok()?, Some(part))
        }
        None => (None, None),
    };
    diff(&json!({"type": kind, "object": object}), &json!({"type": event.kind, "object": part}))
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::yaml::Span;
    use rstest::rstest;
    use serde_json::Value;

    use super::super::tests::member;
    use super::*;

    #[rstest]
    #[case::any_type(&[], "ADDED", json!({"a": "b"}), None)]
    #[case::any_type_but_this(&[], "BOOKMARK", json!({"a": "b"}), Some("/type"))]
    #[case::one_of_some(&["ADDED", "MODIFIED"], "MODIFIED", json!({"a": "b"}), None)]
    #[case::one_that_was_asked_for(&["BOOKMARK"], "BOOKMARK", json!({"a": "b"}), None)]
    #[case::another_type(&["ADDED", "MODIFIED"], "DELETED", json!({"a": "b"}), Some("/type"))]
    #[case::another_object(&["ADDED"], "ADDED", json!({"a": "c"}), Some("/a"))]
    fn an_event_is_the_one_by_its_type_and_object(
        #[case] types: &[&str],
        #[case] kind: &str,
        #[case] object: Value,
        #[case] differs_at: Option<&str>,
    ) {
        let mut pattern = EventPattern {
            id: "e".into(),
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            object: Some(member("a", "b")),
            capture: Vec::new(),
            span: Span::default(),
        };
        let event = crate::testing::event(kind, object);
        let found = event_matches(&pattern, &event, &Values::new(), &Reported::new()).unwrap();
        assert_eq!(found.as_ref().err().map(|mismatch| mismatch.at.as_str()), differs_at);
        if let (Err(mismatch), Some("/type")) = (found, differs_at) {
            let asked = if types.is_empty() { "an event".to_owned() } else { types.join(" or ") };
            assert_eq!((mismatch.expected, mismatch.actual), (asked, Some(json!(kind))));
        }
        pattern.object = None;
        let by_type = event_matches(&pattern, &event, &Values::new(), &Reported::new()).unwrap();
        assert_eq!(by_type.is_ok(), differs_at != Some("/type"));
    }

    #[test]
    fn the_diff_has_only_what_the_pattern_mentions() {
        let pattern = EventPattern {
            id: "e".into(),
            types: vec!["ADDED".into(), "MODIFIED".into()],
            object: Some(member("a", "b")),
            capture: Vec::new(),
            span: Span::default(),
        };
        let event = crate::testing::event("DELETED", json!({"a": "c", "other": 1}));
        let diff = event_diff(&pattern, &event, &Values::new()).unwrap();
        let changes: Vec<_> =
            diff.lines().skip(2).filter(|line| line.starts_with(['-', '+'])).collect();
        assert_eq!(
            changes,
            [
                r#"-    "a": "b""#,
                r#"+    "a": "c""#,
                r#"-  "type": "<ADDED or MODIFIED>""#,
                r#"+  "type": "DELETED""#,
            ]
        );
    }
}
