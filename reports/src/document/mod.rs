//! The results of a run as data. Every report renders them, and a JSON report contains them.
//!
//! Fields that the report contract fixes come first, and keep their meaning for the lifetime of the
//! schema version. Later versions may add fields. Each added field has a default, so that reports
//! of older versions stay readable.

mod exchange;
mod ladder;
mod outcome;
mod record;
mod summary;

pub use self::exchange::{EventRecord, ExchangeRecord, FrameRecord};
pub use self::ladder::Rung;
pub use self::outcome::Outcome;
pub use self::record::{CheckRecord, Record, RequiredFeature};
pub use self::summary::Summary;

use std::collections::BTreeMap;
use std::time::Duration;

use kubeproof_cases::case::Edition;
use kubeproof_harness::event::{RunFinished, RunStarted, Shard, Stopped, Target, Verdict};

/// The value of `schema` in every JSON report of this form.
pub const SCHEMA: &str = "kubeproof.report/v1";

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Document {
    /// The target, and the rules of the verdicts.
    pub head: Head,
    /// Results by verdict.
    pub summary: Summary,
    /// Wall time in milliseconds, cleanup included.
    pub duration_ms: f64,
    /// The run was interrupted, and results are missing.
    pub interrupted: bool,
    /// Why the run ended before all cases ran.
    pub stopped: Option<Stopped>,
    /// Messages about the run itself.
    pub notices: Vec<String>,
    /// True if notices name objects that the run left in the server. A JSON report does not tell.
    pub has_leftovers: bool,
    /// Entries of the list of known failures that must change. They fail the run.
    pub stale_entries: Vec<String>,
    /// Sorted by id, then subject.
    pub results: Vec<Record>,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            head: Head::default(),
            summary: Summary::default(),
            duration_ms: 0.0,
            // A run without an end event was interrupted.
            interrupted: true,
            stopped: None,
            notices: Vec::new(),
            has_leftovers: false,
            stale_entries: Vec::new(),
            results: Vec::new(),
        }
    }
}

/// The head of a run.
#[derive(Clone, Debug)]
pub struct Head {
    /// The server under test.
    pub target: Target,
    /// The edition of the conventions that the run was judged by.
    pub edition: Edition,
    /// Whether deviations failed (`--letter`).
    pub letter: bool,
    /// The seed of the order of the cases and of generated names.
    pub seed: u64,
    /// `sha256:...` over all case files.
    pub catalogue_digest: String,
    /// Number of planned results, skips included.
    pub planned: usize,
    /// The part of the run (`--shard`). `None` for a whole run.
    pub shard: Option<Shard>,
    /// The options that decided which results the shards of the run have. Empty if they have all.
    /// Older reports lack it.
    pub selection: Option<String>,
    /// The start of the run as RFC 3339 in UTC. Older reports lack it.
    pub started_at: Option<String>,
    /// The command line without secrets. Empty if it is unknown.
    pub command: String,
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
            shard: None,
            selection: None,
            started_at: None,
            command: String::new(),
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
            shard: started.shard,
            selection: Some(started.selection.clone()),
            started_at: Some(format!("{:.3}", started.started_at)),
            command: started.command.clone(),
        }
    }
}

impl Document {
    /// Returns the facts about the run that every report carries, by name. Unknown facts are left
    /// out.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let head = &self.head;
        let facts = [
            ("kubeproof", Some(env!("CARGO_PKG_VERSION").to_owned())),
            ("server", Some(head.target.server.clone())),
            ("version", head.target.version.clone()),
            ("edition", Some(head.edition.to_string())),
            ("started", head.started_at.clone()),
            ("seconds", Some(format!("{:.3}", self.duration_ms / 1000.0))),
            ("seed", Some(head.seed.to_string())),
            ("catalogue", Some(head.catalogue_digest.clone())),
            ("command", Some(head.command.clone()).filter(|command| !command.is_empty())),
            ("stopped", self.stopped.as_ref().map(ToString::to_string)),
            ("interrupted", self.interrupted.then(|| "results are missing".to_owned())),
        ];
        facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
    }

    /// Adds a result and counts it.
    pub fn add(&mut self, record: Record) {
        self.summary.add(record.verdict);
        self.results.push(record);
    }

    /// Records the end of the run, and sorts the results.
    pub fn close(&mut self, finished: &RunFinished) {
        self.duration_ms = milliseconds(finished.duration);
        self.interrupted = finished.interrupted;
        self.stopped.clone_from(&finished.stopped);
        self.stale_entries.clone_from(&finished.stale_entries);
        self.sort();
    }

    /// Returns the results that fail the run: failures of the target, and wrong entries in the list
    /// of known failures. If `strict`, warnings and deviations fail too. The rule is the same as
    /// [`kubeproof_harness::event::CaseResult::fails_run`].
    pub fn failures(&self, strict: bool) -> impl Iterator<Item = &Record> {
        self.results.iter().filter(move |record| match record.verdict {
            _ if record.known.is_some() => record.surprise().is_some(),
            Verdict::Fail => true,
            Verdict::Warn | Verdict::Deviation => strict,
            Verdict::Pass | Verdict::Skip | Verdict::Error => false,
        })
    }

    /// Returns the errors that are not in the list of known failures.
    pub fn errors(&self) -> impl Iterator<Item = &Record> {
        let errors = self.results.iter().filter(|record| record.verdict == Verdict::Error);
        errors.filter(|record| record.known.is_none())
    }

    /// Returns the counts of each area.
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

/// Returns milliseconds, rounded to the microsecond.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
