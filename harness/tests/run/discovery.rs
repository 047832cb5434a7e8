//! Tests servers whose discovery has gaps, and servers without a namespace to use.

use kubeproof_harness::plan::{Plan, RunNamespace, RunOptions, plan};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Peer, READS, Reply, catalogue, options};

const WRITES: &str = r#"
subject: {of: builtin, verbs: [create, get]}
steps:
  - given: {id: made, object: {"metadata": {"name": "${name}"}}}
  - request:
      id: read
      method: GET
      path: ${collection}/${name}
      expect: [{id: ok, status: 200}]
"#;

const PATCHES: &str = "
subject: {of: builtin, verbs: [list, patch]}
steps:
  - request: {id: read, method: GET, path: '${collection}', expect: [{id: ok, status: 200}]}
";

async fn planned(peer: &Peer, options: &RunOptions) -> Plan {
    let cases = catalogue(&[("a/patches", PATCHES), ("a/reads", READS), ("a/writes", WRITES)]);
    plan(&cases, &peer.client, options).await.expect("a plan")
}

/// Formats the runs that are not skipped.
fn running(plan: &Plan) -> Vec<String> {
    let runs = plan.runs.iter().filter(|run| run.skip.is_none());
    let mut names: Vec<String> =
        runs.map(|run| format!("{}@{}", run.case.id, run.subject_name())).collect();
    names.sort();
    names
}

/// A server with these discovery documents by path. It serves config maps.
fn hidden(documents: Value) -> impl Fn(&str, &str, &Value) -> Reply {
    move |method, target, _| {
        let path = target.split('?').next().unwrap_or_default();
        match (method, path, documents.get(path)) {
            ("GET", "/api/v1/configmaps" | "/api/v1/namespaces/default/configmaps", _) => {
                Reply::Json(200, json!({"kind": "ConfigMapList", "items": []}))
            }
            ("GET", _, Some(document)) => Reply::Json(200, document.clone()),
            ("PATCH", ..) => Reply::Json(405, json!({"reason": "MethodNotAllowed"})),
            _ => Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"})),
        }
    }
}

#[rstest]
#[case::no_documents(json!({}))]
#[case::not_listed(json!({
    "/api": {"kind": "APIVersions", "versions": ["v1"]}, "/api/v1": {"resources": []},
}))]
#[case::no_verbs(json!({
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": null},
    ]},
}))]
#[tokio::test]
async fn what_discovery_hides_is_found(#[case] documents: Value) {
    let peer = Peer::start(hidden(documents)).await;
    let plan = planned(&peer, &options()).await;
    // A request shows that the server rejects PATCH.
    assert_eq!(running(&plan), ["a/reads@configmaps.v1", "a/writes@configmaps.v1"]);
    let careful = planned(&peer, &RunOptions { read_only: true, ..options() }).await;
    assert_eq!(running(&careful), ["a/patches@configmaps.v1", "a/reads@configmaps.v1"]);
}

/// An aggregated server has neither `/api` nor `/version`.
#[tokio::test]
async fn a_server_needs_only_apis() {
    let group = json!({"versions": [{"groupVersion": "sea.example/v1", "version": "v1"}]});
    let boats = json!({"name": "boats", "kind": "Boat", "namespaced": true, "verbs": ["list"]});
    let peer = Peer::start(move |_, target, _| match target {
        "/apis" => Reply::Json(200, json!({"kind": "APIGroupList", "groups": [group]})),
        "/apis/sea.example/v1" => Reply::Json(200, json!({"resources": [boats]})),
        _ => Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"})),
    })
    .await;
    let subjects = vec!["sea.example/v1/boats".parse().expect("a subject")];
    let options = RunOptions { subjects, read_only: true, ..options() };
    assert_eq!(running(&planned(&peer, &options).await), ["a/reads@boats.v1.sea.example"]);
}

/// A user without permissions on the core group.
#[tokio::test]
async fn forbidden_documents_hide_no_resource() {
    let forbidden = || Reply::Json(403, json!({"kind": "Status", "reason": "Forbidden"}));
    let list = json!({"kind": "BoatList", "items": []});
    let peer = Peer::start(move |_, target, _| match target.split('?').next() {
        Some("/apis/sea.example/v1/namespaces/default/boats") => Reply::Json(200, list.clone()),
        Some("/version" | "/api" | "/apis") => {
            Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"}))
        }
        _ => forbidden(),
    })
    .await;
    let subjects = vec!["sea.example/v1/boats".parse().expect("a subject")];
    let options = RunOptions { subjects, read_only: true, ..options() };
    let expected = ["a/patches@boats.v1.sea.example", "a/reads@boats.v1.sea.example"];
    assert_eq!(running(&planned(&peer, &options).await), expected);
}

