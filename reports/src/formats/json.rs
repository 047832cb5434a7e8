//! The JSON report, which other programs rely on.

use std::path::{Path, PathBuf};
use std::{fs, io};

use kubeproof_cases::case::Edition;
use kubeproof_harness::event::{Shard, Stopped, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::causes::{Cause, CauseRecord, causes};
use crate::document::{Document, Head, Record, SCHEMA, Summary};
use crate::report::ReportError;

/// The members of a JSON report.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(title = "A report of kubeproof")]
struct JsonReport {
    /// Always `kubeproof.report/v1`.
    schema: String,
    /// The server under test.
    target: Target,
    /// The edition of the conventions that the run was judged by.
    edition: Edition,
    /// The seed of the order of the cases and of generated names.
    seed: u64,
    /// `sha256:...` over all case files.
    catalogue_digest: String,
    /// Results by verdict.
    summary: Summary,
    /// Sorted by id, then subject.
    results: Vec<Record>,
    /// The version of kubeproof that wrote the report.
    #[serde(default)]
    version: String,
    /// Whether deviations failed (`--letter`).
    #[serde(default)]
    letter: bool,
    /// Wall time in milliseconds, cleanup included.
    #[serde(default)]
    duration_ms: f64,
    /// The run was interrupted, and results are missing.
    #[serde(default)]
    interrupted: bool,
    /// Why the run ended before all cases ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<Stopped>,
    /// Number of planned results, skips included.
    #[serde(default)]
    planned: usize,
    /// The part of the run (`--shard`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<Shard>,
    /// The options that decided which results the shards of the run have. Empty if they have all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    selection: Option<String>,
    /// The start of the run as RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// The command line without secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    command: String,
    /// The causes of failures, the one to fix first at the beginning. Readers that group results
    /// themselves can ignore them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    causes: Vec<CauseRecord>,
    /// Messages about the run itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    /// Entries of the list of known failures that must change. They fail the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stale_entries: Vec<String>,
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the report {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not a report.
    #[error(
        "{} is not a JSON report of kubeproof: {source}; expected a file that --json wrote",
        path.display()
    )]
    Parse {
        /// The file.
        path: PathBuf,
        /// The position and the cause.
        source: serde_json::Error,
    },
    /// The report has another schema version.
    #[error("{} has the schema {found:?}, expected {SCHEMA:?}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema of the file.
        found: String,
    },
}

/// Reads a JSON report.
pub fn load(path: &Path) -> Result<Document, LoadError> {
    let text =
        fs::read(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    let report: JsonReport = serde_json::from_slice(&text)
        .map_err(|source| LoadError::Parse { path: path.to_owned(), source })?;
    if report.schema != SCHEMA {
        return Err(LoadError::Schema { path: path.to_owned(), found: report.schema });
    }
    Ok(report.into())
}

/// Returns the JSON Schema of the report.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(JsonReport).to_value()
}

/// Renders the JSON report. Exchanges are large, so the report contains only the exchanges that
/// decided the example of a cause. A trace contains all exchanges.
pub(super) fn render(document: &Document) -> Result<String, ReportError> {
    let text = serde_json::to_string_pretty(&JsonReport::from(document))
        .map_err(|error| ReportError::Render { format: "JSON", message: error.to_string() })?;
    Ok(text + "\n")
}

impl From<&Document> for JsonReport {
    fn from(document: &Document) -> Self {
        let head = document.head.clone();
        let causes = causes(&document.results, false);
        let results = document.results.iter().map(|record| without_details(record, &causes));
        Self {
            schema: SCHEMA.to_owned(),
            target: head.target,
            edition: head.edition,
            seed: head.seed,
            catalogue_digest: head.catalogue_digest,
            summary: document.summary,
            results: results.collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            letter: head.letter,
            duration_ms: document.duration_ms,
            interrupted: document.interrupted,
            stopped: document.stopped.clone(),
            planned: head.planned,
            shard: head.shard,
            selection: head.selection,
            started_at: head.started_at,
            command: head.command,
            causes: causes.iter().map(CauseRecord::from).collect(),
            notices: document.notices.clone(),
            stale_entries: document.stale_entries.clone(),
        }
    }
}

/// Copies a result, without the exchanges that show no cause.
fn without_details(record: &Record, causes: &[Cause<'_>]) -> Record {
    let shown = causes.iter().filter(|cause| std::ptr::eq(cause.example, record));
    let exchanges = shown.flat_map(Cause::exchanges).cloned().collect();
    Record { exchanges, ..record.clone() }
}

impl From<JsonReport> for Document {
    fn from(report: JsonReport) -> Self {
        Self {
            head: Head {
                target: report.target,
                edition: report.edition,
                letter: report.letter,
                seed: report.seed,
                catalogue_digest: report.catalogue_digest,
                planned: report.planned,
                shard: report.shard,
                selection: report.selection,
                started_at: report.started_at,
                command: report.command,
            },
            summary: report.summary,
            duration_ms: report.duration_ms,
            interrupted: report.interrupted,
            stopped: report.stopped,
            notices: report.notices,
            has_leftovers: false,
            stale_entries: report.stale_entries,
            results: report.results,
        }
    }
}
