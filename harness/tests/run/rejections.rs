//! Rejections that say nothing about the server are errors of the run.

use std::sync::atomic::{AtomicUsize, Ordering};

use kubeproof_harness::event::Verdict;
use kubeproof_harness::plan::RunOptions;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::support::{Peer, Reply, catalogue, options, run_cases};

/// The server asks for patience until the time is over.
#[tokio::test]
async fn a_request_that_a_busy_server_rejects_to_the_end_is_an_error() {
    let peer = Peer::start(|_, target, _| match target {
        "/busy" => Reply::Busy,
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case = "steps:
  - request: {id: read, method: GET, path: /busy, expect: [{id: ok, status: 200}]}
";
    let options = RunOptions { case_timeout: Duration::from_millis(1500), ..options() };
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, Verdict::Error, "{}", result.reason);
    assert!(result.reason.contains("the server was too busy"), "{}", result.reason);
    assert_eq!(peer.asked("GET /busy"), 2);
}

/// A gateway fails for a while. The server behind it is not at fault.
#[rstest]
#[case::once(1, json!({"message": "upstream timed out"}), Verdict::Pass)]
#[case::always(usize::MAX, json!({"message": "upstream timed out"}), Verdict::Fail)]
#[case::the_server_itself(1, json!({"kind": "Status", "code": 502}), Verdict::Fail)]
#[tokio::test]
async fn a_case_restarts_after_the_failure_of_a_gateway(
    #[case] failures: usize,
    #[case] body: Value,
    #[case] verdict: Verdict,
) {
    let count = AtomicUsize::new(0);
    let peer = Peer::start(move |_, target, _| match target {
        "/read" if count.fetch_add(1, Ordering::SeqCst) < failures => {
            Reply::Json(502, body.clone())
        }
        "/read" => Reply::Json(200, json!({})),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case = "steps:
  - request: {id: read, method: GET, path: /read, expect: [{id: ok, status: 200}]}
";
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options()).await;
    assert_eq!(run.of("a/b").verdict, verdict, "{}", run.of("a/b").reason);
}

/// A server that denies some creates of config maps, and its response to an access review.
async fn denying(denies: fn(&str, &Value) -> bool, allowed: bool) -> Peer {
    Peer::start(move |method, target, body| match (method, target) {
        ("GET", "/api") => Reply::Json(200, json!({"kind": "APIVersions", "versions": ["v1"]})),
        ("GET", "/api/v1") => {
            let resource = json!({
                "name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["create"],
            });
            Reply::Json(200, json!({"kind": "APIResourceList", "resources": [resource]}))
        }
        ("POST", target) if target.ends_with("/selfsubjectaccessreviews") => {
            Reply::Json(201, json!({"status": {"allowed": allowed}}))
        }
        ("POST", target) if target.contains("/configmaps") && denies(target, body) => Reply::Json(
            403,
            json!({"kind": "Status", "reason": "Forbidden", "message": "exceeded quota"}),
        ),
        ("POST", _) => Reply::Json(201, body.clone()),
        _ => Reply::Json(404, json!({})),
    })
    .await
}

/// Quotas and webhooks deny creates although the user has the right.
#[rstest]
#[case::of_all_objects(|_: &str, _: &Value| true, true, Verdict::Error, "denies a plain object")]
#[case::of_this_object(
    |_: &str, body: &Value| body["data"]["a"] == "b",
    true,
    Verdict::Fail,
    "expected HTTP 201, got 403"
)]
#[case::without_the_right(
    |_: &str, body: &Value| body["data"]["a"] == "b",
    false,
    Verdict::Error,
    "may not create configmaps"
)]
#[tokio::test]
async fn a_denied_create_is_an_error_if_plain_objects_are_denied(
    #[case] denies: fn(&str, &Value) -> bool,
    #[case] allowed: bool,
    #[case] verdict: Verdict,
    #[case] words: &str,
) {
    let peer = denying(denies, allowed).await;
    let case = r#"
subject: {of: configmaps.v1, verbs: [create]}
steps:
  - create:
      id: made
      object: {"metadata": {"name": "${name}"}, "data": {"a": "b"}}
      expect: [{id: created, status: 201}]
"#;
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, verdict, "{}", result.reason);
    assert!(result.reason.contains(words), "{}", result.reason);
}

/// Polling and streams meet missing rights, too.
#[rstest]
#[case::polling(
    "
  - until:
      id: ready
      attempts: 3
      cel: made.status == 201
      steps:
        - request: {id: made, method: POST, path: /api/v1/namespaces/n/configmaps, body: {}}
"
)]
#[case::stream(
    "
  - stream:
      id: exec
      path: /api/v1/namespaces/n/configmaps
      method: POST
      over: spdy
      protocols: [v4.channel.k8s.io]
"
)]
#[tokio::test]
async fn a_missing_right_of_any_step_is_an_error(#[case] steps: &str) {
    let peer = denying(|_, _| true, false).await;
    let case = format!("needs: [core]\nsteps:{steps}");
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, Verdict::Error, "{}", result.reason);
    assert!(result.reason.contains("may not create configmaps"), "{}", result.reason);
}
