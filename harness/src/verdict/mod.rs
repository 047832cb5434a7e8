//! Verdicts: pure functions of what a case expects and what was exchanged.
//!
//! Nothing here waits, sends or remembers. A check becomes a [`CheckResult`] with what was asked for, what
//! came, a diff and a line that repeats the exchange.

mod cel;
mod claim;
pub mod curl;
mod pattern;

use std::collections::BTreeMap;

use kubeproof_cases::case::{Check, Edition, EventPattern, Level};
use serde_json::{Value, json};
use similar::TextDiff;

pub use self::cel::{EvalError, evaluate};
pub use self::pattern::{Mismatch, describe, matches};
pub(crate) use self::pattern::{describe_text, shorten, text_matches};
use crate::event::{CheckResult, Verdict};
use crate::exchange::{Exchange, Outcome, Received, WatchEnd, WatchEvent};
use crate::values::{Undefined, Values};

/// Bytes of what is shown side by side; who reads more?
const MAX_DIFF: usize = 64 << 10;

/// What a run is judged by.
#[derive(Clone, Debug)]
pub struct Judging {
    /// The text that counts.
    pub edition: Edition,
    /// A deviation is a failure.
    pub letter: bool,
    /// The target without credentials, for the curl line.
    pub server: String,
}

/// Judges one check. `None`: the check is not judged under this edition.
///
/// `exchange` is what the check's step made; checks of an `expect` step have none and speak through CEL.
pub fn judge(
    check: &Check,
    step: &str,
    exchange: Option<&Exchange>,
    values: &Values,
    judging: &Judging,
) -> Option<CheckResult> {
    if !check.editions.contains(&judging.edition) {
        return None;
    }
    let mut result = CheckResult {
        id: check.id.clone(),
        verdict: Verdict::Pass,
        level: check.level,
        requirements: check.requirements.clone(),
        expected: Value::Null,
        actual: Value::Null,
        places: Vec::new(),
        message: String::new(),
        means: check.means.clone(),
        diff: None,
        curl: exchange.map(|exchange| curl::line(&exchange.request, &judging.server)),
        step: step.to_owned(),
    };
    if let Err(undefined) = settle(&mut result, check, exchange, values, judging) {
        result.verdict = Verdict::Error;
        result.message = undefined.to_string();
    }
    Some(result)
}

/// A check that the harness makes of its own, for what a case takes for granted: that a step is answered,
/// that an object it needs can be created, that a captured value is there.
pub fn synthetic(
    id: String,
    verdict: Verdict,
    step: &str,
    expected: Value,
    actual: Value,
    message: String,
) -> CheckResult {
    CheckResult {
        id,
        verdict,
        level: Level::Must,
        requirements: Vec::new(),
        expected,
        actual,
        places: Vec::new(),
        message,
        means: None,
        diff: None,
        curl: None,
        step: step.to_owned(),
    }
}

/// The verdict of a check that does not hold.
pub fn failed_at(level: Level) -> Verdict {
    match level {
        Level::Must => Verdict::Fail,
        Level::Should | Level::May => Verdict::Warn,
    }
}

/// Whether an event is the one that a case waits for.
pub fn event_matches(
    expected: &EventPattern,
    event: &WatchEvent,
    values: &Values,
) -> Result<Result<(), Mismatch>, Undefined> {
    let type_is_right = if expected.types.is_empty() {
        event.kind != "BOOKMARK"
    } else {
        expected.types.contains(&event.kind)
    };
    if !type_is_right {
        let asked = if expected.types.is_empty() { "an event".into() } else { expected.types.join(" or ") };
        return Ok(Err(Mismatch { at: "/type".into(), expected: asked, actual: Some(json!(event.kind)) }));
    }
    match &expected.object {
        Some(pattern) => matches(pattern, Some(&event.object), values),
        None => Ok(Ok(())),
    }
}

/// What CEL sees as a step: `status`, `headers`, `body`, `text`, `events`, `ended`, `error`.
pub fn exchange_value(exchange: &Exchange) -> Value {
    match &exchange.outcome {
        Outcome::Broken(broken) => json!({
            "status": 0, "headers": {}, "body": null, "text": "", "events": [], "ended": false,
            "error": broken.message,
        }),
        Outcome::Answered(received) => received_value(received),
    }
}

fn received_value(received: &Received) -> Value {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in &received.headers {
        headers
            .entry(name.to_ascii_lowercase())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(value);
            })
            .or_insert_with(|| value.clone());
    }
    let events: Vec<Value> =
        received.events.iter().map(|event| json!({"type": event.kind, "object": *event.object})).collect();
    let mut value = json!({
        "status": received.status,
        "headers": headers,
        "body": received.json.as_deref(),
        "text": String::from_utf8_lossy(&received.body),
        "events": events,
        "ended": received.end == Some(WatchEnd::Server),
        "error": "",
    });
    // Of a stream, the names of channels are members, `error` among them.
    if let (Some(stream), Some(members)) = (&received.stream, value.as_object_mut()) {
        members.extend(stream.value());
    }
    value
}

fn settle(
    result: &mut CheckResult,
    check: &Check,
    exchange: Option<&Exchange>,
    values: &Values,
    judging: &Judging,
) -> Result<(), Undefined> {
    result.expected = claim::expectations(&check.claims, values)?;
    let Err(broken) = claim::all_hold(&check.claims, exchange, values)? else { return Ok(()) };
    result.verdict = failed_at(check.level);
    result.diff = diff(&broken.expected, &broken.actual);
    result.actual = broken.actual;
    result.message = broken.message;
    if let Some(fault) = exchange.and_then(no_json)
        && !result.message.contains(fault)
    {
        result.message = format!("{} (the body is no JSON: {fault})", result.message);
    }
    if let Some(deviation) = &check.deviation
        && claim::all_hold(&deviation.claims, exchange, values)?.is_ok()
    {
        let letter = deviation.letter.get(&judging.edition).map(String::as_str).unwrap_or_default();
        result.message = format!(
            "{} (the letter of {}: {}; deployed servers: {})",
            result.message,
            judging.edition,
            letter.trim_end_matches('.'),
            deviation.because
        );
        if !judging.letter {
            result.verdict = Verdict::Deviation;
        }
    }
    Ok(())
}

/// Why a body that claims to be JSON cannot be read: what is wrong with an expression over it, too.
fn no_json(exchange: &Exchange) -> Option<&str> {
    let answer = exchange.answer().filter(|answer| answer.json.is_none())?;
    answer.json_fault.as_deref()
}

/// A unified diff of two structured values; `None` when a line each says it all.
fn diff(expected: &Value, actual: &Value) -> Option<String> {
    if !(expected.is_object() && actual.is_object()) {
        return None;
    }
    let (expected, actual) =
        (serde_json::to_string_pretty(expected).ok()?, serde_json::to_string_pretty(actual).ok()?);
    // The time it takes grows with the square of what differs.
    if expected.len().max(actual.len()) > MAX_DIFF {
        return None;
    }
    let diff = TextDiff::from_lines(&expected, &actual);
    Some(diff.unified_diff().context_radius(3).header("expected", "actual").to_string())
}

#[cfg(test)]
mod tests;
