//! JUnit XML for the test views of CI systems.
//!
//! A test case per result, a suite per area. A known failure is `skipped`, with its reason: the run it belongs to is not
//! red either. A warning or deviation is a success that says so in its output: JUnit has nothing between green and red.

use std::time::Duration;

use kubeproof_harness::event::Verdict;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::ReportError;
use crate::document::{Document, Record};
use crate::paint::{Paint, word};
use crate::requirements::Requirements;
use crate::text::{self, Limits};

/// Renders the results.
pub fn render(document: &Document, requirements: &Requirements) -> Result<String, ReportError> {
    let mut report = quick_junit::Report::new("kubeproof");
    report.set_time(seconds(document.duration_ms));
    for area in document.areas().keys() {
        let mut suite = TestSuite::new(*area);
        let of_area = document.results.iter().filter(|record| record.area() == *area);
        suite.set_time(of_area.clone().map(|record| seconds(record.duration_ms)).sum());
        suite.add_property(("server", clean(&document.head.target.server).as_str()));
        suite.add_property(("seed", document.head.seed.to_string().as_str()));
        suite.add_property(("catalogue", document.head.catalogue_digest.as_str()));
        suite.add_test_cases(of_area.map(|record| test_case(record, requirements)));
        report.add_test_suite(suite);
    }
    report.to_string().map_err(|error| ReportError::Render { format: "JUnit", message: error.to_string() })
}

fn test_case(record: &Record, requirements: &Requirements) -> TestCase {
    let detail = || clean(&text::detail(record, requirements, Limits::SHORT, Paint::plain()));
    let mut case = TestCase::new(clean(&record.title()), status(record, detail));
    case.set_classname(clean(record.area()));
    case.set_time(seconds(record.duration_ms));
    case.set_assertions(record.checks.len());
    case.add_property(("verdict", word(record.verdict)));
    for id in &record.requirements {
        case.add_property(("requirement", clean(id).as_str()));
    }
    if matches!(case.status, TestCaseStatus::Success { .. }) && record.is_remarkable() {
        case.set_system_out(format!("{}: {}\n{}", word(record.verdict), clean(&record.headline()), detail()));
    }
    case
}

fn status(record: &Record, detail: impl Fn() -> String) -> TestCaseStatus {
    let (mut status, kind) = if let Some(known) = record.known.as_ref().filter(|_| record.is_known()) {
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

/// The library strips control characters; these two code points XML forbids as well.
fn clean(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
