//! The run of the goldens: one result of each kind, and a server that repeats secrets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubeproof_cases::Profile;
use kubeproof_cases::case::{Edition, Identity, Level, ResourceName};
use kubeproof_harness::event::{
    CaseResult, CheckResult, Event, FilePosition, Known, NamedExchange, Place, RunFinished,
    RunStarted, SkipReason, Target, Verdict,
};
use kubeproof_harness::exchange::{
    Broken, BrokenKind, Exchange, Outcome, Received, Sent, WatchEnd, WatchEvent,
};
use kubeproof_reports::requirements::{Requirement, Requirements};
use serde_json::{Value, json};

pub(crate) const TOKENS: [&str; 2] = ["token-of-the-admin", "token-of-the-user"];

pub(crate) fn requirements() -> Requirements {
    let requirement = |id: &str, level, statement: &str| {
        let section = "Idempotency".to_owned();
        let (statement, editions) = (statement.to_owned(), vec![Edition::Head]);
        (id.to_owned(), Requirement { statement, level, section, editions })
    };
    [
        requirement(
            "idempotency.post-existing-409",
            Level::Must,
            "POST of a name that exists is rejected with 409.",
        ),
        requirement("status.reason", Level::Should, "A failure carries a machine-readable reason."),
    ]
    .into_iter()
    .collect()
}

pub(crate) fn events() -> Vec<Event> {
    let results = results();
    let mut summary = BTreeMap::new();
    for result in &results {
        *summary.entry(result.verdict).or_default() += 1;
    }
    let mut events = vec![Event::RunStarted(RunStarted {
        target: Target {
            server: "https://example.test".to_owned(),
            bundled: false,
            version: Some("v1.36.0".to_owned()),
            namespace: "kubeproof-ab12cd".to_owned(),
            capabilities: vec!["core".to_owned(), "crds".to_owned()],
        },
        edition: Edition::Head,
        letter: false,
        seed: 42,
        catalogue_digest: "sha256:00ff".to_owned(),
        planned: results.len() + 1,
        shard: None,
        selection: "--area create".to_owned(),
        started_at: "2026-11-22T15:19:41.25Z".parse().expect("a time"),
        command: "kubeproof run --server https://example.test --token token-of-the-admin"
            .to_owned(),
    })];
    for result in results {
        if result.verdict != Verdict::Skip {
            events.push(Event::CaseStarted {
                id: result.id.clone(),
                subject: result.subject.clone(),
            });
        }
        events.push(Event::CaseFinished(Arc::new(result)));
    }
    events.push(Event::Leftover(
        "the namespace kubeproof-ab12cd was not removed: token-of-the-admin was denied".to_owned(),
    ));
    events.push(Event::RunFinished(RunFinished {
        stale_entries: Vec::new(),
        summary,
        duration: Duration::from_millis(1234),
        interrupted: true,
        stopped: None,
    }));
    events
}

