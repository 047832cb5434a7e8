//! Checks rejections: the HTTP status code and the Status body.

use kubeproof_cases::case::Rejection;
use serde_json::{Value, json};

use super::evidence::{Broken, Evidence, Judged, headline, one_or_all, seen, wrong_code};
use super::pattern::{Mismatch, closest, describe, in_brackets, matches};
use super::pattern::{text_in_words, text_matches};
use crate::event::Symptom;
use crate::exchange::{Exchange, Received, shorten};
use crate::values::{Undefined, Values};

/// Checks code, Status body and reason. A rejection for another reason does not count.
pub(super) fn rejected(
    rejection: &Rejection,
    evidence: Evidence<'_>,
    exchange: &Exchange,
    received: &Received,
) -> Judged {
    let values = evidence.values;
    let expected = describe_rejection(rejection, values)?;
    if !rejection.code.contains(&received.status) {
        return Ok(Err(wrong_code(&rejection.code, expected, exchange, received)));
    }
    let failed = |message: String, symptom: Symptom| {
        let (expected, actual) = (expected.clone(), seen(received));
        let permitted = closest_rejection(rejection, &actual, values)?;
        let differing = permitted.map(|permitted| (permitted, actual.clone()));
        let symptom = Some(symptom);
        Ok(Err(Broken { expected, actual, message, symptom, differing, ..Broken::default() }))
    };
    let Some(status) = received.json.as_deref() else {
        let field = "body".to_owned();
        return failed(
            format!("{} has no Status body", headline(received)),
            Symptom::MissingField { field },
        );
    };
    if let Some((message, symptom)) = not_a_status(rejection, status, received.status) {
        return failed(message, symptom);
    }
    if let Some(pattern) = &rejection.details
        && let Err(mismatch) = matches(pattern, status.get("details"), values)?
    {
        let mismatch = Mismatch { at: format!("/details{}", mismatch.at), ..mismatch };
        return failed(format!("in the Status, {}", mismatch.in_words()), mismatch.symptom());
    }
    if let Some(text) = &rejection.message {
        let message = status["message"].as_str().unwrap_or_default();
        if !text_matches(text, message, values)? {
            let expected = text_in_words(text, values)?;
            return failed(
                format!("the Status has message {:?}, expected {expected}", shorten(message)),
                Symptom::WrongField { field: "message".into() },
            );
        }
    }
    Ok(Ok(()))
}

/// Returns why a body is not the Status of a rejection.
fn not_a_status(rejection: &Rejection, status: &Value, code: u16) -> Option<(String, Symptom)> {
    let got = |member: &str, expected: &str| {
        let field = member.to_owned();
        match &status[member] {
            Value::Null => (
                format!("the Status has no {member}, expected {expected}"),
                Symptom::MissingField { field },
            ),
            value => (
                format!("the Status has {member} {value}, expected {expected}"),
                Symptom::WrongField { field },
            ),
        }
    };
    for (member, asked) in [("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure")] {
        if status[member] != asked {
            return Some(got(member, &format!("{asked:?}")));
        }
    }
    if status["code"] != json!(code) {
        return Some(got("code", &format!("{code} as in the response")));
    }
    let is_reason = |reason: &String| status["reason"] == reason.as_str();
    if !rejection.reason.is_empty() && !rejection.reason.iter().any(is_reason) {
        return Some(got("reason", &rejection.reason.join(" or ")));
    }
    None
}

/// Returns the expected rejection in the notation of case files.
pub(super) fn describe_rejection(
    rejection: &Rejection,
    values: &Values,
) -> Result<Value, Undefined> {
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": one_or_all(&rejection.code),
    });
    if !rejection.reason.is_empty() {
        body["reason"] = one_or_all(&rejection.reason);
    }
    if let Some(details) = &rejection.details {
        body["details"] = describe(details, values)?;
    }
    if let Some(message) = &rejection.message {
        body["message"] = json!(text_in_words(message, values)?);
    }
    Ok(json!({"status": one_or_all(&rejection.code), "body": body}))
}

/// Returns the rejection that differs least from the actual one. `None` without a JSON object.
fn closest_rejection(
    rejection: &Rejection,
    actual: &Value,
    values: &Values,
) -> Result<Option<Value>, Undefined> {
    let mut permitted = actual.clone();
    let code = actual["status"].clone();
    let Some(body) = permitted["body"].as_object_mut() else { return Ok(None) };
    let members = [
        ("kind", json!("Status")),
        ("apiVersion", json!("v1")),
        ("status", json!("Failure")),
        ("code", code),
    ];
    body.extend(members.map(|(name, value)| (name.to_owned(), value)));
    let reasons = &rejection.reason;
    let has_reason = |reason: &str| reasons.is_empty() || reasons.iter().any(|it| it == reason);
    if !body.get("reason").and_then(Value::as_str).is_some_and(has_reason) {
        body.remove("reason");
        let expected = match reasons.as_slice() {
            [] => None,
            [reason] => Some(json!(reason)),
            several => Some(in_brackets(&several.join(" or "))),
        };
        body.extend(expected.map(|reason| ("reason".to_owned(), reason)));
    }
    if let Some(pattern) = &rejection.details
        && let Some(details) = closest(pattern, body.get("details"), values)?
    {
        body.insert("details".to_owned(), details);
    }
    if let Some(text) = &rejection.message {
        let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
        if !text_matches(text, message, values)? {
            let expected = in_brackets(&text_in_words(text, values)?);
            body.insert("message".to_owned(), expected);
        }
    }
    Ok(Some(permitted))
}
