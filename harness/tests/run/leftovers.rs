//! Runs remove all of their objects, and no others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubeproof_harness::event::SkipReason;
use kubeproof_harness::event::{Event, Verdict};
use kubeproof_harness::plan::RunOptions;
use kubeproof_harness::run::leftovers;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    Peer, Reply, RunInProgress, catalogue, create, names, options, reference, run_cases,
};

const MAPS: &str = "/api/v1/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Objects in all places: in the run's namespace, cluster-scoped, with finalizers, with generated
/// names, and in another namespace.
const LITTERS: &str = r#"
subject:
  of: [configmaps.v1, widgets.v1.kubeproof.dev, gauges.v1.kubeproof.dev]
  verbs: [create, list, watch]
needs: [namespaces]
steps:
  - given:
      id: held
      object: {"metadata": {"name": "${name}", "finalizers": ["kubeproof.dev/held"]}}
  - given: {id: generated, object: {"metadata": {"generateName": "${name}-"}}}
  - request: {id: list, method: GET, path: '${collection}', expect: [{id: lists, status: 200}]}
  - given:
      id: space
      path: /api/v1/namespaces
      body: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${name}-space"}}
  - given:
      id: inside
      path: /api/v1/namespaces/${name}-space/configmaps
      body:
        apiVersion: v1
        kind: ConfigMap
        metadata: {"name": "${name}", "finalizers": ["kubeproof.dev/held"]}
"#;

const HANGS: &str = "
  - watch: {id: seen, path: '${collection}', expect: [{id: streams, status: 200}]}
  - await: {watch: seen, id: never, until: {id: comes, type: DELETED}}
";

#[rstest]
#[case::at_the_end(false)]
#[case::when_interrupted(true)]
#[tokio::test]
async fn nothing_is_left(#[case] interrupted: bool) {
    let (_server, client) = reference().await;
    let before = names(&client, "/api/v1/namespaces").await;
    let maps = names(&client, MAPS).await;
    let cases =
        catalogue(&[("a/b", &format!("{LITTERS}{}", if interrupted { HANGS } else { "" }))]);
    let mut going = RunInProgress::begin(&cases, &client, &options()).await;
    if interrupted {
        going.until(|event| matches!(event, Event::CaseStarted { .. })).await;
        while names(&client, MAPS).await.len() < maps.len() + 3 {
            tokio::task::yield_now().await;
        }
        going.interrupt.cancel();
    }
    let run = going.end().await;
    assert_eq!(run.results.len(), if interrupted { 0 } else { 3 });
    assert!(run.results.iter().all(|result| result.verdict == Verdict::Pass), "{:?}", run.results);
    assert_eq!(run.notices, [""; 0]);
    assert_eq!(names(&client, "/api/v1/namespaces").await, before);
    assert_eq!(names(&client, CRDS).await, [""; 0]);
    assert_eq!(names(&client, MAPS).await, maps);
}

#[tokio::test]
async fn in_a_borrowed_namespace_only_the_own_objects_go() {
    let (_server, client) = reference().await;
    let cases = catalogue(&[
        (
            "a/makes",
            r#"
subject: {of: configmaps.v1, verbs: [create]}
steps:
  - given: {id: made, object: {"metadata": {"name": "${name}"}}}
  - request:
      id: fails
      method: POST
      path: ${collection}
      object: {"metadata": {"name": "${name}"}}
      expect: [{id: conflict, status: 409}]
"#,
        ),
        (
            "a/empties",
            "
subject: {of: configmaps.v1, verbs: [deletecollection]}
steps:
  - request: {id: all, method: DELETE, path: '${collection}', expect: [{id: ok, status: 200}]}
",
        ),
    ]);
    let kept = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}});
    create(&client, "/api/v1/namespaces/default/configmaps", &kept).await;
    let options = RunOptions { namespace: Some("default".into()), ..options() };
    let run = run_cases(&cases, &client, &options).await;
    assert_eq!(run.of("a/makes").verdict, Verdict::Pass, "{}", run.of("a/makes").reason);
    let skipped = run.of("a/empties");
    assert_eq!(skipped.verdict, Verdict::Skip);
    assert_eq!(skipped.skip.as_ref().map(SkipReason::code), Some("deletes-foreign-objects"));
    assert_eq!(names(&client, "/api/v1/namespaces/default/configmaps").await, ["kept"]);
    let forbidden = |notice: &String| notice.contains("which --namespace forbids");
    assert!(run.notices.len() == 2 && run.notices.iter().all(forbidden), "{:?}", run.notices);
}