/// The results are unsorted, because cases finish in any order.
#[expect(clippy::too_many_lines, reason = "a flat table of results")]
fn results() -> Vec<CaseResult> {
    vec![
        CaseResult {
            exchanges: vec![get(), watch()],
            checks: vec![check("reads", Verdict::Pass)],
            ..result("get/reads-back", "configmaps.v1", Verdict::Pass, "")
        },
        failure(),
        CaseResult {
            skip: Some(SkipReason::MissingSubresource {
                resource: ResourceName {
                    resource: "secrets".to_owned(),
                    version: "v1".to_owned(),
                    group: String::new(),
                },
                subresource: "scale".to_owned(),
            }),
            ..result(
                "scale/reads",
                "secrets.v1",
                Verdict::Skip,
                "secrets.v1 has no subresource scale",
            )
        },
        CaseResult {
            known: Some(Known { reason: "our issue #7 | planned".to_owned(), surprise: None }),
            ..result(
                "create/known",
                "configmaps.v1",
                Verdict::Fail,
                "expected HTTP 409 (Conflict), got 500",
            )
        },
        CaseResult {
            known: Some(Known {
                reason: "our issue #8".to_owned(),
                surprise: Some("listed as a known failure, but it passes now".to_owned()),
            }),
            ..result("create/fixed", "configmaps.v1", Verdict::Pass, "")
        },
        CaseResult {
            checks: vec![CheckResult {
                message: "expected a reason, got none".to_owned(),
                expected: json!({"reason": {"$present": true}}),
                actual: json!({"code": 404}),
                requirements: vec!["status.reason".to_owned()],
                level: Level::Should,
                ..check("reason", Verdict::Warn)
            }],
            level: Level::Should,
            ..result("status/reason", "configmaps.v1", Verdict::Warn, "expected a reason, got none")
        },
        CaseResult {
            checks: vec![check("letter", Verdict::Deviation)],
            ..result("status/code", "", Verdict::Deviation, "deployed servers return 422")
        },
        in_a_file(),
        CaseResult {
            exchanges: vec![broken()],
            ..result(
                "watch/ends",
                "widgets.v1.kubeproof.dev",
                Verdict::Error,
                "no connection to the server",
            )
        },
    ]
}

/// A schema from a file with two places that break a rule.
fn in_a_file() -> CaseResult {
    let place = |at: &str, line| Place {
        at: format!("widgets.v1.example.com spec.{at}"),
        message: "the spec holds a floating-point number".to_owned(),
        because: None,
        position: Some(FilePosition {
            file: "crds/widgets, and more.yaml".to_owned(),
            line,
            column: 15,
        }),
    };
    let message = "widgets.v1.example.com spec.ratio: the spec holds a floating-point number; \
                   and one more place";
    CaseResult {
        checks: vec![CheckResult {
            message: message.to_owned(),
            expected: json!({"rule": "no-float-in-spec"}),
            actual: json!({"types": 1, "fields": 12}),
            places: vec![place("ratio", 31), place("parts[].weight", 44)],
            ..check("no-floats", Verdict::Fail)
        }],
        ..result(
            "schema/no-floats-in-spec",
            "widgets.v1.example.com",
            Verdict::Fail,
            &format!("no-floats: {message}"),
        )
    }
}

fn result(id: &str, subject: &str, verdict: Verdict, reason: &str) -> CaseResult {
    CaseResult {
        id: id.to_owned(),
        subject: subject.to_owned(),
        level: Level::Must,
        profile: Some(Profile::Crud),
        requirements: vec!["idempotency.post-existing-409".to_owned()],
        summary: "What a correct server does".to_owned(),
        why: None,
        verdict,
        reason: reason.to_owned(),
        skip: None,
        duration: Duration::from_micros(3125),
        checks: Vec::new(),
        exchanges: Vec::new(),
        known: None,
    }
}

