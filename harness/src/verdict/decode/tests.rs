use std::sync::Arc;

use kubeproof_cases::expression::Let;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::exchange::{Exchange, Outcome, Received};
use crate::testing::{exchange, expression, received};

/// Values of the steps of a case, with the requests behind them.
fn values() -> Values {
    let mut values = Values::new();
    let object = |uid: &str, version: &str| {
        let metadata = json!({"name": "a", "uid": uid, "resourceVersion": version});
        json!({"kind": "ConfigMap", "metadata": metadata})
    };
    step(&mut values, "created", 201, &object("u1", "5"));
    step(&mut values, "after", 200, &object("u2", "7"));
    step(&mut values, "missing", 404, &json!({"kind": "Status", "reason": "NotFound"}));
    step(
        &mut values,
        "bare",
        200,
        &json!({"metadata": {"name": "a"}, "spec": {"a": [1, 2], "b": 1}}),
    );
    step(
        &mut values,
        "other",
        200,
        &json!({"metadata": {"labels": {"x": "1"}}, "spec": {"a": [1, 3]}}),
    );
    step(&mut values, "empty", 204, &Value::Null);
    let items: Vec<Value> =
        ["a", "b", "c"].iter().map(|name| json!({"metadata": {"name": name}})).collect();
    step(&mut values, "listed", 200, &json!({"items": items}));
    let mut writers = Vec::new();
    for n in 0..20 {
        let status = if n == 3 || n == 7 { 200 } else { 409 };
        let mut scope = values.clone();
        scope.requests = values.requests.within(&format!("writers[{n}]."));
        let body = json!({"metadata": {"uid": format!("u{}", n % 19)}, "reason": "Conflict"});
        step(&mut scope, "put", status, &body);
        writers.push(json!({"put": scope.get("put")}));
    }
    values.set("writers", json!(writers));
    let events: Vec<Value> = ["ADDED", "MODIFIED", "MODIFIED"]
        .iter()
        .map(|kind| json!({"type": kind, "object": {"metadata": {"name": "a"}}}))
        .collect();
    let mut watch = step_value(200, &Value::Null);
    watch["events"] = json!(events);
    values.requests.add("changes", &got("/api/v1/configmaps?watch=true", 200));
    values.set("changes", watch);
    values.requests.captured("uid", "created", "/metadata/uid");
    values.set("uid", json!("u1"));
    values
}

fn got(target: &str, status: u16) -> Exchange {
    exchange(
        target,
        Outcome::Response(Received { json: Some(Arc::new(json!({}))), ..received(status) }),
    )
}

fn step_value(status: u16, body: &Value) -> Value {
    let headers = json!({"warning": "x"});
    let text = body.to_string();
    json!({"status": status, "headers": headers, "body": body, "text": text, "events": []})
}

fn step(values: &mut Values, name: &str, status: u16, body: &Value) {
    values.requests.add(name, &got("/api/v1/nodes/a", status));
    values.set(name, step_value(status, body));
}

fn explained(text: &str) -> Explanation {
    let values = values();
    let expression = expression(text);
    assert_ne!(super::super::evaluate(&expression, &values), Ok(json!(true)), "{text} holds");
    explain(&expression, &values)
}

