//! One entry of the list, and how it judges a result.

use jiff::civil::Date;

use super::RawEntry;
use crate::event::{CaseResult, Verdict};
use crate::plan::notation;
use crate::plan::selection::Pattern;

/// An entry of the list.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) case: Pattern,
    pub(super) subject: Option<String>,
    pub(super) checks: Option<Vec<String>>,
    flaky: bool,
    pub(super) reason: String,
    pub(super) expires: Option<Date>,
    pub(super) line: usize,
}

impl Entry {
    /// Checks an entry of the file.
    pub(super) fn new(raw: RawEntry, line: usize) -> Result<Self, String> {
        let case: Pattern = raw.case.value.parse().map_err(|error| format!("{error}"))?;
        if raw.case.value.contains('@') {
            return Err("`case` names a subject; give it as `subject`".to_owned());
        }
        if raw.reason.trim().is_empty() {
            return Err("`reason` is empty; say why the failure is accepted".to_owned());
        }
        if raw.checks.as_ref().is_some_and(Vec::is_empty) {
            return Err("`checks` is empty; name the failing checks, or leave it out".to_owned());
        }
        if raw.flaky && raw.checks.is_some() {
            return Err("a flaky entry accepts every result; leave out `checks`".to_owned());
        }
        let expires = raw.expires.map(|text| {
            text.parse::<Date>()
                .map_err(|_| format!("`expires` is {text:?}; expected a date such as 2027-03-31"))
        });
        let (subject, checks, flaky, reason) = (raw.subject, raw.checks, raw.flaky, raw.reason);
        Ok(Self { case, subject, checks, flaky, reason, expires: expires.transpose()?, line })
    }

    pub(super) fn matches(&self, result: &CaseResult) -> bool {
        let of_subject = |subject: &String| notation::names(subject, &result.subject);
        self.case.matches(&result.id, &result.subject)
            && self.subject.as_ref().is_none_or(of_subject)
    }

    /// Reports whether the entry can match several cases, so that each of them may fail.
    pub(super) fn is_glob(&self) -> bool {
        self.case.is_glob() && !self.flaky
    }

    /// Reports whether a matching case may pass.
    pub(super) fn may_pass(&self) -> bool {
        self.flaky || self.case.is_glob()
    }

    /// Returns the pattern and the subject as in the file.
    pub(super) fn title(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} @ {subject}", self.case),
            None => self.case.to_string(),
        }
    }

    pub(super) fn expired_on(&self, today: Date) -> Option<Date> {
        self.expires.filter(|date| *date < today)
    }

    pub(super) fn surprise(
        &self,
        result: &CaseResult,
        today: Date,
        strict: bool,
    ) -> Option<String> {
        self.difference(result, strict).or_else(|| {
            let date = self.expired_on(today)?;
            Some(format!("the entry expired on {date}"))
        })
    }

    /// Describes how a result differs from the entry.
    pub(super) fn difference(&self, result: &CaseResult, strict: bool) -> Option<String> {
        if result.verdict <= Verdict::Pass {
            return (!self.may_pass()).then(|| "the case passes; remove the entry".to_owned());
        }
        let listed = self.checks.as_ref()?;
        let is_unknown = |id: &&String| result.checks.iter().all(|check| check.id != **id);
        if !self.is_glob()
            && let Some(unknown) = listed.iter().find(is_unknown)
        {
            let bad: Vec<_> = failing_checks(result, strict).map(|id| format!("`{id}`")).collect();
            return Some(format!(
                "the entry lists the check `{unknown}`, which did not run; {} failed",
                bad.join(", ")
            ));
        }
        if let Some(id) = failing_checks(result, strict).find(|id| !listed.iter().any(|l| l == id))
        {
            return Some(format!("the check `{id}` fails, but the entry does not list it"));
        }
        if self.is_glob() {
            return None;
        }
        let still_bad =
            |id: &&String| result.checks.iter().any(|c| c.id == **id && c.verdict > Verdict::Pass);
        let fixed = listed.iter().find(|id| !still_bad(id))?;
        Some(format!("the entry lists the check `{fixed}`, which does not fail"))
    }
}

/// Returns the ids of the checks that fail the run.
pub(super) fn failing_checks(result: &CaseResult, strict: bool) -> impl Iterator<Item = &str> {
    let least = if strict { Verdict::Deviation } else { Verdict::Fail };
    result.checks.iter().filter(move |check| check.verdict >= least).map(|check| check.id.as_str())
}
