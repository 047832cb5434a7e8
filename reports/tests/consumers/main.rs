//! Reports as their consumers read them: the schema of Jenkins, the SARIF validator of Microsoft
//! with the rules of GitHub, a TAP parser, and a browser.
//!
//! The tests skip a missing consumer and print a message. With `KUBEPROOF_REQUIRE_PEERS=1` a
//! missing consumer is a failure.
//!
//! - `KUBEPROOF_JUNIT_SCHEMA`: `junit-10.xsd` of the xunit plugin of Jenkins, for `xmllint`.
//! - `KUBEPROOF_NODE_MODULES`: a directory whose `node_modules` contains `tap-parser` and
//!   `@microsoft/sarif-multitool-linux`.
//! - `KUBEPROOF_CHROMIUM`: a Chromium. Default: `chromium`.

mod browser;
mod page;
#[path = "../run/mod.rs"]
mod run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kubeproof_reports::Reports;
use kubeproof_reports::document::Document;
use kubeproof_reports::formats::Format;
use kubeproof_reports::paint::verdict_name;
use kubeproof_reports::redact::Redactor;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

/// Rules of the SARIF validator that a report breaks. The project has no public address.
const BROKEN_SARIF_RULES: [&str; 1] = ["SARIF2005"];

#[rstest]
#[case::of_a_run(document())]
#[case::of_nothing(Document::default())]
fn jenkins_accepts_junit(#[case] document: Document) {
    let Some(schema) = variable("KUBEPROOF_JUNIT_SCHEMA") else { return };
    let report = File::new(Format::Junit, &document);
    let schema = ["--noout", "--schema", schema.as_str()];
    let output = output(Command::new("xmllint").args(schema).arg(&report.path));
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[rstest]
#[case::of_a_run(document())]
#[case::of_nothing(Document::default())]
fn github_accepts_sarif(#[case] document: Document) {
    let Some(modules) = variable("KUBEPROOF_NODE_MODULES") else { return };
    let tool =
        Path::new(&modules).join("node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool");
    let report = File::new(Format::Sarif, &document);
    let rules = ["--rule-kind", "Sarif;Ghas", "--level", "Error;Warning"];
    let output = output(Command::new(tool).arg("validate").arg(&report.path).args(rules));
    let log = text(&output.stdout);
    assert!(output.status.success() && log.contains("1 files scanned"), "{log}");
    let findings = log.lines().filter(|line| line.contains("): ")).filter(|line| {
        !BROKEN_SARIF_RULES.iter().any(|rule| line.contains(&format!("warning {rule}:")))
    });
    assert_eq!(findings.collect::<Vec<_>>(), [""; 0], "{log}");
}

#[test]
fn a_tap_parser_reads_each_result() {
    let Some(modules) = variable("KUBEPROOF_NODE_MODULES") else { return };
    let document = document();
    let report = File::new(Format::Tap, &document);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/consumers/tap.mjs");
    let output = output(Command::new("node").arg(script).arg(&report.path).arg(modules));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let tap: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(tap["problems"], Value::Array(Vec::new()));
    assert_eq!(tap["bailout"], "the run was interrupted");
    let points = tap["points"].as_array().expect("test points");
    assert_eq!(points.len(), document.results.len());
    for (point, record) in points.iter().zip(&document.results) {
        assert_eq!(point["name"], record.title());
        let is_known = record.is_known();
        let reason = |given: bool, reason: &str| {
            if given { Value::from(reason) } else { Value::from(false) }
        };
        let known = record.known.as_ref().map_or("", |known| known.reason.as_str());
        assert_eq!(point["todo"], reason(is_known, known), "{point}");
        let is_skipped = record.reason_code.is_some();
        assert_eq!(point["skip"], reason(is_skipped, &record.reason), "{point}");
        if record.needs_attention() {
            assert_eq!(point["diag"]["verdict"], verdict_name(record.verdict), "{point}");
            assert_eq!(point["diag"]["message"], record.headline(), "{point}");
        } else {
            assert_eq!(point["ok"], true, "{point}");
        }
    }
}

/// Returns the results of the run of the goldens.
fn document() -> Document {
    let redactor = Redactor::new(run::TOKENS.map(str::to_owned).into_iter().collect());
    let mut reports = Reports::new(redactor, Vec::new());
    for event in run::events() {
        reports.event(&event);
    }
    reports.finish().document
}

/// A report in a temporary directory.
struct File {
    _directory: TempDir,
    path: PathBuf,
}

impl File {
    fn new(format: Format, document: &Document) -> Self {
        let directory = TempDir::new().expect("a directory");
        let path = directory.path().join(if format == Format::Html {
            "report.html"
        } else {
            "report.sarif"
        });
        let text = format.render(document, &run::requirements()).expect("a report");
        fs::write(&path, text).expect("a file");
        Self { _directory: directory, path }
    }
}

/// Returns a variable that names a consumer. Panics if a required consumer is missing.
#[expect(clippy::print_stderr, reason = "a skipped test prints a message")]
fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    assert!(value.is_some() || !required(), "KUBEPROOF_REQUIRE_PEERS is set, but {name} is not");
    if value.is_none() {
        eprintln!("not run: {name} is not set");
    }
    value
}

fn required() -> bool {
    std::env::var("KUBEPROOF_REQUIRE_PEERS").is_ok_and(|value| value == "1")
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