#[tokio::test]
async fn openapi_replaces_a_broken_document() {
    let operation = json!({"x-kubernetes-group-version-kind": {"kind": "ConfigMap"}});
    let paths = json!({
        "/api/v1/namespaces/{namespace}/configmaps": {"get": operation, "post": operation},
        "/api/v1/namespaces/{namespace}/configmaps/{name}": {"get": operation, "patch": operation},
    });
    let peer = Peer::start(move |method, target, _| match (method, target) {
        ("GET", "/openapi/v3") => Reply::Json(200, json!({"paths": {"api/v1": {}}})),
        ("GET", "/openapi/v3/api/v1") => Reply::Json(200, json!({"paths": paths})),
        _ => Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"})),
    })
    .await;
    let expected = ["a/patches@configmaps.v1", "a/reads@configmaps.v1", "a/writes@configmaps.v1"];
    assert_eq!(running(&planned(&peer, &options()).await), expected);
}

#[rstest]
#[case::list(200, json!({"kind": "BoatList", "items": []}))]
#[case::rejected_verb(405, json!({"kind": "Status", "reason": "MethodNotAllowed"}))]
#[case::no_permission(403, json!({"kind": "Status", "reason": "Forbidden"}))]
#[tokio::test]
async fn the_word_of_the_user_replaces_discovery(#[case] status: u16, #[case] body: Value) {
    let peer = Peer::start(move |method, target, _| match (method, target) {
        ("GET", "/api") => Reply::Json(200, json!({"kind": "APIVersions", "versions": []})),
        ("GET", _) if target.contains("/boats?limit=1") => Reply::Json(status, body.clone()),
        _ => Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"})),
    })
    .await;
    let subjects = vec!["sea.example/v1/boats".parse().expect("a subject")];
    let plan = planned(&peer, &RunOptions { subjects, ..options() }).await;
    assert!(running(&plan).contains(&"a/writes@boats.v1.sea.example".to_owned()));
    let subject = plan.runs.iter().find_map(|run| run.subject.clone()).expect("a subject");
    assert_eq!((subject.kind.as_str(), subject.namespaced), ("Boat", true));
}

/// A server with config maps, and with namespaces that have these verbs. The namespace `default`
/// does not exist.
fn without_default(verbs: Value) -> impl Fn(&str, &str, &Value) -> Reply {
    move |method, target, body| match (method, target.split('?').next().unwrap_or_default()) {
        ("GET", "/api") => Reply::Json(200, json!({"kind": "APIVersions", "versions": ["v1"]})),
        ("GET", "/api/v1") => Reply::Json(
            200,
            json!({"resources": [
                {
                    "name": "configmaps", "kind": "ConfigMap", "namespaced": true,
                    "verbs": ["create", "get", "list", "patch"],
                },
                {"name": "namespaces", "kind": "Namespace", "namespaced": false, "verbs": verbs},
            ]}),
        ),
        ("GET", "/api/v1/namespaces") => Reply::Json(
            200,
            json!({"kind": "NamespaceList", "items": [{"metadata": {"name": "home"}}]}),
        ),
        ("POST", "/api/v1/namespaces") if verbs.as_array().is_some_and(|v| v.len() > 2) => {
            Reply::Json(201, body.clone())
        }
        ("POST" | "DELETE", _) => Reply::Json(405, json!({"reason": "MethodNotAllowed"})),
        _ => Reply::Json(404, json!({"kind": "Status", "reason": "NotFound"})),
    }
}

#[tokio::test]
async fn probes_get_a_namespace_of_their_own() {
    let peer = Peer::start(without_default(json!(["create", "delete", "get", "list"]))).await;
    let plan = planned(&peer, &options()).await;
    assert!(matches!(plan.namespace, RunNamespace::Created(_)), "{:?}", plan.namespace);
    let home = format!("/api/v1/namespaces/kubeproof-{}-probe-home", plan.run);
    assert_eq!(peer.asked("POST /api/v1/namespaces"), 1, "{:?}", peer.writes());
    assert_eq!(peer.asked(&format!("DELETE {home}")), 1, "{:?}", peer.writes());
}

#[tokio::test]
async fn cases_that_read_need_no_namespace_of_the_run() {
    let peer = Peer::start(without_default(json!(["get", "list"]))).await;
    let plan = planned(&peer, &options()).await;
    assert_eq!(running(&plan), ["a/patches@configmaps.v1", "a/reads@configmaps.v1"]);
    assert_eq!(plan.namespace.name(), "home");
    let skip = plan.runs.iter().find_map(|run| run.skip.clone()).expect("a skip");
    assert_eq!(
        skip.to_string(),
        "namespaces.v1 does not list the verb create; use --namespace to name an existing one"
    );
}
