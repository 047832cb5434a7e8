//! Removes secrets before any report receives a result.
//!
//! Three kinds of text are secret: the tokens of the run, the values of headers that carry
//! credentials, and the data of Secrets and token reviews. They are removed from bodies, from
//! checks, and from all texts that repeat them. A run lists all namespaces, so it reads Secrets of
//! the cluster. The data that a case itself sent is public.

mod exchange;
mod own_values;
mod secret_values;

use std::collections::BTreeSet;

use kubeproof_harness::event::{CaseResult, CheckResult, SkipReason, Verdict};
use kubeproof_harness::transport::Secrets;

use self::own_values::own_values;
use self::secret_values::{SecretValues, hide};
use crate::document::{CheckRecord, ExchangeRecord, Record, milliseconds};

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// Removes the secrets of a run from texts and results.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    tokens: Secrets,
}

impl Redactor {
    /// Creates a redactor for these tokens. Tokens that the run receives later are included.
    pub fn new(tokens: Secrets) -> Self {
        Self { tokens }
    }

    /// Returns the text without the tokens of the run.
    pub fn text(&self, text: &str) -> String {
        self.tokens.forms().iter().fold(text.to_owned(), |text, token| hide(&text, token))
    }

    /// Returns the redacted result. It has exchanges if it needs attention or `every_exchange` is
    /// true.
    pub(crate) fn record(&self, result: &CaseResult, every_exchange: bool) -> Record {
        let is_shown = every_exchange
            || result.known.is_some()
            || !matches!(result.verdict, Verdict::Pass | Verdict::Skip);
        let own = if is_shown { own_values(&result.exchanges) } else { BTreeSet::new() };
        let mut secrets = SecretValues::new(self.tokens.forms(), is_about_secrets(result), own);
        let with_exchanges = is_shown || secrets.about_secrets;
        let mut exchanges = Vec::new();
        if with_exchanges {
            let all = result.exchanges.iter();
            exchanges = all.map(|named| exchange::record(named, &mut secrets)).collect();
        }
        let checks = result.checks.iter().map(|check| check_record(check, &mut secrets));
        let mut checks: Vec<_> = checks.collect();
        // All secret values are collected by now, so texts that repeat them can be redacted.
        let mut reason = result.reason.clone();
        secrets.truncate(&mut reason);
        secrets.redact_texts([&mut reason]);
        for check in &mut checks {
            redact_check(check, &secrets);
        }
        for exchange in &mut exchanges {
            redact_exchange(exchange, &secrets);
        }
        Record {
            id: result.id.clone(),
            subject: result.subject.clone(),
            level: result.level,
            profile: result.profile,
            requirements: result.requirements.clone(),
            verdict: result.verdict,
            reason: one_line(&reason),
            reason_code: result.skip.as_ref().map(|skip| skip.code().to_owned()),
            blocked_by: result.skip.as_ref().and_then(blocking_case),
            duration_ms: milliseconds(result.duration),
            checks,
            summary: result.summary.clone(),
            why: result.why.clone(),
            known: result.known.clone(),
            exchanges,
        }
    }
}

/// Returns whether a case reads or writes Secrets. All `data` in its bodies is then secret, even in
/// bodies without a kind, such as patches.
fn is_about_secrets(result: &CaseResult) -> bool {
    result.subject.split('.').next() == Some("secrets")
        || result.exchanges.iter().any(|named| {
            let path = named.exchange.request.target.split('?').next().unwrap_or_default();
            path.split('/').any(|segment| segment == "secrets")
        })
}

/// Returns the case whose failure blocks a skipped one.
fn blocking_case(skip: &SkipReason) -> Option<String> {
    skip.causes().into_iter().find_map(|cause| match cause {
        SkipReason::Blocked { case, .. } | SkipReason::Reported { case, .. } => Some(case.clone()),
        _ => None,
    })
}

fn check_record(check: &CheckResult, secrets: &mut SecretValues) -> CheckRecord {
    let mut record = CheckRecord {
        id: check.id.clone(),
        verdict: check.verdict,
        expected: check.expected.clone(),
        actual: check.actual.clone(),
        places: check.places.clone(),
        level: check.level,
        requirements: check.requirements.clone(),
        message: one_line(&check.message),
        means: check.means.clone(),
        diff: check.diff.clone(),
        curl: check.curl.clone(),
        items: check.items.clone(),
        step: check.step.clone(),
        steps: check.steps.clone(),
        symptom: check.symptom.clone(),
        reported_by: check.reported_by.clone(),
    };
    secrets.strip(&mut record.expected);
    secrets.strip(&mut record.actual);
    for item in record.items.values_mut() {
        secrets.strip(item);
    }
    record
}

fn redact_check(check: &mut CheckRecord, secrets: &SecretValues) {
    secrets.truncate(&mut check.message);
    secrets.truncate_values(&mut check.actual);
    check.items.values_mut().for_each(|item| secrets.truncate_values(item));
    if let Some(diff) = &mut check.diff {
        secrets.truncate_lines(diff);
    }
    secrets.redact_values([&mut check.expected, &mut check.actual]);
    secrets.redact_values(check.items.values_mut());
    let places = check.places.iter_mut();
    secrets.redact_texts(places.flat_map(|place| [&mut place.at, &mut place.message]));
    secrets.redact_texts([&mut check.message]);
    let texts = [check.diff.as_mut(), check.curl.as_mut(), check.means.as_mut()];
    secrets.redact_texts(texts.into_iter().flatten());
}

fn redact_exchange(exchange: &mut ExchangeRecord, secrets: &SecretValues) {
    let texts = [&mut exchange.end, &mut exchange.broken, &mut exchange.json_error];
    texts.into_iter().flatten().for_each(|text| secrets.truncate(text));
    let errors = [exchange.broken.as_mut(), exchange.json_error.as_mut()];
    secrets.redact_texts(errors.into_iter().flatten());
    secrets.redact_texts([
        &mut exchange.target,
        &mut exchange.request_body,
        &mut exchange.response_body,
    ]);
    secrets.redact_texts(exchange.request_headers.iter_mut().map(|(_, value)| value));
    secrets.redact_texts(exchange.response_headers.iter_mut().map(|(_, value)| value));
    secrets.redact_values(exchange.events.iter_mut().map(|event| &mut event.object));
    secrets.redact_texts(exchange.frames.iter_mut().map(|frame| &mut frame.text));
    secrets.redact_values(exchange.frames.iter_mut().map(|frame| &mut frame.detail));
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_token_is_hidden_only_as_a_whole_word() {
        let redactor =
            Redactor::new(["t", "a-long-token"].map(str::to_owned).into_iter().collect());
        assert_eq!(
            redactor.text("Bearer t, expected text with a-long-tokens; t"),
            "Bearer [redacted], expected text with [redacted]s; [redacted]"
        );
    }
}
