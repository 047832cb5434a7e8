//! The JSON report: the contract with other programs.

use kubeproof_cases::case::Edition;
use kubeproof_harness::event::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ReportError;
use crate::document::{Document, Head, Record, SCHEMA, Summary};

/// A JSON report, member by member as it stands in the file.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(title = "A report of kubeproof")]
pub struct Wire {
    /// Always `kubeproof.report/v1`.
    pub schema: String,
    /// What was tested.
    pub target: Target,
    /// The state of the conventions that counted.
    pub edition: Edition,
    /// The order of the cases, and the names.
    pub seed: u64,
    /// `sha256:...` over all case files.
    pub catalogue_digest: String,
    /// Results by verdict.
    pub summary: Summary,
    /// Sorted by id, then subject.
    pub results: Vec<Record>,
    /// The version of kubeproof that wrote it.
    #[serde(default)]
    pub version: String,
    /// The letter alone counted.
    #[serde(default)]
    pub letter: bool,
    /// Wall time in milliseconds, cleanup included.
    #[serde(default)]
    pub duration_ms: f64,
    /// The run was interrupted; results are missing.
    #[serde(default)]
    pub interrupted: bool,
    /// How many results the plan had, skips included.
    #[serde(default)]
    pub planned: usize,
    /// What a person should know about the run itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl From<Wire> for Document {
    fn from(wire: Wire) -> Self {
        let head = Head {
            target: wire.target,
            edition: wire.edition,
            letter: wire.letter,
            seed: wire.seed,
            catalogue_digest: wire.catalogue_digest,
            planned: wire.planned,
        };
        Self {
            head,
            summary: wire.summary,
            duration_ms: wire.duration_ms,
            interrupted: wire.interrupted,
            notices: wire.notices,
            results: wire.results,
        }
    }
}

/// Renders the JSON report. Exchanges are left out: they are many, and a trace holds them better.
pub fn render(document: &Document) -> Result<String, ReportError> {
    let results = document.results.iter().map(|record| Record { exchanges: Vec::new(), ..record.clone() });
    let wire = Wire {
        schema: SCHEMA.to_owned(),
        target: document.head.target.clone(),
        edition: document.head.edition,
        seed: document.head.seed,
        catalogue_digest: document.head.catalogue_digest.clone(),
        summary: document.summary,
        results: results.collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        letter: document.head.letter,
        duration_ms: document.duration_ms,
        interrupted: document.interrupted,
        planned: document.head.planned,
        notices: document.notices.clone(),
    };
    let text = serde_json::to_string_pretty(&wire)
        .map_err(|error| ReportError::Render { format: "JSON", message: error.to_string() })?;
    Ok(text + "\n")
}

/// The JSON Schema of the report.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Wire).to_value()
}
