//! Several runs: the parts of one put together, and what changed from one to another.

use std::collections::BTreeMap;
use std::fmt;

use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record};
use crate::paint::word;

/// Why reports are not parts of one run.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// There is none.
    #[error("nothing to merge: expected at least one report")]
    Nothing,
    /// They were judged by different things.
    #[error(
        "the reports have different {what}, {first:?} and {other:?}; merge reports of one version and edition"
    )]
    Differ {
        /// What differs.
        what: &'static str,
        /// In the first report.
        first: String,
        /// In another.
        other: String,
    },
}

/// Puts reports together, as those of the shards of a run. The head is that of the first.
pub fn merge(documents: impl IntoIterator<Item = Document>) -> Result<Document, MergeError> {
    let mut documents = documents.into_iter();
    let mut merged = documents.next().ok_or(MergeError::Nothing)?;
    for document in documents {
        same("catalogues", &merged.head.catalogue_digest, &document.head.catalogue_digest)?;
        same("editions", &format!("{:?}", merged.head.edition), &format!("{:?}", document.head.edition))?;
        same("readings of the letter", &merged.head.letter.to_string(), &document.head.letter.to_string())?;
        merged.head.planned += document.head.planned;
        // Shards run beside each other: the slowest says how long the whole took.
        merged.duration_ms = merged.duration_ms.max(document.duration_ms);
        merged.interrupted |= document.interrupted;
        merged.notices.extend(document.notices);
        for record in document.results {
            merged.add(record);
        }
    }
    merged.sort();
    Ok(merged)
}

fn same(what: &'static str, first: &str, other: &str) -> Result<(), MergeError> {
    if first == other {
        return Ok(());
    }
    Err(MergeError::Differ { what, first: first.to_owned(), other: other.to_owned() })
}

/// What changed from one run to another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Changes(Vec<Change>);

/// A result that is not what it was.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// `id @ subject`.
    pub title: String,
    /// `None`: the result is new.
    pub before: Option<Verdict>,
    /// `None`: the result is gone.
    pub after: Option<Verdict>,
    /// Why it is now what it is.
    pub reason: String,
}

/// Compares two runs, result by result. Where one repeats a case, its worst result counts.
pub fn diff(before: &Document, after: &Document) -> Changes {
    let mut both = BTreeMap::<_, (Option<&Record>, Option<&Record>)>::new();
    for record in &before.results {
        worst(&mut both.entry(key(record)).or_default().0, record);
    }
    for record in &after.results {
        worst(&mut both.entry(key(record)).or_default().1, record);
    }
    let changed = both.into_values().filter_map(|(before, after)| {
        let (was, is) = (before.map(|record| record.verdict), after.map(|record| record.verdict));
        (was != is).then(|| Change {
            title: after.or(before).map(Record::title).unwrap_or_default(),
            before: was,
            after: is,
            reason: after.map(Record::headline).unwrap_or_default(),
        })
    });
    Changes(changed.collect())
}

fn key(record: &Record) -> (&str, &str) {
    (&record.id, &record.subject)
}

fn worst<'a>(slot: &mut Option<&'a Record>, record: &'a Record) {
    if slot.is_none_or(|known| known.verdict < record.verdict) {
        *slot = Some(record);
    }
}

impl Changes {
    /// One by one, sorted by case and subject.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.0.iter()
    }

    /// Whether something that held does not any more, or is not judged any more.
    pub fn has_regression(&self) -> bool {
        self.0.iter().any(Change::is_regression)
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
    /// Whether it is worse than before. A result that is gone, or is skipped now, is: nothing proves any more that it holds.
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

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |verdict: Option<Verdict>| verdict.map_or("none", word);
        write!(f, "{}: {} -> {}", self.title, side(self.before), side(self.after))?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, "  {}", self.reason) }
    }
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::case::Level;
    use rstest::rstest;

    use super::*;

    fn document(results: &[(&str, Verdict)]) -> Document {
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
            requirements: Vec::new(),
            verdict,
            reason: String::new(),
            duration_ms: 1.0,
            checks: Vec::new(),
            summary: String::new(),
            why: None,
            known: None,
            exchanges: Vec::new(),
        }
    }

    #[test]
    fn shards_make_a_whole() {
        let merged = merge([
            document(&[("b/2", Verdict::Pass), ("b/1", Verdict::Fail)]),
            document(&[("a/1", Verdict::Skip)]),
        ])
        .expect("parts of one run");
        let ids: Vec<_> = merged.results.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(ids, ["a/1", "b/1", "b/2"]);
        assert_eq!((merged.summary.pass, merged.summary.fail, merged.summary.skip), (1, 1, 1));
        assert_eq!(merged.head.planned, 3);
        assert!(!merged.interrupted);
    }

    #[test]
    fn reports_of_different_catalogues_are_not_parts_of_one_run() {
        let mut other = document(&[]);
        other.head.catalogue_digest = "sha256:11".to_owned();
        let error = merge([document(&[]), other]).expect_err("they differ");
        assert!(error.to_string().contains("different catalogues"), "{error}");
        assert_eq!(merge([]).expect_err("none"), MergeError::Nothing);
    }

    #[test]
    fn a_diff_tells_what_changed_and_nothing_else() {
        let before =
            document(&[("a/same", Verdict::Pass), ("a/broke", Verdict::Pass), ("a/gone", Verdict::Pass)]);
        let after =
            document(&[("a/same", Verdict::Pass), ("a/broke", Verdict::Fail), ("a/new", Verdict::Pass)]);
        let changes: Vec<_> = diff(&before, &after).iter().map(ToString::to_string).collect();
        assert_eq!(changes, ["a/broke: pass -> fail", "a/gone: pass -> none", "a/new: none -> pass"]);
    }

    #[rstest]
    #[case(Some(Verdict::Pass), Some(Verdict::Fail), true)]
    #[case(Some(Verdict::Pass), Some(Verdict::Skip), true)]
    #[case(Some(Verdict::Pass), None, true)]
    #[case(Some(Verdict::Skip), Some(Verdict::Pass), false)]
    #[case(Some(Verdict::Fail), Some(Verdict::Pass), false)]
    #[case(None, Some(Verdict::Fail), true)]
    #[case(None, Some(Verdict::Pass), false)]
    fn a_regression_is_what_is_not_proven_any_more(
        #[case] before: Option<Verdict>,
        #[case] after: Option<Verdict>,
        #[case] regression: bool,
    ) {
        let change = Change { title: String::new(), before, after, reason: String::new() };
        assert_eq!(change.is_regression(), regression);
    }
}
