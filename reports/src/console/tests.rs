use std::collections::BTreeMap;

use kubeproof_cases::case::Level;
use kubeproof_harness::event::{Target, Verdict};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::document::{CheckRecord, Summary};

fn check(verdict: Verdict, expected: Value) -> CheckRecord {
    CheckRecord {
        id: "c".to_owned(),
        verdict,
        expected,
        actual: Value::Null,
        places: Vec::new(),
        level: Level::Must,
        requirements: Vec::new(),
        message: String::new(),
        means: None,
        items: BTreeMap::new(),
        diff: None,
        curl: None,
        step: String::new(),
        steps: Vec::new(),
        symptom: None,
        reported_by: None,
    }
}

fn record(id: &str, subject: &str, verdict: Verdict, expected: Value) -> Record {
    Record {
        id: id.to_owned(),
        subject: subject.to_owned(),
        level: Level::Must,
        profile: None,
        requirements: Vec::new(),
        verdict,
        reason: String::new(),
        reason_code: None,
        blocked_by: None,
        duration_ms: 1.0,
        checks: vec![check(verdict, expected)],
        summary: "the rule".to_owned(),
        why: None,
        known: None,
        exchanges: Vec::new(),
    }
}

/// Returns a complete run against a server of the user.
fn document(results: Vec<Record>) -> Document {
    let mut summary = Summary::default();
    for record in &results {
        summary.add(record.verdict);
    }
    let target = Target {
        server: "https://a:1".to_owned(),
        namespace: "kubeproof-ab1cde".to_owned(),
        ..Target::default()
    };
    let head = Head { target, planned: results.len(), ..Head::default() };
    Document { head, summary, interrupted: false, results, ..Document::default() }
}

fn printed(document: &Document) -> String {
    written(Verbosity::Normal, |console| console.finished(document).expect("written"))
}

/// Returns what a console writes.
fn written(verbosity: Verbosity, use_it: impl FnOnce(&mut Console<&mut Vec<u8>>)) -> String {
    let mut out = Vec::new();
    let options = Options {
        verbosity,
        paint: Paint::plain(),
        command: "kubeproof run --server https://a:1".to_owned(),
        json: None,
        strict: false,
    };
    let mut console = Console::new(&mut out, Live::none(), options, &Requirements::default());
    use_it(&mut console);
    drop(console);
    String::from_utf8(out).expect("text")
}

/// Returns the line with this label.
fn row(document: &Document, label: &str) -> Option<String> {
    let text = printed(document);
    let start = format!("{label}: ");
    text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
}

#[rstest]
#[case::all_subjects(&[("a/b", "x", Verdict::Fail), ("a/b", "y", Verdict::Fail)], "--only a/b")]
#[case::one_subject(&[("a/b", "x", Verdict::Fail), ("a/b", "y", Verdict::Pass)], "--only a/b@x")]
#[case::the_other_is_skipped(
    &[("a/b", "x", Verdict::Fail), ("a/b", "y", Verdict::Skip)],
    "--only a/b"
)]
#[case::two_cases(
    &[("a/b", "x", Verdict::Fail), ("a/b", "y", Verdict::Pass), ("c/d", "", Verdict::Error)],
    "--only a/b@x c/d"
)]
#[case::many_subjects(
    &[
        ("a/b", "1", Verdict::Fail),
        ("a/b", "2", Verdict::Fail),
        ("a/b", "3", Verdict::Fail),
        ("a/b", "4", Verdict::Fail),
        ("a/b", "5", Verdict::Fail),
        ("a/b", "6", Verdict::Pass),
    ],
    "--only a/b"
)]
fn a_rerun_selects_what_failed(#[case] results: &[(&str, &str, Verdict)], #[case] selection: &str) {
    let record =
        |(id, subject, verdict): &(&str, &str, Verdict)| record(id, subject, *verdict, Value::Null);
    let rerun = row(&document(results.iter().map(record).collect()), "rerun");
    assert_eq!(rerun, Some(format!("kubeproof run --server https://a:1 {selection}")));
}

#[rstest]
#[case::quiet(Verbosity::Quiet, "note: left a/b\n")]
#[case::in_the_summary(Verbosity::Normal, "")]
fn a_quiet_run_reports_what_it_leaves(#[case] verbosity: Verbosity, #[case] expected: &str) {
    let text = written(verbosity, |console| {
        console.notice("no case runs on things.v1").expect("written");
        console.leftover("left a/b").expect("written");
    });
    assert_eq!(text, expected);
}

