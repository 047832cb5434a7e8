//! Merges the reports of shards, and compares the reports of two runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kubeproof_cases::plural;
use kubeproof_harness::event::{Shard, Verdict};

use crate::document::{Document, Head, Record, Summary};
use crate::paint::verdict_name;

/// Why reports cannot be merged.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// No report was given.
    #[error("nothing to merge: expected at least one report")]
    Nothing,
    /// The runs used different cases or rules, or tested different targets.
    #[error(
        "the reports have different {what}, {first:?} and {other:?}; merge reports of one target, \
         version and edition"
    )]
    Differ {
        /// The property that differs.
        what: &'static str,
        /// The value of the first report.
        first: String,
        /// The value of another report.
        other: String,
    },
    /// A shard is missing.
    #[error("shard {index}/{count} is missing; give the reports of all shards of a run")]
    MissingShard {
        /// Counted from 1.
        index: usize,
        /// The number of shards.
        count: usize,
    },
    /// Two reports contain the same shard.
    #[error("two reports contain shard {index}/{count}; give one report per shard")]
    DuplicateShard {
        /// Counted from 1.
        index: usize,
        /// The number of shards.
        count: usize,
    },
    /// Two reports contain the same result.
    #[error("two reports contain {title}; merge reports of disjoint parts of a run")]
    DuplicateResult {
        /// `id @ subject`.
        title: String,
    },
}

/// Merges the reports of the disjoint parts of a run. The result has the head of the first report.
pub fn merge(documents: impl IntoIterator<Item = Document>) -> Result<Document, MergeError> {
    let documents: Vec<Document> = documents.into_iter().collect();
    check_shards(&documents)?;
    check_duplicates(&documents)?;
    let mut documents = documents.into_iter();
    let mut merged = documents.next().ok_or(MergeError::Nothing)?;
    for document in documents {
        check_heads(&merged.head, &document.head)?;
        merged.head.planned += document.head.planned;
        // Shards run in parallel, so the slowest determines the duration.
        merged.duration_ms = merged.duration_ms.max(document.duration_ms);
        merged.interrupted |= document.interrupted;
        merged.stopped = merged.stopped.or(document.stopped);
        merged.head.selection = both_selections(merged.head.selection, document.head.selection);
        merged.notices.extend(document.notices);
        merged.stale_entries.extend(document.stale_entries);
        for record in document.results {
            merged.add(record);
        }
    }
    merged.head.shard = None;
    merge_required(&mut merged);
    merged.stale_entries.sort();
    merged.stale_entries.dedup();
    merged.sort();
    Ok(merged)
}

fn check_heads(first: &Head, other: &Head) -> Result<(), MergeError> {
    let version = |head: &Head| head.target.version.clone().unwrap_or_default();
    // Each run of the bundled server has its own port.
    let server = |head: &Head| {
        if head.target.bundled {
            "the bundled server".to_owned()
        } else {
            head.target.server.clone()
        }
    };
    require_equal("targets", &server(first), &server(other))?;
    require_equal("versions of the target", &version(first), &version(other))?;
    require_equal("catalogues", &first.catalogue_digest, &other.catalogue_digest)?;
    require_equal("editions", &first.edition.to_string(), &other.edition.to_string())?;
    require_equal("--letter settings", &first.letter.to_string(), &other.letter.to_string())
}

/// Checks that the reports are all shards of a run, or all of them whole runs.
fn check_shards(documents: &[Document]) -> Result<(), MergeError> {
    let Some(count) = documents.iter().find_map(|document| Some(document.head.shard?.count)) else {
        return Ok(());
    };
    let mut seen = BTreeSet::new();
    for document in documents {
        let shard = document.head.shard.unwrap_or(Shard { index: 1, count: 1 });
        require_equal("numbers of shards", &count.to_string(), &shard.count.to_string())?;
        if !seen.insert(shard.index) {
            return Err(MergeError::DuplicateShard { index: shard.index, count });
        }
    }
    match (1..=count).find(|index| !seen.contains(index)) {
        Some(index) => Err(MergeError::MissingShard { index, count }),
        None => Ok(()),
    }
}

