//! SARIF 2.1.0, for code scanning. Rules are requirements, and results are failed checks.
//!
//! A server has no source file. So the location of a result is its case and subject, which are the
//! same in each run: code scanning keeps one alert per finding. `lint-api` checks files, so its
//! results have file positions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use kubeproof_cases::case::Level;
use kubeproof_harness::event::{FilePosition, Verdict};
use serde_json::{Map, Value, json};

use crate::document::{CheckRecord, Document, Record};
use crate::paint::{Paint, verdict_name};
use crate::report::ReportError;
use crate::requirements::{Requirement, Requirements};
use crate::text::{self, Limits};

/// Renders the results.
pub(super) fn render(
    document: &Document,
    requirements: &Requirements,
) -> Result<String, ReportError> {
    let shown: Vec<_> = document.results.iter().filter(|record| record.needs_attention()).collect();
    let ids: BTreeSet<&str> = shown.iter().map(|record| rule_of(record)).collect();
    let rules: Vec<_> = ids.iter().map(|id| rule(id, requirements)).collect();
    let results: Vec<_> = shown.iter().flat_map(|record| results(record, requirements)).collect();
    let facts: Map<_, _> =
        document.facts().into_iter().map(|(name, fact)| (name.to_owned(), fact.into())).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubeproof",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [invocation(document)],
            "results": results,
            "columnKind": "unicodeCodePoints",
            "properties": facts,
        }],
    });
    let text = serde_json::to_string_pretty(&log)
        .map_err(|error| ReportError::Render { format: "SARIF", message: error.to_string() })?;
    Ok(text + "\n")
}

fn invocation(document: &Document) -> Value {
    let ended = !document.interrupted && document.stopped.is_none();
    let complete = ended && document.errors().next().is_none();
    let mut invocation = json!({"executionSuccessful": complete});
    if !document.head.command.is_empty() {
        invocation["commandLine"] = document.head.command.clone().into();
    }
    let start = document.head.started_at.as_deref();
    if let Some(start) = start.and_then(|start| DateTime::parse_from_rfc3339(start).ok()) {
        let duration = Duration::try_from_secs_f64(document.duration_ms / 1000.0);
        let time = |time: DateTime<_>| time.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true);
        invocation["startTimeUtc"] = time(start).into();
        invocation["endTimeUtc"] = time(start + duration.unwrap_or_default()).into();
    }
    invocation
}

fn rule_of(record: &Record) -> &str {
    let broken = record.failed_checks();
    let of_check = broken.iter().find_map(|check| check.requirements.first());
    of_check.or(record.requirements.first()).map_or(record.id.as_str(), String::as_str)
}

fn rule(id: &str, requirements: &Requirements) -> Value {
    let statement = requirements.statement(id);
    let requirement = requirements.get(id);
    let url = requirement.and_then(Requirement::section_url);
    let is_must = requirement.is_some_and(|known| known.level == Level::Must);
    let section = requirement.map_or("", |known| &known.section);
    let mut help = format!("{statement}\n\n`kubeproof explain {id}` lists the cases.");
    if let Some(url) = &url {
        help = format!("{help}\n\nAPI conventions, [{section}]({url}).");
    }
    let mut rule = json!({
        "id": id,
        "shortDescription": {"text": statement},
        "fullDescription": {"text": statement},
        "help": {"text": help.replace('`', ""), "markdown": help},
        "defaultConfiguration": {"level": if is_must { "error" } else { "warning" }},
        "properties": {"tags": [section]},
    });
    if let Some(url) = url {
        rule["helpUri"] = url.into();
    }
    rule
}

