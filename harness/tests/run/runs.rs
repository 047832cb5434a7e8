//! Tests steps, checks and the outcomes of cases.

use std::sync::atomic::{AtomicU32, Ordering};

use kubeproof_harness::event::{Event, Verdict};
use kubeproof_harness::plan::RunOptions;
use rstest::rstest;
use serde_json::json;
use tokio::time::Duration;

use crate::support::{
    Peer, Reply, RunInProgress, catalogue, checks, names, options, reference, run_cases,
};

const ASKS_VERSION: &str = "steps:
  - request:
      id: version
      method: GET
      path: /asked
      expect: [{id: is-there, status: 200}]
";

/// Starts a server with this reply to requests of cases. Discovery is empty.
async fn responding(reply: fn() -> Reply) -> Peer {
    Peer::start(move |_, target, _| match target {
        "/asked" => reply(),
        _ => Reply::Json(404, json!({})),
    })
    .await
}

#[rstest]
#[case::responded(|| Reply::Json(200, json!({})), "is-there", Verdict::Pass)]
#[case::rejected(|| Reply::Json(404, json!({})), "is-there", Verdict::Fail)]
#[case::hangs(|| Reply::Hang, "version-response", Verdict::Fail)]
#[case::hangs_up(|| Reply::HangUp, "version-response", Verdict::Fail)]
#[tokio::test]
async fn every_end_of_an_exchange_is_a_verdict(
    #[case] reply: fn() -> Reply,
    #[case] check: &str,
    #[case] verdict: Verdict,
) {
    let peer = responding(reply).await;
    let options = RunOptions { case_timeout: Duration::from_millis(300), ..options() };
    let run = run_cases(&catalogue(&[("a/b", ASKS_VERSION)]), &peer.client, &options).await;
    assert_eq!(checks(run.of("a/b")), [(check, verdict)]);
    assert_eq!(run.of("a/b").exchanges.len(), 1);
}

const SLOW: &str = "  - request: {id: slow, method: GET, path: /slow}\n";

const ASKS_LATE: &str =
    "  - request: {id: late, method: GET, path: /hangs, expect: [{id: is-there, status: 200}]}\n";

const ASKS_OFTEN: &str = "
  - until:
      id: ready
      attempts: 100
      cel: slow.status == 418
      steps: [request: {id: slow, method: GET, path: /slow}]
";

const ASKS_IN_VAIN: &str = "
  - until:
      id: ready
      attempts: 9999
      cel: quick.status == 418
      steps: [request: {id: quick, method: GET, path: /quick}]
";

const WATCHES: &str = "
  - watch: {id: changes, path: /silence}
  - await: {watch: changes, id: seen, until: {id: comes, type: ADDED}}
";

