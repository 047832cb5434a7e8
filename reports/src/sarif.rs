//! SARIF 2.1.0, for code scanning: rules are requirements, results are checks that failed.
//!
//! A server has no source file, so a result is located by its URL path; the case and subject make its fingerprint, which
//! keeps one alert per finding over many runs. Schemas that came from files do have places there: each is a result.

use std::collections::BTreeSet;

use kubeproof_cases::case::Level;
use kubeproof_harness::event::Verdict;
use serde_json::{Value, json};

use crate::ReportError;
use crate::document::{CheckRecord, Document, Record};
use crate::paint::{Paint, word};
use crate::requirements::Requirements;
use crate::text::{self, Limits};

/// Renders the results.
pub fn render(document: &Document, requirements: &Requirements) -> Result<String, ReportError> {
    let remarkable: Vec<_> = document.results.iter().filter(|record| record.is_remarkable()).collect();
    let ids: BTreeSet<&str> = remarkable.iter().map(|record| rule_of(record)).collect();
    let rules: Vec<_> = ids.iter().map(|id| rule(id, requirements)).collect();
    let results: Vec<_> =
        remarkable.iter().flat_map(|record| results(record, document, requirements)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubeproof",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{"executionSuccessful": !document.interrupted && document.errors().next().is_none()}],
            "results": results,
            "columnKind": "unicodeCodePoints",
        }],
    });
    let text = serde_json::to_string_pretty(&log)
        .map_err(|error| ReportError::Render { format: "SARIF", message: error.to_string() })?;
    Ok(text + "\n")
}

fn rule_of(record: &Record) -> &str {
    let broken = record.broken_checks();
    let of_check = broken.iter().find_map(|check| check.requirements.first());
    of_check.or(record.requirements.first()).map_or(record.id.as_str(), String::as_str)
}

fn rule(id: &str, requirements: &Requirements) -> Value {
    let requirement = requirements.get(id);
    let level = if requirement.is_some_and(|known| known.level == Level::Must) { "error" } else { "warning" };
    json!({
        "id": id,
        "shortDescription": {"text": requirements.statement(id)},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": [requirement.map_or("", |known| &known.section)]},
    })
}

/// A result for each place in a file, or one for the whole.
fn results(record: &Record, document: &Document, requirements: &Requirements) -> Vec<Value> {
    let whole = result(record, document, requirements);
    let places = record.broken_checks().into_iter().flat_map(|check| &check.places);
    let in_files = places.filter_map(|place| {
        let at = place.position.as_ref()?;
        let mut result = whole.clone();
        result["message"]["text"] = format!("{}: {}", place.at, place.message).into();
        result["locations"] = json!([{
            "physicalLocation": {
                "artifactLocation": {"uri": at.file},
                "region": {"startLine": at.line, "startColumn": at.column},
            },
            "logicalLocations": [{"fullyQualifiedName": place.at, "kind": "member"}],
        }]);
        result["partialFingerprints"] = json!({"kubeproofResult/v1": format!("{} {}", record.id, place.at)});
        Some(result)
    });
    let in_files: Vec<Value> = in_files.collect();
    if in_files.is_empty() { vec![whole] } else { in_files }
}

fn result(record: &Record, document: &Document, requirements: &Requirements) -> Value {
    let level = match record.verdict {
        _ if record.surprise().is_some() => "error",
        Verdict::Fail | Verdict::Error => "error",
        Verdict::Warn => "warning",
        Verdict::Deviation | Verdict::Pass | Verdict::Skip => "note",
    };
    let broken = record.broken_checks();
    let exchange = broken.iter().find_map(|check: &&CheckRecord| record.exchange(&check.step));
    let path = exchange.map_or("/", |exchange| exchange.target.split('?').next().unwrap_or("/"));
    let detail = text::detail(record, requirements, Limits::SHORT, Paint::plain());
    let mut result = json!({
        "ruleId": rule_of(record),
        "level": level,
        "message": {"text": format!("{}: {}\n{detail}", record.title(), record.headline())},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": path.trim_start_matches('/')}},
            "logicalLocations": [{"fullyQualifiedName": record.title(), "kind": "member"}],
        }],
        "partialFingerprints": {"kubeproofResult/v1": record.title()},
        "properties": {"verdict": word(record.verdict), "server": document.head.target.server},
    });
    if let Some(known) = record.known.as_ref().filter(|_| record.is_known()) {
        result["suppressions"] = json!([{"kind": "external", "justification": known.reason}]);
    }
    result
}
