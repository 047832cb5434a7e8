//! Implied checks have the level of their case: a case below MUST never fails a run.

use kubeproof_harness::event::Verdict;
use kubeproof_harness::plan::RunOptions;
use rstest::rstest;
use serde_json::json;
use tokio::time::Duration;

use crate::support::{Peer, Reply, catalogue, checks, options, run_cases};

const GIVEN: &str = "  - given: {id: made, path: /rejects, body: {metadata: {name: a}}}\n";

const CAPTURE: &str = "  - get: {id: read, path: /empty, capture: {uid: /metadata/uid}}\n";

const DEADLINE: &str = "  - get: {id: late, path: /hangs, expect: [{id: found, status: 200}]}\n";

const WATCH: &str = "
  - watch: {id: changes, path: /silence}
  - await: {watch: changes, id: seen, until: {id: comes, type: ADDED}}
";

const USE: &str = "  - expect: [{id: last, cel: 'uid != \"\"'}]\n";

#[rstest]
#[case::given("given-made", &[GIVEN, "  - expect: [{id: last, cel: made.status == 201}]\n"])]
#[case::capture("read-uid", &[CAPTURE, USE])]
#[case::deadline("late-response", &[DEADLINE])]
#[case::watch("comes", &[WATCH])]
#[tokio::test]
async fn an_implied_check_has_the_level_of_its_case(
    #[case] check: &str,
    #[case] steps: &[&str],
    #[values("must", "should", "may")] level: &str,
) {
    let verdict = if level == "must" { Verdict::Fail } else { Verdict::Warn };
    let peer = Peer::start(|_, target, _| match target {
        "/rejects" => Reply::Json(422, json!({})),
        "/empty" => Reply::Json(200, json!({})),
        "/hangs" => Reply::Hang,
        "/silence?watch=true" => Reply::Silence,
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let options = RunOptions { case_timeout: Duration::from_millis(500), ..options() };
    let case = format!("level: {level}\nsteps:\n{}", steps.concat());
    let results = run_cases(&catalogue(&[("a/b", &case)]), &peer.client, &options).await;
    assert_eq!(checks(results.of("a/b")), [(check, verdict)]);
    assert_eq!(results.of("a/b").verdict, verdict);
}
