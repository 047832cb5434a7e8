//! Events of a run: the only connection between running and reporting.

mod skip_reason;
mod stopped;
mod symptom;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubeproof_cases::Profile;
use kubeproof_cases::case::{Case, Edition, Level};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exchange::Exchange;

pub use self::skip_reason::SkipReason;
pub use self::stopped::{StopReason, Stopped};
pub use self::symptom::Symptom;

/// Something that happened in a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// The plan is complete. Comes first, once.
    RunStarted(RunStarted),
    /// A case starts on a subject.
    CaseStarted {
        /// The case.
        id: String,
        /// The subject; empty without one.
        subject: String,
    },
    /// A case has its verdict. Skipped cases have no start event.
    CaseFinished(Arc<CaseResult>),
    /// A message about the run itself, such as a resource without cases.
    Notice(String),
    /// A message about objects that the run leaves in the server.
    Leftover(String),
    /// A message about the current work of the run. Reports do not keep it.
    Progress(String),
    /// The run ended, for any reason. Comes last, once.
    RunFinished(RunFinished),
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct RunStarted {
    /// The target.
    pub target: Target,
    /// The edition that the run is judged by.
    pub edition: Edition,
    /// True for `--letter`: deviations fail.
    pub letter: bool,
    /// The seed of case order and names.
    pub seed: u64,
    /// `sha256:...` over all case files.
    pub catalogue_digest: String,
    /// Number of results to come, skips included.
    pub planned: usize,
    /// The part of the run; `None` for a whole run.
    pub shard: Option<Shard>,
    /// The options that decide which results the shards of the run have. Empty if they have all.
    pub selection: String,
    /// The start of the run.
    pub started_at: Timestamp,
    /// The command line without secrets; empty if a library started the run.
    pub command: String,
}

/// One of N disjoint parts of a run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Shard {
    /// Counted from 1.
    pub index: usize,
    /// The number of parts.
    pub count: usize,
}

/// Facts about the target.
#[derive(Clone, Debug, Default, Deserialize, Serialize, schemars::JsonSchema)]
pub struct Target {
    /// URL without credentials.
    pub server: String,
    /// The server is the bundled one, which lives only as long as the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bundled: bool,
    /// `gitVersion` of /version, if the server returns it.
    pub version: Option<String>,
    /// Namespace of the run.
    pub namespace: String,
    /// Names of the capabilities of the target.
    pub capabilities: Vec<String>,
}

/// The name of the bundled server in messages.
pub const BUNDLED: &str = "the bundled reference server";

impl Target {
    /// Returns the URL, or the name of the bundled server.
    pub fn name(&self) -> &str {
        if self.bundled { BUNDLED } else { &self.server }
    }
}

/// The result of one case on one subject.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// `area/name`.
    pub id: String,
    /// Such as `configmaps.v1`; empty without subject.
    pub subject: String,
    /// Level of the case.
    pub level: Level,
    /// Profile of the case; `None` for cases of users in areas of their own.
    pub profile: Option<Profile>,
    /// Requirements that the case covers.
    pub requirements: Vec<String>,
    /// The behaviour that the case expects.
    pub summary: String,
    /// Who relies on the behaviour.
    pub why: Option<String>,
    /// The worst verdict of the checks.
    pub verdict: Verdict,
    /// One line that explains the verdict; empty for pass.
    pub reason: String,
    /// Why the case is skipped; `None` for other verdicts.
    pub skip: Option<SkipReason>,
    /// Wall time.
    pub duration: Duration,
    /// Checks of the framing of streams, then all others in the order of judging. A check of many
    /// iterations has its worst verdict.
    pub checks: Vec<CheckResult>,
    /// Everything sent and received, in the order of sending.
    pub exchanges: Vec<NamedExchange>,
    /// The matching entry of the list of known failures.
    pub known: Option<Known>,
}

impl CaseResult {
    pub(crate) fn bare(case: &Case, subject: String, judgement: Judgement) -> Self {
        let Judgement { verdict, reason, skip } = judgement;
        Self {
            id: case.id.clone(),
            subject,
            level: case.level,
            profile: case.profile,
            requirements: case.requirements.clone(),
            summary: case.summary.clone(),
            why: case.why.clone(),
            verdict,
            reason,
            skip,
            duration: Duration::ZERO,
            checks: Vec::new(),
            exchanges: Vec::new(),
            known: None,
        }
    }

    /// Reports whether this result fails the run. With `strict`, warnings and deviations do.
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

/// A matching entry of the list of known failures. It does not change the verdict.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Known {
    /// Why the failure is accepted, from the list.
    pub reason: String,
    /// Why the entry does not excuse this result: the case passes, fails differently, or the entry
    /// has expired. `None` if the result is the known failure.
    pub surprise: Option<String>,
}

