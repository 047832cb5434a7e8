use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubeproof_cases::case::{Claim, Deviation, Identity, Rejection};
use kubeproof_cases::pattern::{Pattern, TextPattern};
use kubeproof_cases::template::{JsonTemplate, Part, Template};
use kubeproof_cases::yaml::Span;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::exchange::{Broken, BrokenKind, Outcome, Received, Sent};
use crate::testing::expression;
use crate::values::Variable;

fn exchange(status: u16, body: &Value) -> Exchange {
    Exchange {
        request: Sent {
            method: "GET".into(),
            target: "/api/v1/x".into(),
            headers: vec![],
            body: Bytes::new(),
            identity: Identity::Admin,
        },
        outcome: Outcome::Response(Received {
            status,
            version: "HTTP/1.1",
            headers: vec![
                ("Warning".into(), "299 - \"a\"".into()),
                ("warning".into(), "299 - \"b\"".into()),
            ],
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

fn options(server: &str) -> JudgeOptions {
    let (edition, server, reported) = (Edition::Head, server.to_owned(), Reported::new());
    JudgeOptions { edition, letter: false, server, reported }
}

fn check(claim: Claim) -> Check {
    Check {
        id: "c".into(),
        lets: Vec::new(),
        level: Level::Must,
        requirements: vec!["r.a".into()],
        editions: Edition::ALL.to_vec(),
        claims: vec![claim],
        deviation: None,
        means: None,
        message: None,
        span: Span::default(),
    }
}

fn judged(check: &Check, exchange: &Exchange, letter: bool) -> CheckResult {
    let judging = JudgeOptions { letter, ..options("http://h") };
    judge(check, "get", Some(exchange), &Values::new(), &judging).unwrap()
}

fn conflict() -> Claim {
    Claim::Rejected(Rejection {
        code: vec![409],
        reason: vec!["Conflict".into()],
        details: None,
        message: None,
    })
}

#[rstest]
#[case::right(
    409,
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
        "reason": "Conflict",
    }),
    Verdict::Pass
)]
#[case::other_reason(
    409,
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
        "reason": "AlreadyExists",
    }),
    Verdict::Fail
)]
#[case::other_code_in_body(
    409,
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400,
        "reason": "Conflict",
    }),
    Verdict::Fail
)]
#[case::server_error(
    500,
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
        "reason": "Conflict",
    }),
    Verdict::Fail
)]
#[case::no_status(409, json!({"error": "conflict"}), Verdict::Fail)]
#[case::accepted(200, json!({"kind": "ConfigMap"}), Verdict::Fail)]
#[case::success(
    409,
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Success", "code": 409,
        "reason": "Conflict",
    }),
    Verdict::Fail
)]
fn a_rejection_counts_for_its_reason_only(
    #[case] status: u16,
    #[case] body: Value,
    #[case] verdict: Verdict,
) {
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
    let judging = options("");
    assert!(
        judge(&check, "get", Some(&exchange(500, &json!({}))), &Values::new(), &judging).is_none()
    );
}

#[test]
fn a_broken_exchange_satisfies_no_claim() {
    let mut broken = exchange(200, &json!({}));
    broken.outcome =
        Outcome::Broken(Broken { kind: BrokenKind::Protocol, message: "reset".into() });
    let absent = Claim::Header { name: "x".into(), value: None };
    for claim in
        [Claim::Status(vec![200]), absent, Claim::AnyOf(vec![vec![Claim::Status(vec![200])]])]
    {
        assert_eq!(judged(&check(claim), &broken, false).verdict, Verdict::Fail);
    }
}

