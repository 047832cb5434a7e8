use std::collections::BTreeMap;

use kubeproof_cases::case::Level;
use kubeproof_harness::event::{Known, Symptom};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;

fn record(id: &str, subject: &str, checks: Vec<CheckRecord>) -> Record {
    let verdict = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Error);
    Record {
        id: id.to_owned(),
        subject: subject.to_owned(),
        level: Level::Must,
        requirements: vec!["of.the-case".to_owned()],
        verdict,
        reason: "the deadline of 30 s has passed".to_owned(),
        reason_code: None,
        blocked_by: None,
        profile: None,
        duration_ms: 1.0,
        checks,
        summary: format!("the rule of {id}"),
        why: None,
        known: None,
        exchanges: Vec::new(),
    }
}

fn check(id: &str, verdict: Verdict, symptom: Option<Symptom>) -> CheckRecord {
    CheckRecord {
        id: id.to_owned(),
        verdict,
        expected: Value::Null,
        actual: json!({"body": {"kind": "Status", "metadata": {"generation": 1}}}),
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
        symptom,
        reported_by: None,
    }
}

fn failing(id: &str, subject: &str, symptom: Symptom) -> Record {
    record(id, subject, vec![check("c", Verdict::Fail, Some(symptom))])
}

fn missing(field: &str) -> Symptom {
    Symptom::MissingField { field: field.to_owned() }
}

fn status(request: &str, expected: u16, got: u16) -> Symptom {
    Symptom::StatusCode { request: request.to_owned(), expected: vec![expected], got }
}

fn setup(request: &str, got: u16) -> Symptom {
    Symptom::Setup { request: request.to_owned(), got }
}

fn blocked(id: &str, subject: &str, by: &str) -> Record {
    Record {
        verdict: Verdict::Skip,
        blocked_by: Some(by.to_owned()),
        ..record(id, subject, Vec::new())
    }
}

/// Returns the title of each cause, and the cases that it fails and blocks.
fn summary(results: &[Record]) -> Vec<(String, String, String)> {
    let text = |records: &[&Record]| compressed(records).join(", ");
    let all = causes(results, false);
    all.into_iter().map(|one| (one.title, text(&one.results), text(&one.blocked))).collect()
}

fn row(title: &str, results: &str, blocked: &str) -> (String, String, String) {
    (title.to_owned(), results.to_owned(), blocked.to_owned())
}

#[test]
fn a_missing_member_is_one_cause_in_all_cases() {
    let results = [
        failing("get/a", "x", missing("metadata.uid")),
        failing("get/a", "y", missing("metadata.uid")),
        failing("get/a", "z", missing("metadata.uid")),
        failing("list/b", "x", missing("metadata.uid")),
        failing("list/b", "y", missing("items[3].metadata.uid")),
    ];
    assert_eq!(
        summary(&results),
        [row("`metadata.uid` is missing", "get/a @ 3 subjects, list/b @ x, y", "")]
    );
    let only_in_lists = [failing("list/b", "y", missing("items[3].metadata.uid"))];
    assert_eq!(summary(&only_in_lists), [row("`items.metadata.uid` is missing", "list/b @ y", "")]);
    let no_status = [failing("get/a", "x", missing("body"))];
    assert_eq!(summary(&no_status), [row("a rejection has no Status body", "get/a @ x", "")]);
}

#[test]
fn a_wrong_status_code_of_the_same_request_is_one_cause() {
    let results = [
        failing("create/a", "x", status("create", 201, 200)),
        failing("get/b", "y", setup("create configmaps", 200)),
        failing("create/c", "x", status("create", 409, 500)),
        failing("create/d", "x", status("create", 422, 500)),
    ];
    assert_eq!(
        summary(&results),
        [
            row("create returns HTTP 200, expected 201", "create/a @ x, get/b @ y", ""),
            row("create returns HTTP 500", "create/c @ x, create/d @ x", ""),
        ]
    );
}

#[test]
fn each_rule_that_is_not_enforced_is_a_cause_of_its_own() {
    let results = [
        failing("create/a", "x", status("create", 422, 201)),
        failing("create/a", "y", status("create", 422, 201)),
        failing("create/b", "x", status("create", 422, 201)),
    ];
    assert_eq!(
        summary(&results),
        [
            row("broken rule: the rule of create/a", "create/a @ x, y", ""),
            row("broken rule: the rule of create/b", "create/b @ x", "")
        ]
    );
}

