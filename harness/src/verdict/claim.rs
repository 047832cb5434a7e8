//! Whether one claim holds of an exchange.

use kubeproof_cases::case::{Claim, Refusal};
use kubeproof_cases::pattern::Pattern;
use serde_json::{Value, json};

use super::cel::evaluate;
use super::pattern::{Mismatch, describe, describe_text, matches, project, shorten, text_matches};
use crate::exchange::{Exchange, Outcome, Received};
use crate::values::{Undefined, Values};

/// Why a claim does not hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Broken {
    /// What was asked for.
    pub(super) expected: Value,
    /// What came.
    pub(super) actual: Value,
    /// One line.
    pub(super) message: String,
}

/// What a claim asks for, as a report shows it.
pub(super) fn expectation(claim: &Claim, values: &Values) -> Result<Value, Undefined> {
    Ok(match claim {
        Claim::Status(codes) => json!({"status": one_or_all(codes)}),
        Claim::Refused(refusal) => describe_refusal(refusal, values)?,
        Claim::Body(pattern) => json!({"body": describe(pattern, values)?}),
        Claim::Header { name, value: None } => json!({"header": {name: {"$absent": true}}}),
        Claim::Header { name, value: Some(text) } => json!({"header": {name: describe_text(text, values)?}}),
        Claim::Text(text) => json!({"text": describe_text(text, values)?}),
        Claim::Cel(expression) => json!({"cel": expression.text}),
        Claim::AnyOf(sets) => {
            let sets: Vec<Value> =
                sets.iter().map(|set| expectations(set, values)).collect::<Result<_, Undefined>>()?;
            json!({"anyOf": sets})
        }
    })
}

/// What a set of claims asks for together.
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

/// Judges a set of claims, all of which must hold.
pub(super) fn all_hold(
    claims: &[Claim],
    exchange: Option<&Exchange>,
    values: &Values,
) -> Result<Result<(), Broken>, Undefined> {
    for claim in claims {
        if let Err(broken) = holds(claim, exchange, values)? {
            return Ok(Err(broken));
        }
    }
    Ok(Ok(()))
}

fn holds(
    claim: &Claim,
    exchange: Option<&Exchange>,
    values: &Values,
) -> Result<Result<(), Broken>, Undefined> {
    if let Claim::Cel(expression) = claim {
        return Ok(match evaluate(expression, values) {
            Ok(Value::Bool(true)) => Ok(()),
            Ok(other) => Err(Broken {
                expected: json!({"cel": expression.text}),
                actual: operands(expression, values, &other),
                message: format!("`{}` does not hold", shorten(&expression.text)),
            }),
            Err(error) => Err(Broken {
                expected: json!({"cel": expression.text}),
                actual: json!({"error": error.reason}),
                message: error.to_string(),
            }),
        });
    }
    if let Claim::AnyOf(sets) = claim {
        let mut closest = None;
        for set in sets {
            match all_hold(set, exchange, values)? {
                Ok(()) => return Ok(Ok(())),
                Err(broken) => closest = closest.or(Some(broken)),
            }
        }
        let closest = closest.map_or(Value::Null, |broken| broken.actual);
        return Ok(Err(Broken {
            expected: expectation(claim, values)?,
            actual: closest,
            message: format!("none of the {} lawful outcomes came", sets.len()),
        }));
    }
    let Some(received) = exchange.and_then(answer) else {
        return Ok(Err(Broken {
            expected: expectation(claim, values)?,
            actual: Value::Null,
            message: "there is no answer to judge".into(),
        }));
    };
    match claim {
        Claim::Status(codes) => Ok(if codes.contains(&received.status) {
            Ok(())
        } else {
            Err(Broken {
                expected: json!({"status": one_or_all(codes)}),
                actual: seen(received),
                message: format!("expected HTTP {}, got {}", in_words(codes), headline(received)),
            })
        }),
        Claim::Refused(refusal) => refused(refusal, received, values),
        Claim::Body(pattern) => body(pattern, received, values),
        Claim::Header { name, value } => header(name, value.as_ref(), received, values),
        Claim::Text(text) => {
            let actual = String::from_utf8_lossy(&received.body);
            Ok(if text_matches(text, &actual, values)? {
                Ok(())
            } else {
                Err(Broken {
                    expected: json!({"text": describe_text(text, values)?}),
                    actual: json!({"text": shorten(&actual)}),
                    message: format!("expected {}, got {:?}", describe_text(text, values)?, shorten(&actual)),
                })
            })
        }
        Claim::Cel(_) | Claim::AnyOf(_) => Ok(Ok(())),
    }
}

fn answer(exchange: &Exchange) -> Option<&Received> {
    match &exchange.outcome {
        Outcome::Answered(received) => Some(received),
        Outcome::Broken(_) => None,
    }
}

