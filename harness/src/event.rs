//! What a run tells: the single bridge between running and reporting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::case::{Edition, Level};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exchange::Exchange;

/// One thing that happened in a run. Reports see nothing else.
#[derive(Clone, Debug)]
pub enum Event {
    /// The plan stands; first, once.
    RunStarted(RunStarted),
    /// A case begins on a subject.
    CaseStarted {
        /// The case.
        id: String,
        /// The subject, or empty.
        subject: String,
    },
    /// A case has its verdict. Skipped ones come without a start.
    CaseFinished(Arc<CaseResult>),
    /// Something about the run itself that a person should know (cleanup that failed, ...).
    Notice(String),
    /// Last, once, however the run ended.
    RunFinished(RunFinished),
}

/// The head of a run.
#[derive(Clone, Debug)]
pub struct RunStarted {
    /// The URL, without credentials; `embedded` for the bundled server.
    pub target: Target,
    /// What the run is judged by.
    pub edition: Edition,
    /// The letter alone counts.
    pub letter: bool,
    /// The order of the cases, and the names.
    pub seed: u64,
    /// `sha256:...` over all case files.
    pub catalogue_digest: String,
    /// Results to come, skips included.
    pub planned: usize,
}

/// What is known of the target.
#[derive(Clone, Debug, Default, Deserialize, Serialize, schemars::JsonSchema)]
pub struct Target {
    /// Without credentials.
    pub server: String,
    /// From /version, if it answers; `gitVersion`.
    pub version: Option<String>,
    /// Namespace of the run.
    pub namespace: String,
    /// Names of the capabilities found.
    pub capabilities: Vec<String>,
}

/// One case on one subject, judged.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// `area/name`.
    pub id: String,
    /// As `configmaps.v1`, or empty.
    pub subject: String,
    /// Of the case.
    pub level: Level,
    /// What the case proves.
    pub requirements: Vec<String>,
    /// What a correct server does.
    pub summary: String,
    /// Who relies on it.
    pub why: Option<String>,
    /// The worst of the checks.
    pub verdict: Verdict,
    /// One line: why the verdict is what it is; empty for pass.
    pub reason: String,
    /// Wall time.
    pub duration: Duration,
    /// In the order they were judged; each id once, the worst verdict if it was judged in many iterations.
    pub checks: Vec<CheckResult>,
    /// Everything that was sent and received, in order of sending.
    pub exchanges: Vec<NamedExchange>,
    /// What the list of known failures says of it; `None` when it is not listed.
    pub known: Option<Known>,
}

impl CaseResult {
    /// Whether the run ends with failures because of this result. With `strict`, warnings and deviations count.
    pub fn fails_run(&self, strict: bool) -> bool {
        match &self.known {
            Some(known) => known.surprise.is_some(),
            None => match self.verdict {
                Verdict::Fail | Verdict::Error => true,
                Verdict::Warn | Verdict::Deviation => strict,
                Verdict::Pass | Verdict::Skip => false,
            },
        }
    }
}

/// An entry of the list of known failures, held against a result. The verdict stays what it is.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Known {
    /// Why the failure is accepted, from the list.
    pub reason: String,
    /// Why the entry does not excuse this result: it passes now, fails otherwise, the entry has expired. `None`:
    /// the result is the known one and does not fail the run.
    pub surprise: Option<String>,
}

/// An exchange with the step that made it.
#[derive(Clone, Debug)]
pub struct NamedExchange {
    /// The step, with its iterations: `writers[3].put`.
    pub step: String,
    /// What was sent and received.
    pub exchange: Arc<Exchange>,
}

/// One check, judged.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CheckResult {
    /// Stable under editing of the case.
    pub id: String,
    /// How it was judged.
    pub verdict: Verdict,
    /// Of the check.
    pub level: Level,
    /// The part of the case's requirements that it judges.
    pub requirements: Vec<String>,
    /// What was asked for.
    pub expected: Value,
    /// What came.
    pub actual: Value,
    /// Places in published schemas that break a design rule; empty for other checks.
    pub places: Vec<Place>,
    /// One line; empty for pass.
    pub message: String,
    /// What it means when it is broken.
    pub means: Option<String>,
    /// A diff of expected and actual, when both are structured; plain text, unified.
    pub diff: Option<String>,
    /// A curl line that repeats the exchange, credentials replaced by `$TOKEN`.
    pub curl: Option<String>,
    /// The step whose exchange it judged, as in [`NamedExchange::step`].
    pub step: String,
}

/// A place in a published schema that breaks a design rule.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Place {
    /// The type and the path of the field, as `widgets.v1.example.com spec.items[].mode`.
    pub at: String,
    /// What is wrong there.
    pub message: String,
    /// Why it stays, when Kubernetes itself has it by history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Where it was written, when the schema came from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<FilePosition>,
}

/// A place in a file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FilePosition {
    /// As it was named on the command line.
    pub file: String,
    /// Counted from 1.
    pub line: u64,
    /// In characters, counted from 1.
    pub column: u64,
}

/// How a check, or a case, came out. Ordered from best to worst.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Not judged, for a reason.
    Skip,
    /// As the conventions say.
    Pass,
    /// As deployed servers do, not as the letter says.
    Deviation,
    /// A SHOULD (or MAY) failed.
    Warn,
    /// A MUST failed.
    Fail,
    /// The harness could not tell.
    Error,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct RunFinished {
    /// Results by verdict.
    pub summary: BTreeMap<Verdict, usize>,
    /// Wall time, cleanup included.
    pub duration: Duration,
    /// It was interrupted; results are missing.
    pub interrupted: bool,
}
