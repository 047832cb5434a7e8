//! The list of known failures.
//!
//! ```yaml
//! # What our gateway still gets wrong.
//! - case: watch/bookmark-sent
//!   subject: secrets.v1             # optional; absent: on every subject
//!   checks: [sent-in-time]          # optional: exactly these fail
//!   reason: the cache of the gateway sends none, see our issue 17
//!   expires: 2027-03-31             # optional: the last day
//! - case: exec/*                    # a glob: each match may fail, and at least one does
//!   reason: the gateway closes streams early
//! - case: list/pages-under-load
//!   flaky: true                     # optional: may pass or fail
//!   reason: the cache is slow
//! ```
//!
//! An entry must stay accurate. A listed case that passes or fails differently fails the run, and
//! so does an entry that expired or matches nothing. The first entry that matches a result decides.
//! `--update-known-failures` rewrites entries line by line, so that comments and reasons stay.

mod entry;
mod update;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use kubeproof_cases::case::Case;
use serde::Deserialize;
use serde_saphyr::Spanned;

use self::entry::Entry;
use super::notation;
use super::selection::nearest;
use crate::event::{CaseResult, Known, Verdict};
use crate::yaml;

/// A list of known failures.
#[derive(Clone, Debug)]
pub struct KnownFailures {
    path: PathBuf,
    text: String,
    entries: Vec<Entry>,
    /// Entries with matches that this run leaves out.
    partial: BTreeSet<usize>,
}

/// The entries that the results of a run matched.
#[derive(Clone, Debug, Default)]
pub struct EntryUsage {
    judged: BTreeSet<usize>,
    failing: BTreeSet<usize>,
}

/// Why a list of known failures is invalid.
#[derive(Debug, thiserror::Error)]
pub enum KnownFailuresError {
    /// The file cannot be read.
    #[error("cannot read the list of known failures {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An entry is invalid.
    #[error("{}:{line}: {reason}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The mistake, and how to fix it.
        reason: String,
    },
    /// The file is no YAML, or has unknown keys.
    #[error("{} is no list of known failures: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The mistake and its position.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    case: Spanned<String>,
    subject: Option<String>,
    checks: Option<Vec<String>>,
    #[serde(default)]
    flaky: bool,
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

    /// Returns an empty list, for [`Self::updated`].
    pub fn empty(path: &Path) -> Self {
        let (text, entries, partial) = Default::default();
        Self { path: path.to_owned(), text, entries, partial }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn parse(path: &Path, text: String) -> Result<Self, KnownFailuresError> {
        let raw: Option<Vec<RawEntry>> = yaml::read(&text)
            .map_err(|reason| KnownFailuresError::Syntax { path: path.to_owned(), reason })?;
        let entries = raw.unwrap_or_default().into_iter().map(|raw| {
            let line = usize::try_from(raw.case.referenced.line()).unwrap_or_default();
            Entry::new(raw, line).map_err(|reason| KnownFailuresError::Entry {
                path: path.to_owned(),
                line,
                reason,
            })
        });
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Self { path: path.to_owned(), text, entries, partial: BTreeSet::new() })
    }

    /// Returns an error for an entry that matches no case or subject.
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
                && !subjects.clone().any(|known| notation::names(subject, known))
            {
                let near = nearest(subject, subjects.clone());
                format!("no subject is named {subject:?}{}", did_you_mean(near).unwrap_or_default())
            } else {
                continue;
            };
            return Err(KnownFailuresError::Entry {
                path: self.path.clone(),
                line: entry.line,
                reason,
            });
        }
        Ok(())
    }

    /// Limits the list to the selection of a run. A run that leaves out a case of an entry does not
    /// decide whether the entry is still needed.
    pub fn limit_to<'a>(
        &mut self,
        cases: &(impl Iterator<Item = &'a Case> + Clone),
        runs_whole: impl Fn(&Case) -> bool,
    ) {
        let left_out = |entry: &Entry| {
            cases.clone().any(|case| entry.case.matches(&case.id, "") && !runs_whole(case))
        };
        let entries = self.entries.iter().enumerate();
        self.partial = entries.filter(|(_, entry)| left_out(entry)).map(|(n, _)| n).collect();
    }

    /// Returns the first matching entry and its verdict on a result. A glob or flaky entry matches
    /// failures only.
    pub fn judge(&self, result: &CaseResult, today: Date, strict: bool) -> Option<Known> {
        if result.verdict == Verdict::Skip {
            return None;
        }
        let entry = self.entries.iter().find(|entry| entry.matches(result))?;
        if result.verdict == Verdict::Pass && entry.may_pass() {
            return None;
        }
        Some(Known {
            reason: entry.reason.clone(),
            surprise: entry.surprise(result, today, strict),
        })
    }

    /// Records that a result of the run matched an entry.
    pub fn record(&self, result: &CaseResult, usage: &mut EntryUsage) {
        if result.verdict == Verdict::Skip {
            return;
        }
        if let Some(n) = self.entries.iter().position(|entry| entry.matches(result)) {
            usage.judged.insert(n);
            if result.verdict > Verdict::Pass {
                usage.failing.insert(n);
            }
        }
    }

    /// Returns the entries that must change after a run, one line each: expired entries, and
    /// globs without a failing case. `complete` is false if the run ended early.
    pub fn stale(&self, usage: &EntryUsage, today: Date, complete: bool) -> Vec<String> {
        let judged = usage.judged.iter().filter_map(|n| Some((*n, self.entries.get(*n)?)));
        let stale = judged.filter_map(|(n, entry)| {
            let decided = complete && !self.partial.contains(&n);
            let fails = usage.failing.contains(&n);
            let is_unused = decided && entry.is_glob() && !fails;
            let place = format!("{}:{}: ", self.path.display(), entry.line);
            if let Some(date) = entry.expired_on(today) {
                if !fails && (decided || !entry.may_pass()) {
                    let title = entry.title();
                    return Some(format!(
                        "{place}the entry {title} expired on {date}, and nothing fails; remove \
                         the entry"
                    ));
                }
                Some(format!(
                    "{place}the entry {} expired on {date}; fix the failure, or set a new date",
                    entry.title()
                ))
            } else if is_unused {
                Some(format!("{place}no case of {} fails; remove the entry", entry.title()))
            } else {
                None
            }
        });
        stale.collect()
    }
}

#[cfg(test)]
mod tests;