#[test]
fn the_diff_of_a_rejection_has_only_the_members_that_are_wrong() {
    let claim = Claim::Rejected(Rejection {
        code: vec![409, 422],
        reason: vec!["Conflict".into(), "Invalid".into()],
        details: None,
        message: None,
    });
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
        "reason": "AlreadyExists", "message": "taken",
    });
    let diff = judged(&check(claim), &exchange(409, &body), false).diff.unwrap();
    let is_change = |line: &&str| line.starts_with(['-', '+']);
    let changes: Vec<_> = diff.lines().skip(2).filter(is_change).collect();
    assert_eq!(
        changes,
        [r#"-    "reason": "<Conflict or Invalid>","#, r#"+    "reason": "AlreadyExists","#]
    );
}

#[test]
fn the_diff_of_a_wrong_code_has_no_body() {
    let result = judged(&check(Claim::Status(vec![201])), &exchange(200, &json!({"a": 1})), false);
    let diff = result.diff.unwrap();
    let lines: Vec<_> = diff.lines().skip(3).collect();
    assert_eq!(lines, [" {", r#"-  "status": 201"#, r#"+  "status": 200"#, " }"]);
    assert_eq!(result.actual, json!({"status": 200, "body": {"a": 1}}));
}

#[test]
fn a_body_that_differs_shows_only_what_was_asked_for() {
    let name = Template { parts: vec![Part::Text("a".into())], ..Template::default() };
    let member = Template { parts: vec![Part::Text("name".into())], ..Template::default() };
    let claim =
        Claim::Body(Pattern::Object(vec![(member, Pattern::Value(JsonTemplate::String(name)))]));
    let result = judged(&check(claim), &exchange(200, &json!({"name": "b", "noise": 1})), false);
    assert_eq!(result.message, r#"name is "b", expected "a""#);
    assert_eq!(result.actual, json!({"body": {"name": "b"}}));
    let diff = result.diff.unwrap();
    assert!(
        diff.contains("-    \"name\": \"a\"") && diff.contains("+    \"name\": \"b\""),
        "{diff}"
    );
}

#[test]
fn headers_are_joined_for_expressions_and_judged_one_by_one() {
    let variable = Variable::of_outcome(exchange(200, &json!({"a": 1})).outcome, None);
    let value = variable.value();
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

fn text(text: &str) -> Template {
    Template { parts: vec![Part::Text(text.into())], ..Template::default() }
}

pub(super) fn member(name: &str, value: &str) -> Pattern {
    Pattern::Object(vec![(text(name), Pattern::Value(JsonTemplate::String(text(value))))])
}

#[rstest]
#[case::one_code(vec![Claim::Status(vec![200])], json!({"status": 200}))]
#[case::some_codes(vec![Claim::Status(vec![200, 201])], json!({"status": {"$oneOf": [200, 201]}}))]
#[case::a_body(vec![Claim::Body(member("a", "b"))], json!({"body": {"a": "b"}}))]
#[case::a_header(
    vec![Claim::Header { name: "x".into(), value: Some(TextPattern::Equal(text("y"))) }],
    json!({"header": {"x": "\"y\""}})
)]
#[case::no_header(
    vec![Claim::Header { name: "x".into(), value: None }],
    json!({"header": {"x": {"$absent": true}}})
)]
#[case::a_text(vec![Claim::Text(TextPattern::Equal(text("y")))], json!({"text": "\"y\""}))]
#[case::an_expression(
    vec![Claim::Cel(expression("get.status == 1"))],
    json!({"cel": "get.status == 1"})
)]
#[case::a_choice(
    vec![Claim::AnyOf(vec![
        vec![Claim::Status(vec![1])],
        vec![Claim::Status(vec![2]), Claim::Body(member("a", "b"))],
    ])],
    json!({"anyOf": [{"status": 1}, {"status": 2, "body": {"a": "b"}}]})
)]
#[case::any_reason(
    vec![Claim::Rejected(Rejection {
        code: vec![404, 405], reason: vec![], details: None, message: None,
    })],
    json!({
        "status": {"$oneOf": [404, 405]},
        "body": {
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": {"$oneOf": [404, 405]},
        },
    })
)]
#[case::all_of_a_rejection(
    vec![Claim::Rejected(Rejection {
        code: vec![409],
        reason: vec!["Conflict".into()],
        details: Some(member("name", "a")),
        message: Some(TextPattern::Equal(text("no"))),
    })],
    json!({"status": 409, "body": {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
        "reason": "Conflict",
        "details": {"name": "a"}, "message": "\"no\"",
    }})
)]
#[case::together(
    vec![Claim::Status(vec![200]), Claim::Body(member("a", "b")), Claim::Body(member("c", "d"))],
    json!({"status": 200, "body": {"a": "b", "c": "d"}})
)]
fn what_was_asked_for_is_reported(#[case] claims: Vec<Claim>, #[case] expected: Value) {
    let mut check = check(Claim::Status(vec![]));
    check.claims = claims;
    assert_eq!(judged(&check, &exchange(500, &json!({})), false).expected, expected);
}

