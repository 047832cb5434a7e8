//! An error of a later step does not hide a failure.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use kubeproof_harness::event::{SkipReason, Symptom, Verdict};
use kubeproof_harness::plan::RunOptions;
use rstest::rstest;
use serde_json::json;
use tokio::time::Duration;

use crate::support::{Peer, Reply, catalogue, checks, options, run_cases};

/// A step whose check fails.
const FAILS: &str = "
  - request: {id: wrong, method: GET, path: /wrong, expect: [{id: is-there, status: 200}]}
";

/// The steps below wait for the server until the time limit of the run ends the case.
const HANGS: &str = "  - request: {id: late, method: GET, path: /hangs}\n";

const WATCH_HANGS: &str = "  - watch: {id: changes, path: /hangs}\n";

const AWAITS: &str = "
  - watch: {id: changes, path: /silence}
  - await: {watch: changes, id: seen, until: {id: comes, type: ADDED}}
";

const ENDS: &str = "
  - watch: {id: changes, path: /silence}
  - end: {watch: changes, id: ends}
";

const STREAM_HANGS: &str = "
  - stream: {id: exec, path: /hangs, over: websocket, protocols: [v5.channel.k8s.io]}
";

const GIVEN_HANGS: &str = "  - given: {id: made, path: /hangs, body: {}}\n";

/// The failure is in an iteration that the end of the run drops.
const CONCURRENTLY: &str = "
  - concurrently:
      id: both
      times: 2
      steps:
        - request: {id: wrong, method: GET, path: /wrong, expect: [{id: is-there, status: 200}]}
        - request: {id: late, method: GET, path: /hangs}
";

const REPEAT: &str = "
  - repeat:
      id: both
      times: 2
      steps:
        - request: {id: wrong, method: GET, path: /wrong, expect: [{id: is-there, status: 200}]}
        - request: {id: late, method: GET, path: /hangs}
";

const TOGETHER: &str = "
  - together:
      id: both
      branches:
        - - request: {id: wrong, method: GET, path: /wrong, expect: [{id: is-there, status: 200}]}
          - request: {id: late, method: GET, path: /hangs}
        - - request: {id: other, method: GET, path: /hangs}
";

const UNTIL: &str = "
  - until:
      id: ready
      attempts: 9
      cel: late.status == 200
      steps: [request: {id: late, method: GET, path: /hangs}]
";

/// Starts a server that is wrong at one path and silent at two others.
async fn silent() -> Peer {
    Peer::start(|_, target, _| match target.split('?').next() {
        Some("/hangs") => Reply::Hang,
        Some("/silence") => Reply::Silence,
        _ => Reply::Json(404, json!({})),
    })
    .await
}

#[rstest]
#[case::request(&[FAILS, HANGS])]
#[case::watch(&[FAILS, WATCH_HANGS])]
#[case::events(&[FAILS, AWAITS])]
#[case::the_end_of_a_watch(&[FAILS, ENDS])]
#[case::stream(&[FAILS, STREAM_HANGS])]
#[case::setup(&[FAILS, GIVEN_HANGS])]
#[case::polling(&[FAILS, UNTIL])]
#[case::concurrent_iterations(&[CONCURRENTLY])]
#[case::iterations(&[REPEAT])]
#[case::branches(&[TOGETHER])]
#[tokio::test]
async fn a_failure_before_an_error_stays_a_failure(#[case] steps: &[&str]) {
    let peer = silent().await;
    let timeout = Some(Duration::from_millis(400));
    let options = RunOptions { timeout, case_timeout: Duration::from_mins(1), ..options() };
    let case = format!("steps:\n{}", steps.concat());
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options).await;
    let result = run.of("a/b");
    assert!(checks(result).contains(&("in-time", Verdict::Error)), "{:?}", checks(result));
    assert_eq!(result.verdict, Verdict::Fail, "{:?}", checks(result));
    assert!(result.reason.starts_with("is-there: "), "{}", result.reason);
}

/// Below MUST, a failed check is a warning.
#[tokio::test]
async fn a_warning_of_a_weaker_case_before_an_error_stays_a_warning() {
    let peer = silent().await;
    let timeout = Some(Duration::from_millis(400));
    let options = RunOptions { timeout, case_timeout: Duration::from_mins(1), ..options() };
    let case = format!("level: should\nsteps:\n{FAILS}{HANGS}");
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options).await;
    assert_eq!(checks(run.of("a/b")), [("is-there", Verdict::Warn), ("in-time", Verdict::Error)]);
    assert_eq!(run.of("a/b").verdict, Verdict::Warn);
}

