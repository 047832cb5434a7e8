//! The conditions in a status.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::text;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

/// The statuses of a condition.
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
/// The maximum lengths of a reason and of a message.
const REASON: u64 = 1024;
const MESSAGE: u64 = 32 * 1024;

const REASON_SYNTAX: &str = "a condition reason must start with alphabetic character, optionally \
                             followed by a string of alphanumeric characters or '_,:', and must \
                             end with an alphanumeric character or '_' (e.g. 'my_name',  or \
                             'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or \
                             'ReasonA:ReasonB', regex used for validation is \
                             '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Returns the errors in conditions that controllers write.
pub(in crate::registry::builtin) fn conditions(list: &[Value], path: Path<'_>) -> Vec<FieldError> {
    let mut known = HashSet::new();
    let mut errors = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let (place, kind) = (path.index(index), text(item, "type"));
        if !known.insert(kind) {
            errors.push(FieldError::duplicate(place.field("type"), &json!(kind)));
        }
        errors.extend(condition(item, place));
    }
    errors
}

fn condition(condition: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Syntax::LabelKey.errors(text(condition, "type"), path.field("type"));
    let status = text(condition, "status");
    if !STATUSES.contains(&status) {
        let supported = STATUSES.map(Value::from);
        errors.push(FieldError::not_supported(path.field("status"), &json!(status), &supported));
    }
    let generation = condition["observedGeneration"].as_i64().unwrap_or_default();
    if generation < 0 {
        let why = "must be greater than or equal to zero";
        let place = path.field("observedGeneration");
        errors.push(FieldError::invalid(place, &json!(generation), why));
    }
    if text(condition, "lastTransitionTime").is_empty() {
        errors.push(FieldError::required(path.field("lastTransitionTime"), ""));
    }
    let (reason, place) = (text(condition, "reason"), path.field("reason"));
    if reason.is_empty() {
        errors.push(FieldError::required(place, ""));
    } else if !is_reason(reason) {
        errors.push(FieldError::invalid(place, &json!(reason), REASON_SYNTAX));
    }
    for (field, limit) in [("reason", REASON), ("message", MESSAGE)] {
        if text(condition, field).len() as u64 > limit {
            errors.push(FieldError::too_long(path.field(field), limit));
        }
    }
    errors
}

fn is_reason(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(is_word)
        && text.chars().all(|c| is_word(c) || matches!(c, ',' | ':'))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({}), &[])]
    #[case(json!({"type": "a b"}), &["type"])]
    #[case(json!({"status": "Yes"}), &["status"])]
    #[case(json!({"observedGeneration": -1}), &["observedGeneration"])]
    #[case(json!({"lastTransitionTime": null}), &["lastTransitionTime"])]
    #[case(json!({"reason": ""}), &["reason"])]
    #[case(json!({"reason": "a:b,c_"}), &[])]
    #[case(json!({"reason": "a:"}), &["reason"])]
    #[case(json!({"reason": "a".repeat(1025)}), &["reason"])]
    #[case(json!({"message": "a".repeat(32 * 1024 + 1)}), &["message"])]
    fn conditions_are_complete(#[case] change: Value, #[case] expected: &[&str]) {
        let time = "2026-01-02T03:04:05Z";
        let mut item =
            json!({"type": "A", "status": "True", "reason": "R", "lastTransitionTime": time});
        for (field, value) in change.as_object().into_iter().flatten() {
            item[field] = value.clone();
        }
        let errors = condition(&item, Path::Root);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
        let errors = conditions(&[item.clone(), item], Path::Root);
        assert!(errors.iter().any(|error| error.field == "[1].type"));
    }
}
