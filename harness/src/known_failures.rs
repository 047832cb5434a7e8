//! The list of failures that are known and accepted for now.
//!
//! ```yaml
//! # What our gateway still gets wrong.
//! - case: watch/bookmark-*          # a glob over ids
//!   subject: secrets.v1             # optional; absent: on every subject
//!   checks: [sent-in-time]          # optional: exactly these fail
//!   reason: the cache of the gateway sends none, see our issue 17
//!   expires: 2027-03-31             # optional: the last day
//! ```
//!
//! An entry has to stay true. A listed case that passes, or fails in another way than listed, fails the run, and
//! so does an entry that has expired or matches nothing: the list can only shrink, or be changed on purpose.
//! The first entry that matches a result decides. `--update-known-failures` rewrites entries in place, line by
//! line, so that comments and reasons stay.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::Date;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::event::{CaseResult, Known, Verdict};
use crate::selection::{Pattern, nearest};

/// What an entry says that `--update-known-failures` wrote, until somebody explains it.
const UNEXPLAINED: &str = "not explained yet, added by --update-known-failures";

/// A list of known failures.
#[derive(Clone, Debug)]
pub struct KnownFailures {
    path: PathBuf,
    text: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    case: Pattern,
    subject: Option<String>,
    checks: Option<Vec<String>>,
    reason: String,
    expires: Option<Date>,
    /// Counted from 1.
    line: usize,
}

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KnownFailuresError {
    /// It cannot be read.
    #[error("cannot read the list of known failures {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it must be.
    #[error("{}:{line}: {reason}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// It is no YAML, or has other keys than an entry has.
    #[error("{} is no list of known failures: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    case: Spanned<String>,
    subject: Option<String>,
    checks: Option<Vec<String>>,
    reason: String,
    expires: Option<String>,
}

impl KnownFailures {
    /// Reads a list.
    pub fn load(path: &Path) -> Result<Self, KnownFailuresError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| KnownFailuresError::File { path: path.to_owned(), source })?;
        Self::parse(path, text)
    }

    /// The list that has no entry, to be filled by [`Self::updated`].
    pub fn empty(path: &Path) -> Self {
        Self { path: path.to_owned(), text: String::new(), entries: Vec::new() }
    }

    /// The file it came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn parse(path: &Path, text: String) -> Result<Self, KnownFailuresError> {
        let raw: Option<Vec<RawEntry>> = serde_saphyr::from_str(&text).map_err(|error| {
            KnownFailuresError::Syntax { path: path.to_owned(), reason: error.to_string() }
        })?;
        let entries = raw.unwrap_or_default().into_iter().map(|raw| {
            let line = usize::try_from(raw.case.referenced.line()).unwrap_or_default();
            entry(raw, line).map_err(|reason| KnownFailuresError::Entry {
                path: path.to_owned(),
                line,
                reason,
            })
        });
        Ok(Self { path: path.to_owned(), entries: entries.collect::<Result<_, _>>()?, text })
    }

    /// Finds entries that no case or subject has.
    pub fn check<'a>(
        &self,
        ids: &(impl Iterator<Item = &'a str> + Clone),
        subjects: &(impl Iterator<Item = &'a str> + Clone),
    ) -> Result<(), KnownFailuresError> {
        let did_you_mean = |near: Option<String>| near.map(|id| format!("; did you mean {id:?}?"));
        for entry in &self.entries {
            let reason = if !ids.clone().any(|id| entry.case.matches(id, "")) {
                let near = nearest(&entry.case.to_string(), ids.clone());
                format!(
                    "no case matches {:?}{}",
                    entry.case.to_string(),
                    did_you_mean(near).unwrap_or_default()
                )
            } else if let Some(subject) = &entry.subject
                && !subjects.clone().any(|known| known == subject)
            {
                let near = nearest(subject, subjects.clone());
                format!("no subject is named {subject:?}{}", did_you_mean(near).unwrap_or_default())
            } else {
                continue;
            };
            return Err(KnownFailuresError::Entry { path: self.path.clone(), line: entry.line, reason });
        }
        Ok(())
    }

    /// What the list says of a result; `None`: nothing.
    pub fn judge(&self, result: &CaseResult, today: Date, strict: bool) -> Option<Known> {
        if result.verdict == Verdict::Skip {
            return None;
        }
        let entry = self.entries.iter().find(|entry| entry.matches(result))?;
        Some(Known { reason: entry.reason.clone(), surprise: entry.surprise(result, today, strict) })
    }

    /// The text of the list after a run: entries whose cases pass are gone, entries that were not exact are
    /// written out result by result, and failures that nobody had listed stand at the end.
    pub fn updated(&self, results: &[Arc<CaseResult>], strict: bool) -> String {
        let fails = |result: &CaseResult| CaseResult { known: None, ..result.clone() }.fails_run(strict);
        let mut of_entry: Vec<Vec<&CaseResult>> = vec![Vec::new(); self.entries.len()];
        let mut unlisted: Vec<&CaseResult> = Vec::new();
        for result in results.iter().map(Arc::as_ref).filter(|result| result.verdict != Verdict::Skip) {
            match self.entries.iter().position(|entry| entry.matches(result)) {
                Some(n) => of_entry[n].push(result),
                None if fails(result) => unlisted.push(result),
                None => {}
            }
        }
        unlisted.sort_by_key(|result| (&result.id, &result.subject));
        unlisted.dedup_by_key(|result| (&result.id, &result.subject));

        let mut out = Blocks::of(&self.text, self.entries.iter().map(|entry| entry.line));
        for (n, (entry, results)) in self.entries.iter().zip(&of_entry).enumerate() {
            if results.iter().all(|result| entry.difference(result, strict).is_none()) {
                continue;
            }
            let failing: Vec<&&CaseResult> = results.iter().filter(|result| fails(result)).collect();
            if failing.is_empty() {
                out.remove(n);
                continue;
            }
            let written: Vec<String> = failing.iter().map(|result| entry.narrowed(result, strict)).collect();
            out.replace(n, &written);
        }
        let added: String = unlisted.iter().map(|result| Written::unexplained(result).written()).collect();
        out.into_text() + &added
    }
}