/// An exchange with the step that made it.
#[derive(Clone, Debug)]
pub struct NamedExchange {
    /// The step, with its iterations: `writers[3].put`.
    pub step: String,
    /// The request and its response.
    pub exchange: Arc<Exchange>,
}

/// The result of one check.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CheckResult {
    /// Stays the same when the case is edited.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Level of the check.
    pub level: Level,
    /// Requirements of the case that the check covers.
    pub requirements: Vec<String>,
    /// The expected value.
    pub expected: Value,
    /// The actual value.
    pub actual: Value,
    /// Places in published schemas that break a design rule; empty for other checks.
    pub places: Vec<Place>,
    /// One line; empty for pass.
    pub message: String,
    /// What a failure means for clients.
    pub means: Option<String>,
    /// Unified diff of expected and actual values, if both are structured.
    pub diff: Option<String>,
    /// A curl command that repeats the request, with `$TOKEN` for credentials.
    pub curl: Option<String>,
    /// The items of the loops around the check, by the variable of each loop; empty for pass.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub items: BTreeMap<String, Value>,
    /// The step of the judged exchange, as in [`NamedExchange::step`].
    pub step: String,
    /// All steps whose exchanges decided the check, in the order of sending.
    pub steps: Vec<String>,
    /// What went wrong, as data; `None` for pass.
    pub symptom: Option<Symptom>,
    /// The case that reports a defect, which this check met and does not report again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_by: Option<String>,
}

/// A place in a published schema that breaks a design rule.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Place {
    /// The type and the path of the field, such as `widgets.v1.example.com spec.items[].mode`.
    pub at: String,
    /// What breaks the rule.
    pub message: String,
    /// Why Kubernetes keeps it, for historical exceptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Position in the file, for schemas from files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<FilePosition>,
}

/// A place in a file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FilePosition {
    /// The file name of the command line.
    pub file: String,
    /// Counted from 1.
    pub line: u64,
    /// In characters, counted from 1.
    pub column: u64,
}

/// The verdict of a check or a case. Ordered from best to worst.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Not judged, for a reason.
    Skip,
    /// The behaviour that the conventions require.
    Pass,
    /// The behaviour of deployed servers, which differs from the strict text.
    Deviation,
    /// A SHOULD (or MAY) failed.
    Warn,
    /// A MUST failed.
    Fail,
    /// The harness could not decide.
    Error,
}

impl Verdict {
    /// Returns the weight of a verdict among several at a level. A failure outweighs an error: it
    /// stays a failure, whatever the harness could not decide after it. Below MUST, a failure is a
    /// warning.
    pub fn weight(self, level: Level) -> usize {
        match (self, level) {
            (Self::Fail, _) => Self::Error as usize + 2,
            (Self::Warn, Level::Should | Level::May) => Self::Error as usize + 1,
            (other, _) => other as usize,
        }
    }
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct RunFinished {
    /// Number of results per verdict.
    pub summary: BTreeMap<Verdict, usize>,
    /// Wall time, including cleanup.
    pub duration: Duration,
    /// True after an interrupt. Results are missing then.
    pub interrupted: bool,
    /// Why the run ended before all cases ran; `None` for a complete run.
    pub stopped: Option<Stopped>,
    /// Entries of the list of known failures that must change, one line each.
    pub stale_entries: Vec<String>,
}

/// The verdict of a case, and its reason.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    /// One line; empty for pass.
    pub(crate) reason: String,
    pub(crate) skip: Option<SkipReason>,
}

impl Judgement {
    pub(crate) fn skipped(reason: SkipReason) -> Self {
        Self { verdict: Verdict::Skip, reason: reason.to_string(), skip: Some(reason) }
    }

    /// Creates the judgement of a case that the harness could not decide.
    pub(crate) fn error(reason: String) -> Self {
        Self { verdict: Verdict::Error, reason, skip: None }
    }

    /// Returns the worst verdict of the checks of a case at this level, and its reason.
    pub(crate) fn of(checks: &[CheckResult], level: Level) -> Self {
        let verdicts = checks.iter().map(|check| check.verdict);
        let worst = verdicts.max_by_key(|verdict| verdict.weight(level));
        let first = checks.iter().find(|check| Some(check.verdict) == worst);
        let Some(check) = first else {
            // Only a case whose steps had nothing to work on gets here.
            return Self::skipped(SkipReason::NothingToJudge);
        };
        let reason = match check.verdict {
            Verdict::Pass => String::new(),
            Verdict::Skip if let Some(case) = &check.reported_by => {
                let (defect, case) = (check.message.clone(), case.clone());
                return Self::skipped(SkipReason::Reported { defect, case });
            }
            Verdict::Skip => {
                return Self::skipped(SkipReason::NoSchema { detail: check.message.clone() });
            }
            _ => match check.message.lines().next() {
                Some(line) => format!("{}: {line}", check.id),
                None => check.id.clone(),
            },
        };
        Self { verdict: check.verdict, reason, skip: None }
    }
}
