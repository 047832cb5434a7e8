//! Checks that a report agrees with itself and with the catalogue.

use std::collections::BTreeMap;
use std::fmt;

use kubeproof_cases::case::Level;
use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record, Summary};
use crate::paint::verdict_name;

/// A case of the catalogue, as a report must show it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CatalogueCase {
    /// The level of the case.
    pub level: Level,
    /// The ids of its requirements.
    pub requirements: Vec<String>,
}

/// The cases of a catalogue by id.
pub type CatalogueCases = BTreeMap<String, CatalogueCase>;

/// A value of a report that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mismatch {
    /// The part of the report, such as `summary.fail` or a result.
    pub place: String,
    /// The value that the rest of the report or the catalogue implies.
    pub expected: String,
    /// The value in the report.
    pub actual: String,
}

/// Returns the wrong values of a report: its counts, its verdicts, and its number of results. With
/// the cases of the catalogue that the run used, it checks ids, levels and requirements too.
pub fn verify(document: &Document, cases: Option<&CatalogueCases>) -> Vec<Mismatch> {
    let mut mismatches = counts(document);
    mismatches.extend(planned(document));
    for record in &document.results {
        mismatches.extend(verdict(record));
        mismatches.extend(cases.and_then(|cases| catalogued(record, cases)));
    }
    mismatches
}

/// Recomputes the counts.
fn counts(document: &Document) -> Vec<Mismatch> {
    let mut computed = Summary::default();
    for record in &document.results {
        computed.add(record.verdict);
    }
    let both = document.summary.counts().into_iter().zip(computed.counts());
    let wrong = both.filter(|(stored, computed)| stored != computed);
    let mismatch = |((verdict, stored), (_, computed)): ((Verdict, usize), (Verdict, usize))| {
        Mismatch::new(format!("summary.{}", verdict_name(verdict)), computed, stored)
    };
    wrong.map(mismatch).collect()
}

/// Compares the number of results with the plan. A run that was interrupted has fewer.
fn planned(document: &Document) -> Option<Mismatch> {
    let (planned, actual) = (document.head.planned, document.results.len());
    let agrees = if document.interrupted { actual <= planned } else { actual == planned };
    let expected =
        if document.interrupted { format!("at most {planned}") } else { planned.to_string() };
    (!agrees).then(|| Mismatch::new("number of results".to_owned(), expected, actual))
}

/// Recomputes the verdict of a result: the worst of its checks. A result without checks was skipped
/// or ended in an error. The checks of a blocked result do not count.
fn verdict(record: &Record) -> Option<Mismatch> {
    if record.blocked_by.is_some() {
        return None;
    }
    let verdicts = record.checks.iter().map(|check| check.verdict);
    let worst = verdicts.max_by_key(|verdict| verdict.weight(record.level));
    let expected = match worst {
        Some(worst) if worst == record.verdict => return None,
        Some(worst) => verdict_name(worst),
        None if matches!(record.verdict, Verdict::Skip | Verdict::Error) => return None,
        None => "skip or error, because there are no checks",
    };
    Some(Mismatch::new(
        format!("verdict of {}", record.title()),
        expected,
        verdict_name(record.verdict),
    ))
}

fn catalogued(record: &Record, cases: &CatalogueCases) -> Option<Mismatch> {
    // Required features have results, but no cases.
    if record.area() == "required" {
        return None;
    }
    let Some(case) = cases.get(&record.id) else {
        let (expected, place) = ("a case of the catalogue", format!("id of {}", record.title()));
        return Some(Mismatch::new(place, expected, &record.id));
    };
    if case.level != record.level {
        let place = format!("level of {}", record.title());
        return Some(Mismatch::new(place, case.level, record.level));
    }
    (case.requirements != record.requirements).then(|| {
        let place = format!("requirements of {}", record.title());
        Mismatch::new(place, case.requirements.join(" "), record.requirements.join(" "))
    })
}

impl Mismatch {
    fn new(place: String, expected: impl fmt::Display, actual: impl fmt::Display) -> Self {
        Self { place, expected: expected.to_string(), actual: actual.to_string() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.place, self.expected, self.actual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{document, with_check};

    fn lines(document: &Document, cases: Option<&CatalogueCases>) -> Vec<String> {
        verify(document, cases).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_report_agrees_with_itself() {
        let right = with_check(document(&[("a/b", Verdict::Pass), ("a/c", Verdict::Fail)]));
        assert_eq!(lines(&right, None), Vec::<String>::new());

        let mut wrong = right.clone();
        wrong.results[0].verdict = Verdict::Fail;
        wrong.head.planned = 3;
        assert_eq!(
            lines(&wrong, None),
            [
                "summary.pass: expected 0, got 1",
                "summary.fail: expected 2, got 1",
                "number of results: expected 3, got 2",
                "verdict of a/b: expected pass, got fail",
            ]
        );
        wrong.interrupted = true;
        assert_eq!(lines(&wrong, None).len(), 3);
        wrong.head.planned = 1;
        assert!(
            lines(&wrong, None)
                .contains(&"number of results: expected at most 1, got 2".to_owned())
        );
    }

    #[test]
    fn a_failure_outweighs_an_error() {
        let mut report = with_check(document(&[("a/b", Verdict::Fail)]));
        let mut error = report.results[0].checks[0].clone();
        error.verdict = Verdict::Error;
        report.results[0].checks.push(error);
        assert_eq!(lines(&report, None), Vec::<String>::new());
    }

    #[test]
    fn a_result_without_checks_was_not_judged() {
        let without = document(&[("a/b", Verdict::Pass), ("a/c", Verdict::Skip)]);
        assert_eq!(
            lines(&without, None),
            ["verdict of a/b: expected skip or error, because there are no checks, got pass"]
        );
    }

    #[test]
    fn results_are_cases_of_the_catalogue() {
        let report = with_check(document(&[("a/b", Verdict::Pass)]));
        let of = |id: &str, level, requirements: &[&str]| {
            let requirements = requirements.iter().map(|id| (*id).to_owned()).collect();
            CatalogueCases::from([(id.to_owned(), CatalogueCase { level, requirements })])
        };
        assert_eq!(lines(&report, Some(&of("a/b", Level::Must, &[]))), Vec::<String>::new());
        assert_eq!(
            lines(&report, Some(&of("a/c", Level::Must, &[]))),
            ["id of a/b: expected a case of the catalogue, got a/b"]
        );
        assert_eq!(
            lines(&report, Some(&of("a/b", Level::Should, &[]))),
            ["level of a/b: expected should, got must"]
        );
        assert_eq!(
            lines(&report, Some(&of("a/b", Level::Must, &["x.y"]))),
            ["requirements of a/b: expected x.y, got "]
        );
    }
}