/// A server that is slower than `--timeout` is not broken.
#[tokio::test]
async fn a_namespace_that_the_end_of_the_run_cuts_off_blocks_nothing() {
    let resource = |name: &str, kind: &str, namespaced: bool| {
        let verbs = ["create", "delete", "get", "list"];
        json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": verbs})
    };
    let resources =
        [resource("configmaps", "ConfigMap", true), resource("namespaces", "Namespace", false)];
    let peer = Peer::start(move |method, target, body| match (method, target) {
        ("GET", "/api") => Reply::Json(200, json!({"versions": ["v1"]})),
        ("GET", "/api/v1") => Reply::Json(200, json!({"resources": resources})),
        ("GET", "/api/v1/namespaces/default") => {
            Reply::Json(200, json!({"kind": "Namespace", "metadata": {"name": "default"}}))
        }
        ("POST", "/api/v1/namespaces") => Reply::Hang,
        ("POST", _) => Reply::Json(201, body.clone()),
        _ => Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"})),
    })
    .await;
    let case = "subject: {of: configmaps.v1, verbs: [create]}
steps:
  - given: {id: made, object: {metadata: {name: '${name}'}}}
  - request: {id: read, method: GET, path: '${collection}/${name}', expect: [{id: ok, status: 200}]}
";
    let timeout = Some(Duration::from_millis(400));
    let options = RunOptions { timeout, case_timeout: Duration::from_mins(1), ..options() };
    let cases = catalogue(&[("a/one", case), ("a/two", case)]);
    let run = run_cases(&cases, &peer.client, &options).await;
    for id in ["a/one", "a/two"] {
        let result = run.of(id);
        assert_eq!(result.verdict, Verdict::Error, "{id}: {}", result.reason);
        let expected = "in-time: the timeout of the run (--timeout) expired before the namespace \
                        of the run was ready";
        assert_eq!(result.reason, expected);
    }
}