#[rstest]
#[case(r#"299 - "a""#, Verdict::Pass)]
#[case(r#"299 - "b""#, Verdict::Pass)]
#[case(r#"299 - "c""#, Verdict::Fail)]
fn a_header_holds_when_one_of_its_lines_does(#[case] value: &str, #[case] verdict: Verdict) {
    let claim =
        Claim::Header { name: "WARNING".into(), value: Some(TextPattern::Equal(text(value))) };
    let result = judged(&check(claim), &exchange(200, &json!({})), false);
    assert_eq!(result.verdict, verdict);
    if verdict == Verdict::Fail {
        assert_eq!(result.actual, json!({"header": {"WARNING": ["299 - \"a\"", "299 - \"b\""]}}));
    }
}

/// The message has the values, and never the expression.
#[test]
fn an_expression_that_does_not_hold_shows_what_it_looked_at() {
    let mut values = Values::new();
    values.requests.add("a", &exchange(1, &json!({})));
    values.set("a", json!({"status": 1, "body": {"b": "x".repeat(3000)}}));
    let judging = options("http://h");
    let judged = |text: &str| {
        judge(&check(Claim::Cel(expression(text))), "expect", None, &values, &judging).unwrap()
    };
    assert_eq!(judged("a.status == 1").verdict, Verdict::Pass);
    let result = judged("a.status == 2");
    assert_eq!(result.verdict, Verdict::Fail);
    assert_eq!(result.message, "`a` (GET /api/v1/x) returned HTTP 1, expected 2");
    assert_eq!(result.expected, json!({"cel": "a.status == 2"}));
    assert_eq!(result.actual, json!({"HTTP status of `a`": 1, "expected": 2}));
    assert_eq!(result.steps, ["a"]);
    assert!(result.curl.is_some_and(|curl| curl.ends_with(" http://h/api/v1/x")));
    assert!(judged("a.body.b == ''").message.len() < 200);
    assert_eq!(judged("a.missing == 2").verdict, Verdict::Fail);
}

#[test]
fn a_case_may_describe_its_failure() {
    let mut values = Values::new();
    values.set("codes", json!([409, 200, 409, 200]));
    let judging = options("");
    let value = expression("codes.map(code, code)");
    let message = kubeproof_cases::case::Message {
        text: String::new(),
        parts: vec![
            kubeproof_cases::case::MessagePart::Text("statuses: ".into()),
            kubeproof_cases::case::MessagePart::Value(value),
        ],
    };
    let judged = |text: &str| {
        let claims = vec![Claim::Cel(expression(text))];
        let check =
            Check { message: Some(message.clone()), claims, ..check(Claim::Status(vec![])) };
        judge(&check, "expect", None, &values, &judging).unwrap().message
    };
    assert_eq!(judged("codes.size() == 1"), "statuses: 200 ×2, 409 ×2");
    assert_eq!(judged("codes[0].missing == 1"), "codes[0].missing is missing");
    assert_eq!(judged("codes.size() == 4"), "");
}

