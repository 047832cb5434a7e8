//! A run stops early if its server goes away or hangs, and is gentle to one that is overloaded.

use std::sync::atomic::{AtomicU32, Ordering};

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{SkipReason, StopReason, Verdict};
use kubeproof_harness::plan::{RunOptions, plan};
use rstest::rstest;
use serde_json::json;
use tokio::time::Duration;

use crate::support::{Peer, Reply, RunEvents, catalogue, options, run_cases};

const LISTS: &str = "steps:
  - request:
      id: list
      method: GET
      path: /apis/example.com/v1/things
      expect: [{id: ok, status: 200}]
";

const CREATES: &str = "steps:
  - request:
      id: list
      method: GET
      path: /apis/example.com/v1/things
      expect: [{id: ok, status: 200}]
  - request: {id: create, method: POST, path: /apis/example.com/v1/things, json: '{}'}
";

/// Returns this many cases with the same steps.
fn many(count: usize, steps: &str) -> Catalogue {
    let ids: Vec<String> = (0..count).map(|n| format!("a/b{n}")).collect();
    let cases: Vec<_> = ids.iter().map(|id| (id.as_str(), steps)).collect();
    catalogue(&cases)
}

fn skipped_by_stop(run: &RunEvents) -> usize {
    let is_stop = |reason: &SkipReason| matches!(reason, SkipReason::Stopped(_));
    run.results.iter().filter(|result| result.skip.as_ref().is_some_and(is_stop)).count()
}

/// The request that the server breaks on its way out is no failure. The connections of a process
/// that ends can end before its listener.
#[rstest]
#[case::listener_first(0)]
#[case::connections_first(2)]
#[tokio::test]
async fn a_run_stops_when_its_server_goes_away(#[case] resets: u32) {
    let (asked, reset) = (AtomicU32::new(0), AtomicU32::new(0));
    let peer = Peer::start(move |_, target, _| {
        let is_leaving = asked.load(Ordering::SeqCst) >= 3;
        match target {
            "/apis/example.com/v1/things" if !is_leaving => {
                asked.fetch_add(1, Ordering::SeqCst);
                Reply::Json(200, json!({}))
            }
            _ if !is_leaving => Reply::Json(404, json!({})),
            _ if reset.fetch_add(1, Ordering::SeqCst) < resets => Reply::HangUp,
            _ => Reply::GoAway,
        }
    })
    .await;
    let options = RunOptions { jobs: 1, ..options() };
    let run = run_cases(&many(20, LISTS), &peer.client, &options).await;
    let verdicts = [Verdict::Pass, Verdict::Fail].map(|verdict| run.count(verdict));
    assert_eq!(verdicts, [3, 0], "{:?}", run.results);
    let errors = run.count(Verdict::Error);
    assert!((10..=11).contains(&errors), "{errors}");
    assert_eq!(skipped_by_stop(&run), 17 - errors);
    let stopped = run.finished.unwrap().stopped.expect("a reason");
    assert_eq!(stopped.reason, StopReason::Refused);
    assert_eq!(stopped.after.as_deref(), Some("GET /apis/example.com/v1/things"));
}

#[tokio::test]
async fn a_run_stops_when_every_create_hangs() {
    let peer = Peer::start(|method, target, _| match (method, target) {
        ("GET", "/apis/example.com/v1/things") => Reply::Json(200, json!({})),
        ("POST", "/apis/example.com/v1/things") => Reply::Hang,
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case_timeout = Duration::from_millis(600);
    let options = RunOptions { jobs: 10, case_timeout, ..options() };
    let run = run_cases(&many(60, CREATES), &peer.client, &options).await;
    let failures = run.count(Verdict::Fail);
    assert!((20..=30).contains(&failures), "{failures}");
    assert!(skipped_by_stop(&run) >= 30, "{:?}", run.results);
    assert_eq!(run.finished.unwrap().stopped.expect("a reason").reason, StopReason::CreatesHang);
}

#[tokio::test]
async fn a_run_lowers_its_jobs_once_with_a_notice_if_the_server_does_not_keep_up() {
    let asked = AtomicU32::new(0);
    let peer = Peer::start(move |_, target, _| match target {
        "/apis/example.com/v1/things" if asked.fetch_add(1, Ordering::SeqCst) < 2 => {
            Reply::Json(200, json!({}))
        }
        "/apis/example.com/v1/things" => Reply::Hang,
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let case_timeout = Duration::from_millis(600);
    let options = RunOptions { jobs: 6, case_timeout, ..options() };
    let run = run_cases(&many(14, LISTS), &peer.client, &options).await;
    let [notice] = run.notices.as_slice() else { panic!("{:?}", run.notices) };
    assert!(notice.contains("--jobs from 6 to 3"), "{notice}");
    assert!(run.finished.unwrap().stopped.is_none());
}

#[rstest]
#[case::one_job(1)]
#[case::eight_jobs(8)]
#[tokio::test]
async fn the_probes_of_a_run_with_one_job_are_sequential(#[case] jobs: usize) {
    let peer = Peer::start(|_, _, _| Reply::After(Duration::from_millis(5))).await;
    let cases = Catalogue::embedded().unwrap_or_else(|errors| panic!("{errors}"));
    let options = RunOptions { jobs, ..options() };
    plan(&cases, &peer.client, &options).await.unwrap();
    let most = peer.most_at_once();
    assert_eq!(most == 1, jobs == 1, "{most}");
}
