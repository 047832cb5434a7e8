//! Checks claims against an exchange.

use kubeproof_cases::case::{Claim, Rejection};
use kubeproof_cases::expression::Expression;
use kubeproof_cases::pattern::Pattern;
use serde_json::{Value, json};

use super::cel::evaluate;
use super::decode::{Explanation, explain};
use super::pattern::{Mismatch, describe, matches, project, text_in_words, text_matches};
use super::reported::{Tolerance, matches_but_reported};
use super::texts::{header, text};
use crate::event::Symptom;
use crate::exchange::{Exchange, Received, shorten};
use crate::values::{Undefined, Values};

/// What claims are checked against.
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

/// Returns the expected value of a claim for reports.
pub(super) fn expectation(claim: &Claim, values: &Values) -> Result<Value, Undefined> {
    Ok(match claim {
        Claim::Status(codes) => json!({"status": one_or_all(codes)}),
        Claim::Rejected(rejection) => describe_rejection(rejection, values)?,
        Claim::Body(pattern) => json!({"body": describe(pattern, values)?}),
        Claim::Header { name, value: None } => json!({"header": {name: {"$absent": true}}}),
        Claim::Header { name, value: Some(text) } => {
            json!({"header": {name: text_in_words(text, values)?}})
        }
        Claim::Text(text) => json!({"text": text_in_words(text, values)?}),
        Claim::Cel(expression) => json!({"cel": expression.text}),
        Claim::AnyOf(sets) => {
            let sets: Vec<Value> = sets
                .iter()
                .map(|set| expectations(set, values))
                .collect::<Result<_, Undefined>>()?;
            json!({"anyOf": sets})
        }
    })
}

/// Returns the expected value of several claims.
pub(super) fn expectations(claims: &[Claim], values: &Values) -> Result<Value, Undefined> {
    let mut all = serde_json::Map::new();
    for claim in claims {
        if let Value::Object(members) = expectation(claim, values)? {
            for (name, value) in members {
                crate::values::merge(all.entry(name).or_insert(Value::Null), &value);
            }
        }
    }
    Ok(Value::Object(all))
}

/// Checks claims that must all be true, except for defects that another case reports.
pub(super) fn all_hold(claims: &[Claim], evidence: Evidence<'_>) -> Judged {
    for claim in claims {
        let judged = holds(claim, evidence)?;
        let Some(tolerance) = evidence.tolerance else {
            if judged.is_err() {
                return Ok(judged);
            }
            continue;
        };
        match judged {
            // These claims record their own parts.
            Ok(()) if matches!(claim, Claim::Body(_) | Claim::AnyOf(_)) => {}
            Ok(()) => tolerance.held(),
            Err(broken) if tolerance.covers(broken.symptom.as_ref(), &broken.message) => {}
            Err(broken) => return Ok(Err(broken)),
        }
    }
    Ok(Ok(()))
}

/// The outcome of a claim. The outer error is an undefined variable of the case.
pub(super) type Judged = Result<Result<(), Broken>, Undefined>;

fn holds(claim: &Claim, evidence: Evidence<'_>) -> Judged {
    match claim {
        Claim::Cel(expression) => {
            return Ok(broken_cel(expression, evidence.values).map_or(Ok(()), Err));
        }
        Claim::AnyOf(sets) => return any_holds(claim, sets, evidence),
        _ => {}
    }
    let Some((exchange, received)) = evidence.exchange.and_then(responded) else {
        let request = evidence.exchange.map(|exchange| exchange.request.verb());
        return Ok(Err(Broken {
            expected: expectation(claim, evidence.values)?,
            message: "there is no response to judge".into(),
            symptom: request.map(|request| Symptom::NoResponse { request }),
            ..Broken::default()
        }));
    };
    match claim {
        Claim::Status(codes) => Ok(if codes.contains(&received.status) {
            Ok(())
        } else {
            Err(wrong_code(codes, json!({"status": one_or_all(codes)}), exchange, received))
        }),
        Claim::Rejected(rejection) => rejected(rejection, evidence, exchange, received),
        Claim::Body(pattern) => body(pattern, evidence, exchange, received),
        Claim::Header { name, value } => header(name, value.as_ref(), received, evidence.values),
        Claim::Text(pattern) => text(pattern, received, evidence.values),
        Claim::Cel(_) | Claim::AnyOf(_) => Ok(Ok(())),
    }
}

fn wrong_code(codes: &[u16], expected: Value, exchange: &Exchange, received: &Received) -> Broken {
    Broken {
        expected,
        actual: seen(received),
        message: format!("expected HTTP {}, got {}", in_words(codes), detail(received)),
        symptom: Some(Symptom::StatusCode {
            request: exchange.request.verb(),
            expected: codes.to_vec(),
            got: received.status,
        }),
        ..Broken::default()
    }
}

