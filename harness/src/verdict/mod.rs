//! Computes verdicts: pure functions of a check and an exchange.
//!
//! The result is a [`CheckResult`] with expected and actual values, a diff and a curl command.

mod cel;
mod claims;
pub(crate) mod curl;
mod decode;
mod diff;
mod events;
mod evidence;
mod pattern;
mod rejection;
mod reported;
mod texts;

use std::collections::BTreeMap;

use kubeproof_cases::case::{Check, Edition, Level};
use serde_json::Value;

pub(crate) use self::cel::{evaluate, to_cel};
pub(crate) use self::decode::{Explanation, explain, missing_member, missing_variable, short};
use self::diff::diff;
pub(crate) use self::events::{event_diff, event_matches};
use self::evidence::Evidence;
pub(crate) use self::pattern::{Mismatch, describe, matches};
pub(crate) use self::pattern::{noun_in_words, text_in_words, text_matches};
use self::reported::Tolerance;
pub(crate) use self::reported::{Defect, Reported};
use crate::event::{CheckResult, Symptom, Verdict};
use crate::exchange::Exchange;
use crate::values::{Undefined, Values};

/// The settings for judging.
#[derive(Clone, Debug)]
pub(crate) struct JudgeOptions {
    /// The edition to judge by.
    pub edition: Edition,
    /// True to fail deviations.
    pub letter: bool,
    /// The URL of the target without credentials, for curl commands.
    pub server: String,
    /// Defects that another case reports.
    pub reported: Reported,
}

/// Judges one check. Returns `None` if the edition does not contain it.
///
/// `exchange` is the exchange of the step; `expect` steps have none and use CEL.
pub(crate) fn judge(
    check: &Check,
    step: &str,
    exchange: Option<&Exchange>,
    values: &Values,
    judging: &JudgeOptions,
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
        items: BTreeMap::new(),
        diff: None,
        curl: exchange.map(|exchange| curl::line(&exchange.request, &judging.server)),
        step: step.to_owned(),
        steps: exchange.iter().map(|_| step.to_owned()).collect(),
        symptom: None,
        reported_by: None,
    };
    let tolerance = Tolerance::new(&judging.reported);
    let evidence = Evidence { step, exchange, values, tolerance: Some(&tolerance) };
    if let Err(undefined) = settle(&mut result, check, evidence, judging) {
        if let Some(why) = missing_variable(&undefined.0, values) {
            blame(&mut result, why);
        } else {
            result.verdict = Verdict::Error;
            result.message = undefined.to_string();
        }
    }
    if result.verdict == Verdict::Pass
        && let Some((defect, case, holds)) = tolerance.met()
    {
        result.verdict = if holds { Verdict::Pass } else { Verdict::Skip };
        result.message = defect;
        result.reported_by = Some(case);
    }
    Some(result)
}

/// Fails a check that cannot be judged because a response lacks a member.
fn blame(result: &mut CheckResult, why: Explanation) {
    let Explanation { message, actual, symptom, steps, .. } = why;
    result.verdict = failed_at(result.level);
    result.steps.extend(steps);
    (result.message, result.actual, result.symptom) = (message, actual, symptom);
}

/// Creates a check of the harness itself, for preconditions of a case. The caller adds the values
/// and the message.
pub(crate) fn synthetic(id: String, verdict: Verdict, step: &str) -> CheckResult {
    CheckResult {
        id,
        verdict,
        level: Level::Must,
        requirements: Vec::new(),
        expected: Value::Null,
        actual: Value::Null,
        places: Vec::new(),
        message: String::new(),
        means: None,
        items: BTreeMap::new(),
        diff: None,
        curl: None,
        step: step.to_owned(),
        steps: vec![step.to_owned()],
        symptom: None,
        reported_by: None,
    }
}

/// Returns the verdict of a failed check.
pub(crate) fn failed_at(level: Level) -> Verdict {
    match level {
        Level::Must => Verdict::Fail,
        Level::Should | Level::May => Verdict::Warn,
    }
}

fn settle(
    result: &mut CheckResult,
    check: &Check,
    evidence: Evidence<'_>,
    judging: &JudgeOptions,
) -> Result<(), Undefined> {
    result.expected = claims::expectations(&check.claims, evidence.values)?;
    let Err(broken) = claims::all_hold(&check.claims, evidence)? else { return Ok(()) };
    result.verdict = failed_at(check.level);
    result.diff = match &broken.differing {
        Some((expected, actual)) => diff(expected, actual),
        None => diff(&broken.expected, &broken.actual),
    };
    result.message = broken.message;
    // The default message shows which member is missing.
    let is_missing = matches!(broken.symptom, Some(Symptom::MissingField { .. }));
    if let Some(message) = &check.message
        && broken.expected.get("cel").is_some()
        && !is_missing
        && let Some(message) = decode::render(message, evidence.values)
    {
        result.message = message;
    }
    result.actual = broken.actual;
    result.symptom = broken.symptom;
    for step in broken.steps.into_iter().filter(|step| *step != evidence.step) {
        result.steps.push(step);
    }
    if result.curl.is_none() {
        let first = result.steps.first().and_then(|step| evidence.values.requests.of_step(step));
        result.curl = first.map(|request| curl::line(&request, &judging.server));
    }
    if let Some(fault) = evidence.exchange.and_then(no_json)
        && !result.message.contains(fault)
    {
        result.message = format!("{} (the body is no JSON: {fault})", result.message);
    }
    if let Some(deviation) = &check.deviation
        && claims::all_hold(&deviation.claims, Evidence { tolerance: None, ..evidence })?.is_ok()
    {
        let letter = deviation.letter.get(&judging.edition).map(String::as_str).unwrap_or_default();
        result.message = format!(
            "{} (strict text of {}: {}; deployed servers: {})",
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

/// Returns why the body is invalid JSON, which also explains failed expressions.
fn no_json(exchange: &Exchange) -> Option<&str> {
    let response = exchange.response().filter(|response| response.json.is_none())?;
    response.json_fault.as_deref()
}

#[cfg(test)]
mod tests;
