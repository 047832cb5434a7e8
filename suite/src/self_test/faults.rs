//! Servers that are wrong: every fault of the bundled server against the cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Edition};
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::run::RunOptions;
use kubeproof_harness::selection::{Pattern, Selection};
use kubeproof_reference_server::{Config, Fault, Faults};

use super::{Bundled, FORGETFUL, SelfTestError, explain};

/// For one case. Long, since many servers share the machine: a case that runs out of time has judged nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a watch or a stream costs that a fault keeps silent.
const STALLED_AFTER: Duration = Duration::from_secs(3);

/// Between two rounds of waiting for something that a fault may keep from happening. The server is in this process.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// One fault, and how the cases that ran against it came out.
#[derive(Clone, Debug)]
pub struct Row {
    /// The fault.
    pub fault: Fault,
    /// The worst verdict of each case over its subjects. A fault may show on some of them only: strategic merge has none of
    /// its rules on custom resources.
    pub verdicts: BTreeMap<String, Verdict>,
    /// What the cases that ended as errors say.
    pub errors: Vec<String>,
}

/// How many cases run against each fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Breadth {
    /// Those that say they catch it.
    Claimed,
    /// All of them.
    Full,
}

/// A mistake of the suite.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Finding {
    /// No case lists the fault under `catches`.
    Unclaimed(&'static str),
    /// A case lists a fault that the server does not have.
    Unknown {
        /// The case.
        case: String,
        /// What it lists.
        fault: String,
    },
    /// A case lists a fault and does not see it.
    Missed {
        /// The case.
        case: String,
        /// The fault.
        fault: &'static str,
        /// How it came out instead.
        verdict: Verdict,
    },
    /// A case that lists no fault: nothing shows that it can fail.
    CatchesNothing(String),
    /// Nobody has said what the fault breaks.
    Unexplained(&'static str),
    /// A case lists a fault that breaks none of the requirements which the case names: if it fails, then for another reason.
    Beside {
        /// The case.
        case: String,
        /// The fault.
        fault: &'static str,
    },
    /// No case that names the requirement lists a fault that breaks it: nothing shows that a breach would be seen.
    Unbroken(String),
    /// A case could not tell where it should have judged.
    Error {
        /// The fault.
        fault: &'static str,
        /// What the case says.
        text: String,
    },
}

impl Row {
    fn take(&mut self, result: &CaseResult) {
        if result.verdict == Verdict::Error {
            self.errors.push(format!("{} @ {} {}", result.id, result.subject, explain(result)));
        } else {
            let worst = self.verdicts.entry(result.id.clone()).or_insert(result.verdict);
            *worst = (*worst).max(result.verdict);
        }
    }

    /// The cases that saw the fault.
    pub fn caught_by(&self) -> impl Iterator<Item = &str> {
        self.verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Warn | Verdict::Fail))
            .map(|(id, _)| id.as_str())
    }
}

/// Runs the cases against a server with one fault. Each runs under the newest edition that judges it.
pub async fn row(catalogue: &Catalogue, fault: Fault, breadth: Breadth) -> Result<Row, SelfTestError> {
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
            case_timeout: PATIENCE,
            stalled_after: Some(STALLED_AFTER),
            longest_pause: LONGEST_PAUSE,
            ..RunOptions::default()
        };
        let faults = Faults::none().with(fault);
        let server = Bundled::start(Config { faults, history: FORGETFUL, ..Config::default() }).await?;
        let results = server.run(catalogue, &options).await?;
        server.stop().await;
        for result in results {
            row.take(&result);
        }
    }
    Ok(row)
}

/// The cases that say they catch a fault.
pub fn claims(catalogue: &Catalogue, fault: Fault) -> Vec<&str> {
    let claim = |case: &&Case| case.catches.iter().any(|name| name == fault.name());
    catalogue.cases.iter().filter(claim).map(|case| case.id.as_str()).collect()
}

/// What a row shows to be wrong.
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
                write!(f, "{case} says that it catches {fault}, and its verdict is {verdict:?}")
            }
            Self::CatchesNothing(case) => write!(f, "{case} lists no fault that it catches"),
            Self::Unexplained(fault) => write!(f, "cases/data/faults.yaml does not say what {fault} breaks"),
            Self::Beside { case, fault } => {
                write!(f, "{case} lists {fault}, which breaks none of the requirements that the case names")
            }
            Self::Unbroken(requirement) => {
                write!(f, "no case that names {requirement} lists a fault that breaks it")
            }
            Self::Error { fault, text } => write!(f, "with {fault}: {text}"),
        }
    }
}
