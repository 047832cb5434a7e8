//! Selects the cases of a run.
//!
//! A pattern without a match is an error with a suggestion, because a typo must not silently shrink
//! a run.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use kubeproof_cases::Profile;
use kubeproof_cases::case::{Case, Level, area_of};
use serde::Deserialize;

use super::notation;
use crate::event::{Shard, Target};

/// The selection of the user. The default selects everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Keep only cases that match one of these.
    pub only: Vec<Pattern>,
    /// Drop cases that match one of these.
    pub skip: Vec<Pattern>,
    /// Keep only these areas.
    pub areas: Vec<String>,
    /// Keep only cases of these profiles.
    pub profiles: Vec<Profile>,
    /// Keep only cases of this level or a stronger one.
    pub level: Option<Level>,
    /// Keep only this part.
    pub shard: Option<Shard>,
    /// Keep only failures of an earlier run.
    pub rerun: Option<Rerun>,
}

/// A suggestion differs in at most one of this many letters.
const LETTERS_OF_A_MISTAKE: usize = 3;

/// The beginning of an id names it if it has this many letters.
const BEGINNING: usize = 4;

/// A suggestion differs in at most this many letters.
const MISTAKES: usize = 3;

/// A glob over ids (`watch/*`, `*bookmark*`), or over ids and subjects (`create/*@secrets.v1`).
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    glob: GlobMatcher,
    /// The pattern with the canonical form of a subject in the form of paths.
    canonical: Option<GlobMatcher>,
}

/// Why a selection is invalid.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// The pattern is no glob.
    #[error("the pattern {text:?} is not a glob: {reason}")]
    Glob {
        /// The given text.
        text: String,
        /// The mistake.
        reason: String,
    },
    /// A pattern matches nothing.
    #[error("{what} {text:?} matches nothing; {}", did_you_mean(nearest.as_deref()))]
    NoMatch {
        /// The option.
        what: &'static str,
        /// The given text.
        text: String,
        /// The most similar value.
        nearest: Option<String>,
    },
    /// A pattern is the name of an area.
    #[error("{what}: {area:?} is an area; use {}", instead_of(what, area))]
    IsArea {
        /// The option.
        what: &'static str,
        /// The area.
        area: String,
    },
    /// The shard is not `M/N`.
    #[error("{0:?} is no shard: expected M/N with M from 1 to N, such as 2/5")]
    Shard(String),
    /// The report of an earlier run cannot be used.
    #[error("cannot take the failures of {}: {reason}", path.display())]
    Rerun {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    match nearest {
        Some(id) => format!("did you mean {id:?}?"),
        None => "`kubeproof list` prints all cases".to_owned(),
    }
}

fn instead_of(option: &str, area: &str) -> String {
    if option == "--only" { format!("--area {area}") } else { format!("{option} '{area}/*'") }
}

impl Selection {
    /// Returns an error for patterns and areas that match none of the ids of cases.
    pub fn check(&self, ids: &[String]) -> Result<(), SelectionError> {
        for (what, patterns) in [("--only", &self.only), ("--skip", &self.skip)] {
            for pattern in patterns {
                pattern.check(what, ids.iter().map(String::as_str))?;
            }
        }
        let areas: BTreeSet<&str> = ids.iter().map(|id| area_of(id)).collect();
        match self.areas.iter().find(|area| !areas.contains(area.as_str())) {
            Some(area) => Err(no_match("--area", area, areas.into_iter())),
            None => Ok(()),
        }
    }

    /// Reports whether the case may run on some subject.
    pub fn takes_case(&self, case: &Case) -> bool {
        self.takes_id(&case.id)
            && (self.profiles.is_empty()
                || case.profile.is_some_and(|profile| self.profiles.contains(&profile)))
            && self.level.is_none_or(|level| case.level >= level)
    }

    /// Reports whether a case with this id may run, as far as the id decides.
    pub fn takes_id(&self, id: &str) -> bool {
        (self.only.is_empty() || self.only.iter().any(|pattern| pattern.may_match_case(id)))
            && !self.skip.iter().any(|pattern| pattern.matches_case(id))
            && (self.areas.is_empty() || self.areas.iter().any(|area| area == area_of(id)))
            && self
                .rerun
                .as_ref()
                .is_none_or(|rerun| rerun.results.iter().any(|(other, _)| other == id))
    }

    /// Reports whether the case runs on all its subjects in this run.
    pub fn takes_whole(&self, case: &Case) -> bool {
        let on_all = |pattern: &Pattern| pattern.matches_case(&case.id);
        self.takes_case(case)
            && self.shard.is_none()
            && self.rerun.is_none()
            && (self.only.is_empty() || self.only.iter().any(on_all))
            && !self.skip.iter().any(|pattern| pattern.may_match_case(&case.id))
    }

    /// Reports whether the case runs on this subject. The empty subject means none.
    pub fn takes(&self, id: &str, subject: &str) -> bool {
        (self.only.is_empty() || self.only.iter().any(|pattern| pattern.matches(id, subject)))
            && !self.skip.iter().any(|pattern| pattern.matches(id, subject))
            && self.rerun.as_ref().is_none_or(|rerun| {
                // A case that was skipped as a whole has no subject in the report.
                [subject, ""]
                    .iter()
                    .any(|s| rerun.results.contains(&(id.to_owned(), (*s).to_owned())))
            })
    }
}

