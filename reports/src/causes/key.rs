//! The key of a result: results with equal keys have one cause.

use std::fmt;

use kubeproof_harness::event::{Symptom, Verdict};
use serde_json::Value;

use super::deciding_check;
use crate::document::{CheckRecord, Record};

/// Status codes that depend on the content of one request. Equal codes in two cases can have two
/// causes.
pub(super) const OF_CONTENT: [u16; 3] = [400, 409, 422];

/// Maximum characters of a value that results of one cause share.
const SHARED_VALUE: usize = 40;

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Key<'a> {
    /// A difference from the list of known failures.
    Surprise(&'a str),
    /// A member is missing, in any case.
    MissingField(String),
    /// A member has the same wrong value, in any case.
    WrongField { field: String, value: String },
    /// A kind of request fails with a status code, in any case.
    Status { request: &'a str, got: u16 },
    /// A kind of request is rejected with another code than expected, in any case.
    Rejection { request: &'a str, expected: &'a [u16], got: u16 },
    /// A kind of request gets no response, in any case.
    NoResponse { request: &'a str },
    /// The streams of a subresource lack data, in any case.
    NoData { subresource: &'a str },
    /// The server breaks a rule of stream protocols, in any case.
    BrokenFraming(String),
    /// Checks explain their failure with the same words, in any case.
    Meaning(String),
    /// One check of one case, on any subject.
    Check { case: &'a str, check: &'a str },
    /// The harness could not decide, for this reason.
    Undecided(String),
    /// The case ended before its first check.
    Reason(String),
}

impl<'a> Key<'a> {
    pub(super) fn of(record: &'a Record) -> Self {
        if let Some(surprise) = record.surprise() {
            return Self::Surprise(surprise);
        }
        let Some(check) = deciding_check(record) else {
            return Self::Reason(without_numbers(&record.reason));
        };
        let of_symptom =
            check.symptom.as_ref().and_then(|symptom| Self::of_symptom(symptom, check));
        of_symptom.unwrap_or_else(|| match (record.verdict, &check.means) {
            (Verdict::Error, _) => Self::Undecided(without_numbers(&check.message)),
            (_, Some(means)) => {
                Self::Meaning(means.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            (_, None) => Self::Check { case: &record.id, check: &check.id },
        })
    }

    /// Returns the key of a symptom that results of other cases share.
    fn of_symptom(symptom: &'a Symptom, check: &CheckRecord) -> Option<Self> {
        match symptom {
            Symptom::MissingField { field } => Some(Self::MissingField(of_object(field))),
            Symptom::WrongField { field } => {
                let value = shared_value(value_at(&check.actual, field)?)?;
                Some(Self::WrongField { field: without_indexes(field), value })
            }
            Symptom::NoResponse { request } | Symptom::Setup { request, got: 0 } => {
                Some(match stream(request) {
                    Some(subresource) => Self::NoData { subresource },
                    None => Self::NoResponse { request: verb(request) },
                })
            }
            Symptom::BrokenFraming { .. } => {
                Some(Self::BrokenFraming(without_numbers(first_violation(check)?)))
            }
            Symptom::Setup { request, got } => {
                let request = if OF_CONTENT.contains(got) { request } else { verb(request) };
                Some(Self::Status { request, got: *got })
            }
            Symptom::StatusCode { request, expected, got } => {
                let request = verb(request);
                let is_success = |code: &u16| *code < 400;
                match expected.iter().all(is_success) {
                    _ if *got >= 500 => Some(Self::Status { request, got: *got }),
                    true if OF_CONTENT.contains(got) => None,
                    true => Some(Self::Status { request, got: *got }),
                    // Each rule that the server does not enforce is a bug of its own.
                    false if is_success(got) => None,
                    false => Some(Self::Rejection { request, expected, got: *got }),
                }
            }
        }
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Surprise(text) => write!(f, "known-failures {text}"),
            Self::MissingField(field) => write!(f, "missing-field {field}"),
            Self::WrongField { field, value } => write!(f, "wrong-field {field} {value}"),
            Self::Status { request, got } => write!(f, "status-code {request} {got}"),
            Self::Rejection { request, expected, got } => {
                write!(f, "rejection {request} {} {got}", codes(expected))
            }
            Self::NoResponse { request } => write!(f, "no-response {request}"),
            Self::NoData { subresource } => write!(f, "no-data {subresource}"),
            Self::BrokenFraming(violation) => write!(f, "broken-framing {violation}"),
            Self::Meaning(means) => write!(f, "meaning {means}"),
            Self::Check { case, check } => write!(f, "check {case} {check}"),
            Self::Undecided(reason) | Self::Reason(reason) => write!(f, "error {reason}"),
        }
    }
}

/// Returns the first violation that a check of framing found.
pub(super) fn first_violation(check: &CheckRecord) -> Option<&str> {
    check.actual.get(0)?.as_str()
}

/// Returns status codes as text.
pub(super) fn codes(codes: &[u16]) -> String {
    codes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// Returns the first word of a kind of request: `create` of `create configmaps`.
fn verb(request: &str) -> &str {
    request.split_whitespace().next().unwrap_or(request)
}

/// Returns the subresource that a request streams.
fn stream(request: &str) -> Option<&str> {
    let (_, subresource) = request.split_once(' ')?;
    matches!(subresource, "attach" | "exec" | "log" | "portforward").then_some(subresource)
}

/// Returns the path of a member without the indexes of lists.
pub(super) fn without_indexes(field: &str) -> String {
    let is_index = |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    let parts = field.trim_start_matches('/').split(['/', '.', '[', ']']);
    parts.filter(|name| !name.is_empty() && !is_index(name)).collect::<Vec<_>>().join(".")
}

/// Returns the path of a member in one object: a list of objects lacks what each of them lacks.
fn of_object(field: &str) -> String {
    let path = without_indexes(field);
    path.strip_prefix("items.").map(str::to_owned).unwrap_or(path)
}

/// Returns the value of a member in the body that a check recorded.
pub(super) fn value_at<'v>(recorded: &'v Value, field: &str) -> Option<&'v Value> {
    let body = recorded.get("body").unwrap_or(recorded);
    let names = field.split(['/', '.', '[', ']']).filter(|name| !name.is_empty());
    names.into_iter().try_fold(body, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

/// Returns a value as text, if unrelated objects can have the same value. Names and versions of
/// objects contain digits, so they are not shared.
fn shared_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let is_shared =
                text.len() <= SHARED_VALUE && !text.bytes().any(|byte| byte.is_ascii_digit());
            is_shared.then(|| format!("{text:?}"))
        }
        Value::Bool(_) | Value::Number(_) | Value::Null => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Replaces words with digits, such as generated names and durations.
fn without_numbers(reason: &str) -> String {
    let words = reason
        .split_whitespace()
        .map(|word| if word.bytes().any(|byte| byte.is_ascii_digit()) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indexes_and_names_of_objects_do_not_separate_causes() {
        assert_eq!(without_indexes("items[0].metadata.uid"), "items.metadata.uid");
        assert_eq!(without_indexes("/items/12/kind"), "items.kind");
        assert_eq!(
            without_numbers("the pod kp-1-2 did not start in 30 s"),
            "the pod # did not start in # s"
        );
        assert_eq!(shared_value(&json!("ConfigMap")).as_deref(), Some("\"ConfigMap\""));
        assert_eq!(shared_value(&json!("kp-12-ab")), None);
    }

    #[test]
    fn members_are_found_by_both_kinds_of_paths() {
        let recorded = json!({"status": 200, "body": {"items": [{"kind": "Pod"}]}});
        assert_eq!(value_at(&recorded, "items[0].kind"), Some(&json!("Pod")));
        assert_eq!(value_at(&recorded, "/items/0/kind"), Some(&json!("Pod")));
        assert_eq!(value_at(&recorded, "items[1].kind"), None);
    }
}
