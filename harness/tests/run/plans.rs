//! Tests which cases run, and why others are skipped.

use kubeproof_harness::plan::RunOptions;
use kubeproof_harness::plan::{PlanError, RunNamespace, plan};
use kubeproof_harness::target::TargetError;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Peer, READS, Reply, RunInProgress, catalogue, options, reference};

const CREATES: &str = r#"
subject: {verbs: [create, get]}
steps:
  - given: {id: made, object: {"metadata": {"name": "${name}"}}}
  - request:
      id: read
      method: GET
      path: ${collection}/${name}
      expect: [{id: ok, status: 200}]
"#;

/// Formats runs as `id@subject`, and skips with their reasons.
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
            "
subject: {scope: cluster, verbs: [list]}
steps:
  - request: {id: read, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}
",
        ),
        (
            "a/first",
            "
subject: {verbs: [list], once: true}
steps:
  - request: {id: read, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}
",
        ),
        (
            "a/second-user",
            "
needs: [second-user]
steps:
  - request:
      id: read
      method: GET
      path: /version
      as: second
      expect: [{id: ok, status: 200}]
",
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
            "a/second-user@: the run has no credential of an unprivileged user (--second-token)",
        ]
    );
    assert!(matches!(
        &plan.namespace,
        RunNamespace::Created(name) if *name == format!("kubeproof-{}", plan.run)
    ));
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
        plan.runs
            .iter()
            .map(|run| format!("{}@{}", run.case.id, run.subject_name()))
            .collect::<Vec<_>>()
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

#[tokio::test]
async fn cases_that_run_alone_come_last_and_one_after_the_other() {
    let peer = Peer::start(|_, _, _| Reply::Json(404, json!({}))).await;
    let steps = "steps: [request: {id: r, method: GET, path: /x, expect: [{id: c, status: 404}]}]";
    let alone = format!("alone: true\n{steps}");
    let cases = [("a/a", &*alone), ("a/b", steps), ("a/c", &*alone), ("a/d", steps)];
    for seed in 0..4 {
        let options = RunOptions { jobs: 8, seed, ..options() };
        let going = RunInProgress::begin(&catalogue(&cases), &peer.client, &options).await;
        let course = going.course().await;
        let [.., first, first_end, second, second_end] = course.as_slice() else {
            panic!("{course:?}");
        };
        let order = [first, first_end, second, second_end].map(String::as_str);
        let expected = ["start a/a", "end a/a", "start a/c", "end a/c"];
        let reversed = ["start a/c", "end a/c", "start a/a", "end a/a"];
        assert!(order == expected || order == reversed, "{course:?}");
        assert_eq!(course.len(), 8);
    }
}

#[rstest]
#[case::read_only(RunOptions { read_only: true, ..options() })]
#[case::dry_run(RunOptions { dry_run: true, ..options() })]
#[tokio::test]
async fn careful_plans_write_nothing(#[case] options: RunOptions) {
    let peer = Peer::start(small_cluster).await;
    let plan =
        plan(&catalogue(&[("a/creates", CREATES), ("a/reads", READS)]), &peer.client, &options)
            .await
            .unwrap();
    assert!(peer.writes().is_empty(), "{:?}", peer.writes());
    let skipped = if options.read_only {
        ": the case changes objects, which --read-only forbids"
    } else {
        "configmaps.v1"
    };
    assert!(shown(&plan)[0].ends_with(skipped), "{:?}", shown(&plan));
    assert_eq!(shown(&plan).last().unwrap(), "a/reads@configmaps.v1");
}

#[tokio::test]
async fn a_rejected_namespace_asks_for_another_and_missing_resources_are_reported_once() {
    let peer = Peer::start(|method, target, body| match method {
        "POST" => {
            Reply::Json(403, json!({"kind": "Status", "reason": "Forbidden", "message": "no"}))
        }
        _ => small_cluster(method, target, body),
    })
    .await;
    let plan = plan(&catalogue(&[("a/b", CREATES)]), &peer.client, &options()).await.unwrap();
    assert_eq!(
        shown(&plan),
        ["a/b@configmaps.v1: a dry-run create in /api/v1/namespaces is rejected: \
             403 Forbidden: no; use --namespace to name an existing one"]
    );
    let absent: Vec<String> = plan.absent.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(absent, ["gauges.v1.kubeproof.dev", "secrets.v1", "widgets.v1.kubeproof.dev"]);
}

#[tokio::test]
async fn a_server_without_known_resources_lends_its_own() {
    let list = json!({"resources": [
        {
            "name": "boats", "kind": "Boat", "namespaced": true,
            "verbs": ["create", "get", "list", "delete"],
        },
        {
            "name": "ports", "kind": "Port", "namespaced": false,
            "verbs": ["create", "get", "list", "delete"],
        },
        {
            "name": "ships", "kind": "Ship", "namespaced": true,
            "verbs": ["create", "get", "list", "delete"],
        },
        {"name": "waves", "kind": "Wave", "namespaced": true, "verbs": ["get", "list"]},
    ]});
    let peer = Peer::start(move |method, target, body| match (method, target) {
        ("GET", "/apis") => Reply::Json(
            200,
            json!({"groups": [{"versions": [{"groupVersion": "sea.example/v1"}]}]}),
        ),
        ("GET", "/apis/sea.example/v1") => Reply::Json(200, list.clone()),
        ("POST", _) if target.ends_with("/boats?dryRun=All") => Reply::Json(422, json!({})),
        ("POST", _) if target.ends_with("?dryRun=All") => Reply::Json(201, body.clone()),
        _ => Reply::Json(404, json!({})),
    })
    .await;
    let plan = plan(&catalogue(&[("a/b", CREATES)]), &peer.client, &options()).await.unwrap();
    assert_eq!(shown(&plan), ["a/b@ports.v1.sea.example", "a/b@ships.v1.sea.example"]);
    assert_eq!(plan.namespace, RunNamespace::Existing("default".into()));
}