/// Real expressions of the suite, with the messages of their failures.
#[rstest]
#[case("created.status == 200", "`created` (GET /api/v1/nodes/a) returned HTTP 201, expected 200")]
#[case(
    "created.status == 201 && after.status == 201",
    "`after` (GET /api/v1/nodes/a) returned HTTP 200, expected 201"
)]
#[case(
    "after.body.metadata.uid == created.body.metadata.uid",
    "metadata.uid is \"u2\" in `after`, expected \"u1\" as in `created`"
)]
#[case(
    "after.body.metadata.uid == uid",
    "metadata.uid is \"u2\" in `after`, expected \"u1\" as in `created`"
)]
#[case(
    "writers[1].put.body.metadata.uid != uid",
    "metadata.uid is \"u1\" in `writers[1].put` and in `created`, expected different values"
)]
#[case("bare.body.spec.b > 1", "spec.b of `bare` is 1, expected more than 1")]
#[case(
    "bare.body.metadata.uid == created.body.metadata.uid",
    "metadata.uid is missing in the response of `bare` (GET /api/v1/nodes/a)"
)]
#[case(
    "has(bare.body.metadata.uid)",
    "metadata.uid is missing in the response of `bare` (GET /api/v1/nodes/a)"
)]
#[case(
    "missing.body.metadata.uid == 'x'",
    "the response of `missing` (GET /api/v1/nodes/a) is HTTP 404, expected a body \
     with metadata"
)]
#[case(
    "empty.body.kind == 'x'",
    "the response of `empty` (GET /api/v1/nodes/a) has no JSON body, expected one \
     with kind"
)]
#[case(
    "'y' in other.body.metadata.labels",
    "metadata.labels.y is missing in the response of `other` (GET /api/v1/nodes/a)"
)]
#[case(
    "!('x' in other.body.metadata.labels)",
    "metadata.labels of `other` has the key \"x\", expected none"
)]
#[case(
    "!has(created.body.metadata.uid)",
    "metadata.uid of `created` is \"u1\", expected no such field"
)]
#[case(
    "writers.filter(w, w.put.status == 200).size() == 1",
    "put.status of 20 writers: 200 ×2, 409 ×18 (expected exactly 1 with 200)"
)]
#[case(
    "writers.all(w, w.put.status == 200)",
    "put.status of 20 writers: 200 ×2, 409 ×18; expected 200 for each"
)]
#[case(
    "writers.filter(w, w.put.status != 200)
        .all(w, w.put.status == 409 && w.put.body.reason == 'AlreadyExists')",
    "reason of 18 writers with put.status other than 200: Conflict ×18; \
     expected \"AlreadyExists\" for each"
)]
#[case(
    "writers.exists(w, w.put.status == 500)",
    "put.status of 20 writers: 200 ×2, 409 ×18; expected an item with put.status 500"
)]
#[case::the_closest_item(
    "changes.events.exists(e, e.type == 'ADDED' && e.object.metadata.name.size() > 1
        && [e].size() == 1)",
    "none of 3 events of `changes` is as expected: metadata.name of event 1 of `changes` has 1 \
     characters, expected more than 1"
)]
#[case(
    "!writers.exists(w, w.put.status == 409)",
    "20 writers include 18 with put.status 409, expected none (put.status: 200 ×2, 409 ×18)"
)]
#[case(
    "distinct(writers.map(w, w.put.body.metadata.uid))",
    "metadata.uid of 20 writers are not all different: u0 occurs twice"
)]
#[case(
    "sameItems(listed.body.items.map(i, i.metadata.name), ['a', 'd'])",
    "metadata.name of 3 items of `listed`: [\"a\", \"b\", \"c\"], expected [\"a\", \"d\"]"
)]
#[case(
    "listed.body.items.map(i, i.metadata.name) == ['b', 'a', 'c']",
    "metadata.name of 3 items of `listed` are in another order: [\"a\", \"b\", \"c\"], expected \
     [\"b\", \"a\", \"c\"]"
)]
#[case(
    "changes.events.size() == 2",
    "3 events of `changes` (MODIFIED ×2, ADDED ×1), expected exactly 2"
)]
#[case(
    "changes.events[1].type == 'DELETED'",
    "type of event 2 of `changes` is \"MODIFIED\", expected \"DELETED\""
)]
#[case(
    "changes.events[3].type == 'DELETED'",
    "events of `changes` has only 3, expected at least 4"
)]
#[case(
    "changes.events.all(e, e.object.metadata.uid == uid)",
    "metadata.uid of event 1 is missing in the response of `changes` (GET /api/v1/configmaps) \
     (3 of 3 events of `changes`)"
)]
#[case(
    "bare.body.spec == other.body.spec",
    "spec of `bare` differs from spec of `other`: a[1] is 2, expected 3"
)]
#[case(
    "created.body.metadata.name.startsWith('b')",
    "metadata.name of `created` is \"a\", expected a text that starts with \"b\""
)]
#[case(
    "created.status in [200, 202]",
    "`created` (GET /api/v1/nodes/a) returned HTTP 201, expected one of 200, 202"
)]
#[case(
    "created.status == 200 || created.status == 202",
    "`created` (GET /api/v1/nodes/a) returned HTTP 201, expected 200; \
     or `created` (GET /api/v1/nodes/a) returned HTTP 201, expected 202"
)]
#[case(
    "empty.status != 204 || after.status == 404",
    "`after` (GET /api/v1/nodes/a) returned HTTP 200, expected 404"
)]
#[case(
    "created.status == 201 ? after.status == 404 : after.status == 200",
    "`after` (GET /api/v1/nodes/a) returned HTTP 200, expected 404"
)]
#[case(
    "[created, bare].all(r, has(r.body.metadata.uid))",
    "metadata.uid is missing in the response of `bare` (GET /api/v1/nodes/a) \
     (1 of 2 items)"
)]
#[case(
    "parseTime(created.body.metadata.name) > 0",
    "metadata.name of `created` is \"a\": expected four digit year"
)]
fn failures_are_explained_by_their_values(#[case] text: &str, #[case] expected: &str) {
    let message = explained(text).message;
    assert!(message.starts_with(expected), "{text}\n  shows    {message}\n  expected {expected}");
    assert!(!message.contains("=="), "{message}");
}

