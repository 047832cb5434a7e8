//! Which cases a run is made of.
//!
//! A pattern that matches nothing is an error that names the nearest id: a typo must never make a run smaller
//! without a word.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use kubeproof_cases::case::{Case, Level};
use serde::Deserialize;

/// What the user asked for. The default is everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only cases that one of these matches.
    pub only: Vec<Pattern>,
    /// None that one of these matches.
    pub skip: Vec<Pattern>,
    /// Only these areas.
    pub areas: Vec<String>,
    /// Only cases of this level, or a stronger one.
    pub level: Option<Level>,
    /// Only this part.
    pub shard: Option<Shard>,
    /// Only what failed in an earlier run.
    pub rerun: Option<Rerun>,
}

/// A glob over ids: `watch/*`, `*bookmark*`, or over ids and subjects: `create/*@secrets.v1`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    glob: GlobMatcher,
}

/// Why a selection cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// No glob.
    #[error("the pattern {text:?} is not a glob: {reason}")]
    Glob {
        /// As given.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// Nothing has such an id.
    #[error("{what} {text:?} matches nothing{}", did_you_mean(nearest.as_deref()))]
    NoMatch {
        /// The option.
        what: &'static str,
        /// As given.
        text: String,
        /// The nearest that exists.
        nearest: Option<String>,
    },
    /// Not `M/N`.
    #[error("the shard {0:?} is not one: expected M/N with M from 1 to N, as 2/5")]
    Shard(String),
    /// The report of an earlier run cannot be read.
    #[error("cannot take the failures of {}: {reason}", path.display())]
    Rerun {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|id| format!("; did you mean {id:?}?")).unwrap_or_default()
}

impl Selection {
    /// Finds patterns and areas that no case has, before anything is sent.
    pub fn check(&self, cases: &[Case]) -> Result<(), SelectionError> {
        for (what, patterns) in [("--only", &self.only), ("--skip", &self.skip)] {
            for pattern in patterns {
                pattern.check(what, cases.iter().map(|case| case.id.as_str()))?;
            }
        }
        for area in &self.areas {
            if !cases.iter().any(|case| case.area() == area) {
                let areas: BTreeSet<&str> = cases.iter().map(Case::area).collect();
                return Err(no_match("--area", area, areas.into_iter()));
            }
        }
        Ok(())
    }

    /// Whether the case can be part of the run, on whatever subject.
    pub fn takes_case(&self, case: &Case) -> bool {
        (self.only.is_empty() || self.only.iter().any(|pattern| pattern.may_match_case(&case.id)))
            && !self.skip.iter().any(|pattern| pattern.matches_case(&case.id))
            && (self.areas.is_empty() || self.areas.iter().any(|area| area == case.area()))
            && self.level.is_none_or(|level| case.level >= level)
            && self.rerun.as_ref().is_none_or(|rerun| rerun.results.iter().any(|(id, _)| *id == case.id))
    }

    /// Whether the case is part of the run on this subject. The empty subject stands for none.
    pub fn takes(&self, id: &str, subject: &str) -> bool {
        (self.only.is_empty() || self.only.iter().any(|pattern| pattern.matches(id, subject)))
            && !self.skip.iter().any(|pattern| pattern.matches(id, subject))
            && self.rerun.as_ref().is_none_or(|rerun| {
                // A case that was skipped or broken as a whole stands in the report without a subject.
                [subject, ""].iter().any(|s| rerun.results.contains(&(id.to_owned(), (*s).to_owned())))
            })
    }
}

impl Pattern {
    /// Whether it matches the case on this subject.
    pub fn matches(&self, id: &str, subject: &str) -> bool {
        if self.text.contains('@') {
            self.glob.is_match(format!("{id}@{subject}"))
        } else {
            self.glob.is_match(id)
        }
    }

    /// Whether it matches the case on every subject.
    fn matches_case(&self, id: &str) -> bool {
        !self.text.contains('@') && self.glob.is_match(id)
    }

    /// Whether it can match the case on some subject.
    fn may_match_case(&self, id: &str) -> bool {
        match self.text.split_once('@') {
            Some((part, _)) => Glob::new(part).is_ok_and(|glob| glob.compile_matcher().is_match(id)),
            None => self.glob.is_match(id),
        }
    }

    /// An error when it matches none of the ids.
    pub(crate) fn check<'a>(
        &self,
        what: &'static str,
        ids: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), SelectionError> {
        if ids.clone().any(|id| self.may_match_case(id)) {
            return Ok(());
        }
        Err(no_match(what, &self.text, ids))
    }
}

/// The error for `text`, with the nearest of what there is.
pub fn no_match<'a>(
    what: &'static str,
    text: &str,
    there_are: impl Iterator<Item = &'a str>,
) -> SelectionError {
    SelectionError::NoMatch { what, text: text.to_owned(), nearest: nearest(text, there_are) }
}

