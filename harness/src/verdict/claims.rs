//! Checks claims against an exchange.

use kubeproof_cases::case::Claim;
use kubeproof_cases::expression::Expression;
use kubeproof_cases::pattern::Pattern;
use serde_json::{Value, json};

use super::cel::evaluate;
use super::decode::{Explanation, explain};
use super::evidence::{Broken, Evidence, Judged, detail, headline, one_or_all, seen, wrong_code};
use super::pattern::{closest, describe, matches, project, text_in_words};
use super::rejection::{describe_rejection, rejected};
use super::reported::matches_but_reported;
use super::texts::{header, text};
use crate::event::Symptom;
use crate::exchange::{Exchange, Received};
use crate::values::{Undefined, Values};

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

/// Checks sets of claims. At least one set must hold.
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
    let part = project(pattern, actual, values)?;
    let permitted = closest(pattern, Some(&part), values)?;
    Ok(Err(Broken {
        expected: json!({"body": describe(pattern, values)?}),
        differing: Some((json!({"body": permitted}), json!({"body": part}))),
        actual: json!({"body": part}),
        message: if is_rejected {
            format!("{message} (HTTP {})", detail(received))
        } else {
            message
        },
        symptom: Some(mismatch.symptom()),
        ..Broken::default()
    }))
}