/// A watch that sends objects of others is not silent.
#[rstest]
#[case::the_object_of_another_case("other", Verdict::Skip)]
#[case::an_object_of_the_case("kp-", Verdict::Fail)]
#[tokio::test]
async fn a_watch_with_ignored_selectors_is_blocked_by_their_case(
    #[case] prefix: &'static str,
    #[case] expected: Verdict,
) {
    let peer = Peer::start(move |_, target, _| match target.split_once("kp-") {
        Some((path, rest)) if path.starts_with("/events") => {
            let name = match prefix {
                "other" => prefix.to_owned(),
                _ => format!("kp-{}", rest.split('&').next().unwrap_or_default()),
            };
            Reply::Event(json!({"type": "ADDED", "object": {"metadata": {"name": name}}}))
        }
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let judge = format!("provides: label-selectors\nsteps:\n{FAILS}");
    let user = "steps:
  - watch: {id: changes, path: '/events?labelSelector=kubeproof/case=${name}'}
  - await: {watch: changes, id: seen, until: {id: comes, type: DELETED}}
";
    let options = RunOptions { case_timeout: Duration::from_secs(1), ..options() };
    let cases = catalogue(&[("a/judge", &judge), ("a/user", user)]);
    let run = run_cases(&cases, &peer.client, &options).await;
    let result = run.of("a/user");
    assert_eq!(result.verdict, expected, "{}", result.reason);
    let is_blocked =
        matches!(&result.skip, Some(SkipReason::Blocked { case, .. }) if case == "a/judge");
    assert_eq!(is_blocked, expected == Verdict::Skip);
}

/// Each response takes a while, so that waiting takes most of the time. It comes in time.
#[tokio::test]
async fn rounds_that_all_show_the_wrong_state_are_a_failure() {
    let peer = Peer::start(|_, target, _| match target {
        "/state" => Reply::After(Duration::from_millis(100)),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case = "steps:
  - until:
      id: ready
      attempts: 9999
      cel: state.body.ready == true
      steps: [request: {id: state, method: GET, path: /state}]
";
    let longest_pause = Duration::from_millis(5);
    let case_timeout = Duration::from_secs(3);
    let options = RunOptions { case_timeout, longest_pause, ..options() };
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options).await;
    let result = run.of("a/b");
    assert_eq!(checks(result), [("ready", Verdict::Fail)], "{}", result.reason);
    assert!(
        result.reason.starts_with("ready: ready is missing in the response"),
        "{}",
        result.reason
    );
    let field = "ready".to_owned();
    assert_eq!(result.checks[0].symptom, Some(Symptom::MissingField { field }));
}

/// The last round has no response at the deadline. The rounds before decide.
#[tokio::test]
async fn a_round_that_the_deadline_cuts_off_does_not_count() {
    let asked = AtomicU32::new(0);
    let peer = Peer::start(move |_, target, _| match target {
        "/first" => Reply::After(Duration::from_millis(700)),
        "/state" if asked.fetch_add(1, Ordering::SeqCst) < 12 => Reply::Json(404, json!({})),
        "/state" => Reply::Hang,
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case = "steps:
  - request: {id: first, method: GET, path: /first}
  - until:
      id: ready
      attempts: 9999
      cel: state.status == 200
      steps: [request: {id: state, method: GET, path: /state}]
";
    // Twelve rounds pause for about one of two seconds.
    let case_timeout = Duration::from_secs(2);
    let longest_pause = Duration::from_millis(400);
    let options = RunOptions { case_timeout, longest_pause, ..options() };
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.reason);
}

const NAMED: &str = "let: {ready: asked.body.metadata.ready}\n";

const WITHOUT_MEMBER: &str = "steps:\n  - request: {id: asked, method: GET, path: /asked}\n";

#[rstest]
#[case::condition_of_a_step(
    "  - when: asked.body.metadata.ready
    request: {id: next, method: GET, path: /next, expect: [{id: ok, status: 200}]}\n"
)]
#[case::list_of_a_loop(
    "  - repeat:
      id: all
      over: asked.body.metadata.ready
      as: one
      steps: [request: {id: next, method: GET, path: /next, expect: [{id: ok, status: 200}]}]\n"
)]
#[case::named_expression_in_a_path(
    "  - request:
      id: next
      method: GET
      path: /next/${ready}
      expect: [{id: ok, status: 200}]\n"
)]
#[case::polled_condition(
    "  - until:
      id: waits
      attempts: 3
      cel: next.body.metadata.ready == true
      steps: [request: {id: next, method: GET, path: /asked}]\n"
)]
#[case::check("  - expect: [{id: judged, cel: asked.body.metadata.ready == true}]\n")]
#[tokio::test]
async fn a_missing_member_that_a_step_needs_is_a_failure(#[case] steps: &str) {
    let peer = Peer::start(|_, target, _| match target {
        "/asked" => Reply::Json(200, json!({"metadata": {}})),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let named = if steps.contains("${ready}") { NAMED } else { "" };
    let case = format!("{named}{WITHOUT_MEMBER}{steps}");
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.reason);
    let message = "metadata.ready is missing in the response of `";
    assert!(result.reason.contains(message), "{}", result.reason);
    let check = result.checks.iter().find(|check| check.verdict == Verdict::Fail).unwrap();
    let field = "metadata.ready".to_owned();
    assert_eq!(check.symptom, Some(Symptom::MissingField { field }));
    assert!(check.curl.as_ref().is_some_and(|curl| curl.starts_with("curl ")), "{check:?}");
}

/// An edit needs the body of an earlier response.
#[tokio::test]
async fn a_missing_body_that_a_request_edits_is_a_failure() {
    let peer = Peer::start(|_, _, _| Reply::After(Duration::ZERO)).await;
    let case = "steps:
  - request: {id: first, method: GET, path: /first}
  - when: first.status == 200
    request: {id: second, method: HEAD, path: /second}
  - request:
      id: next
      method: PUT
      path: /next
      edit: {of: second, merge: {}}
      expect: [{id: ok, status: 200}]
";
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, Verdict::Fail, "{}", result.reason);
    assert!(
        result.reason.contains("the body is missing in the response of `second`"),
        "{result:?}"
    );
}

/// A step that did not run is no response, so the mistake is in the case.
#[tokio::test]
async fn a_value_of_a_step_that_did_not_run_is_an_error() {
    let peer = silent().await;
    let case = "steps:
  - request: {id: first, method: GET, path: /first}
  - when: first.status == 200
    request: {id: never, method: GET, path: /never}
  - request:
      id: next
      method: PUT
      path: /next
      edit: {of: never, merge: {}}
      expect: [{id: ok, status: 200}]
";
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options()).await;
    assert_eq!(run.of("a/b").verdict, Verdict::Error, "{}", run.of("a/b").reason);
}