fn entry(raw: RawEntry, line: usize) -> Result<Entry, String> {
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
    let expires = raw.expires.map(|text| {
        text.parse::<Date>().map_err(|_| format!("`expires` is {text:?}; expected a date as 2027-03-31"))
    });
    let (subject, checks, reason) = (raw.subject, raw.checks, raw.reason);
    Ok(Entry { case, subject, checks, reason, expires: expires.transpose()?, line })
}

impl Entry {
    /// The entry for one of the results it matches.
    fn narrowed(&self, result: &CaseResult, strict: bool) -> String {
        Written {
            case: result.id.clone(),
            subject: result.subject.clone(),
            checks: self.checks.as_ref().map(|_| failing_checks(result, strict).map(str::to_owned).collect()),
            reason: self.reason.clone(),
            expires: self.expires,
        }
        .written()
    }

    fn matches(&self, result: &CaseResult) -> bool {
        self.case.matches(&result.id, &result.subject)
            && self.subject.as_ref().is_none_or(|subject| *subject == result.subject)
    }

    fn surprise(&self, result: &CaseResult, today: Date, strict: bool) -> Option<String> {
        self.difference(result, strict).or_else(|| {
            let date = self.expires.filter(|date| *date < today)?;
            Some(format!("the entry expired on {date}"))
        })
    }

    /// How the result is not the one that is listed.
    fn difference(&self, result: &CaseResult, strict: bool) -> Option<String> {
        if result.verdict <= Verdict::Pass {
            return Some("it passes now; remove the entry".to_owned());
        }
        let listed = self.checks.as_ref()?;
        if let Some(id) = failing_checks(result, strict).find(|id| !listed.iter().any(|l| l == id)) {
            return Some(format!("the check `{id}` fails, and is not listed"));
        }
        let still_bad =
            |id: &&String| result.checks.iter().any(|c| c.id == **id && c.verdict > Verdict::Pass);
        let mended = listed.iter().find(|id| !still_bad(id))?;
        Some(format!("the check `{mended}` is listed, and does not fail now"))
    }
}

