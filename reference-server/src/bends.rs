//! What faults do to a Status on its way out: the last place where all refusals pass.

use http::StatusCode;
use serde_json::Value;

use crate::{Fault, Faults};

/// Faults that leave members out, and where these stand.
const LEFT_OUT: [(Fault, &str, &[&str]); 8] = [
    (Fault::StatusWithoutReason, "", &["reason"]),
    (Fault::StatusWithoutDetails, "", &["details"]),
    (Fault::StatusWithoutKind, "", &["kind", "apiVersion"]),
    (Fault::StatusWithoutMessage, "", &["message"]),
    (Fault::DetailsNameMissing, "/details", &["name"]),
    (Fault::DetailsGroupMissing, "/details", &["group"]),
    (Fault::DetailsCausesMissing, "/details", &["causes"]),
    (Fault::RetryAfterInHeaderOnly, "/details", &["retryAfterSeconds"]),
];

/// Faults that put words into the messages of causes.
const WORDS: [(Fault, &str, &str); 4] = [
    (Fault::MessagesSayShould, "must", "should"),
    (Fault::MessagesSayCannot, "may not", "cannot"),
    (Fault::ValuesOpenNoQuotes, "Invalid value: \"", "Invalid value: "),
    (Fault::MessagesUseSymbols, "greater than or equal to", ">="),
];

/// Bends the Status of a refusal.
pub(crate) fn status(status: &mut Value, code: StatusCode, faults: Faults) {
    for (fault, place, members) in LEFT_OUT {
        if faults.on(fault)
            && let Some(object) = status.pointer_mut(place).and_then(Value::as_object_mut)
        {
            object.retain(|member, _| !members.contains(&member.as_str()));
        }
    }
    for cause in status.pointer_mut("/details/causes").and_then(Value::as_array_mut).into_iter().flatten() {
        for (fault, good, bad) in WORDS {
            if faults.on(fault)
                && let Some(message) = cause["message"].as_str()
            {
                cause["message"] = message.replace(good, bad).into();
            }
        }
        if let Some(path) = cause["field"].as_str() {
            cause["field"] = field_path(path, faults).into();
        }
    }
    if faults.on(Fault::StatusCodeMismatch) {
        status["code"] = 500.into();
    }
    if faults.on(Fault::ReasonsInWords)
        && let Some(reason) = code.canonical_reason()
    {
        status["reason"] = reason.into();
    }
}

/// The path to a field that is wrong.
fn field_path(path: &str, faults: Faults) -> String {
    let mut path = path.to_owned();
    if faults.on(Fault::OneBasedIndexes) {
        path = one_based(&path);
    }
    if faults.on(Fault::FieldPathLeafOnly) {
        path = path.rsplit('.').next().unwrap_or_default().to_owned();
    }
    if faults.on(Fault::FieldPathLeadingDot) {
        path.insert(0, '.');
    }
    if faults.on(Fault::FieldPathIsPointer) {
        path = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
    }
    path
}

/// A path whose indexes count from one.
fn one_based(path: &str) -> String {
    let mut parts = path.split('[');
    let mut shifted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shifted.push('[');
        let index = part.split_once(']').and_then(|(index, rest)| Some((index.parse::<usize>().ok()?, rest)));
        match index {
            Some((index, rest)) => {
                shifted += &(index + 1).to_string();
                shifted.push(']');
                shifted += rest;
            }
            None => shifted += part,
        }
    }
    shifted
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Fault::OneBasedIndexes, "spec.tags[1].x[0]", "spec.tags[2].x[1]")]
    #[case(Fault::OneBasedIndexes, "data[a.b]", "data[a.b]")]
    #[case(Fault::FieldPathLeafOnly, "spec.size", "size")]
    #[case(Fault::FieldPathLeadingDot, "spec.size", ".spec.size")]
    #[case(Fault::FieldPathIsPointer, "spec.tags[1].x", "/spec/tags/1/x")]
    fn paths_are_bent(#[case] fault: Fault, #[case] path: &str, #[case] expected: &str) {
        assert_eq!(field_path(path, Faults::none()), path);
        assert_eq!(field_path(path, fault.into()), expected);
    }
}
