//! The evidence for claims, and the reason for a false one.

use serde_json::{Value, json};

use super::reported::Tolerance;
use crate::event::Symptom;
use crate::exchange::{Exchange, Received, shorten};
use crate::values::{Undefined, Values};

/// The exchange and the values that decide claims.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    /// The step with its iterations.
    pub(super) step: &'a str,
    /// The exchange of the step; `None` for checks of earlier steps.
    pub(super) exchange: Option<&'a Exchange>,
    pub(super) values: &'a Values,
    /// Defects that another case reports; `None` to judge everything.
    pub(super) tolerance: Option<&'a Tolerance<'a>>,
}

/// Why a claim is false.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Broken {
    /// The expected value.
    pub(super) expected: Value,
    /// The actual value.
    pub(super) actual: Value,
    pub(super) message: String,
    pub(super) symptom: Option<Symptom>,
    /// Other steps whose exchanges decided.
    pub(super) steps: Vec<String>,
    /// Expected and actual value, if they differ from those for reports.
    pub(super) differing: Option<(Value, Value)>,
}

/// The outcome of a claim. The outer error is an undefined variable of the case.
pub(super) type Judged = Result<Result<(), Broken>, Undefined>;

/// Returns why a code is wrong.
pub(super) fn wrong_code(
    codes: &[u16],
    expected: Value,
    exchange: &Exchange,
    received: &Received,
) -> Broken {
    Broken {
        expected,
        actual: seen(received),
        message: format!("expected HTTP {}, got {}", in_words(codes), detail(received)),
        symptom: Some(Symptom::StatusCode {
            request: exchange.request.verb(),
            expected: codes.to_vec(),
            got: received.status,
        }),
        steps: Vec::new(),
        // The body was not compared.
        differing: Some((json!({"status": one_or_all(codes)}), json!({"status": received.status}))),
    }
}

/// Returns the code and the body of a response for reports.
pub(super) fn seen(received: &Received) -> Value {
    let body = match received.json.as_deref() {
        Some(status) if status["kind"] == "Status" => status.clone(),
        Some(other) if other.to_string().len() <= 2048 => other.clone(),
        _ => json!(shorten(&String::from_utf8_lossy(&received.body))),
    };
    json!({"status": received.status, "body": body})
}

/// Returns `409 AlreadyExists`, or the code alone.
pub(super) fn headline(received: &Received) -> String {
    let reason = received.json.as_deref().and_then(|body| body["reason"].as_str());
    match (received.status, reason) {
        (status, Some(reason)) if status >= 400 => format!("{status} {reason}"),
        (status, _) => format!("{status}"),
    }
}

/// Returns `404 NotFound: pods "a" not found`, as far as the response says it.
pub(super) fn detail(received: &Received) -> String {
    let headline = headline(received);
    let message = received.json.as_deref().and_then(|body| body["message"].as_str());
    match message {
        Some(message) if received.status >= 400 => format!("{headline}: {}", shorten(message)),
        _ => headline,
    }
}

pub(super) fn in_words(codes: &[u16]) -> String {
    codes.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
}

pub(super) fn one_or_all<T: serde::Serialize>(items: &[T]) -> Value {
    match items {
        [one] => json!(one),
        all => json!({"$oneOf": all}),
    }
}