#[test]
fn a_wrong_value_is_one_cause_if_other_objects_have_it_too() {
    let wrong = |field: &str| Symptom::WrongField { field: field.to_owned() };
    let results = [
        failing("put/a", "x", wrong("metadata.generation")),
        failing("put/b", "x", wrong("metadata.generation")),
        failing("put/c", "x", wrong("metadata")),
    ];
    let titles: Vec<_> = summary(&results).into_iter().map(|(title, ..)| title).collect();
    assert_eq!(titles, ["`metadata.generation` is 1", "broken rule: the rule of put/c"]);
}

#[test]
fn streams_are_named_after_their_subresource() {
    let no_response = |request: &str| Symptom::NoResponse { request: request.to_owned() };
    let results = [
        failing("exec/a", "x", no_response("get exec")),
        failing("exec/b", "x", no_response("create exec")),
        failing("get/a", "x", no_response("get")),
    ];
    assert_eq!(
        summary(&results),
        [
            row("exec streams lack expected data, or do not end", "exec/a @ x, exec/b @ x", ""),
            row("get gets no valid response", "get/a @ x", ""),
        ]
    );
}

#[test]
fn blocked_results_belong_to_the_cause_of_the_case_that_blocks_them() {
    let results = [
        failing("get/a", "x", status("get", 200, 404)),
        failing("get/b", "x", status("get", 200, 404)),
        failing("watch/starts", "x", Symptom::NoResponse { request: "watch".to_owned() }),
        blocked("watch/a", "x", "watch/starts"),
        blocked("watch/b", "x", "watch/starts"),
        blocked("apply/a", "x", "apply/works"),
    ];
    assert_eq!(
        summary(&results),
        [
            row(
                "a watch lacks an expected event, or does not end",
                "watch/starts @ x",
                "watch/a @ x, watch/b @ x"
            ),
            row("get returns HTTP 404, expected 200", "get/a @ x, get/b @ x", ""),
            row("apply/works does not pass, and other cases need it", "", "apply/a @ x"),
        ]
    );
}

#[test]
fn the_example_is_the_simplest_result() {
    let step = |steps: &[&str]| {
        let mut check = check("c", Verdict::Fail, Some(missing("kind")));
        check.steps = steps.iter().map(|step| (*step).to_owned()).collect();
        check
    };
    let warning = check("c", Verdict::Warn, Some(missing("kind")));
    let results = [
        record("a/long", "", vec![step(&["one", "two"])]),
        record("b/short", "", vec![step(&["one"])]),
        record("c/warn", "", vec![warning]),
    ];
    let causes = causes(&results, false);
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].example.id, "b/short");
    assert_eq!(causes[0].verdict, Verdict::Fail);
    assert_eq!(causes[0].requirement(), Some("of.the-case"));
}

#[test]
fn a_check_of_one_case_explains_itself() {
    let mut check = check("c", Verdict::Fail, None);
    check.means = Some("the server confirmed\n  two writes".to_owned());
    let results = [record("a/b", "x", vec![check.clone()]), record("a/b", "y", vec![check])];
    assert_eq!(summary(&results), [row("the server confirmed two writes", "a/b @ x, y", "")]);
}

#[test]
fn checks_with_the_same_meaning_have_one_cause() {
    let failed = |case: &str, id: &str, means: &str| {
        let mut check = check(id, Verdict::Fail, None);
        check.means = Some(means.to_owned());
        record(case, "", vec![check])
    };
    let results = [
        failed("a/b", "c", "a write was lost"),
        failed("a/c", "d", "a write\n  was lost"),
        failed("a/d", "e", "a read was lost"),
    ];
    let expected = [row("a write was lost", "a/b, a/c", ""), row("a read was lost", "a/d", "")];
    assert_eq!(summary(&results), expected);
}