fn failing_checks(result: &CaseResult, strict: bool) -> impl Iterator<Item = &str> {
    let least = if strict { Verdict::Deviation } else { Verdict::Fail };
    result.checks.iter().filter(move |check| check.verdict >= least).map(|check| check.id.as_str())
}

/// An entry as it is written.
struct Written {
    case: String,
    subject: String,
    checks: Option<Vec<String>>,
    reason: String,
    expires: Option<Date>,
}

impl Written {
    /// For a failure that nobody had listed.
    fn unexplained(result: &CaseResult) -> Self {
        Self {
            case: result.id.clone(),
            subject: result.subject.clone(),
            checks: None,
            reason: UNEXPLAINED.to_owned(),
            expires: None,
        }
    }

    /// JSON strings are YAML strings, so anything can be quoted that way.
    fn written(&self) -> String {
        let mut out = format!("- case: {}\n", self.case);
        if !self.subject.is_empty() {
            let _ = writeln!(out, "  subject: {}", self.subject);
        }
        if let Some(checks) = &self.checks {
            let _ = writeln!(out, "  checks: [{}]", checks.join(", "));
        }
        let _ = writeln!(out, "  reason: {}", serde_json::Value::from(self.reason.as_str()));
        if let Some(date) = self.expires {
            let _ = writeln!(out, "  expires: {date}");
        }
        out
    }
}

/// The text of a list, cut into what comes before the first entry and one block per entry. The comment lines right
/// above an entry are its own.
struct Blocks {
    head: String,
    blocks: Vec<Block>,
}

struct Block {
    comment: String,
    entry: String,
}