fn body(pattern: &Pattern, received: &Received, values: &Values) -> Result<Result<(), Broken>, Undefined> {
    let expected = || Ok(json!({"body": describe(pattern, values)?}));
    let Some(actual) = received.json.as_deref() else {
        let why = received.json_fault.as_deref().unwrap_or("its body is not JSON");
        return Ok(Err(Broken {
            expected: expected()?,
            actual: seen(received),
            message: format!("expected a JSON body, got {}: {why}", headline(received)),
        }));
    };
    Ok(match matches(pattern, Some(actual), values)? {
        Ok(()) => Ok(()),
        Err(mismatch) => Err(Broken {
            expected: expected()?,
            actual: json!({"body": project(pattern, actual, values)?}),
            message: with_status(&mismatch, received),
        }),
    })
}

fn header(
    name: &str,
    value: Option<&kubeproof_cases::pattern::TextPattern>,
    received: &Received,
    values: &Values,
) -> Result<Result<(), Broken>, Undefined> {
    let found: Vec<&str> = received
        .headers
        .iter()
        .filter(|(header, _)| header.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect();
    let holds = match value {
        None => found.is_empty(),
        Some(text) => {
            let mut any = false;
            for value in &found {
                any = any || text_matches(text, value, values)?;
            }
            any
        }
    };
    if holds {
        return Ok(Ok(()));
    }
    let asked = match value {
        None => "no such header".to_owned(),
        Some(text) => describe_text(text, values)?,
    };
    let got = if found.is_empty() { "none".to_owned() } else { format!("{:?}", found.join(", ")) };
    Ok(Err(Broken {
        expected: json!({"header": {name: asked}}),
        actual: json!({"header": {name: found}}),
        message: format!("header {name}: expected {asked}, got {got}"),
    }))
}

/// Code, Status body and reason together: a refusal for another reason is not the refusal that was asked for.
fn refused(refusal: &Refusal, received: &Received, values: &Values) -> Result<Result<(), Broken>, Undefined> {
    let expected = describe_refusal(refusal, values)?;
    let failed =
        |message: String| Ok(Err(Broken { expected: expected.clone(), actual: seen(received), message }));
    if !refusal.code.contains(&received.status) {
        return failed(format!("expected HTTP {}, got {}", in_words(&refusal.code), headline(received)));
    }
    let Some(status) = received.json.as_deref() else {
        return failed(format!("{} has no Status body", headline(received)));
    };
    for (member, asked) in [("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure")] {
        if status[member] != asked {
            return failed(format!("the Status has {member} {}, expected \"{asked}\"", status[member]));
        }
    }
    if status["code"] != json!(received.status) {
        return failed(format!(
            "the Status has code {}, the answer is HTTP {}",
            status["code"], received.status
        ));
    }
    if !refusal.reason.is_empty() && !refusal.reason.iter().any(|reason| status["reason"] == reason.as_str())
    {
        return failed(format!(
            "refused with reason {}, expected {}",
            status["reason"],
            refusal.reason.join(" or ")
        ));
    }
    if let Some(pattern) = &refusal.details
        && let Err(mismatch) = matches(pattern, status.get("details"), values)?
    {
        return failed(format!("in the Status' details, {}", mismatch.in_words()));
    }
    if let Some(text) = &refusal.message {
        let message = status["message"].as_str().unwrap_or_default();
        if !text_matches(text, message, values)? {
            return failed(format!(
                "the Status' message is {:?}, expected {}",
                shorten(message),
                describe_text(text, values)?
            ));
        }
    }
    Ok(Ok(()))
}

fn describe_refusal(refusal: &Refusal, values: &Values) -> Result<Value, Undefined> {
    let mut body =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": one_or_all(&refusal.code)});
    if !refusal.reason.is_empty() {
        body["reason"] = one_or_all(&refusal.reason);
    }
    if let Some(details) = &refusal.details {
        body["details"] = describe(details, values)?;
    }
    if let Some(message) = &refusal.message {
        body["message"] = json!(describe_text(message, values)?);
    }
    Ok(json!({"status": one_or_all(&refusal.code), "body": body}))
}

/// The values that a broken expression compared, so that the report shows more than "false".
fn operands(expression: &kubeproof_cases::cel::Expression, values: &Values, result: &Value) -> Value {
    let mut known = serde_json::Map::new();
    for name in &expression.variables {
        if let Some(value) = values.get(name) {
            let text = value.to_string();
            let value = if text.len() <= 2048 { value.clone() } else { json!(shorten(&text)) };
            known.insert(name.clone(), value);
        }
    }
    json!({"result": result, "where": known})
}

fn with_status(mismatch: &Mismatch, received: &Received) -> String {
    if received.status >= 400 {
        format!("{} (HTTP {})", mismatch.in_words(), received.status)
    } else {
        mismatch.in_words()
    }
}

fn seen(received: &Received) -> Value {
    let body = match received.json.as_deref() {
        Some(status) if status["kind"] == "Status" => status.clone(),
        Some(other) if other.to_string().len() <= 2048 => other.clone(),
        _ => json!(shorten(&String::from_utf8_lossy(&received.body))),
    };
    json!({"status": received.status, "body": body})
}

/// `409 AlreadyExists`, or `200 with text/html`.
fn headline(received: &Received) -> String {
    let reason = received.json.as_deref().and_then(|body| body["reason"].as_str());
    match (received.status, reason) {
        (status, Some(reason)) if status >= 400 => format!("{status} {reason}"),
        (status, _) => format!("{status}"),
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