/// Checks that no result is in two reports. One report can repeat a result (`--repeat`).
fn check_duplicates(documents: &[Document]) -> Result<(), MergeError> {
    let mut seen = BTreeMap::new();
    for (number, document) in documents.iter().enumerate() {
        for record in document.results.iter().filter(|record| record.required_feature().is_none()) {
            let first = *seen.entry(key(record)).or_insert(number);
            if first != number {
                return Err(MergeError::DuplicateResult { title: record.title() });
            }
        }
    }
    Ok(())
}

/// Keeps the worst result of each required feature.
fn merge_required(document: &mut Document) {
    let (required, others): (Vec<_>, Vec<_>) = std::mem::take(&mut document.results)
        .into_iter()
        .partition(|record| record.required_feature().is_some());
    let mut worst = BTreeMap::<String, Record>::new();
    for record in required {
        let kept = worst.entry(record.id.clone()).or_insert_with(|| record.clone());
        if kept.verdict < record.verdict {
            *kept = record;
        }
    }
    document.head.planned = document.head.planned.saturating_sub(document.summary.total());
    document.summary = Summary::default();
    for record in others.into_iter().chain(worst.into_values()) {
        document.add(record);
    }
    document.head.planned += document.summary.total();
}

fn both_selections(first: Option<String>, other: Option<String>) -> Option<String> {
    let (first, other) = first.zip(other)?;
    Some(if first == other { first } else { format!("{first} and {other}") })
}

fn require_equal(what: &'static str, first: &str, other: &str) -> Result<(), MergeError> {
    if first == other {
        return Ok(());
    }
    Err(MergeError::Differ { what, first: first.to_owned(), other: other.to_owned() })
}

/// The changes from one run to another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Changes {
    changes: Vec<Change>,
    /// What the runs selected, if they differ. Then the results of only one run are no changes.
    pub selections: Option<Selections>,
}

/// Two runs that selected different cases.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Selections {
    /// The options of the earlier run. Empty for a whole run.
    pub before: String,
    /// The options of the later run. Empty for a whole run.
    pub after: String,
    /// The number of results that only one of the runs has.
    pub not_compared: usize,
}

/// A result whose verdict changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// `id @ subject`.
    pub title: String,
    /// The earlier verdict. `None` for a new result.
    pub before: Option<Verdict>,
    /// The later verdict. `None` for a removed result.
    pub after: Option<Verdict>,
    /// The reason of the later verdict.
    pub reason: String,
}

/// Compares two runs, result by result. If a run repeated a case, its worst result counts.
pub fn diff(before: &Document, after: &Document) -> Changes {
    let mut both = BTreeMap::<_, (Option<&Record>, Option<&Record>)>::new();
    for record in &before.results {
        keep_worst(&mut both.entry(key(record)).or_default().0, record);
    }
    for record in &after.results {
        keep_worst(&mut both.entry(key(record)).or_default().1, record);
    }
    let selections = different_selections(&before.head, &after.head);
    let all = both.len();
    if selections.is_some() {
        both.retain(|_, (before, after)| before.is_some() && after.is_some());
    }
    let not_compared = all - both.len();
    let changed = both.into_values().filter_map(|(before, after)| {
        let (was, is) = (before.map(|record| record.verdict), after.map(|record| record.verdict));
        (was != is).then(|| Change {
            title: after.or(before).map(Record::title).unwrap_or_default(),
            before: was,
            after: is,
            reason: after.map(Record::headline).unwrap_or_default(),
        })
    });
    let selections = selections.map(|(before, after)| Selections { before, after, not_compared });
    Changes { changes: changed.collect(), selections }
}

