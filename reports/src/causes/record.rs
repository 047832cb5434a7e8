//! A cause in the JSON report.

use kubeproof_harness::event::{Symptom, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cause;
use crate::document::Record;

/// Results that fail for one reason.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct CauseRecord {
    /// Identifies the cause in other runs too, such as `missing-field metadata.uid`.
    pub id: String,
    /// What went wrong, in one line of plain words.
    pub title: String,
    /// The worst verdict of the results.
    pub verdict: Verdict,
    /// What went wrong in the example, as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symptom: Option<Symptom>,
    /// The requirement that the example breaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<String>,
    /// The simplest of the results.
    pub example: ResultName,
    /// The check that decided the example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// All results with this cause, sorted by id and subject.
    pub results: Vec<ResultName>,
    /// The skipped results that this cause blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<ResultName>,
}

/// Names a result.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct ResultName {
    /// The id of the case.
    pub id: String,
    /// The subject. Empty for a case without a subject.
    pub subject: String,
}

impl From<&Cause<'_>> for CauseRecord {
    fn from(cause: &Cause<'_>) -> Self {
        let names = |records: &[&Record]| records.iter().copied().map(ResultName::from).collect();
        Self {
            id: cause.id.clone(),
            title: cause.title.clone(),
            verdict: cause.verdict,
            symptom: cause.check.and_then(|check| check.symptom.clone()),
            requirement: cause.requirement().map(str::to_owned),
            example: ResultName::from(cause.example),
            check: cause.check.map(|check| check.id.clone()),
            results: names(&cause.results),
            blocked: names(&cause.blocked),
        }
    }
}

impl From<&Record> for ResultName {
    fn from(record: &Record) -> Self {
        Self { id: record.id.clone(), subject: record.subject.clone() }
    }
}
