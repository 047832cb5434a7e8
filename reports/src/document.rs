//! The results of a run as data: what every report renders, and what a JSON report holds.
//!
//! The fields named in the contract come first and keep their meaning for the whole life of the schema version; others
//! may be added. Everything added has a default, so that reports of older versions can be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use kubeproof_cases::case::{Edition, Level};
use kubeproof_harness::event::{Known, Place, RunFinished, RunStarted, Target, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The value of `schema` in every JSON report of this form.
pub const SCHEMA: &str = "kubeproof.report/v1";

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Document {
    /// What was judged, and by what.
    pub head: Head,
    /// Results by verdict.
    pub summary: Summary,
    /// Wall time in milliseconds, cleanup included.
    pub duration_ms: f64,
    /// The run was interrupted; results are missing.
    pub interrupted: bool,
    /// What a person should know about the run itself.
    pub notices: Vec<String>,
    /// Sorted by id, then subject.
    pub results: Vec<Record>,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            head: Head::default(),
            summary: Summary::default(),
            duration_ms: 0.0,
            // Until the end was told, it has not come.
            interrupted: true,
            notices: Vec::new(),
            results: Vec::new(),
        }
    }
}

/// The head of a run.
#[derive(Clone, Debug)]
pub struct Head {
    /// What was tested.
    pub target: Target,
    /// The state of the conventions that counted.
    pub edition: Edition,
    /// The letter alone counted.
    pub letter: bool,
    /// The order of the cases, and the names.
    pub seed: u64,
    /// `sha256:...` over all case files.
    pub catalogue_digest: String,
    /// Results to come, skips included.
    pub planned: usize,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            target: Target::default(),
            edition: Edition::Head,
            letter: false,
            seed: 0,
            catalogue_digest: String::new(),
            planned: 0,
        }
    }
}

impl From<&RunStarted> for Head {
    fn from(started: &RunStarted) -> Self {
        Self {
            target: started.target.clone(),
            edition: started.edition,
            letter: started.letter,
            seed: started.seed,
            catalogue_digest: started.catalogue_digest.clone(),
            planned: started.planned,
        }
    }
}

/// Results by verdict.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Summary {
    /// As the conventions say.
    pub pass: usize,
    /// As deployed servers do, not as the letter says.
    pub deviation: usize,
    /// A SHOULD or MAY failed.
    pub warn: usize,
    /// A MUST failed.
    pub fail: usize,
    /// Not judged.
    pub skip: usize,
    /// The harness could not tell.
    pub error: usize,
}

impl Summary {
    /// Verdicts and their counts, best first, skips last: the order in which people read them.
    pub fn counts(&self) -> [(Verdict, usize); 6] {
        [
            (Verdict::Pass, self.pass),
            (Verdict::Deviation, self.deviation),
            (Verdict::Warn, self.warn),
            (Verdict::Fail, self.fail),
            (Verdict::Error, self.error),
            (Verdict::Skip, self.skip),
        ]
    }

    /// All results.
    pub fn total(&self) -> usize {
        self.counts().iter().map(|(_, count)| count).sum()
    }

    /// Counts one result more.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Skip => &mut self.skip,
            Verdict::Pass => &mut self.pass,
            Verdict::Deviation => &mut self.deviation,
            Verdict::Warn => &mut self.warn,
            Verdict::Fail => &mut self.fail,
            Verdict::Error => &mut self.error,
        } += 1;
    }
}

/// One case on one subject, judged.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Record {
    /// `area/name`.
    pub id: String,
    /// As `configmaps.v1`; empty for a case without a subject.
    pub subject: String,
    /// Of the case.
    pub level: Level,
    /// What the case proves.
    pub requirements: Vec<String>,
    /// The worst of the checks.
    pub verdict: Verdict,
    /// One line: why the verdict is what it is; empty for pass.
    pub reason: String,
    /// Wall time in milliseconds.
    pub duration_ms: f64,
    /// In the order in which they were judged.
    pub checks: Vec<CheckRecord>,
    /// What a correct server does.
    #[serde(default)]
    pub summary: String,
    /// Who relies on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What the list of known failures says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
    /// What was sent and received; in JSON reports only when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<ExchangeRecord>,
}

impl Record {
    /// The part of the id before the slash.
    pub fn area(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(area, _)| area)
    }

    /// `id @ subject`, or the id alone.
    pub fn title(&self) -> String {
        if self.subject.is_empty() { self.id.clone() } else { format!("{} @ {}", self.id, self.subject) }
    }

    /// Worth telling in detail: not as it should be.
    pub fn is_remarkable(&self) -> bool {
        !matches!(self.verdict, Verdict::Pass | Verdict::Skip) || self.surprise().is_some()
    }

    /// The result that the list of known failures promised.
    pub fn is_known(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.surprise.is_none())
    }

    /// Why the list of known failures is wrong about this result.
    pub fn surprise(&self) -> Option<&str> {
        self.known.as_ref()?.surprise.as_deref()
    }

    /// One line for a person: the reason of the verdict, and what the list of known failures adds.
    pub fn headline(&self) -> String {
        match &self.known {
            None => self.reason.clone(),
            Some(Known { surprise: Some(surprise), .. }) if self.reason.is_empty() => surprise.clone(),
            Some(Known { surprise: Some(surprise), .. }) => format!("{} ({surprise})", self.reason),
            Some(Known { reason, surprise: None }) => format!("{} (known: {reason})", self.reason),
        }
    }

    /// The checks that did not pass, worst first.
    pub fn broken_checks(&self) -> Vec<&CheckRecord> {
        let mut checks: Vec<_> = self
            .checks
            .iter()
            .filter(|check| !matches!(check.verdict, Verdict::Pass | Verdict::Skip))
            .collect();
        checks.sort_by_key(|check| std::cmp::Reverse(check.verdict));
        checks
    }

    /// The exchange that a step made.
    pub fn exchange(&self, step: &str) -> Option<&ExchangeRecord> {
        self.exchanges.iter().find(|exchange| exchange.step == step)
    }
}