impl Blocks {
    fn of(text: &str, entry_lines: impl Iterator<Item = usize>) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let starts: Vec<usize> = entry_lines
            .map(|line| {
                let at = line.saturating_sub(1).min(lines.len());
                (0..=at)
                    .rev()
                    .find(|n| lines.get(*n).is_some_and(|l| l.trim_start().starts_with('-')))
                    .unwrap_or(at)
            })
            .collect();
        let is_comment = |n: usize| lines[n].trim_start().starts_with('#');
        let with_comment =
            |start: usize| (0..start).rev().take_while(|n| is_comment(*n)).last().unwrap_or(start);
        let first = starts.first().map_or(lines.len(), |start| with_comment(*start));
        let blocks = starts.iter().enumerate().map(|(n, start)| {
            let end = starts.get(n + 1).map_or(lines.len(), |next| with_comment(*next));
            let mut entry = lines[*start..end].concat();
            if !entry.ends_with('\n') {
                entry.push('\n');
            }
            Block { comment: lines[with_comment(*start)..*start].concat(), entry }
        });
        Self { head: lines[..first].concat(), blocks: blocks.collect() }
    }

    fn remove(&mut self, n: usize) {
        self.blocks[n] = Block { comment: String::new(), entry: String::new() };
    }

    fn replace(&mut self, n: usize, entries: &[String]) {
        self.blocks[n].entry = entries.concat();
    }

    fn into_text(self) -> String {
        let mut text = self.head;
        for block in self.blocks {
            text.push_str(&block.comment);
            text.push_str(&block.entry);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::testing::{check_result, result};

    fn list(text: &str) -> KnownFailures {
        KnownFailures::parse(Path::new("known.yaml"), text.to_owned()).unwrap()
    }

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    fn failed(checks: &[(&str, Verdict)]) -> CaseResult {
        let mut result = result("watch/bookmark-sent", "secrets.v1");
        result.checks = checks.iter().map(|(id, verdict)| check_result(id, *verdict)).collect();
        result.verdict = checks.iter().map(|(_, verdict)| *verdict).max().unwrap();
        result
    }

    #[rstest]
    #[case::as_listed(&[("a", Verdict::Fail), ("b", Verdict::Pass)], None)]
    #[case::passes(&[("a", Verdict::Pass)], Some("it passes now; remove the entry"))]
    #[case::another_too(
        &[("a", Verdict::Fail), ("b", Verdict::Fail)], Some("the check `b` fails, and is not listed"))]
    #[case::another(&[("a", Verdict::Pass), ("b", Verdict::Error)], Some("the check `b` fails, and is not listed"))]
    #[case::a_warning_beside_it(&[("a", Verdict::Fail), ("b", Verdict::Warn)], None)]
    #[case::mended_beside_a_warning(
        &[("a", Verdict::Pass), ("b", Verdict::Warn)], Some("the check `a` is listed, and does not fail now"))]
    fn an_entry_has_to_stay_true(#[case] checks: &[(&str, Verdict)], #[case] surprise: Option<&str>) {
        let list = list("- case: watch/*\n  checks: [a]\n  reason: slow cache\n");
        let known = list.judge(&failed(checks), day("2026-01-01"), false).unwrap();
        assert_eq!(known.surprise.as_deref(), surprise);
        assert_eq!(known.reason, "slow cache");
    }

    #[test]
    fn the_last_day_is_the_date_of_the_entry() {
        let list = list("- {case: watch/*, reason: r, expires: 2026-05-01}\n");
        let result = failed(&[("a", Verdict::Fail)]);
        assert_eq!(list.judge(&result, day("2026-05-01"), false).unwrap().surprise, None);
        let known = list.judge(&result, day("2026-05-02"), false).unwrap();
        assert_eq!(known.surprise.as_deref(), Some("the entry expired on 2026-05-01"));
    }

    #[test]
    fn an_entry_for_another_subject_says_nothing() {
        let list = list("- {case: watch/*, subject: configmaps.v1, reason: r}\n");
        assert_eq!(list.judge(&failed(&[("a", Verdict::Fail)]), day("2026-05-02"), false), None);
    }

    #[rstest]
    #[case(
        "- case: watch/bookmark-snt\n  reason: r\n",
        "known.yaml:1: no case matches \"watch/bookmark-snt\"; did you mean \"watch/bookmark-sent\"?"
    )]
    #[case(
        "# why\n- reason: r\n  case: watch/*\n  subject: secret.v1\n",
        "known.yaml:3: no subject is named \"secret.v1\"; did you mean \"secrets.v1\"?"
    )]
    fn typos_are_errors(#[case] text: &str, #[case] message: &str) {
        let error =
            list(text).check(&["watch/bookmark-sent"].into_iter(), &["secrets.v1"].into_iter()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[rstest]
    #[case("- case: a/b\n")]
    #[case("- case: a/b\n  reason: ' '\n")]
    #[case("- case: a/b\n  reason: r\n  expiry: 2026-01-01\n")]
    #[case("- case: a/b\n  reason: r\n  expires: soon\n")]
    #[case("- case: a/b\n  reason: r\n  checks: []\n")]
    #[case("- case: a/b@secrets.v1\n  reason: r\n")]
    #[case("case: a/b\n")]
    fn broken_lists_are_errors(#[case] text: &str) {
        assert!(KnownFailures::parse(Path::new("known.yaml"), text.to_owned()).is_err());
    }

    #[test]
    fn an_update_keeps_comments_and_reasons_and_changes_only_what_differs() {
        let text = "# Ours.\n\n# the cache\n- case: watch/*\n  reason: 'cache: none'\n  expires: 2027-01-01\n\n\
                    # gone soon\n- case: get/*\n  reason: g\n- case: not/run\n  reason: n # keep\n";
        let bad = |id: &str, subject: &str| {
            let mut result = result(id, subject);
            result.verdict = Verdict::Fail;
            Arc::new(result)
        };
        let results = [
            bad("watch/a", "secrets.v1"),
            Arc::new(result("watch/a", "configmaps.v1")),
            Arc::new(result("get/a", "")),
            bad("list/a", ""),
        ];
        assert_eq!(
            list(text).updated(&results, false),
            "# Ours.\n\n# the cache\n- case: watch/a\n  subject: secrets.v1\n  reason: \"cache: none\"\n  expires: 2027-01-01\n\
             - case: not/run\n  reason: n # keep\n\
             - case: list/a\n  reason: \"not explained yet, added by --update-known-failures\"\n"
        );
        assert_eq!(list(text).updated(&[bad("watch/a", "secrets.v1")], false), text);
    }
}
