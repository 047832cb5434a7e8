//! Nothing of a run is left, and nothing else is touched.

use kubeproof_harness::event::{Event, Verdict};
use kubeproof_harness::run::RunOptions;
use rstest::rstest;
use serde_json::json;

use crate::support::{Going, Peer, Reply, catalogue, create, names, options, reference, told};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Objects of every kind of place: in the run's namespace, cluster-scoped, held by finalizers, named by the server, in a
/// namespace of the case's own.
const LITTERS: &str = "
subject: {of: [configmaps.v1, widgets.v1.kubeproof.dev, gauges.v1.kubeproof.dev], verbs: [create, list, watch]}
needs: [namespaces]
steps:
  - given: {id: held, object: '{\"metadata\": {\"name\": \"${name}\", \"finalizers\": [\"kubeproof.dev/held\"]}}'}
  - given: {id: generated, object: '{\"metadata\": {\"generateName\": \"${name}-\"}}'}
  - request: {id: list, method: GET, path: '${collection}', expect: [{id: lists, status: 200}]}
  - given: {id: space, path: /api/v1/namespaces, json: '{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"${name}-space\"}}'}
  - given: {id: inside, path: '/api/v1/namespaces/${name}-space/configmaps', json: '{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"${name}\", \"finalizers\": [\"kubeproof.dev/held\"]}}'}
";

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
    let cases = catalogue(&[("a/b", &format!("{LITTERS}{}", if interrupted { HANGS } else { "" }))]);
    let mut going = Going::begin(&cases, &client, &options()).await;
    if interrupted {
        going.until(|event| matches!(event, Event::CaseStarted { .. })).await;
        while names(&client, "/api/v1/configmaps").await.len() < 3 {
            tokio::task::yield_now().await;
        }
        going.interrupt.cancel();
    }
    let told = going.end().await;
    assert_eq!(told.results.len(), if interrupted { 0 } else { 3 });
    assert!(told.results.iter().all(|result| result.verdict == Verdict::Pass), "{:?}", told.results);
    assert_eq!(told.notices, [""; 0]);
    assert_eq!(names(&client, "/api/v1/namespaces").await, before);
    assert_eq!(names(&client, CRDS).await, [""; 0]);
    assert_eq!(names(&client, "/api/v1/configmaps").await, [""; 0]);
}

#[tokio::test]
async fn in_a_borrowed_namespace_only_the_own_objects_go() {
    let (_server, client) = reference().await;
    let cases = catalogue(&[
        (
            "a/makes",
            "subject: {of: configmaps.v1, verbs: [create]}\nsteps:\n  - given: {id: made, object: '{\"metadata\": {\"name\": \"${name}\"}}'}\n  - request: {id: fails, method: POST, path: '${collection}', object: '{\"metadata\": {\"name\": \"${name}\"}}', expect: [{id: conflict, status: 409}]}\n",
        ),
        (
            "a/empties",
            "subject: {of: configmaps.v1, verbs: [deletecollection]}\nsteps:\n  - request: {id: all, method: DELETE, path: '${collection}', expect: [{id: ok, status: 200}]}\n",
        ),
    ]);
    let kept = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}});
    create(&client, "/api/v1/namespaces/default/configmaps", &kept).await;
    let options = RunOptions { namespace: Some("default".into()), ..options() };
    let told = told(&cases, &client, &options).await;
    assert_eq!(told.of("a/makes").verdict, Verdict::Pass, "{}", told.of("a/makes").reason);
    let skipped = told.of("a/empties");
    assert_eq!(skipped.verdict, Verdict::Skip);
    assert!(skipped.reason.contains("not only its own"), "{}", skipped.reason);
    assert_eq!(names(&client, "/api/v1/namespaces/default/configmaps").await, ["kept"]);
    let forbidden = |notice: &String| notice.contains("which --namespace forbids");
    assert!(told.notices.len() == 2 && told.notices.iter().all(forbidden), "{:?}", told.notices);
}

#[tokio::test]
async fn what_cannot_be_removed_is_told() {
    let peer = Peer::start(|method, target, _| match (method, target) {
        ("POST", "/api/v1/things") => Reply::Json(201, json!({"metadata": {"name": "left"}})),
        ("DELETE", _) => Reply::Json(403, json!({"kind": "Status", "reason": "Forbidden", "message": "no"})),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let cases = catalogue(&[(
        "a/b",
        "steps:\n  - given: {id: made, path: /api/v1/things, json: '{\"metadata\": {\"generateName\": \"l\"}}'}\n  - request: {id: read, method: GET, path: /api, expect: [{id: ok, status: 404}]}\n",
    )]);
    let told = told(&cases, &peer.client, &options()).await;
    assert_eq!(told.notices, ["cannot remove /api/v1/things/left: 403 Forbidden: no"]);
}