/// One check, judged.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct CheckRecord {
    /// Stable under editing of the case.
    pub id: String,
    /// How it was judged.
    pub verdict: Verdict,
    /// What was asked for.
    #[serde(default)]
    pub expected: Value,
    /// What came.
    #[serde(default)]
    pub actual: Value,
    /// Places in published schemas that break a design rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Of the check.
    pub level: Level,
    /// The part of the case's requirements that it judges.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// One line; empty for pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What it means when it is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<String>,
    /// Expected and actual side by side, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Repeats the exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curl: Option<String>,
    /// The step whose exchange it judged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
}

/// One request and what came back, as text.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct ExchangeRecord {
    /// The step that made it, with its iterations.
    pub step: String,
    /// As `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Whose credential went with it: `admin`, `second`, `anonymous`, `invalid`.
    pub identity: String,
    /// In order.
    pub request_headers: Vec<(String, String)>,
    /// Empty for none.
    pub request_body: String,
    /// From the start of the run, in milliseconds.
    pub started_ms: f64,
    /// Until the last byte, in milliseconds.
    pub took_ms: f64,
    /// The HTTP code; none when no answer came.
    pub status: Option<u16>,
    /// As `HTTP/1.1`.
    pub http_version: String,
    /// In order.
    pub response_headers: Vec<(String, String)>,
    /// Empty for none.
    pub response_body: String,
    /// What is wrong with the body as JSON.
    pub json_fault: Option<String>,
    /// The events of a watch.
    pub events: Vec<EventRecord>,
    /// Frames of a stream, both ways: its beginning, and its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<FrameRecord>,
    /// How a watch or a stream ended.
    pub end: Option<String>,
    /// Why no answer came.
    pub broken: Option<String>,
}

/// One frame of a stream, or what stands for frames that are left out.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct FrameRecord {
    /// `server` or `client`.
    pub from: String,
    /// As `binary`, `SYN_REPLY`.
    pub kind: String,
    /// As `stdout`; none for what belongs to no channel.
    pub channel: Option<String>,
    /// Bytes of the payload.
    pub size: usize,
    /// Their beginning.
    pub text: String,
    /// What else its kind carries.
    pub detail: Value,
    /// From the start of the run, in milliseconds.
    pub at_ms: f64,
}

/// One event of a watch.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct EventRecord {
    /// As `ADDED`.
    pub kind: String,
    /// Its object.
    pub object: Value,
    /// From the start of the run, in milliseconds.
    pub at_ms: f64,
}

impl Document {
    /// Counts and keeps a result.
    pub fn add(&mut self, record: Record) {
        self.summary.add(record.verdict);
        self.results.push(record);
    }

    /// Takes in the end of the run, and puts the results into their stable order.
    pub fn close(&mut self, finished: &RunFinished) {
        self.duration_ms = milliseconds(finished.duration);
        self.interrupted = finished.interrupted;
        self.sort();
    }

    /// Results because of which the run fails at this strictness: what is wrong with the target, and wrong entries of
    /// the list of known failures. The rule is that of [`kubeproof_harness::event::CaseResult::fails_run`].
    pub fn failures(&self, strict: bool) -> impl Iterator<Item = &Record> {
        self.results.iter().filter(move |record| match record.verdict {
            _ if record.known.is_some() => record.surprise().is_some(),
            Verdict::Fail => true,
            Verdict::Warn | Verdict::Deviation => strict,
            Verdict::Pass | Verdict::Skip | Verdict::Error => false,
        })
    }

    /// Results about which nothing could be said, unless that is known.
    pub fn errors(&self) -> impl Iterator<Item = &Record> {
        self.results.iter().filter(|record| record.verdict == Verdict::Error && record.known.is_none())
    }

    /// Results by area, then by verdict.
    pub fn areas(&self) -> BTreeMap<&str, Summary> {
        let mut areas = BTreeMap::<_, Summary>::new();
        for record in &self.results {
            areas.entry(record.area()).or_default().add(record.verdict);
        }
        areas
    }

    pub(crate) fn sort(&mut self) {
        self.results.sort_by(|a, b| (&a.id, &a.subject).cmp(&(&b.id, &b.subject)));
    }
}

/// To the microsecond.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the report {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no report.
    #[error("{} is no JSON report of kubeproof: {source}; give a file that --json wrote", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// It is a report of another version.
    #[error("{} has the schema {found:?}, and this version reads {SCHEMA:?}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// What stands there.
        found: String,
    },
}

impl Document {
    /// Reads a JSON report.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = fs::read(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
        let wire: crate::json::Wire = serde_json::from_slice(&text)
            .map_err(|source| LoadError::Parse { path: path.to_owned(), source })?;
        if wire.schema != SCHEMA {
            return Err(LoadError::Schema { path: path.to_owned(), found: wire.schema });
        }
        Ok(wire.into())
    }
}
