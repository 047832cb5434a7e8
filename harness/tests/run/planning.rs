//! What runs, what is skipped, and why; all of it known before the first case.

use kubeproof_harness::plan::{Home, PlanError, plan};
use kubeproof_harness::run::RunOptions;
use kubeproof_harness::target::TargetError;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Peer, Reply, catalogue, options, reference};

const CREATES: &str = "subject: {verbs: [create, get]}\nsteps:\n  - given: {id: made, object: '{\"metadata\": {\"name\": \"${name}\"}}'}\n  - request: {id: read, method: GET, path: '${collection}/${name}', expect: [{id: ok, status: 200}]}\n";

const READS: &str = "subject: {of: builtin, verbs: [list]}\nsteps:\n  - request: {id: read, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}\n";

/// Runs as `id@subject`, skips with their reasons.
fn shown(plan: &kubeproof_harness::plan::Plan) -> Vec<String> {
    let show = |run: &kubeproof_harness::plan::PlannedRun| {
        let skip = run.skip.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{}@{}{skip}", run.case.id, run.subject_name())
    };
    let mut shown: Vec<String> = plan.runs.iter().map(show).collect();
    shown.sort();
    shown
}

#[tokio::test]
async fn every_case_runs_on_every_subject_it_fits() {
    let (_server, client) = reference().await;
    let cases = catalogue(&[
        ("a/any", CREATES),
        (
            "a/cluster",
            "subject: {scope: cluster, verbs: [list]}\nsteps:\n  - request: {id: read, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}\n",
        ),
        (
            "a/first",
            "subject: {verbs: [list], once: true}\nsteps:\n  - request: {id: read, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}\n",
        ),
        (
            "a/second-user",
            "needs: [second-user]\nsteps:\n  - request: {id: read, method: GET, path: /version, as: second, expect: [{id: ok, status: 200}]}\n",
        ),
    ]);
    let plan = plan(&cases, &client, &options()).await.unwrap();
    assert_eq!(
        shown(&plan),
        [
            "a/any@configmaps.v1",
            "a/any@gauges.v1.kubeproof.dev",
            "a/any@secrets.v1",
            "a/any@widgets.v1.kubeproof.dev",
            "a/cluster@gauges.v1.kubeproof.dev",
            "a/first@configmaps.v1",
            "a/second-user@: no credential of an unprivileged user was given (--second-token)",
        ]
    );
    assert!(matches!(&plan.home, Home::Own(name) if *name == format!("kubeproof-{}", plan.run)));
    let objects: Vec<String> = plan.objects().into_iter().map(|object| object.name).collect();
    assert_eq!(objects.iter().filter(|name| name.starts_with("kp-")).count(), 4, "{objects:?}");
    assert!(objects.contains(&format!("kubeproof-{}", plan.run)));
    assert!(objects.contains(&format!("widgets.{}.kubeproof.dev", plan.run)));
}

#[tokio::test]
async fn the_seed_gives_the_order_and_shards_share_the_work() {
    let (_server, client) = reference().await;
    let cases = catalogue(&[("a/a", CREATES), ("a/b", CREATES), ("a/c", CREATES)]);
    let order = async |options: &RunOptions| {
        let plan = plan(&cases, &client, options).await.unwrap();
        plan.runs.iter().map(|run| format!("{}@{}", run.case.id, run.subject_name())).collect::<Vec<_>>()
    };
    let all = order(&options()).await;
    assert_eq!(order(&options()).await, all);
    assert_ne!(order(&RunOptions { seed: 7, ..options() }).await, all);
    let mut shards = Vec::new();
    for shard in ["1/2", "2/2"] {
        let mut options = options();
        options.selection.shard = Some(shard.parse().unwrap());
        shards.extend(order(&options).await);
    }
    shards.sort();
    let mut all = all;
    all.sort();
    assert_eq!(shards, all);
}

#[rstest]
#[case::read_only(RunOptions { read_only: true, ..options() })]
#[case::dry_run(RunOptions { dry_run: true, ..options() })]
#[tokio::test]
async fn careful_plans_write_nothing(#[case] options: RunOptions) {
    let peer = Peer::start(small_cluster).await;
    let plan = plan(&catalogue(&[("a/creates", CREATES), ("a/reads", READS)]), &peer.client, &options)
        .await
        .unwrap();
    assert!(peer.writes().is_empty(), "{:?}", peer.writes());
    let skipped =
        if options.read_only { ": it changes objects, which --read-only forbids" } else { "configmaps.v1" };
    assert!(shown(&plan)[0].ends_with(skipped), "{:?}", shown(&plan));
    assert_eq!(shown(&plan).last().unwrap(), "a/reads@configmaps.v1");
}

#[tokio::test]
async fn a_refused_namespace_asks_for_another_and_missing_resources_are_told_once() {
    let peer = Peer::start(|method, target, body| match method {
        "POST" => Reply::Json(403, json!({"kind": "Status", "reason": "Forbidden", "message": "no"})),
        _ => small_cluster(method, target, body),
    })
    .await;
    let plan = plan(&catalogue(&[("a/b", CREATES)]), &peer.client, &options()).await.unwrap();
    assert_eq!(
        shown(&plan),
        [
            "a/b@configmaps.v1: a dry-run create in /api/v1/namespaces is refused: 403 Forbidden: no; name a namespace \
          to use with --namespace"
        ]
    );
    let absent: Vec<String> = plan.absent.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(absent, ["gauges.v1.kubeproof.dev", "secrets.v1", "widgets.v1.kubeproof.dev"]);
}