/// A path may name a resource that is no subject of the case.
#[tokio::test]
async fn a_path_that_names_an_unserved_resource_is_a_reason_for_a_skip() {
    let peer = Peer::start(small_cluster).await;
    let reads = |resource: &str, code: u16| {
        let path = format!("/api/v1/namespaces/${{ns}}/{resource}/a");
        let check = format!("expect: [{{id: ok, status: {code}}}]");
        format!("needs: [core]\nsteps:\n  - get: {{id: read, path: '{path}', {check}}}\n")
    };
    let (served, unserved) = (reads("configmaps", 200), reads("secrets", 200));
    let missing = reads("secrets", 404);
    let cases =
        catalogue(&[("a/served", &served), ("a/unserved", &unserved), ("a/missing", &missing)]);
    let plan = plan(&cases, &peer.client, &options()).await.unwrap();
    assert_eq!(
        shown(&plan),
        ["a/missing@", "a/served@", "a/unserved@: the server does not serve secrets.v1"]
    );
}

#[tokio::test]
async fn a_case_with_named_resources_runs_on_subjects_of_the_user_too() {
    let (_server, client) = reference().await;
    let step = "
steps:
  - request: {id: read, method: GET, path: '${subject.root}', expect: [{id: ok, status: 200}]}
";
    let of = |subject: &str| format!("subject: {{{subject}}}{step}");
    let in_groups = of("of: [leases.v1.coordination.k8s.io, user], has: [group]");
    let named = of("of: [configmaps.v1, leases.v1.coordination.k8s.io]");
    let cases = catalogue(&[("a/groups", &in_groups), ("a/named", &named)]);
    let subjects = ["apps/v1/deployments", "v1/pods"].map(|name| name.parse().unwrap()).to_vec();
    let plan = plan(&cases, &client, &RunOptions { subjects, ..options() }).await.unwrap();
    assert_eq!(
        shown(&plan),
        [
            "a/groups@deployments.v1.apps",
            "a/groups@leases.v1.coordination.k8s.io",
            "a/named@configmaps.v1",
            "a/named@leases.v1.coordination.k8s.io",
        ]
    );
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

/// Pods run where a node is ready, and need a known image.
#[rstest]
#[case::none(
    json!([]),
    None,
    "no node of the target is ready, so pods do not run; --with-node adds a node"
)]
#[case::not_ready(
    json!([node("False", "kubeproof 1")]),
    None,
    "no node of the target is ready, so pods do not run; --with-node adds a node"
)]
#[case::real(
    json!([node("True", "Debian")]),
    None,
    "the nodes of the target need a real image; name one with --pod-image (such as busybox)"
)]
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
            let resource = |name: &str, kind: &str, namespaced: bool| {
                json!({
                    "name": name, "kind": kind, "namespaced": namespaced,
                    "verbs": ["create", "delete", "get", "list"],
                })
            };
            let resources = [
                resource("namespaces", "Namespace", false),
                resource("nodes", "Node", false),
                resource("pods", "Pod", true),
            ];
            Reply::Json(200, json!({ "resources": resources }))
        }
        ("GET", _) if target.starts_with("/api/v1/nodes?") => {
            Reply::Json(200, json!({"kind": "NodeList", "items": nodes}))
        }
        _ => small_cluster(method, target, body),
    })
    .await;
    let steps = "
steps:
  - request: {id: read, method: GET, path: '${pod.path}', expect: [{id: ok, status: 200}]}
";
    let cases = catalogue(&[
        ("a/runs", &format!("needs: [running-pods]{steps}")),
        ("a/scripted", &format!("needs: [running-pods, scripted-pods]{steps}")),
    ]);
    let options = RunOptions { pod_image: image.map(str::to_owned), ..options() };
    let plan = plan(&cases, &peer.client, &options).await.unwrap();
    let skip = |id: &str| {
        let run = plan.runs.iter().find(|run| run.case.id == id).expect("it is planned");
        run.skip.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    assert_eq!(skip("a/runs"), expected);
    let of_image = image
        .map(|image| format!("the suite cannot predict the responses of the ports of {image}"));
    assert_eq!(skip("a/scripted"), of_image.as_deref().unwrap_or(expected));
}

fn node(ready: &str, os: &str) -> Value {
    json!({"metadata": {"name": "n"}, "status": {
        "conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"osImage": os},
    }})
}

/// A server with config maps, namespaces and legacy discovery, which accepts every dry run.
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