#[rstest]
#[case("bare.body.metadata.uid == uid", Symptom::MissingField { field: "metadata.uid".into() })]
#[case("after.body.metadata.uid == uid", Symptom::WrongField { field: "metadata.uid".into() })]
#[case(
    "listed.body.items[0].metadata.uid == uid",
    Symptom::MissingField { field: "items[].metadata.uid".into() }
)]
#[case(
    "after.status == 404",
    Symptom::StatusCode { request: "get".into(), expected: vec![404], got: 200 }
)]
#[case(
    "missing.body.metadata.uid == uid",
    Symptom::StatusCode { request: "get".into(), expected: vec![200], got: 404 }
)]
fn failures_have_symptoms(#[case] text: &str, #[case] expected: Symptom) {
    assert_eq!(explained(text).symptom, Some(expected));
}

#[rstest]
#[case("after.body.metadata.uid == created.body.metadata.uid", &["after", "created"])]
#[case("after.body.metadata.uid == uid", &["after", "created"])]
#[case("created.status == 201 && bare.status == 201", &["bare"])]
#[case(
    "writers.filter(w, w.put.status == 200).size() == 1",
    &["writers[3].put", "writers[7].put", "writers[0].put"]
)]
#[case("writers.all(w, w.put.status == 409)", &["writers[3].put", "writers[7].put"])]
fn the_deciding_steps_are_named(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(explained(text).steps, expected);
}

#[test]
fn no_check_attaches_more_than_a_few_steps() {
    assert_eq!(explained("writers.all(w, w.put.status == 500)").steps.len(), 4);
    assert!(explained("writers == created").steps.len() <= MOST_STEPS);
}

#[test]
fn named_expressions_are_explained_by_their_definition() {
    let mut named = expression("statuses == [200]");
    let statuses = expression("writers.map(w, w.put.status)");
    named.lets.push(Let {
        name: "statuses".to_owned(),
        text: statuses.text.clone(),
        program: Arc::clone(&statuses.program),
    });
    named.variables = statuses.variables.clone();
    named.needs = kubeproof_cases::expression::Needs::of(
        named.program.expression(),
        &[("statuses", statuses.program.expression())],
    );
    let explained = explain(&named, &values());
    assert_eq!(
        explained.message,
        "put.status of 20 writers differ from the expected list; 19 unexpected: 200 ×1, 409 ×18"
    );
}

#[test]
fn messages_of_cases_show_values() {
    let message = |text: &str| Message {
        text: String::new(),
        parts: vec![
            MessagePart::Text("statuses: ".into()),
            MessagePart::Value(expression(text)),
            MessagePart::Text(" (expected 200 ×1)".into()),
        ],
    };
    assert_eq!(
        render(&message("writers.map(w, w.put.status)"), &values()).as_deref(),
        Some("statuses: 200 ×2, 409 ×18 (expected 200 ×1)")
    );
    assert_eq!(render(&message("created.body.nothing"), &values()), None);
}