#[rstest]
#[case::only_skips(&[Verdict::Skip], Some("the run judged nothing"))]
#[case::more_skips(
    &[Verdict::Skip, Verdict::Skip, Verdict::Pass],
    Some("the run skipped more results than it judged")
)]
#[case::as_many_skips(&[Verdict::Skip, Verdict::Pass], None)]
#[case::failures(&[Verdict::Skip, Verdict::Skip, Verdict::Fail], None)]
fn an_inconclusive_run_says_why(#[case] verdicts: &[Verdict], #[case] expected: Option<&str>) {
    let record = |verdict: &Verdict| record("a/b", "", *verdict, Value::Null);
    let mut document = document(verdicts.iter().map(record).collect());
    assert_eq!(row(&document, "inconclusive").as_deref(), expected);
    document.interrupted = true;
    assert_eq!(row(&document, "inconclusive"), None);
}

#[test]
fn a_rerun_of_a_selection_names_the_subjects() {
    let mut document = document(vec![record("a/b", "x", Verdict::Fail, Value::Null)]);
    document.head.command = "kubeproof run --only a/*@x".to_owned();
    let rerun = row(&document, "rerun");
    assert_eq!(rerun.as_deref(), Some("kubeproof run --server https://a:1 --only a/b@x"));
}

#[test]
fn required_features_are_no_cases() {
    let user =
        record("required/second-user", "", Verdict::Fail, json!({"capability": "second-user"}));
    let watch = record("required/watch", "", Verdict::Fail, json!({"profile": "watch"}));
    let case = record("a/b", "", Verdict::Fail, Value::Null);
    let start = "kubeproof run --server https://a:1";
    for (results, options) in [
        (vec![user.clone()], "--require second-user"),
        (vec![user.clone(), case.clone()], "--require second-user --only a/b"),
        (vec![watch, case], "--require-profile watch"),
    ] {
        assert_eq!(row(&document(results), "rerun"), Some(format!("{start} {options}")));
    }
    let text = printed(&document(vec![user]));
    assert!(text.contains("required/second-user") && !text.contains("explain"), "{text}");
}

#[test]
fn a_request_cannot_be_repeated_without_its_objects() {
    let with_curl = |curl: &str| {
        let mut record = record("a/b", "x", Verdict::Fail, Value::Null);
        record.checks[0].curl = Some(curl.to_owned());
        document(vec![record])
    };
    let in_namespace = with_curl("curl https://a:1/api/v1/namespaces/kubeproof-ab1cde/pods");
    let expected = "the run removed its objects; add --keep before you repeat a request";
    assert_eq!(row(&in_namespace, "note").as_deref(), Some(expected));

    let mut kept = in_namespace.clone();
    kept.head.command = "kubeproof run --keep --server https://a:1".to_owned();
    let left = Document { has_leftovers: true, ..in_namespace.clone() };
    let mut existing = in_namespace;
    existing.head.target.namespace = "default".to_owned();
    for document in [kept, left, existing, with_curl("curl https://a:1/apis")] {
        assert_eq!(row(&document, "note"), None);
    }
}

#[test]
fn an_incomplete_run_has_no_profile() {
    let profiles = kubeproof_cases::Profile::ALL.into_iter().map(|profile| Record {
        profile: Some(profile),
        ..record(&format!("{profile}/b"), "", Verdict::Pass, Value::Null)
    });
    let complete = document(profiles.collect());
    assert!(row(&complete, "profile").is_some());
    let interrupted = Document { interrupted: true, ..complete };
    assert_eq!(row(&interrupted, "profile"), None);
}

#[test]
fn an_interrupt_before_the_first_case_is_reported() {
    let before = Document { interrupted: true, ..document(Vec::new()) };
    assert_eq!(row(&before, "interrupted").as_deref(), Some("before the first case"));
    let mut later = before;
    later.head.planned = 2;
    assert_eq!(row(&later, "interrupted").as_deref(), Some("2 results missing"));
}

#[test]
fn the_bundled_server_has_a_name() {
    let mut document = document(vec![record("a/b", "", Verdict::Pass, Value::Null)]);
    document.head.target.bundled = true;
    let text = printed(&document);
    assert!(text.ends_with(" s, the bundled reference server\n"), "{text}");
}