/// A slow server is not at fault if too little time was left.
#[rstest]
#[case::no_response(&[SLOW, ASKS_LATE], "late-response", Verdict::Error)]
#[case::no_time_for_rounds(&[ASKS_OFTEN], "slow-response", Verdict::Error)]
#[case::few_rounds_in_time(&[SLOW, ASKS_IN_VAIN], "ready", Verdict::Fail)]
#[case::no_event(&[SLOW, WATCHES], "comes", Verdict::Error)]
#[case::nothing_else_to_wait_for(&[WATCHES], "comes", Verdict::Fail)]
#[tokio::test]
async fn what_the_time_of_the_case_is_too_short_for_is_no_failure(
    #[case] steps: &[&str],
    #[case] check: &str,
    #[case] verdict: Verdict,
) {
    let peer = Peer::start(move |_, target, _| match target {
        "/slow" => Reply::After(Duration::from_millis(1200)),
        "/silence?watch=true" => Reply::Silence,
        "/hangs" => Reply::Hang,
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let options = RunOptions { case_timeout: Duration::from_secs(2), ..options() };
    let case = format!("steps:\n{}", steps.concat());
    let run = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options).await;
    let result = run.of("a/b");
    assert_eq!(result.verdict, verdict, "{}", result.reason);
    assert!(result.reason.starts_with(check), "{}", result.reason);
    assert_eq!(
        result.reason.contains("(--case-timeout)"),
        verdict == Verdict::Error,
        "{}",
        result.reason
    );
}

#[tokio::test]
async fn no_case_begins_while_results_wait_to_be_heard() {
    let peer = responding(|| Reply::Json(200, json!({}))).await;
    let ids: Vec<String> = (0..6).map(|n| format!("a/b{n}")).collect();
    let cases: Vec<_> = ids.iter().map(|id| (id.as_str(), ASKS_VERSION)).collect();
    let options = RunOptions { jobs: 1, ..options() };
    let mut going =
        RunInProgress::begin_within(1, &catalogue(&cases), &peer.client, &options).await;
    for heard in 1..=ids.len() {
        going.until(|event| matches!(event, Event::CaseFinished(_))).await;
        // A run that ignores the full channel would send more requests.
        for _ in 0..20 {
            names(&peer.client, "/other").await;
        }
        let asked = peer.asked("GET /asked");
        assert!(asked <= heard + 1, "{asked} cases have begun, and {heard} were heard of");
    }
}

#[tokio::test]
async fn garbage_everywhere_fails_what_can_run_and_skips_the_rest() {
    let peer = Peer::start(|_, target, _| match target {
        "/api" => Reply::Json(200, json!({"kind": "APIVersions"})),
        _ => Reply::Json(200, json!({})),
    })
    .await;
    let cases = catalogue(&[
        (
            "a/alone",
            r#"
steps:
  - request: {id: v, method: GET, path: /version, expect: [{id: major, body: '{"major": "1"}'}]}
"#,
        ),
        (
            "a/subject",
            "
subject: {verbs: [list]}
steps:
  - request: {id: l, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}
",
        ),
    ]);
    let run = run_cases(&cases, &peer.client, &options()).await;
    assert_eq!(run.of("a/alone").verdict, Verdict::Fail);
    assert_eq!(run.of("a/subject").verdict, Verdict::Skip);
    assert!(peer.writes().is_empty(), "{:?}", peer.writes());
}

#[tokio::test]
async fn a_missing_capture_ends_the_case_after_the_checks_of_its_step() {
    let peer = responding(|| Reply::Json(404, json!({"other": 1}))).await;
    let cases = catalogue(&[(
        "a/b",
        "steps:
  - request:
      id: asked
      method: GET
      path: /asked
      capture: {uid: /metadata/uid}
      expect:
        - {id: is-there, status: 200}
        - {id: reads-it, cel: asked.status == 200 && uid != ''}
  - request: {id: again, method: GET, path: '/asked/${uid}', expect: [{id: never, status: 200}]}
",
    )]);
    let run = run_cases(&cases, &peer.client, &options()).await;
    assert_eq!(
        checks(run.of("a/b")),
        [("is-there", Verdict::Fail), ("reads-it", Verdict::Fail), ("asked-uid", Verdict::Fail)]
    );
    assert!(run.of("a/b").reason.starts_with("is-there: "), "{}", run.of("a/b").reason);
}

#[tokio::test]
async fn until_tries_again_and_counts_only_the_last_round() {
    let asked = AtomicU32::new(0);
    let peer = Peer::start(move |_, target, _| match target {
        "/asked" => {
            Reply::Json(if asked.fetch_add(1, Ordering::SeqCst) < 3 { 404 } else { 200 }, json!({}))
        }
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let cases = catalogue(&[(
        "a/b",
        "steps:
  - until:
      id: served
      attempts: 10
      cel: asked.status == 200
      steps:
        - request: {id: asked, method: GET, path: /asked, expect: [{id: is-there, status: 200}]}
  - expect: [{id: seen, cel: served.asked.status == 200}]
",
    )]);
    let run = run_cases(&cases, &peer.client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(
        checks(result),
        [("is-there", Verdict::Pass), ("served", Verdict::Pass), ("seen", Verdict::Pass)]
    );
    let steps: Vec<&str> = result.exchanges.iter().map(|named| named.step.as_str()).collect();
    assert_eq!(steps, ["served[0].asked", "served[1].asked", "served[2].asked", "served[3].asked"]);
}

const LOOPS_AND_BRANCHES: &str = r#"subject: {of: configmaps.v1, verbs: [create, get, list, watch]}
steps:
  - concurrently:
      id: made
      times: 20
      steps:
        - given:
            id: one
            object: {"metadata": {"name": "${name}-${i}", "labels": {"case": "${name}"}}}
            capture: {mine: /metadata/name}
        - repeat:
            id: reads
            times: 2
            steps:
              - request:
                  id: read
                  method: GET
                  path: ${collection}/${mine}
                  expect:
                    - {id: same, cel: read.body.metadata.uid == one.body.metadata.uid && i < 2}
  - repeat:
      id: versions
      over: made.map(m, m.one.body.metadata.name)
      as: which
      steps:
        - request:
            id: again
            method: GET
            path: ${collection}/${which}
            expect: [{id: there, status: 200}]
  - watch:
      id: seen
      path: ${collection}
      query: {labelSelector: 'case=${name}'}
      expect: [{id: streams, status: 200}]
  - together:
      id: both
      branches:
        - - given:
              id: last
              object: {"metadata": {"name": "${name}-last", "labels": {"case": "${name}"}}}
        - - await:
              watch: seen
              id: got
              until:
                id: comes
                type: ADDED
                object: {"metadata": {"name": "${name}-last"}}
                capture: {came: /metadata/uid}
          - expect: [{id: captured, cel: came != ''}]
  - expect:
      - id: all
        cel: >-
          distinct(made.map(m, m.one.body.metadata.uid)) && made.size() == 20
          && versions.size() == 20
      - {id: posted, cel: 'both[0].last.status == 201'}
      - {id: refreshed, cel: seen.events.size() == 21}
"#;

#[tokio::test]
async fn loops_and_branches_have_results_and_scopes_of_their_own() {
    let (_server, client) = reference().await;
    let cases = catalogue(&[("a/b", LOOPS_AND_BRANCHES)]);
    let run = run_cases(&cases, &client, &options()).await;
    let result = run.of("a/b");
    let expected = ["same", "there", "streams", "comes", "captured", "all", "posted", "refreshed"];
    assert_eq!(checks(result), expected.map(|id| (id, Verdict::Pass)), "{}", result.reason);
    assert_eq!(
        result.exchanges.iter().filter(|e| e.step.starts_with("made[7].reads[1].")).count(),
        1
    );
}

#[rstest]
#[case::wrong_type(
    "next: [{id: event, type: MODIFIED}]",
    "the next event is not the expected one: type"
)]
#[case::never(
    "until: {id: event, type: DELETED}",
    "the expected DELETED event does not arrive: the server ended the watch"
)]
#[tokio::test]
async fn an_event_that_is_not_the_one_fails_and_ends_the_case(
    #[case] awaited: &str,
    #[case] message: &str,
) {
    let (_server, client) = reference().await;
    let cases = catalogue(&[(
        "a/b",
        &format!(
            "subject: {{of: configmaps.v1, verbs: [create, list, watch]}}
steps:
  - given:
      id: made
      object: {{\"metadata\": {{\"name\": \"${{name}}\", \"labels\": {{\"case\": \"${{name}}\"}}}}}}
  - watch:
      id: seen
      path: ${{collection}}
      query: {{labelSelector: 'case=${{name}}', timeoutSeconds: '1'}}
      expect: [{{id: streams, status: 200}}]
  - await: {{watch: seen, id: got, {awaited}}}
  - end: {{watch: seen}}
"
        ),
    )]);
    let run = run_cases(&cases, &client, &options()).await;
    let result = run.of("a/b");
    assert_eq!(checks(result), [("streams", Verdict::Pass), ("event", Verdict::Fail)]);
    assert!(result.checks[1].message.starts_with(message), "{}", result.checks[1].message);
    assert_eq!(result.exchanges.last().unwrap().step, "seen");
    assert!(!result.exchanges.last().unwrap().exchange.response().unwrap().events.is_empty());
}

#[tokio::test]
async fn a_given_that_is_rejected_fails_and_one_without_rights_is_an_error() {
    let cases = catalogue(&[(
        "a/b",
        "
steps:
  - given: {id: made, path: /asked, body: {}}
  - request: {id: next, method: GET, path: /asked, expect: [{id: never, status: 200}]}
",
    )]);
    for (status, verdict) in [(422, Verdict::Fail), (403, Verdict::Error), (429, Verdict::Error)] {
        let peer = Peer::start(move |_, target, _| match target {
            "/asked" => Reply::Json(status, json!({"kind": "Status", "reason": "Why"})),
            _ => Reply::Json(404, json!({})),
        })
        .await;
        let run = run_cases(&cases, &peer.client, &options()).await;
        assert_eq!(checks(run.of("a/b")), [("given-made", verdict)]);
    }
}

#[tokio::test]
async fn after_enough_failures_the_rest_is_skipped() {
    let peer = responding(|| Reply::Json(404, json!({}))).await;
    let cases = catalogue(&[("a/a", ASKS_VERSION), ("a/b", ASKS_VERSION), ("a/c", ASKS_VERSION)]);
    let options = RunOptions { jobs: 1, max_fail: Some(1), ..options() };
    let run = run_cases(&cases, &peer.client, &options).await;
    assert_eq!((run.count(Verdict::Fail), run.count(Verdict::Skip)), (1, 2));
}

#[tokio::test]
async fn when_the_time_of_the_run_is_over_the_rest_are_errors() {
    let peer = responding(|| Reply::Hang).await;
    let cases = catalogue(&[("a/a", ASKS_VERSION), ("a/b", ASKS_VERSION)]);
    let options = RunOptions { jobs: 1, timeout: Some(Duration::from_millis(200)), ..options() };
    let run = run_cases(&cases, &peer.client, &options).await;
    assert_eq!(run.count(Verdict::Error), 2);
    assert!(
        run.results.iter().all(|result| result.reason.contains("--timeout")),
        "{:?}",
        run.results
    );
}

#[tokio::test]
async fn an_interrupt_ends_running_cases_without_a_result() {
    let peer = responding(|| Reply::Hang).await;
    let cases = catalogue(&[("a/a", ASKS_VERSION), ("a/b", ASKS_VERSION)]);
    let options = RunOptions { jobs: 1, ..options() };
    let mut going = RunInProgress::begin(&cases, &peer.client, &options).await;
    going.until(|event| matches!(event, Event::CaseStarted { .. })).await;
    going.interrupt.cancel();
    let run = going.end().await;
    assert!(run.results.is_empty());
    assert!(run.finished.unwrap().interrupted);
}

#[tokio::test]
async fn each_case_runs_as_often_as_asked() {
    let peer = responding(|| Reply::Json(200, json!({}))).await;
    let options = RunOptions { repeat: 3, ..options() };
    let run = run_cases(&catalogue(&[("a/b", ASKS_VERSION)]), &peer.client, &options).await;
    assert_eq!(run.count(Verdict::Pass), 3);
}