fn check(id: &str, verdict: Verdict) -> CheckResult {
    CheckResult {
        id: id.to_owned(),
        verdict,
        level: Level::Must,
        requirements: vec!["idempotency.post-existing-409".to_owned()],
        expected: json!({"status": 200}),
        actual: json!({"status": 200}),
        places: Vec::new(),
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

/// A case of the catalogue, which has a page on the site.
const FAILING: &str = "create/taken-name-rejected";

/// A server that repeats the data of a Secret in its message, together with markup that reports
/// must escape.
fn failure() -> CaseResult {
    let message = "<script>alert(1)</script> & ]]> \u{1b}[31m``` holds czNjcjN0";
    let response = json!({"kind": "Secret", "data": {"password": "czNjcjN0"}, "message": message});
    let sent =
        json!({"kind": "Secret", "stringData": {"password": "hunter2"}, "metadata": {"name": "a"}});
    let mut exchange =
        exchange("POST", "/api/v1/namespaces/kp/secrets", &sent.to_string(), 200, &response);
    exchange.request.headers.push(("Authorization".to_owned(), "Bearer session-cookie".to_owned()));
    let review = json!({"kind": "TokenReview", "spec": {"token": "review-me"}});
    CaseResult {
        why: Some(
            "Clients create by name to be idempotent.\n\
             A server that overwrites loses their objects."
                .to_owned(),
        ),
        checks: vec![
            check("before", Verdict::Pass),
            CheckResult {
                expected: json!({"status": 409}),
                actual: json!({"status": 200, "body": response}),
                message: "expected HTTP 409,\ngot 200".to_owned(),
                means: Some("The name was taken over.".to_owned()),
                diff: Some(
                    "-  \"status\": 409\n\
                     +  \"status\": 200, \"password\": \"czNjcjN0\""
                        .to_owned(),
                ),
                curl: Some(
                    "curl -X POST -H \"Authorization: Bearer $TOKEN\" \
                     -d '{\"stringData\":{\"password\":\"hunter2\"}}' \
                     https://example.test/api/v1/namespaces/kp/secrets"
                        .to_owned(),
                ),
                step: "second".to_owned(),
                ..check("rejected", Verdict::Fail)
            },
            CheckResult {
                message: format!("the message is {message}"),
                actual: json!(message),
                level: Level::Should,
                items: BTreeMap::from([("word".to_owned(), json!("holds czNjcjN0"))]),
                step: "second".to_owned(),
                ..check("message", Verdict::Warn)
            },
        ],
        exchanges: vec![
            NamedExchange { step: "second".to_owned(), exchange: Arc::new(exchange) },
            NamedExchange {
                step: "review".to_owned(),
                exchange: Arc::new(self::exchange(
                    "POST",
                    "/apis/x/tokenreviews",
                    &review.to_string(),
                    201,
                    &review,
                )),
            },
        ],
        ..result(FAILING, "secrets.v1", Verdict::Fail, "expected HTTP 409, got 200")
    }
}

fn get() -> NamedExchange {
    let map = json!({"kind": "ConfigMap", "data": {"a": "b"}});
    NamedExchange {
        step: "get".to_owned(),
        exchange: Arc::new(exchange("GET", "/api/v1/a?x=y", "", 200, &map)),
    }
}

fn watch() -> NamedExchange {
    let mut watch = exchange("GET", "/api/v1/configmaps?watch=true", "", 200, &Value::Null);
    if let Outcome::Response(received) = &mut watch.outcome {
        received.events.push(WatchEvent {
            kind: "ADDED".to_owned(),
            object: Arc::new(json!({"kind": "ConfigMap", "metadata": {"name": "a"}})),
            at: Duration::from_millis(12),
        });
        received.end = Some(WatchEnd::Server);
        received.body = Bytes::new();
        received.json = None;
    }
    NamedExchange { step: "watch".to_owned(), exchange: Arc::new(watch) }
}

fn broken() -> NamedExchange {
    let mut exchange = exchange("GET", "/apis", "", 200, &Value::Null);
    let message = "tcp connect error: connection refused".to_owned();
    exchange.outcome = Outcome::Broken(Broken { kind: BrokenKind::Connect, message });
    NamedExchange { step: "watch".to_owned(), exchange: Arc::new(exchange) }
}

fn exchange(method: &str, target: &str, sent: &str, status: u16, json: &Value) -> Exchange {
    Exchange {
        request: Sent {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: vec![("accept".to_owned(), "application/json".to_owned())],
            body: Bytes::copy_from_slice(sent.as_bytes()),
            identity: Identity::Admin,
        },
        outcome: Outcome::Response(Received {
            status,
            version: "HTTP/1.1",
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: Bytes::from(json.to_string()),
            json: Some(Arc::new(json.clone())),
            json_fault: None,
            events: Vec::new(),
            end: None,
            stream: None,
        }),
        started: Duration::from_millis(5),
        took: Duration::from_micros(1500),
    }
}