/// A case that leaves an object to the cleanup.
const CREATES: &str = r#"
steps:
  - given: {id: made, path: /api/v1/things, body: {"metadata": {"generateName": "l"}}}
  - request: {id: read, method: GET, path: /api, expect: [{id: ok, status: 404}]}
"#;

#[rstest]
#[case::it_stays(200, &["cannot remove /api/v1/things/left: 403 Forbidden: no"])]
#[case::it_is_gone(404, &[])]
#[tokio::test]
async fn what_cannot_be_removed_is_reported(#[case] found: u16, #[case] notices: &[&str]) {
    let peer = Peer::start(move |method, target, _| match (method, target) {
        ("GET", "/api/v1/things/left") => Reply::Json(found, json!({})),
        ("POST", "/api/v1/things") => Reply::Json(201, json!({"metadata": {"name": "left"}})),
        ("DELETE", _) => {
            Reply::Json(403, json!({"kind": "Status", "reason": "Forbidden", "message": "no"}))
        }
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let cases = catalogue(&[("a/b", CREATES)]);
    let run = run_cases(&cases, &peer.client, &options()).await;
    assert_eq!(run.notices, notices);
}

/// Controllers get time to remove their finalizers, and write at the same time.
#[tokio::test]
async fn finalizers_of_others_are_removed_last() {
    let patches = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&patches);
    let peer = Peer::start(move |method, target, body| match (method, target) {
        ("POST", "/api/v1/things") => Reply::Json(201, json!({"metadata": {"name": "left"}})),
        ("GET", "/api/v1/things/left") => Reply::Json(200, json!({})),
        ("DELETE", _) => {
            let finalizers = ["kubeproof.dev/hold", "example.com/other"];
            Reply::Json(200, json!({"metadata": {"name": "left", "finalizers": finalizers}}))
        }
        ("PATCH", _) => {
            let mut patches = seen.lock().unwrap();
            patches.push(body["metadata"]["finalizers"].clone());
            Reply::Json(if patches.len() == 1 { 409 } else { 200 }, json!({}))
        }
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let cases = catalogue(&[("a/b", CREATES)]);
    let run = run_cases(&cases, &peer.client, &options()).await;
    assert_eq!(run.notices, [""; 0]);
    let others = json!(["example.com/other"]);
    assert_eq!(*patches.lock().unwrap(), [others.clone(), others, json!(null)]);
}

/// A server with old leftovers, a new node, and objects of other users.
fn littered(method: &str, target: &str, _: &Value) -> Reply {
    let resource = |name: &str, namespaced: bool, verbs: &[&str]| {
        json!({
            "name": name, "kind": "Thing", "namespaced": namespaced, "verbs": verbs,
        })
    };
    let removable = |name: &str| resource(name, false, &["list", "delete"]);
    let groups = ["sea.example/v1", "sea.example/v2", "apiextensions.k8s.io/v1"]
        .map(|version| json!({"versions": [{"groupVersion": version}]}));
    let list = |names: &[&str], year: &str| {
        let item = |name: &&str| {
            json!({
                "metadata": {"name": name, "creationTimestamp": format!("{year}-01-01T00:00:00Z")},
            })
        };
        json!({"items": names.iter().map(item).collect::<Vec<_>>()})
    };
    let response = match (method, target.split('?').next().unwrap_or_default()) {
        ("DELETE", _) => json!({"kind": "Status", "status": "Success"}),
        (_, "/api") => json!({"versions": ["v1"]}),
        (_, "/apis") => json!({"groups": groups}),
        (_, "/api/v1") => json!({"resources": [
            removable("namespaces"), removable("nodes"), removable("closed"), removable("gone"),
            resource("events", false, &["list"]), resource("configmaps", true, &["list", "delete"]),
        ]}),
        (_, "/apis/sea.example/v1" | "/apis/sea.example/v2") => {
            json!({"resources": [removable("boats")]})
        }
        (_, "/apis/apiextensions.k8s.io/v1") => {
            json!({"resources": [removable("customresourcedefinitions")]})
        }
        (_, "/api/v1/namespaces/lent") => json!({"kind": "Namespace"}),
        (_, "/api/v1/namespaces") => list(&["kubeproof-a2c123", "mine"], "2020"),
        (_, "/api/v1/nodes") => list(&["kp-a2c123-1"], "2999"),
        (_, "/api/v1/events") => list(&["kp-a2c123-2"], "2020"),
        (_, "/api/v1/namespaces/lent/configmaps") => list(&["kp-a2c123-3", "kept"], "2020"),
        (_, "/apis/sea.example/v1/boats" | "/apis/sea.example/v2/boats") => {
            list(&["kp-a2c123-4"], "2020")
        }
        (_, CRDS) => list(&["widgets.a2c123.kubeproof.dev"], "2020"),
        (_, "/api/v1/closed") => return Reply::Json(403, json!({})),
        _ => return Reply::Json(404, json!({})),
    };
    Reply::Json(200, response)
}

/// Names identify leftovers, and their age excludes running runs.
#[rstest]
#[case::all(None, 0, 0, &["v1/namespaces/kubeproof-a2c123", "v1/nodes/kp-a2c123-1"])]
#[case::what_is_old(None, 1, 1, &["v1/namespaces/kubeproof-a2c123"])]
#[case::in_a_namespace(
    Some("lent"),
    1,
    1,
    &["v1/namespaces/kubeproof-a2c123", "v1/namespaces/lent/configmaps/kp-a2c123-3"]
)]
#[tokio::test]
async fn what_earlier_runs_left_is_found(
    #[case] namespace: Option<&str>,
    #[case] hours: u64,
    #[case] younger: usize,
    #[case] in_core: &[&str],
) {
    let peer = Peer::start(littered).await;
    let (age, deadline) = (Duration::from_hours(hours), Instant::now() + Duration::from_mins(1));
    let found = leftovers::find(&peer.client, namespace, age, deadline).await.unwrap();
    let paths: Vec<&str> = found.leftovers.iter().map(|leftover| leftover.path.as_str()).collect();
    let definition = format!("{CRDS}/widgets.a2c123.kubeproof.dev");
    let in_groups = [definition.as_str(), "/apis/sea.example/v1/boats/kp-a2c123-4"];
    let in_core = in_core.iter().map(|path| format!("/api/{path}"));
    let expected: Vec<String> = in_core.chain(in_groups.map(str::to_owned)).collect();
    assert_eq!(paths, expected);
    assert_eq!(found.younger, younger);
    // A collection that disappeared after discovery is not reported.
    let unseen: Vec<&str> =
        found.unseen.iter().map(|(collection, _)| collection.as_str()).collect();
    assert_eq!(unseen, ["/api/v1/closed"]);
}

#[tokio::test]
async fn a_namespace_that_is_missing_is_an_error() {
    let peer = Peer::start(littered).await;
    let deadline = Instant::now() + Duration::from_mins(1);
    let error =
        leftovers::find(&peer.client, Some("nope"), Duration::ZERO, deadline).await.unwrap_err();
    assert_eq!(error.to_string(), "the namespace \"nope\" does not exist; check --namespace");
}

/// Definitions serve objects, and finalizers of an object need its namespace.
#[tokio::test]
async fn what_is_in_a_namespace_goes_first_and_definitions_last() {
    let peer = Peer::start(littered).await;
    let deadline = Instant::now() + Duration::from_mins(1);
    let found =
        leftovers::find(&peer.client, None, Duration::from_hours(1), deadline).await.unwrap();
    assert_eq!(leftovers::remove(&peer.client, &found).await, [""; 0]);
    let deleted: Vec<String> =
        peer.writes().iter().map(|line| line.replace("?gracePeriodSeconds=0", "")).collect();
    assert_eq!(deleted.len(), 4, "{deleted:?}");
    assert_eq!(deleted[0], "DELETE /api/v1/namespaces/kubeproof-a2c123/configmaps");
    assert_eq!(deleted[3], format!("DELETE {CRDS}/widgets.a2c123.kubeproof.dev"));
}

#[tokio::test]
async fn a_server_that_lists_no_resources_has_not_been_looked_at() {
    let peer = Peer::start(|_, _, _| Reply::Json(404, json!({}))).await;
    let deadline = Instant::now() + Duration::from_mins(1);
    let found = leftovers::find(&peer.client, None, Duration::ZERO, deadline).await.unwrap();
    assert_eq!((found.leftovers.len(), found.unseen.len()), (0, 1));
}
