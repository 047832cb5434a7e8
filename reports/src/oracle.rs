//! Compares a run with the run of an oracle: a second server that the user trusts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record, Summary};
use crate::paint::{Paint, verdict_name};
use crate::requirements::Requirements;
use crate::text::{self, Limits};

/// The results of a target and of an oracle for the same cases.
#[derive(Clone, Debug)]
pub struct OracleComparison {
    target: Document,
    oracle: Document,
    /// Results with different verdicts, sorted by case and subject.
    differences: Vec<Difference>,
    /// The number of results of both servers together.
    compared: usize,
}

/// A result with different verdicts.
#[derive(Clone, Debug)]
struct Difference {
    target: Option<Record>,
    oracle: Option<Record>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    OnlyTargetFails,
    OnlyOracleFails,
    Other,
}

type Key = (String, String);

impl OracleComparison {
    /// Compares the results. If `strict`, warnings and deviations are failures. Known failures do
    /// not count. If a run repeated a case, its worst result counts.
    pub fn new(target: Document, oracle: Document, strict: bool) -> Self {
        let (of_target, of_oracle) = (worst(&target), worst(&oracle));
        let (failing, oracle_failing) = (failures(&target, strict), failures(&oracle, strict));
        let keys: BTreeSet<&Key> = of_target.keys().chain(of_oracle.keys()).collect();
        let difference = |key: &&Key| {
            let (target, oracle) = (of_target.get(*key), of_oracle.get(*key));
            let verdict = |record: Option<&&Record>| record.map(|record| record.verdict);
            let kind = match (failing.contains(*key), oracle_failing.contains(*key)) {
                (true, false) => Kind::OnlyTargetFails,
                _ if verdict(target) == verdict(oracle) => return None,
                (false, true) => Kind::OnlyOracleFails,
                _ => Kind::Other,
            };
            let cloned = |record: Option<&&Record>| record.map(|record| (*record).clone());
            Some(Difference { target: cloned(target), oracle: cloned(oracle), kind })
        };
        let differences = keys.iter().filter_map(difference).collect();
        let compared = keys.len();
        Self { target, oracle, differences, compared }
    }

    /// Returns whether the target fails where the oracle does not.
    pub fn target_fails(&self) -> bool {
        self.count(Kind::OnlyTargetFails) > 0
    }

    /// Returns whether the harness could not judge the target where it judged the oracle.
    pub fn target_errors(&self) -> bool {
        self.differences.iter().any(|one| verdict_of(one.target.as_ref()) == Some(Verdict::Error))
    }

    /// Returns the run of the target with only the results that differ. Their reasons contain the
    /// verdict of the oracle.
    pub fn differing(&self) -> Document {
        let mut document = self.target.clone();
        document.results.clear();
        document.summary = Summary::default();
        for one in &self.differences {
            let Some(mut record) = one.target.clone() else { continue };
            let oracle = format!("oracle: {}", name_of(one.oracle.as_ref()));
            record.reason = if record.reason.is_empty() {
                oracle
            } else {
                format!("{} ({oracle})", record.reason)
            };
            document.add(record);
        }
        document.head.planned = document.results.len();
        document.notices.push(format!(
            "compared with the oracle {}: the report contains only results that differ",
            self.oracle.head.target.server
        ));
        document
    }

    /// Writes the differences to a terminal. `brief` leaves out the details of failures.
    pub fn write(
        &self,
        out: &mut dyn Write,
        requirements: &Requirements,
        paint: Paint,
        brief: bool,
    ) -> io::Result<()> {
        for (kind, heading) in [
            (Kind::OnlyTargetFails, "only the target fails:"),
            (Kind::OnlyOracleFails, "only the oracle fails:"),
            (Kind::Other, "different otherwise:"),
        ] {
            let of_kind = self.differences.iter().filter(|one| one.kind == kind);
            let of_kind: Vec<&Difference> = of_kind.collect();
            if !of_kind.is_empty() {
                writeln!(out, "{}", paint.bold(heading))?;
            }
            for one in of_kind {
                writeln!(out, "  {}", one.title(paint))?;
                if let (Kind::OnlyTargetFails, false, Some(record)) = (kind, brief, &one.target) {
                    let detail = text::detail(record, requirements, Limits::SHORT, paint);
                    writeln!(out, "{detail}")?;
                }
            }
        }
        for (role, document) in [("target", &self.target), ("oracle", &self.oracle)] {
            writeln!(out, "{role}: {}", totals(document))?;
            for entry in &document.stale_entries {
                writeln!(out, "known failures: {entry}")?;
            }
        }
        let count = self.differences.len();
        let [target, oracle, other] = [Kind::OnlyTargetFails, Kind::OnlyOracleFails, Kind::Other]
            .map(|kind| self.count(kind));
        writeln!(
            out,
            "differences: {count} of {} (only the target fails: {target}, only the oracle fails: \
             {oracle}, otherwise: {other}); seed {}",
            plural(self.compared, "result"),
            self.target.head.seed
        )
    }