#[tokio::test]
async fn a_server_without_known_resources_lends_its_own() {
    let list = json!({"resources": [
        {"name": "boats", "kind": "Boat", "namespaced": true, "verbs": ["create", "get", "list", "delete"]},
        {"name": "ports", "kind": "Port", "namespaced": false, "verbs": ["create", "get", "list", "delete"]},
        {"name": "ships", "kind": "Ship", "namespaced": true, "verbs": ["create", "get", "list", "delete"]},
        {"name": "waves", "kind": "Wave", "namespaced": true, "verbs": ["get", "list"]},
    ]});
    let peer = Peer::start(move |method, target, body| match (method, target) {
        ("GET", "/apis") => {
            Reply::Json(200, json!({"groups": [{"versions": [{"groupVersion": "sea.example/v1"}]}]}))
        }
        ("GET", "/apis/sea.example/v1") => Reply::Json(200, list.clone()),
        ("POST", _) if target.ends_with("/boats?dryRun=All") => Reply::Json(422, json!({})),
        ("POST", _) if target.ends_with("?dryRun=All") => Reply::Json(201, body.clone()),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let plan = plan(&catalogue(&[("a/b", CREATES)]), &peer.client, &options()).await.unwrap();
    assert_eq!(shown(&plan), ["a/b@ports.v1.sea.example", "a/b@ships.v1.sea.example"]);
    assert_eq!(plan.home, Home::Borrowed("default".into()));
}

#[tokio::test]
async fn a_subject_of_the_user_must_be_served() {
    let peer = Peer::start(small_cluster).await;
    let options = RunOptions { subjects: vec!["v1/configmap".parse().unwrap()], ..options() };
    let error = plan(&catalogue(&[("a/b", CREATES)]), &peer.client, &options).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server does not serve the subject configmap.v1; did you mean configmaps.v1?"
    );
}

#[tokio::test]
async fn a_namespace_to_use_must_exist() {
    let (_server, client) = reference().await;
    let options = RunOptions { namespace: Some("nowhere".into()), ..options() };
    let error = plan(&catalogue(&[("a/b", CREATES)]), &client, &options).await.unwrap_err();
    assert!(matches!(error, PlanError::NoNamespace(_)), "{error}");
}

#[tokio::test]
async fn a_target_that_does_not_know_us_has_no_plan() {
    let peer = Peer::start(|_, _, _| Reply::Json(401, json!({}))).await;
    let error = plan(&catalogue(&[("a/b", CREATES)]), &peer.client, &options()).await.unwrap_err();
    assert!(matches!(error, PlanError::Target(TargetError::Unauthenticated { .. })), "{error}");
}

/// Pods run where a node is ready; what runs in them has to be known or named.
#[rstest]
#[case::none(json!([]), None, "no node of the target is ready, so pods do not run (--with-node brings one)")]
#[case::not_ready(json!([node("False", "kubeproof 1")]), None, "no node of the target is ready, so pods do not run (--with-node brings one)")]
#[case::real(json!([node("True", "Debian")]), None, "the target's nodes run real images: name one with --pod-image (busybox will do)")]
#[case::real_with_image(json!([node("True", "Debian")]), Some("busybox"), "")]
#[case::scripted(json!([node("True", "kubeproof 1")]), None, "")]
#[tokio::test]
async fn cases_of_streams_need_a_node_and_an_image(
    #[case] nodes: Value,
    #[case] image: Option<&str>,
    #[case] expected: &str,
) {
    let peer = Peer::start(move |method, target, body| match (method, target) {
        ("GET", "/api/v1") => {
            let resource = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": ["create", "delete", "get", "list"]});
            Reply::Json(200, json!({"resources": [resource("namespaces", "Namespace", false), resource("nodes", "Node", false), resource("pods", "Pod", true)]}))
        }
        ("GET", _) if target.starts_with("/api/v1/nodes?") => Reply::Json(200, json!({"kind": "NodeList", "items": nodes})),
        _ => small_cluster(method, target, body),
    })
    .await;
    let steps = "steps:\n  - request: {id: read, method: GET, path: '${pod.path}', expect: [{id: ok, status: 200}]}\n";
    let cases = catalogue(&[
        ("a/runs", &format!("needs: [running-pods]\n{steps}")),
        ("a/scripted", &format!("needs: [running-pods, scripted-pods]\n{steps}")),
    ]);
    let options = RunOptions { pod_image: image.map(str::to_owned), ..options() };
    let plan = plan(&cases, &peer.client, &options).await.unwrap();
    let skip = |id: &str| {
        let run = plan.runs.iter().find(|run| run.case.id == id).expect("it is planned");
        run.skip.clone().unwrap_or_default()
    };
    assert_eq!(skip("a/runs"), expected);
    let of_image = image.map(|image| format!("what the ports of {image} answer is not known"));
    assert_eq!(skip("a/scripted"), of_image.as_deref().unwrap_or(expected));
}

fn node(ready: &str, os: &str) -> Value {
    json!({"metadata": {"name": "n"}, "status": {
        "conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"osImage": os},
    }})
}

/// Core with config maps and namespaces, by legacy discovery, where every dry run is as good as its body.
fn small_cluster(method: &str, target: &str, body: &Value) -> Reply {
    let verbs = json!(["create", "delete", "get", "list"]);
    match (method, target) {
        ("GET", "/api") => Reply::Json(200, json!({"kind": "APIVersions", "versions": ["v1"]})),
        ("GET", "/api/v1") => Reply::Json(
            200,
            json!({"resources": [
                {"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": verbs},
                {"name": "namespaces", "kind": "Namespace", "namespaced": false, "verbs": verbs},
            ]}),
        ),
        ("POST", _) => Reply::Json(201, body.clone()),
        _ => Reply::Json(404, json!({})),
    }
}