/// Returns the selections of the runs, if both reports contain them and they differ.
fn different_selections(before: &Head, after: &Head) -> Option<(String, String)> {
    let of = |head: &Head| {
        let shard = head.shard.map(|part| format!("--shard {}/{}", part.index, part.count));
        let words = [head.selection.clone()?, shard.unwrap_or_default()];
        Some(words.join(" ").trim().to_owned())
    };
    of(before).zip(of(after)).filter(|(before, after)| before != after)
}

fn key(record: &Record) -> (&str, &str) {
    (&record.id, &record.subject)
}

fn keep_worst<'a>(slot: &mut Option<&'a Record>, record: &'a Record) {
    if slot.is_none_or(|known| known.verdict < record.verdict) {
        *slot = Some(record);
    }
}

impl Changes {
    /// Returns the changes, sorted by case and subject.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.changes.iter()
    }

    /// Returns whether a result is worse than before.
    pub fn has_regression(&self) -> bool {
        self.changes.iter().any(Change::is_regression)
    }
}

impl<'a> IntoIterator for &'a Changes {
    type Item = &'a Change;
    type IntoIter = std::slice::Iter<'a, Change>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Change {
    /// Returns whether the result is worse than before. A removed or skipped result is worse,
    /// because nothing proves the behaviour any more.
    pub fn is_regression(&self) -> bool {
        match (self.before, self.after) {
            (Some(Verdict::Skip) | None, None) => false,
            (Some(_), None) => true,
            (None, Some(after)) => after >= Verdict::Fail,
            (Some(before), Some(after)) => {
                after == Verdict::Skip || (after > before && after > Verdict::Pass)
            }
        }
    }
}

impl fmt::Display for Selections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |options: &str| match options {
            "" => "all cases".to_owned(),
            options => format!("the cases of {options}"),
        };
        let (before, after) = (side(&self.before), side(&self.after));
        let results = plural(self.not_compared, "result");
        write!(f, "the first run has {before}, the second has {after}; ")?;
        write!(f, "{results} of only one run are not compared")
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |verdict: Option<Verdict>| verdict.map_or("none", verdict_name);
        write!(f, "{}: {} -> {}", self.title, side(self.before), side(self.after))?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, "  {}", self.reason) }
    }
}

/// Documents for tests.
#[cfg(test)]
pub(crate) mod testing {
    use kubeproof_cases::case::Level;

    use super::*;
    use crate::document::CheckRecord;

    /// Returns a complete run with these results.
    pub(crate) fn document(results: &[(&str, Verdict)]) -> Document {
        let mut document = Document { interrupted: false, duration_ms: 5.0, ..Document::default() };
        document.head.planned = results.len();
        for (id, verdict) in results {
            document.add(record(id, *verdict));
        }
        document
    }

    fn record(id: &str, verdict: Verdict) -> Record {
        Record {
            id: id.to_owned(),
            subject: String::new(),
            level: Level::Must,
            profile: None,
            requirements: Vec::new(),
            verdict,
            reason: String::new(),
            reason_code: None,
            blocked_by: None,
            duration_ms: 1.0,
            checks: Vec::new(),
            summary: String::new(),
            why: None,
            known: None,
            exchanges: Vec::new(),
        }
    }

    /// Adds a case on these subjects.
    pub(crate) fn on(mut document: Document, id: &str, subjects: &[(&str, Verdict)]) -> Document {
        for (subject, verdict) in subjects {
            document.add(Record { subject: (*subject).to_owned(), ..record(id, *verdict) });
            document.head.planned += 1;
        }
        document
    }

    /// Adds a check to each result, with the verdict of the result.
    pub(crate) fn with_check(mut document: Document) -> Document {
        for record in &mut document.results {
            record.checks = vec![check(record.verdict)];
        }
        document
    }

    fn check(verdict: Verdict) -> CheckRecord {
        let check = serde_json::json!({"id": "works", "verdict": verdict, "level": "must"});
        serde_json::from_value(check).expect("a check")
    }
}

#[cfg(test)]
mod tests;
