//! A result with everything that decided it.

use std::fmt::Write as _;

use kubeproof_cases::case::Level;
use kubeproof_harness::event::{Place, Symptom};

use super::lines::Lines;
use super::{Limits, printable};
use crate::document::{CheckRecord, ExchangeRecord, Record};
use crate::paint::{Paint, verdict_name};
use crate::requirements::Requirements;
use crate::site::case_url;

/// Returns the first line of a result: verdict, case, subject and reason.
pub(crate) fn title(record: &Record, paint: Paint) -> String {
    let verdict = format!("{:<9}", verdict_name(record.verdict).to_uppercase());
    let mut line = format!(
        "{} {}",
        paint.verdict(record.verdict, verdict),
        paint.bold(printable(&record.title()))
    );
    let headline = printable(&record.headline());
    if !headline.is_empty() {
        _ = write!(line, "  {headline}");
    }
    line
}

/// Returns the lines below the title: the rule, the failed checks and their exchanges.
pub(crate) fn detail(
    record: &Record,
    requirements: &Requirements,
    limits: Limits,
    paint: Paint,
) -> String {
    let mut lines = Lines::new(limits, paint);
    lines.block(1, "", &record.summary);
    for id in &record.requirements {
        lines.rule(id, None, requirements);
    }
    if let Some(why) = &record.why {
        lines.block(1, "why      ", why);
    }
    let checks = record.failed_checks();
    let mut shown: Vec<&str> = Vec::new();
    for check in &checks {
        // Checks share exchanges. An exchange is shown once, with its first check.
        let exchanges = record.exchanges_of(check);
        let new = exchanges.into_iter().filter(|exchange| !shown.contains(&exchange.step.as_str()));
        let new: Vec<_> = new.collect();
        shown.extend(new.iter().map(|exchange| exchange.step.as_str()));
        lines.check(check, &new);
    }
    if checks.is_empty() {
        // The case ended before its first check, so the last exchange shows the cause.
        if let Some(last) = record.exchanges.last() {
            lines.exchange(last);
        }
    }
    if record.needs_attention() {
        lines.explain(record);
    }
    lines.text
}

/// Returns a place that breaks a design rule as `file:line:column`, which editors recognise.
pub(crate) fn place(place: &Place) -> String {
    let position = place.position.as_ref();
    let position =
        position.map(|at| format!("{}:{}:{}: ", at.file, at.line, at.column)).unwrap_or_default();
    let because = place.because.as_ref().map(|because| format!(" (kept by Kubernetes: {because})"));
    format!("{position}{}: {}{}", place.at, place.message, because.unwrap_or_default())
}

/// Returns whether the message contains the expected and the actual value. It names conditions and
/// alternatives in words.
pub(crate) fn is_in_message(check: &CheckRecord) -> bool {
    ["cel", "anyOf"].iter().any(|form| check.expected.get(form).is_some())
        || matches!(
            check.symptom,
            Some(
                Symptom::MissingField { .. }
                    | Symptom::StatusCode { .. }
                    | Symptom::NoResponse { .. }
                    | Symptom::BrokenFraming { .. }
                    | Symptom::Setup { .. }
            )
        )
}

/// Returns the items of the loops around a check: `code = 404, kind = "Pod"`. `None` outside of
/// loops.
pub(crate) fn items(check: &CheckRecord) -> Option<String> {
    let items = check.items.iter().map(|(variable, item)| format!("{variable} = {item}"));
    Some(items.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

impl Lines {
    /// Adds the command that explains a case, and the page of the case. A required feature is no
    /// case.
    pub(super) fn explain(&mut self, record: &Record) {
        if record.required_feature().is_some() {
            return;
        }
        self.block(1, "explain  ", &format!("kubeproof explain {}", record.id));
        if let Some(url) = case_url(&record.id) {
            self.whole(1, "         ", &url);
        }
    }

    /// Adds a requirement with a link to its section. `judged` is the level of the verdict.
    pub(super) fn rule(&mut self, id: &str, judged: Option<Level>, requirements: &Requirements) {
        let Some(requirement) = requirements.get(id) else {
            return self.block(1, "rule     ", id);
        };
        let lowered = judged.filter(|level| *level != requirement.level);
        let lowered = lowered.map(|level| format!(", judged as {level}")).unwrap_or_default();
        let text = format!("{id} ({}{lowered}): {}", requirement.level, requirement.statement);
        self.block(1, "rule     ", &text);
        if let Some(url) = requirement.section_url() {
            self.whole(1, "         ", &url);
        }
    }

    fn check(&mut self, check: &CheckRecord, exchanges: &[&ExchangeRecord]) {
        let verdict = self.paint.verdict(check.verdict, verdict_name(check.verdict));
        let id = self.paint.bold(&check.id);
        let said = check.means.as_ref().unwrap_or(&check.message);
        self.line(1, &format!("{verdict} of check {id}: {}", printable(said.trim_end())));
        if check.means.is_some() {
            self.block(2, "found    ", &check.message);
        }
        if let Some(items) = items(check) {
            self.block(2, "with     ", &items);
        }
        if let Some(diff) = &check.diff {
            self.block(2, "", diff);
        } else if !check.places.is_empty() {
            let places: Vec<_> = check.places.iter().map(place).collect();
            self.block(2, "at       ", &places.join("\n"));
        } else if !is_in_message(check) {
            self.value(2, "expected ", &check.expected);
            self.value(2, "actual   ", &check.actual);
        }
        for exchange in exchanges {
            self.exchange(exchange);
        }
        if let Some(curl) = &check.curl {
            self.whole(2, "repeat   ", curl);
        }
    }
}