#[test]
fn errors_without_checks_differ_by_their_reason_without_numbers() {
    let mut other = record("a/2", "", Vec::new());
    other.reason = "the deadline of 12.5 s has passed".to_owned();
    let all = [record("a/1", "", Vec::new()), other];
    assert_eq!(
        summary(&all),
        [row("not decided: the deadline of 30 s has passed", "a/1, a/2", "")]
    );
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let symptoms = select(vec![
        None,
        Some(missing("metadata.uid")),
        Some(missing("kind")),
        Some(Symptom::WrongField { field: "kind".to_owned() }),
        Some(status("create", 201, 200)),
        Some(status("create", 422, 201)),
        Some(status("get", 200, 422)),
        Some(setup("create pods", 0)),
        Some(setup("create pods", 200)),
    ]);
    let verdicts = select(vec![
        Verdict::Skip,
        Verdict::Pass,
        Verdict::Deviation,
        Verdict::Warn,
        Verdict::Fail,
        Verdict::Error,
    ]);
    let check = (select(vec!["c", "d"]), verdicts, symptoms)
        .prop_map(|(id, verdict, symptom)| check(id, verdict, symptom));
    let ids = ["a/1", "a/2", "b/1", "b/2"];
    let surprise = select(vec![None, Some(None), Some(Some("it passes now".to_owned()))]);
    let one = (
        select(ids.to_vec()),
        select(vec!["", "x", "y"]),
        prop::collection::vec(check, 0..3),
        surprise,
        prop::option::of(select(ids.to_vec())),
    );
    let one = one.prop_map(|(id, subject, checks, surprise, by)| {
        let mut record = record(id, subject, checks);
        record.known = surprise.map(|surprise| Known { reason: String::new(), surprise });
        if record.verdict == Verdict::Skip {
            record.blocked_by = by.map(str::to_owned);
        }
        record
    });
    prop::collection::vec(one, 0..20)
}

/// Returns the causes as JSON, which does not depend on addresses in memory.
fn as_json(results: &[Record], strict: bool) -> Value {
    let all = causes(results, strict);
    json!(all.iter().map(CauseRecord::from).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn each_result_belongs_to_one_cause(results in records(), strict: bool) {
        let causes = causes(&results, strict);
        for record in &results {
            let same = |other: &&&Record| std::ptr::eq(**other, record);
            let failed: usize =
                causes.iter().map(|cause| cause.results.iter().filter(same).count()).sum();
            let blocked: usize =
                causes.iter().map(|cause| cause.blocked.iter().filter(same).count()).sum();
            prop_assert_eq!(failed, usize::from(has_cause(record, strict)));
            prop_assert_eq!(blocked, usize::from(record.blocked_by.is_some()));
        }
        let mut ids: Vec<_> = causes.iter().map(|cause| &cause.id).collect();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), causes.len());
    }

    #[test]
    fn the_order_of_the_results_does_not_matter(
        (results, shuffled) in records()
            .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        strict: bool,
    ) {
        prop_assert_eq!(as_json(&results, strict), as_json(&shuffled, strict));
    }

    #[test]
    fn the_cause_to_fix_first_affects_the_most(results in records()) {
        let causes = causes(&results, false);
        let failures = causes.iter().filter(|cause| cause.verdict == Verdict::Fail);
        let weights: Vec<_> = failures.map(Cause::weight).collect();
        prop_assert!(weights.is_sorted_by(|a, b| a >= b), "{:?}", weights);
        let of_error = causes.iter().position(|cause| cause.verdict == Verdict::Error);
        prop_assert!(of_error.is_none_or(|at| at >= weights.len()), "an error before a failure");
    }
}

#[test]
fn the_example_names_the_code_that_shows_the_cause() {
    let returned = |message: &str| {
        let mut check = check("c", Verdict::Fail, Some(status("get", 404, 500)));
        check.message = message.to_owned();
        check
    };
    let results = [
        record("a/indirect", "", vec![returned("the object exists")]),
        record("b/direct", "", vec![returned("expected HTTP 404, got 500")]),
    ];
    assert_eq!(causes(&results, false)[0].example.id, "b/direct");
}

#[test]
fn frames_that_break_one_rule_are_one_cause_on_all_streams() {
    let broken = |request: &str, violations: Value| CheckRecord {
        actual: violations,
        ..check("c", Verdict::Fail, Some(Symptom::BrokenFraming { request: request.to_owned() }))
    };
    let results = [
        record("exec/a", "", vec![broken("get exec", json!(["frame on stream 6", "other"]))]),
        record("exec/b", "", vec![broken("create exec", json!(["frame on stream 8"]))]),
        record("portforward/c", "", vec![broken("get portforward", json!(["no frame"]))]),
    ];
    assert_eq!(
        summary(&results),
        [row("frame on stream 6", "exec/a, exec/b", ""), row("no frame", "portforward/c", ""),]
    );
}