    fn count(&self, kind: Kind) -> usize {
        self.differences.iter().filter(|one| one.kind == kind).count()
    }
}

impl Difference {
    fn title(&self, paint: Paint) -> String {
        let title = self.target.as_ref().or(self.oracle.as_ref()).map(Record::title);
        let side = |record: Option<&Record>| {
            let name = name_of(record);
            verdict_of(record).map_or(name.to_owned(), |verdict| paint.verdict(verdict, name))
        };
        let decisive = if self.kind == Kind::OnlyOracleFails { &self.oracle } else { &self.target };
        let reason = decisive.as_ref().map(Record::headline).filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!("  {}", text::printable(&reason)));
        format!(
            "{}: {}, oracle {}{}",
            text::printable(&title.unwrap_or_default()),
            side(self.target.as_ref()),
            side(self.oracle.as_ref()),
            reason.unwrap_or_default()
        )
    }
}

/// Returns the worst result of each case and subject.
fn worst(document: &Document) -> BTreeMap<Key, &Record> {
    let mut worst: BTreeMap<Key, &Record> = BTreeMap::new();
    for record in &document.results {
        let slot = worst.entry(key(record)).or_insert(record);
        if slot.verdict < record.verdict {
            *slot = record;
        }
    }
    worst
}

fn failures(document: &Document, strict: bool) -> BTreeSet<Key> {
    document.failures(strict).map(key).collect()
}

fn key(record: &Record) -> Key {
    (record.id.clone(), record.subject.clone())
}

fn verdict_of(record: Option<&Record>) -> Option<Verdict> {
    record.map(|record| record.verdict)
}

fn name_of(record: Option<&Record>) -> &'static str {
    verdict_of(record).map_or("none", verdict_name)
}

/// Returns the counts of a run, its server and its version.
fn totals(document: &Document) -> String {
    let counts = document.summary.counts().into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(verdict, count)| format!("{count} {}", verdict_name(verdict))).collect();
    let target = &document.head.target;
    let version = target.version.as_ref().map(|version| format!(" ({version})"));
    format!("{}; {}{}", counts.join(", "), target.server, version.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use kubeproof_harness::event::Known;

    use super::*;
    use crate::compare::testing::document;

    fn comparison() -> OracleComparison {
        let target = document(&[
            ("a/both-fail", Verdict::Fail),
            ("a/oracle-fails", Verdict::Pass),
            ("a/oracle-lacks", Verdict::Fail),
            ("a/same", Verdict::Pass),
            ("a/target-fails", Verdict::Fail),
            ("a/target-warns", Verdict::Warn),
        ]);
        let oracle = document(&[
            ("a/both-fail", Verdict::Fail),
            ("a/oracle-fails", Verdict::Fail),
            ("a/same", Verdict::Pass),
            ("a/target-fails", Verdict::Pass),
            ("a/target-warns", Verdict::Pass),
        ]);
        OracleComparison::new(target, oracle, false)
    }

    #[test]
    fn only_differences_are_shown() {
        let mut out = Vec::new();
        let compared = comparison();
        compared.write(&mut out, &Requirements::default(), Paint::plain(), true).expect("memory");
        let expected = "\
only the target fails:
  a/oracle-lacks: fail, oracle none
  a/target-fails: fail, oracle pass
only the oracle fails:
  a/oracle-fails: pass, oracle fail
different otherwise:
  a/target-warns: warn, oracle pass
target: 2 pass, 1 warn, 3 fail; \n\
oracle: 3 pass, 2 fail; \n\
differences: 4 of 6 results (only the target fails: 2, only the oracle fails: 1, otherwise: 1); \
         seed 0
";
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
        assert!(compared.target_fails() && !compared.target_errors());
    }

    #[test]
    fn a_report_of_the_differences_names_the_verdict_of_the_oracle() {
        let report = comparison().differing();
        let reasons: Vec<_> =
            report.results.iter().map(|one| (one.id.as_str(), one.reason.as_str())).collect();
        assert_eq!(
            reasons,
            [
                ("a/oracle-fails", "oracle: fail"),
                ("a/oracle-lacks", "oracle: none"),
                ("a/target-fails", "oracle: pass"),
                ("a/target-warns", "oracle: pass"),
            ]
        );
        assert_eq!((report.summary.fail, report.head.planned), (2, 4));
    }

    #[test]
    fn warnings_count_if_strict_and_known_failures_do_not() {
        let pass = document(&[("a/b", Verdict::Pass)]);
        let warn = document(&[("a/b", Verdict::Warn)]);
        let fails = |target: &Document, strict| {
            OracleComparison::new(target.clone(), pass.clone(), strict).target_fails()
        };
        assert!(!fails(&warn, false) && fails(&warn, true));
        let mut known = document(&[("a/b", Verdict::Fail)]);
        assert!(fails(&known, false));
        known.results[0].known = Some(Known { reason: "r".to_owned(), surprise: None });
        assert!(!fails(&known, false));
    }
}
