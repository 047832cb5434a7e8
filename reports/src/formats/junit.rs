//! JUnit XML for the test views of CI systems. It is valid under the schema that Jenkins uses.
//!
//! Each result is a test case, each area a test suite. A known failure is `skipped` with its
//! reason, because it does not fail the run. JUnit has no warnings, so a warning or a deviation is
//! a success with its details in the output.

use std::time::Duration;

use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use chrono::DateTime;

use crate::document::{Document, Record};
use crate::paint::{Paint, verdict_name};
use crate::report::ReportError;
use crate::requirements::Requirements;
use crate::text::{self, Limits};

/// Renders the results.
pub(super) fn render(
    document: &Document,
    requirements: &Requirements,
) -> Result<String, ReportError> {
    let mut report = quick_junit::Report::new("kubeproof");
    report.set_time(seconds(document.duration_ms));
    for area in document.areas().keys() {
        let mut suite = TestSuite::new(*area);
        let of_area = document.results.iter().filter(|record| record.area() == *area);
        suite.set_time(of_area.clone().map(|record| seconds(record.duration_ms)).sum());
        set_head(&mut suite, document);
        suite.add_test_cases(of_area.map(|record| test_case(record, requirements)));
        report.add_test_suite(suite);
    }
    if let Some(why) = cut_short(document) {
        report.add_test_suite(of_run(document, &why));
    }
    let text = report
        .to_string()
        .map_err(|error| ReportError::Render { format: "JUnit", message: error.to_string() })?;
    // The library also writes `skipped` to the root element, where the schema forbids it.
    Ok(text.replacen(&format!(" skipped=\"{}\"", report.skipped), "", 1))
}

/// Returns why results are missing.
fn cut_short(document: &Document) -> Option<String> {
    let missing = document.head.planned.saturating_sub(document.results.len());
    let missing = format!("{} missing", plural(missing, "result"));
    match &document.stopped {
        Some(stopped) => Some(format!("{stopped}: {missing}")),
        None => document.interrupted.then(|| format!("interrupted: {missing}")),
    }
}

/// Views that ignore properties would show a run without its missing results as a success.
fn of_run(document: &Document, why: &str) -> TestSuite {
    let mut suite = TestSuite::new("run");
    set_head(&mut suite, document);
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message(clean(why));
    status.set_type("error");
    let mut case = TestCase::new("is complete", status);
    case.set_classname("run");
    case.set_time(Duration::ZERO);
    suite.add_test_case(case);
    suite
}

/// Adds the facts about the run.
fn set_head(suite: &mut TestSuite, document: &Document) {
    if let Some(start) = &document.head.started_at
        && let Ok(start) = DateTime::parse_from_rfc3339(start)
    {
        suite.set_timestamp(start);
    }
    for (name, value) in document.facts() {
        suite.add_property((name, clean(&value).as_str()));
    }
}

fn test_case(record: &Record, requirements: &Requirements) -> TestCase {
    let detail = || clean(&text::detail(record, requirements, Limits::SHORT, Paint::plain()));
    let mut case = TestCase::new(clean(&record.title()), status(record, detail));
    case.set_classname(clean(record.area()));
    case.set_time(seconds(record.duration_ms));
    if matches!(case.status, TestCaseStatus::Success { .. }) && record.needs_attention() {
        case.set_system_out(format!(
            "{}: {}\n{}",
            verdict_name(record.verdict),
            clean(&record.headline()),
            detail()
        ));
    }
    case
}

fn status(record: &Record, detail: impl Fn() -> String) -> TestCaseStatus {
    let (mut status, kind) =
        if let Some(known) = record.known.as_ref().filter(|_| record.is_known()) {
            let mut status = TestCaseStatus::skipped();
            status.set_message(clean(&format!("known failure: {}", known.reason)));
            status.set_description(detail());
            status.set_type("known-failure");
            return status;
        } else if record.surprise().is_some() || record.verdict == Verdict::Fail {
            (TestCaseStatus::non_success(NonSuccessKind::Failure), "must")
        } else if record.verdict == Verdict::Error {
            (TestCaseStatus::non_success(NonSuccessKind::Error), "error")
        } else if record.verdict == Verdict::Skip {
            (TestCaseStatus::skipped(), "skip")
        } else {
            return TestCaseStatus::success();
        };
    status.set_message(clean(&record.headline()));
    status.set_type(kind);
    if record.verdict != Verdict::Skip {
        status.set_description(detail());
    }
    status
}

fn seconds(milliseconds: f64) -> Duration {
    Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default()
}

/// The library strips control characters. XML forbids these two code points too.
fn clean(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