#[rstest]
#[case::a_status(
    409,
    json!({"kind": "Status", "reason": "Conflict", "message": "x".repeat(3000)}),
    &format!("expected HTTP 201 or 202, got 409 Conflict: {}… (3000 bytes)", "x".repeat(200))
)]
#[case::a_message_alone(
    500,
    json!({"kind": "Status", "message": "no leader"}),
    "expected HTTP 201 or 202, got 500: no leader"
)]
#[case::a_message_of_a_success(
    200,
    json!({"kind": "Event", "message": "Pulled"}),
    "expected HTTP 201 or 202, got 200"
)]
#[case::an_object(
    200,
    json!({"kind": "Pod", "reason": "Evicted"}),
    "expected HTTP 201 or 202, got 200"
)]
#[case::no_reason(404, json!({"kind": "Pod"}), "expected HTTP 201 or 202, got 404")]
#[case::a_little_below_the_limit(
    200,
    json!({"kind": "x".repeat(2048 - 11)}),
    "expected HTTP 201 or 202, got 200"
)]
fn an_unexpected_response_is_shown(
    #[case] status: u16,
    #[case] body: Value,
    #[case] message: &str,
) {
    let result = judged(&check(Claim::Status(vec![201, 202])), &exchange(status, &body), false);
    assert_eq!(result.actual, json!({"status": status, "body": body}));
    assert_eq!(result.message, message);
}

#[test]
fn of_a_long_response_the_beginning_is_shown() {
    let body = json!({"kind": "x".repeat(2048 - 10)});
    let result = judged(&check(Claim::Status(vec![201])), &exchange(200, &body), false);
    let shown = result.actual["body"].as_str().unwrap();
    assert!(shown.starts_with("{\"kind\":\"xxx") && shown.ends_with("… (2049 bytes)"), "{shown}");
}

#[rstest]
#[case::details("details", Some(member("name", "a")), None)]
#[case::message("message", None, Some(TextPattern::Equal(text("no"))))]
fn a_rejection_is_rejected_for_its_details_and_words(
    #[case] missing: &str,
    #[case] details: Option<Pattern>,
    #[case] message: Option<TextPattern>,
) {
    let claim = Claim::Rejected(Rejection { code: vec![409], reason: vec![], details, message });
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "message": "no",
        "details": {"name": "a"},
    });
    assert_eq!(judged(&check(claim.clone()), &exchange(409, &body), false).verdict, Verdict::Pass);
    body.as_object_mut().unwrap().remove(missing);
    let result = judged(&check(claim), &exchange(409, &body), false);
    assert_eq!(result.verdict, Verdict::Fail);
    assert!(result.message.contains(missing), "{}", result.message);
}

/// The message contains the fault of the body once.
#[rstest]
#[case::an_expression(
    Claim::Cel(expression("get.body.a == 1")),
    "(the body is no JSON: it ends early)"
)]
#[case::a_body(Claim::Body(member("a", "b")), "it ends early")]
fn why_a_body_could_not_be_read_is_reported_once(#[case] claim: Claim, #[case] text: &str) {
    let mut cut = exchange(200, &json!({}));
    let Outcome::Response(received) = &mut cut.outcome else { unreachable!("it is a response") };
    (received.json, received.json_fault) = (None, Some("it ends early".into()));
    let message = judged(&check(claim), &cut, false).message;
    assert!(message.contains(text), "{message}");
    assert_eq!(message.matches("it ends early").count(), 1, "{message}");
}

/// A body with a duplicate key still has a value to compare.
#[test]
fn a_body_that_was_read_is_not_blamed() {
    let mut twice = exchange(200, &json!({"a": 2}));
    let Outcome::Response(received) = &mut twice.outcome else { unreachable!("it is a response") };
    received.json_fault = Some("duplicate key /a".into());
    let message = judged(&check(Claim::Status(vec![201])), &twice, false).message;
    assert!(!message.contains("no JSON"), "{message}");
}