impl Pattern {
    /// Reports whether the pattern matches the case on this subject.
    pub fn matches(&self, id: &str, subject: &str) -> bool {
        if self.text.contains('@') {
            let place = format!("{id}@{subject}");
            let canonical = self.canonical.as_ref();
            self.glob.is_match(&place) || canonical.is_some_and(|glob| glob.is_match(&place))
        } else {
            self.glob.is_match(id)
        }
    }

    /// Reports whether the pattern can match more than one case.
    pub(super) fn is_glob(&self) -> bool {
        self.text.contains(['*', '?', '[', '{'])
    }

    /// Reports whether the pattern matches the case on every subject.
    fn matches_case(&self, id: &str) -> bool {
        !self.text.contains('@') && self.glob.is_match(id)
    }

    /// Reports whether the pattern may match the case on some subject.
    fn may_match_case(&self, id: &str) -> bool {
        match self.text.split_once('@') {
            Some((part, _)) => {
                Glob::new(part).is_ok_and(|glob| glob.compile_matcher().is_match(id))
            }
            None => self.glob.is_match(id),
        }
    }

    /// Returns an error if the pattern matches none of the ids.
    pub(crate) fn check<'a>(
        &self,
        what: &'static str,
        ids: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), SelectionError> {
        if ids.clone().any(|id| self.may_match_case(id)) {
            return Ok(());
        }
        let mut areas = ids.clone().filter_map(|id| id.split('/').next());
        if areas.any(|area| area == self.text) {
            return Err(SelectionError::IsArea { what, area: self.text.clone() });
        }
        Err(no_match(what, &self.text, ids))
    }
}

/// Returns the error for `text`, with the most similar of the existing values.
pub fn no_match<'a>(
    what: &'static str,
    text: &str,
    there_are: impl Iterator<Item = &'a str>,
) -> SelectionError {
    SelectionError::NoMatch { what, text: text.to_owned(), nearest: nearest(text, there_are) }
}

/// Returns the candidate that differs in the fewest letters, if these are few. The candidate may
/// have an area that the text lacks.
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let id = text.split('@').next().unwrap_or(text).replace(['*', '?'], "");
    let letters = id.chars().count();
    let most = (letters / LETTERS_OF_A_MISTAKE).min(MISTAKES);
    let candidates: Vec<&str> = candidates.collect();
    let is_longer = |candidate: &&&str| letters >= BEGINNING && candidate.starts_with(&id);
    if let Some(longer) = candidates.iter().find(is_longer) {
        return Some((*longer).to_owned());
    }
    candidates
        .into_iter()
        .map(|candidate| {
            let name = candidate.rsplit('/').next().unwrap_or(candidate);
            let whole = strsim::osa_distance(&id, candidate);
            (whole.min(strsim::osa_distance(&id, name)), candidate)
        })
        .min()
        .filter(|(distance, _)| *distance <= most)
        .map(|(_, candidate)| candidate.to_owned())
}

impl FromStr for Pattern {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let glob = Glob::new(text).map_err(|error| SelectionError::Glob {
            text: text.to_owned(),
            reason: error.kind().to_string(),
        })?;
        let canonical = text.split_once('@').and_then(|(id, subject)| {
            let glob = Glob::new(&format!("{id}@{}", notation::canonical(subject)?));
            Some(glob.ok()?.compile_matcher())
        });
        Ok(Self { text: text.to_owned(), glob: glob.compile_matcher(), canonical })
    }
}

impl fmt::Display for Selection {
    /// Writes the options of the command line, without `--shard`. Empty if it selects everything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        words.extend(self.only.iter().map(|pattern| format!("--only {pattern}")));
        words.extend(self.skip.iter().map(|pattern| format!("--skip {pattern}")));
        words.extend(self.areas.iter().map(|area| format!("--area {area}")));
        words.extend(self.profiles.iter().map(|profile| format!("--profile {profile}")));
        words.extend(self.level.iter().map(|level| format!("--level {level}")));
        words.extend(self.rerun.iter().map(|_| "--rerun".to_owned()));
        f.write_str(&words.join(" "))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Shard {
    /// Reports whether the n-th result, ordered by id, is in this part.
    pub fn takes(self, n: usize) -> bool {
        n % self.count == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers =
            text.split_once('/').and_then(|(m, n)| Some((m.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((index, count)) if 1 <= index && index <= count => Ok(Self { index, count }),
            _ => Err(SelectionError::Shard(text.to_owned())),
        }
    }
}

/// Failures and errors of an earlier run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rerun {
    results: BTreeSet<(String, String)>,
    /// The URL of the target, unless it was the bundled server.
    server: Option<String>,
}

impl Rerun {
    /// Reads the JSON report of the earlier run.
    pub fn from_report(path: &Path) -> Result<Self, SelectionError> {
        let bad = |reason: String| SelectionError::Rerun { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let rerun = Self::parse(&text)
            .map_err(|error| bad(format!("it is no JSON report of kubeproof: {error}")))?;
        if rerun.results.is_empty() {
            return Err(bad("nothing failed in that run".to_owned()));
        }
        Ok(rerun)
    }

    /// Returns the URL of the target of the earlier run; `None` for the bundled server.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    fn parse(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Report {
            #[serde(default)]
            target: Target,
            results: Vec<Line>,
        }
        #[derive(Deserialize)]
        struct Line {
            id: String,
            subject: String,
            verdict: String,
        }
        let report: Report = serde_json::from_str(text)?;
        let failed = |line: &Line| line.verdict == "fail" || line.verdict == "error";
        let Target { server, bundled, .. } = report.target;
        Ok(Self {
            server: (!bundled && !server.is_empty()).then_some(server),
            results: report.results.into_iter().filter(failed).map(|l| (l.id, l.subject)).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