/// The most similar of the candidates, unless none is similar at all.
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let id = text.split('@').next().unwrap_or(text).replace(['*', '?'], "");
    candidates
        .map(|candidate| {
            let whole = strsim::jaro_winkler(&id, candidate);
            let name = candidate.rsplit('/').next().unwrap_or(candidate);
            (whole.max(strsim::jaro_winkler(&id, name)), candidate)
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(similarity, _)| *similarity > 0.6)
        .map(|(_, candidate)| candidate.to_owned())
}

impl FromStr for Pattern {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let glob = Glob::new(text).map_err(|error| SelectionError::Glob {
            text: text.to_owned(),
            reason: error.kind().to_string(),
        })?;
        Ok(Self { text: text.to_owned(), glob: glob.compile_matcher() })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One of N parts of a run, which together are the whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    /// From 1.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl Shard {
    /// Whether the n-th result, of all in the order of their ids, belongs to this part.
    pub fn takes(self, n: usize) -> bool {
        n % self.count == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(m, n)| Some((m.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((index, count)) if 1 <= index && index <= count => Ok(Self { index, count }),
            _ => Err(SelectionError::Shard(text.to_owned())),
        }
    }
}

/// What failed or errored in an earlier run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rerun {
    results: BTreeSet<(String, String)>,
}

impl Rerun {
    /// Reads the JSON report of that run.
    pub fn from_report(path: &Path) -> Result<Self, SelectionError> {
        let bad = |reason: String| SelectionError::Rerun { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let rerun =
            Self::parse(&text).map_err(|error| bad(format!("it is no JSON report of kubeproof: {error}")))?;
        if rerun.results.is_empty() {
            return Err(bad("nothing failed in that run".to_owned()));
        }
        Ok(rerun)
    }

    fn parse(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Report {
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
        Ok(Self { results: report.results.into_iter().filter(failed).map(|l| (l.id, l.subject)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::case;

    fn selection(only: &[&str], skip: &[&str]) -> Selection {
        let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Selection { only: patterns(only), skip: patterns(skip), ..Selection::default() }
    }

    #[test]
    fn patterns_reach_ids_and_subjects() {
        let selection = selection(&["watch/*@secrets.v1", "*bookmark*"], &["watch/old"]);
        assert!(selection.takes("watch/adds", "secrets.v1"));
        assert!(!selection.takes("watch/adds", "configmaps.v1"));
        assert!(selection.takes("list/bookmarks", "configmaps.v1"));
        assert!(!selection.takes("watch/old", "secrets.v1"));
        assert!(selection.takes_case(&case("watch/adds")));
        assert!(!selection.takes_case(&case("watch/old")));
        assert!(!selection.takes_case(&case("get/reads")));
    }

    #[test]
    fn a_pattern_without_a_match_names_the_nearest_id() {
        let cases = [case("create/name-taken"), case("watch/bookmarks")];
        let error = selection(&["create/name-token"], &[]).check(&cases).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--only \"create/name-token\" matches nothing; did you mean \"create/name-taken\"?"
        );
        let error = selection(&[], &["bookmark"]).check(&cases).unwrap_err();
        assert!(error.to_string().ends_with("did you mean \"watch/bookmarks\"?"), "{error}");
        selection(&["watch/*@nothing.v1"], &[]).check(&cases).unwrap();
    }

    #[test]
    fn an_unknown_area_is_an_error() {
        let selection = Selection { areas: vec!["creat".into()], ..Selection::default() };
        let error = selection.check(&[case("create/name-taken")]).unwrap_err();
        assert_eq!(error.to_string(), "--area \"creat\" matches nothing; did you mean \"create\"?");
    }

    #[test]
    fn levels_take_the_stronger_too() {
        let should = Selection { level: Some(Level::Should), ..Selection::default() };
        let of_level = |level| Case { level, ..case("a/b") };
        assert!(should.takes_case(&of_level(Level::Must)));
        assert!(should.takes_case(&of_level(Level::Should)));
        assert!(!should.takes_case(&of_level(Level::May)));
    }

    #[test]
    fn shards_are_disjoint_and_complete() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        assert!((0..10).all(|n| shards.iter().filter(|shard| shard.takes(n)).count() == 1));
        for bad in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rerun_takes_what_failed_or_errored() {
        let rerun = Rerun::parse(
            r#"{"results": [
                {"id": "a/b", "subject": "configmaps.v1", "verdict": "fail", "more": 1},
                {"id": "a/c", "subject": "", "verdict": "error"},
                {"id": "a/d", "subject": "", "verdict": "warn"}]}"#,
        )
        .unwrap();
        let selection = Selection { rerun: Some(rerun), ..Selection::default() };
        assert!(selection.takes("a/b", "configmaps.v1"));
        assert!(!selection.takes("a/b", "secrets.v1"));
        assert!(selection.takes("a/c", ""));
        assert!(!selection.takes("a/d", ""));
        assert!(!selection.takes_case(&case("a/d")));
    }
}
