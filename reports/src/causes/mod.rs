//! Groups the failures of a run by their cause.
//!
//! One bug of a server often fails many cases, each on several subjects. Reports show one entry per
//! cause, with its simplest failure as the example and a list of everything that it affects.

mod key;
mod names;
mod record;
mod title;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kubeproof_harness::event::{Symptom, Verdict};

use self::key::Key;
pub use self::names::compressed;
pub use self::record::{CauseRecord, ResultName};
use crate::document::{CheckRecord, ExchangeRecord, Record};

/// Characters of a long curl command. An example with a short command is easier to repeat.
const LONG_CURL: usize = 1000;

/// Results that fail for one reason.
#[derive(Clone, Debug)]
pub struct Cause<'a> {
    /// Identifies the cause in other runs too, such as `missing-field metadata.uid`.
    pub id: String,
    /// What went wrong, in one line of plain words.
    pub title: String,
    /// The worst verdict of the results. A failure outweighs an error. `skip` if the blocking case
    /// is not among the results.
    pub verdict: Verdict,
    /// The simplest of the results.
    pub example: &'a Record,
    /// The check that decided the example. `None` if the case ended before its first check.
    pub check: Option<&'a CheckRecord>,
    /// All results with this cause, sorted by id and subject.
    pub results: Vec<&'a Record>,
    /// The skipped results that this cause blocks, sorted by id and subject.
    pub blocked: Vec<&'a Record>,
}

impl Cause<'_> {
    /// Returns the requirement that the example breaks.
    pub fn requirement(&self) -> Option<&str> {
        let of_check = self.check.and_then(|check| check.requirements.first());
        of_check.or(self.example.requirements.first()).map(String::as_str)
    }

    /// Returns the exchanges that decided the example, in the order of sending.
    pub(crate) fn exchanges(&self) -> Vec<&ExchangeRecord> {
        match self.check {
            Some(check) => self.example.exchanges_of(check),
            None if self.example.verdict < Verdict::Deviation => Vec::new(),
            None => self.example.exchanges.last().into_iter().collect(),
        }
    }

    /// Returns the number of results that this cause fails or blocks.
    pub fn weight(&self) -> usize {
        self.results.len() + self.blocked.len()
    }
}

/// Returns the causes of all failures, errors, warnings and blocked results. The first cause
/// affects the most results, so it is the one to fix first. Errors and warnings come later. If
/// `strict`, deviations have causes too.
///
/// Each result belongs to one cause. The order of `results` does not matter.
pub fn causes(results: &[Record], strict: bool) -> Vec<Cause<'_>> {
    let mut sorted: Vec<&Record> = results.iter().collect();
    sorted.sort_by(|a, b| place_of(a).cmp(&place_of(b)));
    let mut groups: BTreeMap<Key<'_>, Vec<&Record>> = BTreeMap::new();
    for record in sorted.iter().copied().filter(|record| has_cause(record, strict)) {
        groups.entry(Key::of(record)).or_default().push(record);
    }
    let causes = groups.into_iter().filter_map(|(key, group)| cause(&key, group));
    let mut causes: Vec<_> = causes.collect();
    causes.sort_by_key(rank);
    let blocked =
        sorted.into_iter().filter_map(|record| Some((record, record.blocked_by.as_ref()?)));
    for (record, case) in blocked {
        match blocking(&mut causes, case, &record.subject) {
            Some(cause) => cause.blocked.push(record),
            None => causes.push(absent(case, record)),
        }
    }
    causes.sort_by_key(rank);
    causes
}

/// Returns the status code of all responses, if the server rejects every request in the same way,
/// whatever its content is.
pub(crate) fn only_status(results: &[Record]) -> Option<u16> {
    let passes = |record: &Record| record.verdict == Verdict::Pass;
    let failed = results.iter().filter(|record| has_cause(record, false));
    let cases: BTreeSet<_> = failed.map(|record| &record.id).collect();
    if cases.len() < 2 || results.iter().any(passes) {
        return None;
    }
    let exchanges = results.iter().flat_map(|record| &record.exchanges);
    let mut codes: Vec<u16> = exchanges.filter_map(|exchange| exchange.status).collect();
    if codes.is_empty() {
        // A JSON report has no exchanges.
        let symptoms = results.iter().filter_map(|record| deciding_check(record)?.symptom.as_ref());
        codes.extend(symptoms.filter_map(|symptom| match symptom {
            Symptom::StatusCode { got, .. } | Symptom::Setup { got, .. } => Some(*got),
            _ => None,
        }));
    }
    let first = *codes.first()?;
    let is_rejection = first >= 300 && !key::OF_CONTENT.contains(&first);
    (is_rejection && codes.iter().all(|code| *code == first)).then_some(first)
}

