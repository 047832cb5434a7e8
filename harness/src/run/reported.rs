//! Defects that cases of prerequisites report. Other cases meet them too, and do not report them
//! again.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{CheckResult, Verdict};
use crate::verdict::{Defect, Reported};

/// The defects of a run so far, and the cases that report them.
#[derive(Debug, Default)]
pub(super) struct Defects {
    /// The reporting case of each defect, by subject.
    found: BTreeMap<Defect, BTreeMap<String, String>>,
    /// The subjects on which prerequisites were judged.
    subjects: BTreeSet<String>,
}

impl Defects {
    /// Records the failed checks of a case that judges a prerequisite.
    pub(super) fn record(&mut self, case: &str, subject: &str, checks: &[CheckResult]) {
        self.subjects.insert(subject.to_owned());
        let failed = checks.iter().filter(|check| check.verdict > Verdict::Deviation);
        for defect in failed.filter_map(|check| Defect::of(check.symptom.as_ref()?)) {
            let of_subject = self.found.entry(defect).or_default();
            of_subject.entry(subject.to_owned()).or_insert_with(|| case.to_owned());
        }
    }

    /// Returns the defects that a case on this subject must not report again. Cases on subjects
    /// that no prerequisite was judged on follow the others, except for cases that judge one.
    pub(super) fn on(&self, subject: &str, is_judge: bool) -> Reported {
        let follows = !is_judge && (subject.is_empty() || !self.subjects.contains(subject));
        let reporter = |cases: &BTreeMap<String, String>| {
            let found = if follows { cases.values().next() } else { cases.get(subject) };
            found.cloned()
        };
        let found = self.found.iter();
        found.filter_map(|(defect, cases)| Some((defect.clone(), reporter(cases)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Symptom;
    use crate::testing::check_result;

    fn failed(field: &str) -> CheckResult {
        let symptom = Some(Symptom::MissingField { field: field.to_owned() });
        CheckResult { symptom, ..check_result("c", Verdict::Fail) }
    }

    #[test]
    fn a_defect_is_reported_once_per_subject() {
        let mut defects = Defects::default();
        defects.record("a/judge", "pods.v1", &[failed("metadata.uid")]);
        defects.record("a/judge", "secrets.v1", &[check_result("c", Verdict::Fail)]);
        let is_known = |subject, is_judge| !defects.on(subject, is_judge).is_empty();
        assert!(is_known("pods.v1", false) && is_known("pods.v1", true));
        assert!(!is_known("secrets.v1", false), "the judge does not report it there");
        assert!(is_known("", false) && is_known("nodes.v1", false));
        assert!(!is_known("nodes.v1", true), "another judge reports it itself");
    }

    #[test]
    fn passed_checks_report_nothing() {
        let mut defects = Defects::default();
        let passed = CheckResult { verdict: Verdict::Deviation, ..failed("metadata.uid") };
        defects.record("a/judge", "", &[passed]);
        assert_eq!(defects.on("", false).len(), 0);
    }
}