/// Checks sets of claims of which one must hold.
fn any_holds(claim: &Claim, sets: &[Vec<Claim>], evidence: Evidence<'_>) -> Judged {
    let mut all = Vec::new();
    for set in sets {
        match all_hold(set, Evidence { tolerance: None, ..evidence })? {
            Ok(()) => {
                evidence.tolerance.inspect(|tolerance| tolerance.held());
                return Ok(Ok(()));
            }
            Err(broken) => all.push(broken),
        }
    }
    if evidence.tolerance.is_some() {
        for set in sets {
            if all_hold(set, evidence)?.is_ok() {
                return Ok(Ok(()));
            }
        }
    }
    let mut codes = Vec::new();
    for broken in &all {
        if let Some(Symptom::StatusCode { expected, .. }) = &broken.symptom {
            codes.extend(
                expected.iter().filter(|code| !codes.contains(*code)).copied().collect::<Vec<_>>(),
            );
        }
    }
    let expected = expectation(claim, evidence.values)?;
    let is_code = |broken: &Broken| matches!(broken.symptom, Some(Symptom::StatusCode { .. }));
    if let Some((exchange, received)) = evidence.exchange.and_then(responded)
        && all.iter().all(is_code)
        && all.iter().all(|broken| broken.steps.is_empty())
    {
        return Ok(Err(wrong_code(&codes, expected, exchange, received)));
    }
    // An alternative with the right code is closer than the others.
    let closest = all.iter().position(|broken| !is_code(broken)).unwrap_or_default();
    let mut messages: Vec<&str> = Vec::new();
    for broken in &all {
        if !messages.contains(&broken.message.as_str()) {
            messages.push(&broken.message);
        }
    }
    let message = messages.join("; or ");
    let closest = all.into_iter().nth(closest).unwrap_or_default();
    Ok(Err(Broken { expected, message, ..closest }))
}

/// Returns why an expression does not hold.
fn broken_cel(expression: &Expression, values: &Values) -> Option<Broken> {
    if evaluate(expression, values) == Ok(Value::Bool(true)) {
        return None;
    }
    let Explanation { message, actual, symptom, steps, differing, .. } =
        explain(expression, values);
    let expected = json!({"cel": expression.text});
    Some(Broken { expected, actual, message, symptom, steps, differing })
}

fn responded(exchange: &Exchange) -> Option<(&Exchange, &Received)> {
    exchange.response().map(|received| (exchange, received))
}

fn body(
    pattern: &Pattern,
    evidence: Evidence<'_>,
    exchange: &Exchange,
    received: &Received,
) -> Judged {
    let values = evidence.values;
    let Some(actual) = received.json.as_deref() else {
        let why = received.json_fault.as_deref().unwrap_or("its body is not JSON");
        return Ok(Err(Broken {
            expected: json!({"body": describe(pattern, values)?}),
            actual: seen(received),
            message: format!("expected a JSON body, got {}: {why}", headline(received)),
            symptom: Some(Symptom::WrongField { field: "body".into() }),
            ..Broken::default()
        }));
    };
    let matched = match evidence.tolerance {
        Some(tolerance) => matches_but_reported(pattern, Some(actual), values, tolerance)?,
        None => matches(pattern, Some(actual), values)?,
    };
    let Err(mismatch) = matched else { return Ok(Ok(())) };
    let response = format!("the response of `{}` ({})", evidence.step, exchange.request.line());
    let message = mismatch.in_response(&response);
    let is_rejected = received.status >= 400;
    Ok(Err(Broken {
        expected: json!({"body": describe(pattern, values)?}),
        actual: json!({"body": project(pattern, actual, values)?}),
        message: if is_rejected {
            format!("{message} (HTTP {})", detail(received))
        } else {
            message
        },
        symptom: Some(mismatch.symptom()),
        ..Broken::default()
    }))
}

/// Checks code, Status body and reason. A rejection for another reason does not count.
fn rejected(
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
        let symptom = Some(symptom);
        Ok(Err(Broken { expected, actual, message, symptom, ..Broken::default() }))
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

fn describe_rejection(rejection: &Rejection, values: &Values) -> Result<Value, Undefined> {
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

fn seen(received: &Received) -> Value {
    let body = match received.json.as_deref() {
        Some(status) if status["kind"] == "Status" => status.clone(),
        Some(other) if other.to_string().len() <= 2048 => other.clone(),
        _ => json!(shorten(&String::from_utf8_lossy(&received.body))),
    };
    json!({"status": received.status, "body": body})
}

/// Returns `409 AlreadyExists`, or the code alone.
fn headline(received: &Received) -> String {
    let reason = received.json.as_deref().and_then(|body| body["reason"].as_str());
    match (received.status, reason) {
        (status, Some(reason)) if status >= 400 => format!("{status} {reason}"),
        (status, _) => format!("{status}"),
    }
}

/// Returns `404 NotFound: pods "a" not found`, as far as the response says it.
fn detail(received: &Received) -> String {
    let headline = headline(received);
    let message = received.json.as_deref().and_then(|body| body["message"].as_str());
    match message {
        Some(message) if received.status >= 400 => format!("{headline}: {}", shorten(message)),
        _ => headline,
    }
}

fn in_words(codes: &[u16]) -> String {
    codes.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
}

fn one_or_all<T: serde::Serialize>(items: &[T]) -> Value {
    match items {
        [one] => json!(one),
        all => json!({"$oneOf": all}),
    }
}