/// The server sends no event, because it is slow: it takes long for any request.
#[rstest]
#[case::everywhere(Duration::from_millis(400), Verdict::Error)]
#[case::on_this_watch_only(Duration::ZERO, Verdict::Fail)]
#[tokio::test]
async fn silence_of_a_slow_server_is_no_failure(#[case] delay: Duration, #[case] verdict: Verdict) {
    let peer = Peer::start(move |_, target, _| match target {
        "/silence?watch=true" => Reply::Silence,
        "/version" => Reply::After(delay),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let options = RunOptions { case_timeout: Duration::from_secs(2), ..options() };
    let case = format!("steps:\n{AWAITS}");
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options).await;
    assert_eq!(run.of("a/b").verdict, verdict, "{}", run.of("a/b").reason);
}

/// The server does not respond to a request in time.
#[rstest]
#[case::slow_everywhere(Duration::from_millis(400), Verdict::Error)]
#[case::stuck_at_this_request(Duration::ZERO, Verdict::Fail)]
#[tokio::test]
async fn a_late_response_of_a_slow_server_is_no_failure(
    #[case] delay: Duration,
    #[case] verdict: Verdict,
) {
    let peer = Peer::start(move |_, target, _| match target {
        "/hangs" => Reply::Hang,
        "/version" => Reply::After(delay),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let options = RunOptions { case_timeout: Duration::from_secs(2), ..options() };
    let case = format!("steps:\n{HANGS}  - expect: [{{id: responds, cel: late.status == 200}}]\n");
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options).await;
    assert_eq!(run.of("a/b").verdict, verdict, "{}", run.of("a/b").reason);
}

/// The server ends a watch after the time that the request names.
#[rstest]
#[case::later_than_the_case(60, Verdict::Error, "--case-timeout")]
#[case::before_the_case_ends(1, Verdict::Fail, "does not end the watch")]
#[tokio::test]
async fn a_case_that_is_shorter_than_its_watch_is_no_failure(
    #[case] seconds: u64,
    #[case] verdict: Verdict,
    #[case] words: &str,
) {
    let peer = Peer::start(|_, target, _| match target.split('?').next() {
        Some("/silence") => Reply::Silence,
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let options = RunOptions { case_timeout: Duration::from_secs(2), ..options() };
    let case = format!(
        "steps:
  - watch: {{id: changes, path: /silence, query: {{timeoutSeconds: \"{seconds}\"}}}}
  - end: {{watch: changes, id: ends}}
"
    );
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, verdict, "{}", result.reason);
    assert!(result.reason.contains(words), "{}", result.reason);
}

/// A client writes to each object at once.
#[rstest]
#[case::in_each_attempt(usize::MAX, Verdict::Fail)]
#[case::once(1, Verdict::Pass)]
#[case::never(0, Verdict::Fail)]
#[tokio::test]
async fn a_case_that_others_disturb_starts_again(#[case] writes: usize, #[case] verdict: Verdict) {
    let count = AtomicUsize::new(0);
    let peer = Peer::start(move |method, target, body| match (method, target) {
        ("POST", "/things") => Reply::Json(201, body.clone()),
        ("GET", target) if target.starts_with("/things/") => {
            let name = target.rsplit('/').next().unwrap_or_default();
            let attempt = count.fetch_add(1, Ordering::SeqCst);
            let version = if writes == 0 || attempt < writes { "2" } else { "1" };
            let entries = if attempt < writes { json!([{"manager": "other"}]) } else { json!([]) };
            let metadata =
                json!({"name": name, "resourceVersion": version, "managedFields": entries});
            Reply::Json(200, json!({"metadata": metadata}))
        }
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case = r#"steps:
  - given: {id: made, path: /things, body: {"metadata": {"name": "${name}"}}}
  - request:
      id: read
      method: GET
      path: /things/${name}
      expect: [{id: unchanged, body: {metadata: {resourceVersion: "1"}}}]
"#;
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, verdict, "{}", result.reason);
    let note = "; the client \"other\" wrote to objects of the case, too (10 attempts)";
    assert_eq!(result.reason.ends_with(note), writes > 1, "{}", result.reason);
}

/// An overloaded server rejects most rounds of polling. Only a server that responds can be wrong.
#[rstest]
#[case::too_many_requests(429, 1, Verdict::Error)]
#[case::unavailable(503, 1, Verdict::Error)]
#[case::timed_out(504, 1, Verdict::Error)]
#[case::unavailable_at_times(503, 3, Verdict::Fail)]
#[case::wrong_state(404, 1, Verdict::Fail)]
#[case::broken(500, 1, Verdict::Fail)]
#[tokio::test]
async fn polling_of_an_overloaded_server_is_an_error(
    #[case] code: u16,
    #[case] one_of: u32,
    #[case] verdict: Verdict,
) {
    let asked = AtomicU32::new(0);
    let peer = Peer::start(move |_, target, _| match target {
        "/state" if asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(one_of) => {
            Reply::Json(code, json!({}))
        }
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case = "steps:
  - until:
      id: ready
      attempts: 7
      cel: state.status == 200
      steps:
        - request: {id: state, method: GET, path: /state, expect: [{id: is-there, status: 200}]}
";
    let run = run_cases(&catalogue(&[("a/b", case)]), &peer.client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, verdict, "{:?}", result.checks);
    let is_explained = result.reason.contains("rejected most rounds with 429, 503 or 504");
    assert_eq!(is_explained, verdict == Verdict::Error, "{}", result.reason);
}
