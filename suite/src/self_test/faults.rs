//! Faults: the cases against servers with one deliberate bug each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Edition};
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::plan::{Pattern, RunOptions, Selection};
use kubeproof_reference_server::{Config, Fault, Faults};

use super::{Bundled, SHORT_HISTORY, SelfTestError, explain};

/// Time limit of a case. It is long, because many servers share the machine, and a timeout is an
/// error.
const CASE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a watch or a stream that a fault silences.
const STALL_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum pause between polls. It is short, because the server is in the same process, and a fault
/// can prevent the awaited state.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The verdicts of the cases against a server with one fault.
#[derive(Clone, Debug)]
pub struct Row {
    /// The fault.
    pub fault: Fault,
    /// The worst verdict of each case over its subjects. Some faults affect some subjects only: the
    /// strategic merge patch exists for built-in types only.
    pub verdicts: BTreeMap<String, Verdict>,
    /// The descriptions of cases that ended in errors.
    pub errors: Vec<String>,
}

/// The cases that run against each fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Breadth {
    /// The cases that list the fault.
    Claimed,
    /// All cases.
    Full,
}

/// An error in the suite.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Finding {
    /// No case lists the fault under `catches`.
    Unclaimed(&'static str),
    /// A case lists a fault that the server does not have.
    Unknown {
        /// The case.
        case: String,
        /// The unknown name.
        fault: String,
    },
    /// A case lists a fault and does not catch it.
    Missed {
        /// The case.
        case: String,
        /// The fault.
        fault: &'static str,
        /// The verdict of the case.
        verdict: Verdict,
    },
    /// A case lists no fault, so nothing proves that it can fail.
    CatchesNothing(String),
    /// No requirement is listed that the fault breaks.
    BreaksNothing(&'static str),
    /// A case lists a fault that breaks none of the requirements of the case.
    Unrelated {
        /// The case.
        case: String,
        /// The fault.
        fault: &'static str,
    },
    /// No case of the requirement lists a fault that breaks it, so nothing proves that a violation
    /// would be found.
    Unproven(String),
    /// A case ended in an error instead of a verdict.
    Error {
        /// The fault.
        fault: &'static str,
        /// The description of the error.
        text: String,
    },
}

impl Row {
    fn add(&mut self, result: &CaseResult) {
        if result.verdict == Verdict::Error {
            self.errors.push(format!("{} @ {} {}", result.id, result.subject, explain(result)));
        } else {
            let worst = self.verdicts.entry(result.id.clone()).or_insert(result.verdict);
            *worst = (*worst).max(result.verdict);
        }
    }

    /// Returns the cases that caught the fault.
    pub fn caught_by(&self) -> impl Iterator<Item = &str> {
        self.verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Warn | Verdict::Fail))
            .map(|(id, _)| id.as_str())
    }
}

/// Runs the cases against a server with one fault, each under the newest edition that judges it.
pub async fn row(
    catalogue: &Catalogue,
    fault: Fault,
    breadth: Breadth,
) -> Result<Row, SelfTestError> {
    let mut row = Row { fault, verdicts: BTreeMap::new(), errors: Vec::new() };
    let mut cases: BTreeMap<Edition, Vec<Pattern>> = BTreeMap::new();
    let claims = claims(catalogue, fault);
    for case in &catalogue.cases {
        if breadth == Breadth::Full || claims.contains(&case.id.as_str()) {
            let edition = case.editions.iter().copied().max().unwrap_or(Edition::Head);
            cases.entry(edition).or_default().push(case.id.parse()?);
        }
    }
    for (edition, only) in cases {
        let selection = Selection { only, ..Selection::default() };
        let options = RunOptions {
            selection,
            edition,
            case_timeout: CASE_TIMEOUT,
            stalled_after: Some(STALL_TIMEOUT),
            longest_pause: LONGEST_PAUSE,
            ..RunOptions::default()
        };
        let faults = Faults::none().with(fault);
        let server =
            Bundled::start(Config { faults, history: SHORT_HISTORY, ..Config::default() }).await?;
        let results = server.run(catalogue, &options).await?;
        server.stop().await;
        for result in results {
            row.add(&result);
        }
    }
    Ok(row)
}

/// Returns the cases that list a fault.
pub fn claims(catalogue: &Catalogue, fault: Fault) -> Vec<&str> {
    let claim = |case: &&Case| case.catches.iter().any(|name| name == fault.name());
    catalogue.cases.iter().filter(claim).map(|case| case.id.as_str()).collect()
}

/// Returns the errors of the suite that a row shows.
pub fn judge(catalogue: &Catalogue, row: &Row) -> BTreeSet<Finding> {
    let (fault, claims) = (row.fault.name(), claims(catalogue, row.fault));
    let mut findings: BTreeSet<Finding> =
        row.errors.iter().map(|text| Finding::Error { fault, text: text.clone() }).collect();
    if claims.is_empty() {
        findings.insert(Finding::Unclaimed(fault));
    }
    for case in claims {
        let verdict = row.verdicts.get(case).copied().unwrap_or(Verdict::Skip);
        if verdict < Verdict::Warn {
            findings.insert(Finding::Missed { case: case.to_owned(), fault, verdict });
        }
    }
    findings
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclaimed(fault) => write!(f, "no case lists {fault} under `catches`"),
            Self::Unknown { case, fault } => {
                write!(f, "{case} lists {fault}, which the bundled server does not have")
            }
            Self::Missed { case, fault, verdict } => {
                write!(f, "{case} lists {fault}, but its verdict is {verdict:?}")
            }
            Self::CatchesNothing(case) => write!(f, "{case} lists no fault that it catches"),
            Self::BreaksNothing(fault) => {
                write!(f, "cases/data/faults.yaml lists no requirement that {fault} breaks")
            }
            Self::Unrelated { case, fault } => {
                write!(f, "{case} lists {fault}, which breaks none of the requirements of the case")
            }
            Self::Unproven(requirement) => {
                write!(f, "no case that names {requirement} lists a fault that breaks it")
            }
            Self::Error { fault, text } => write!(f, "with {fault}: {text}"),
        }
    }
}