/// Returns a result for each place in a file, or one result for the whole record.
fn results(record: &Record, requirements: &Requirements) -> Vec<Value> {
    let whole = result(record, requirements);
    let places = record.failed_checks().into_iter().flat_map(|check| &check.places);
    let in_files = places.filter_map(|place| {
        let position = place.position.as_ref()?;
        let mut result = whole.clone();
        result["message"]["text"] = format!("{}: {}", place.at, place.message).into();
        result["locations"] = location_in_file(position, &place.at);
        result["partialFingerprints"] = fingerprints(&format!("{} {}", record.id, place.at));
        Some(result)
    });
    let in_files: Vec<Value> = in_files.collect();
    if in_files.is_empty() { vec![whole] } else { in_files }
}

fn result(record: &Record, requirements: &Requirements) -> Value {
    let level = match record.verdict {
        _ if record.surprise().is_some() => "error",
        Verdict::Fail | Verdict::Error => "error",
        Verdict::Warn => "warning",
        Verdict::Deviation | Verdict::Pass | Verdict::Skip => "note",
    };
    let broken = record.failed_checks();
    let exchange = broken.iter().find_map(|check: &&CheckRecord| record.exchange(&check.step));
    let detail = text::detail(record, requirements, Limits::SHORT, Paint::plain());
    let mut result = json!({
        "ruleId": rule_of(record),
        "level": level,
        "message": {"text": format!("{}: {}\n{detail}", record.title(), record.headline())},
        "locations": location_of_case(record),
        "partialFingerprints": fingerprints(&record.title()),
        "properties": {"verdict": verdict_name(record.verdict)},
    });
    if let Some(exchange) = exchange {
        let request = format!("{} {}", exchange.method, exchange.target);
        result["properties"]["request"] = request.into();
    }
    if let Some(known) = record.known.as_ref().filter(|_| record.is_known()) {
        result["suppressions"] = json!([{"kind": "external", "justification": known.reason}]);
    }
    result
}

/// Returns the case and the subject as a location. GitHub requires a relative URI and a line.
fn location_of_case(record: &Record) -> Value {
    json!([{
        "physicalLocation": {
            "artifactLocation": {"uri": encoded(&record.title().replace(" @ ", "@"))},
            "region": {"startLine": 1},
        },
        "logicalLocations": [{"fullyQualifiedName": record.title(), "kind": "member"}],
    }])
}

fn location_in_file(position: &FilePosition, at: &str) -> Value {
    let path = encoded(&position.file.replace('\\', "/"));
    let is_absolute = Path::new(&position.file).is_absolute();
    json!([{
        "physicalLocation": {
            "artifactLocation": {
                "uri": if is_absolute { format!("file://{path}") } else { path },
            },
            "region": {"startLine": position.line, "startColumn": position.column},
        },
        "logicalLocations": [{"fullyQualifiedName": at, "kind": "member"}],
    }])
}

/// Returns the identity of a finding over many runs. GitHub reads only `primaryLocationLineHash`.
fn fingerprints(finding: &str) -> Value {
    json!({"primaryLocationLineHash": finding, "kubeproofResult/v1": finding})
}

/// Returns a path as a URI reference: percent-encodes all bytes that a path may not contain.
fn encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/@!$&'()*+,;=".contains(&byte);
    path.bytes().fold(String::new(), |mut uri, byte| {
        if is_plain(byte) {
            uri.push(byte.into());
        } else {
            _ = write!(uri, "%{byte:02X}");
        }
        uri
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uri_references() {
        assert_eq!(encoded("crds/a b,c.yaml"), "crds/a%20b,c.yaml");
        assert_eq!(encoded("watch/ends@widgets.v1"), "watch/ends@widgets.v1");
        assert_eq!(encoded("ü:[1]"), "%C3%BC%3A%5B1%5D");
    }

    #[test]
    fn files_outside_the_working_directory_have_an_absolute_uri() {
        let position = FilePosition { file: "/a b.yaml".to_owned(), line: 3, column: 4 };
        let location = &location_in_file(&position, "x")[0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "file:///a%20b.yaml");
        assert_eq!(location["region"], json!({"startLine": 3, "startColumn": 4}));
    }
}