/// Returns the check that decided the verdict of a result, unless the result passes.
pub(crate) fn deciding_check(record: &Record) -> Option<&CheckRecord> {
    if matches!(record.verdict, Verdict::Pass | Verdict::Skip) {
        return None;
    }
    record.checks.iter().find(|check| check.verdict == record.verdict)
}

fn has_cause(record: &Record, strict: bool) -> bool {
    match record.verdict {
        _ if record.known.is_some() => record.surprise().is_some(),
        Verdict::Fail | Verdict::Error | Verdict::Warn => true,
        Verdict::Deviation => strict,
        Verdict::Pass | Verdict::Skip => false,
    }
}

/// Returns the cause of a group, or `None` for an empty group.
fn cause<'a>(key: &Key<'_>, results: Vec<&'a Record>) -> Option<Cause<'a>> {
    let verdict = results.iter().map(|record| verdict_of(record)).min_by_key(|one| class(*one))?;
    let example = results.iter().copied().min_by_key(|record| complexity(record, verdict))?;
    let check = deciding_check(example);
    let title = title::of(key, example, check, &results);
    let id = key.to_string();
    Some(Cause { id, title, verdict, example, check, results, blocked: Vec::new() })
}

/// A result that differs from the list of known failures fails the run, even if it passes.
fn verdict_of(record: &Record) -> Verdict {
    if record.surprise().is_some() { Verdict::Fail } else { record.verdict }
}

/// Orders results from simple to complex. It uses only what a JSON report contains, so a report has
/// the same examples as its run.
fn complexity(record: &Record, verdict: Verdict) -> impl Ord + use<> {
    let check = deciding_check(record);
    (
        verdict_of(record) != verdict,
        check.is_none_or(|check| check.curl.is_none()),
        !check.is_some_and(names_code),
        check.map_or(usize::MAX, |check| check.steps.len()),
        check.and_then(|check| check.curl.as_ref()).map_or(0, |curl| curl.len() / LONG_CURL),
        record.checks.len(),
        record.id.clone(),
        record.subject.clone(),
        check.map(|check| (check.id.clone(), check.symptom.clone())),
    )
}

/// Returns whether the message names the code that shows the cause, if it is a code.
fn names_code(check: &CheckRecord) -> bool {
    match &check.symptom {
        Some(Symptom::StatusCode { got, .. }) => check.message.contains(&got.to_string()),
        _ => true,
    }
}

/// Sorts by verdict: failures, errors, warnings. Then by the number of results.
fn rank(cause: &Cause<'_>) -> impl Ord + use<> {
    let profile = cause.results.iter().filter_map(|record| record.profile).min();
    let weight = Reverse(cause.weight());
    (class(cause.verdict), weight, profile.is_none(), profile, cause.id.clone())
}

/// Returns the place of a verdict among causes. A failure outweighs an error.
fn class(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fail => 0,
        Verdict::Error => 1,
        Verdict::Warn => 2,
        Verdict::Deviation => 3,
        Verdict::Pass | Verdict::Skip => 4,
    }
}

/// Returns the cause that fails the blocking case, preferably on the same subject.
fn blocking<'c, 'a>(
    causes: &'c mut [Cause<'a>],
    case: &str,
    subject: &str,
) -> Option<&'c mut Cause<'a>> {
    let fails = |cause: &Cause<'_>, subject: Option<&str>| {
        cause.results.iter().any(|record| {
            record.id == case && subject.is_none_or(|subject| record.subject == subject)
        })
    };
    let at = causes.iter().position(|cause| fails(cause, Some(subject)));
    let at = at.or_else(|| causes.iter().position(|cause| fails(cause, None)));
    let at = at.or_else(|| causes.iter().position(|cause| cause.id == blocked_id(case)));
    at.map(|at| &mut causes[at])
}

/// Returns the cause of a blocked result whose blocking case is not among the results.
fn absent<'a>(case: &str, record: &'a Record) -> Cause<'a> {
    Cause {
        id: blocked_id(case),
        title: format!("{case} does not pass, and other cases need it"),
        verdict: Verdict::Skip,
        example: record,
        check: None,
        results: Vec::new(),
        blocked: vec![record],
    }
}

fn blocked_id(case: &str) -> String {
    format!("blocked {case}")
}

fn place_of(record: &Record) -> (&str, &str, Verdict, &str) {
    (&record.id, &record.subject, record.verdict, &record.reason)
}

#[cfg(test)]
mod tests;
