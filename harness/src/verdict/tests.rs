use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubeproof_cases::case::{Claim, Deviation, Identity, Refusal};
use kubeproof_cases::pattern::Pattern;
use kubeproof_cases::span::Span;
use kubeproof_cases::template::{JsonTemplate, Part, Template};
use rstest::rstest;

use super::*;
use crate::exchange::{Broken, BrokenKind, Sent};

fn exchange(status: u16, body: &Value) -> Exchange {
    Exchange {
        request: Sent {
            method: "GET".into(),
            target: "/api/v1/x".into(),
            headers: vec![],
            body: Bytes::new(),
            identity: Identity::Admin,
        },
        outcome: Outcome::Answered(Received {
            status,
            version: "HTTP/1.1",
            headers: vec![("Warning".into(), "299 - \"a\"".into()), ("warning".into(), "299 - \"b\"".into())],
            body: Bytes::from(body.to_string()),
            json: Some(Arc::new(body.clone())),
            json_fault: None,
            events: vec![],
            end: None,
            stream: None,
        }),
        started: Duration::ZERO,
        took: Duration::from_millis(1),
    }
}

fn check(claim: Claim) -> Check {
    Check {
        id: "c".into(),
        level: Level::Must,
        requirements: vec!["r.a".into()],
        editions: Edition::ALL.to_vec(),
        claims: vec![claim],
        deviation: None,
        means: None,
        span: Span::default(),
    }
}

fn judged(check: &Check, exchange: &Exchange, letter: bool) -> CheckResult {
    let judging = Judging { edition: Edition::Head, letter, server: "http://h".into() };
    judge(check, "get", Some(exchange), &Values::new(), &judging).unwrap()
}

fn conflict() -> Claim {
    Claim::Refused(Refusal { code: vec![409], reason: vec!["Conflict".into()], details: None, message: None })
}

#[rstest]
#[case::right(409, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "Conflict"}), Verdict::Pass)]
#[case::other_reason(409, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "AlreadyExists"}), Verdict::Fail)]
#[case::other_code_in_body(409, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400, "reason": "Conflict"}), Verdict::Fail)]
#[case::server_error(500, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": "Conflict"}), Verdict::Fail)]
#[case::no_status(409, json!({"error": "conflict"}), Verdict::Fail)]
#[case::accepted(200, json!({"kind": "ConfigMap"}), Verdict::Fail)]
#[case::success(409, json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 409, "reason": "Conflict"}), Verdict::Fail)]
fn a_refusal_counts_for_its_reason_only(#[case] status: u16, #[case] body: Value, #[case] verdict: Verdict) {
    let result = judged(&check(conflict()), &exchange(status, &body), false);
    assert_eq!(result.verdict, verdict, "{}", result.message);
    assert_eq!(result.message.is_empty(), verdict == Verdict::Pass);
}

#[test]
fn a_should_that_fails_is_a_warning() {
    let mut check = check(Claim::Status(vec![200]));
    check.level = Level::Should;
    assert_eq!(judged(&check, &exchange(500, &json!({})), false).verdict, Verdict::Warn);
}

#[rstest]
#[case(200, false, Verdict::Pass)]
#[case(202, false, Verdict::Deviation)]
#[case(202, true, Verdict::Fail)]
#[case(204, false, Verdict::Fail)]
fn a_deviation_is_accepted_unless_the_letter_counts(
    #[case] status: u16,
    #[case] letter: bool,
    #[case] verdict: Verdict,
) {
    let mut check = check(Claim::Status(vec![200]));
    check.deviation = Some(Deviation {
        because: "they do".into(),
        letter: BTreeMap::new(),
        claims: vec![Claim::Status(vec![202])],
    });
    assert_eq!(judged(&check, &exchange(status, &json!({})), letter).verdict, verdict);
}

#[test]
fn a_check_of_another_edition_is_not_judged() {
    let mut check = check(Claim::Status(vec![200]));
    check.editions = vec![Edition::V1_0];
    let judging = Judging { edition: Edition::Head, letter: false, server: String::new() };
    assert!(judge(&check, "get", Some(&exchange(500, &json!({}))), &Values::new(), &judging).is_none());
}

#[test]
fn a_broken_exchange_satisfies_no_claim() {
    let mut broken = exchange(200, &json!({}));
    broken.outcome = Outcome::Broken(Broken { kind: BrokenKind::Protocol, message: "reset".into() });
    let absent = Claim::Header { name: "x".into(), value: None };
    for claim in [Claim::Status(vec![200]), absent, Claim::AnyOf(vec![vec![Claim::Status(vec![200])]])] {
        assert_eq!(judged(&check(claim), &broken, false).verdict, Verdict::Fail);
    }
}

#[test]
fn a_body_that_differs_shows_only_what_was_asked_for() {
    let name = Template { parts: vec![Part::Text("a".into())], ..Template::default() };
    let member = Template { parts: vec![Part::Text("name".into())], ..Template::default() };
    let claim = Claim::Body(Pattern::Object(vec![(member, Pattern::Value(JsonTemplate::String(name)))]));
    let result = judged(&check(claim), &exchange(200, &json!({"name": "b", "noise": 1})), false);
    assert_eq!(result.message, r#"/name: expected "a", got "b""#);
    assert_eq!(result.actual, json!({"body": {"name": "b"}}));
    let diff = result.diff.unwrap();
    assert!(diff.contains("-    \"name\": \"a\"") && diff.contains("+    \"name\": \"b\""), "{diff}");
}

#[test]
fn headers_are_joined_for_expressions_and_judged_one_by_one() {
    let value = exchange_value(&exchange(200, &json!({"a": 1})));
    assert_eq!(value["headers"]["warning"], json!("299 - \"a\", 299 - \"b\""));
    assert_eq!(value["body"]["a"], json!(1));
    let absent = check(Claim::Header { name: "warning".into(), value: None });
    assert_eq!(judged(&absent, &exchange(200, &json!({})), false).verdict, Verdict::Fail);
}

#[test]
fn an_unbound_variable_is_an_error_of_the_harness() {
    let unbound = Template { parts: vec![Part::Variable("rv".into())], ..Template::default() };
    let claim = Claim::Body(Pattern::Value(JsonTemplate::String(unbound)));
    assert_eq!(judged(&check(claim), &exchange(200, &json!({})), false).verdict, Verdict::Error);
}
