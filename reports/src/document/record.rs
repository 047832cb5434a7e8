//! One result: a case on a subject, with its checks.

use std::collections::BTreeMap;
use std::fmt;

use kubeproof_cases::Profile;
use kubeproof_cases::case::Level;
use kubeproof_harness::event::{Known, Place, Symptom, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ExchangeRecord;

/// The start of the ids of results about required features.
const REQUIRED: &str = "required/";

/// One case on one subject, judged.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Record {
    /// `area/name`.
    pub id: String,
    /// For example `configmaps.v1`. Empty for a case without a subject.
    pub subject: String,
    /// The level of the case.
    pub level: Level,
    /// The profile of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The ids of the requirements that the case checks.
    pub requirements: Vec<String>,
    /// The worst verdict of the checks.
    pub verdict: Verdict,
    /// The reason of the verdict in one line. Empty for pass.
    pub reason: String,
    /// The stable code of a skip, such as `missing-capability`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
    /// The case whose failure blocks this one, for a skip with the code `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Wall time in milliseconds.
    pub duration_ms: f64,
    /// The checks in the order in which they were judged.
    pub checks: Vec<CheckRecord>,
    /// The behaviour of a correct server.
    #[serde(default)]
    pub summary: String,
    /// Why clients rely on this behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The entry of the list of known failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
    /// The requests and responses. A JSON report contains only those that decided the example of a
    /// cause. A trace contains all requests and responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<ExchangeRecord>,
}

/// A feature that the command line required (`--require`, `--require-profile`). It is a result of
/// its own, and no case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequiredFeature<'a> {
    /// A capability of the target.
    Capability(&'a str),
    /// A profile whose cases the target must run.
    Profile(&'a str),
}

impl fmt::Display for RequiredFeature<'_> {
    /// Writes the option of the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capability(name) => write!(f, "--require {name}"),
            Self::Profile(name) => write!(f, "--require-profile {name}"),
        }
    }
}

/// One check, judged.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct CheckRecord {
    /// Stable while the case is edited.
    pub id: String,
    /// The verdict of the check.
    pub verdict: Verdict,
    /// The expected value.
    #[serde(default)]
    pub expected: Value,
    /// The actual value.
    #[serde(default)]
    pub actual: Value,
    /// Places in published schemas that break a design rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// The level of the check.
    pub level: Level,
    /// The ids of the requirements that this check judges.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// The reason of the verdict in one line. Empty for pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What a failure of the check means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<String>,
    /// The expected and the actual value as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// A curl command that repeats the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curl: Option<String>,
    /// The items of the loops around the check, by the variable of each loop.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub items: BTreeMap<String, Value>,
    /// The step whose exchange was judged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// All steps whose exchanges decided the check, in the order of sending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What went wrong, as data. Reports group failures by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symptom: Option<Symptom>,
    /// The case that reports a defect, which this check met and does not report again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_by: Option<String>,
}

impl Record {
    /// Returns the required feature that the result is about. `None` for cases.
    pub fn required_feature(&self) -> Option<RequiredFeature<'_>> {
        let name = self.id.strip_prefix(REQUIRED)?;
        let is_profile = self.checks.iter().any(|check| check.expected.get("profile").is_some());
        Some(if is_profile {
            RequiredFeature::Profile(name)
        } else {
            RequiredFeature::Capability(name)
        })
    }

    /// Returns the part of the id before the slash.
    pub fn area(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(area, _)| area)
    }

    /// Returns `id @ subject`, or the id alone.
    pub fn title(&self) -> String {
        if self.subject.is_empty() {
            self.id.clone()
        } else {
            format!("{} @ {}", self.id, self.subject)
        }
    }

    /// Returns whether reports show the details: the result is neither pass nor skip, or differs
    /// from the list of known failures.
    pub fn needs_attention(&self) -> bool {
        !matches!(self.verdict, Verdict::Pass | Verdict::Skip) || self.surprise().is_some()
    }

    /// Returns whether the result is the one that the list of known failures expects.
    pub fn is_known(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.surprise.is_none())
    }

    /// Returns how the result differs from the list of known failures.
    pub fn surprise(&self) -> Option<&str> {
        self.known.as_ref()?.surprise.as_deref()
    }

    /// Returns the reason of the verdict and the entry of the list of known failures in one line.
    pub fn headline(&self) -> String {
        match &self.known {
            None => self.reason.clone(),
            Some(Known { surprise: Some(surprise), .. }) if self.reason.is_empty() => {
                surprise.clone()
            }
            Some(Known { surprise: Some(surprise), .. }) => format!("{} ({surprise})", self.reason),
            Some(Known { reason, surprise: None }) => format!("{} (known: {reason})", self.reason),
        }
    }

    /// Returns the checks that did not pass, worst first.
    pub fn failed_checks(&self) -> Vec<&CheckRecord> {
        let failed = |check: &&CheckRecord| !matches!(check.verdict, Verdict::Pass | Verdict::Skip);
        let mut checks: Vec<_> = self.checks.iter().filter(failed).collect();
        checks.sort_by_key(|check| std::cmp::Reverse(check.verdict));
        checks
    }

    /// Returns the exchanges that decided a check, in the order of sending.
    pub fn exchanges_of(&self, check: &CheckRecord) -> Vec<&ExchangeRecord> {
        if check.steps.is_empty() {
            return self.exchange(&check.step).into_iter().collect();
        }
        check.steps.iter().filter_map(|step| self.exchange(step)).collect()
    }

    /// Returns the exchange of a step.
    pub fn exchange(&self, step: &str) -> Option<&ExchangeRecord> {
        self.exchanges.iter().find(|exchange| exchange.step == step)
    }
}
