//! Admission webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};
use crate::webhook_server::WebhookServer;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "b"}})
}

/// Returns a webhook for configmaps with changed fields.
fn webhook(client_config: &Value, changes: &Value) -> Value {
    let mut webhook = json!({
        "name": "hook.example.com",
        "clientConfig": client_config,
        "rules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    for (field, value) in changes.as_object().into_iter().flatten() {
        webhook[field] = value.clone();
    }
    webhook
}

async fn configure(server: &TestServer, kind: &str, name: &str, webhooks: Value) {
    let body = json!({"metadata": {"name": name}, "webhooks": webhooks});
    let path = format!("{GROUP}/{kind}webhookconfigurations");
    server.post(&path, &body).await.expect(201);
}

async fn validating(
    respond: impl Fn(&Value) -> Value + Send + Sync + 'static,
    changes: Value,
) -> (TestServer, WebhookServer) {
    let (server, hook) = (TestServer::start().await, WebhookServer::start(respond).await);
    let webhooks = json!([webhook(&hook.client_config(), &changes)]);
    configure(&server, "validating", "v", webhooks).await;
    (server, hook)
}

async fn mutating(patch: Value, changes: Value) -> (TestServer, WebhookServer) {
    let respond = move |_: &Value| patched(&patch);
    let (server, hook) = (TestServer::start().await, WebhookServer::start(respond).await);
    let webhooks = json!([webhook(&hook.client_config(), &changes)]);
    configure(&server, "mutating", "m", webhooks).await;
    (server, hook)
}

fn patched(patch: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())})
}

fn warnings(reply: &Reply) -> Vec<&str> {
    reply.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok()).collect()
}

#[rstest]
#[case::message(
    json!({"message": "no", "code": 418, "reason": "Teapot"}),
    (418, "Teapot", "denied the request: no")
)]
#[case::reason(json!({"reason": "Because"}), (400, "Because", "denied the request: Because"))]
#[case::nothing(json!(null), (400, "", "denied the request without explanation"))]
#[case::success_code(json!({"code": 200, "message": "x"}), (400, "", "denied the request: x"))]
#[tokio::test]
async fn a_webhook_rejects_a_request(
    #[case] status: Value,
    #[case] (code, reason, message): (u16, &str, &str),
) {
    let response = json!({"allowed": false, "status": status, "warnings": ["careful"]});
    let (server, _hook) = validating(move |_| response.clone(), json!({})).await;
    let reply = server.post(MAPS, &map("a")).await.rejected(code, reason);
    let expected = format!("admission webhook \"hook.example.com\" {message}");
    assert_eq!(reply.text_at("/message"), expected);
    assert_eq!(warnings(&reply), ["299 - \"careful\""]);
    server.get(&format!("{MAPS}/a")).await.expect(404);
}

#[tokio::test]
async fn a_webhook_sees_the_request() {
    let (server, hook) = validating(|_| json!({"allowed": true}), json!({})).await;
    server.post(MAPS, &map("a")).await.expect(201);
    server
        .merge(&format!("{MAPS}/a?fieldManager=me"), &json!({"data": {"a": "c"}}))
        .await
        .expect(200);
    server.delete(&format!("{MAPS}/a"), "{\"gracePeriodSeconds\": 0}").await.expect(200);
    let [create, update, delete] = hook.requests().try_into().expect("three requests");
    assert_eq!(create["operation"], "CREATE");
    assert_eq!(create["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(create["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!((&create["name"], &create["namespace"]), (&json!("a"), &json!("default")));
    assert_eq!(create["object"]["data"], json!({"a": "b"}));
    assert_eq!((&create["oldObject"], &create["dryRun"]), (&Value::Null, &json!(false)));
    assert_eq!(create["options"]["kind"], "CreateOptions");
    assert_eq!(create["userInfo"]["groups"][0], "system:masters");
    assert_eq!(update["operation"], "UPDATE");
    assert_eq!(
        (&update["object"]["data"]["a"], &update["oldObject"]["data"]["a"]),
        (&json!("c"), &json!("b"))
    );
    assert_eq!(
        update["options"],
        json!({
            "kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me",
        })
    );
    assert_eq!(delete["operation"], "DELETE");
    assert_eq!((&delete["object"], &delete["oldObject"]["data"]["a"]), (&Value::Null, &json!("c")));
    assert_eq!(delete["options"]["gracePeriodSeconds"], 0);
}

#[tokio::test]
async fn a_patch_is_part_of_the_stored_object() {
    let patch = json!([{"op": "add", "path": "/data/by", "value": "hook"}]);
    let (server, _hook) = mutating(patch, json!({})).await;
    let created = server.post(MAPS, &map("a")).await.expect(201);
    assert_eq!(created.json["data"], json!({"a": "b", "by": "hook"}));
    let stored = server.get(&format!("{MAPS}/a")).await.expect(200);
    assert_eq!(stored.json["data"], json!({"a": "b", "by": "hook"}));
    // As in kube-apiserver, the fields of a webhook have no manager.
    let fields = &stored.json["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert_eq!(fields, &json!({".": {}, "f:a": {}}));
}

#[tokio::test]
async fn an_object_keeps_its_uid_beside_a_mutating_webhook() {
    let patch = json!([{"op": "add", "path": "/data/c", "value": "d"}]);
    let (server, _hook) = mutating(patch, json!({})).await;
    server.post(MAPS, &map("a")).await.expect(201);
    let object = format!("{MAPS}/a");
    let mut other = map("a");
    other["metadata"]["uid"] = json!("11111111-1111-4111-8111-111111111111");
    server.merge(&object, &other).await.expect(422);
    server.put(&object, &other).await.expect(409);
    server.put(&object, &map("a")).await.expect(200);
}

#[rstest]
#[case("Fail", 500)]
#[case("Ignore", 201)]
#[tokio::test]
async fn the_failure_policy_decides_on_a_failed_call(#[case] policy: &str, #[case] code: u16) {
    let server = TestServer::start().await;
    let unreachable = json!({"url": "https://127.0.0.1:1/admit", "caBundle": null});
    let webhooks = json!([webhook(&unreachable, &json!({"failurePolicy": policy}))]);
    configure(&server, "validating", "v", webhooks).await;
    let reply = server.post(MAPS, &map("a")).await.expect(code);
    if code == 500 {
        assert_eq!(reply.reason(), "InternalError");
        let expected = "Internal error occurred: failed calling webhook \"hook.example.com\": \
                        failed to call webhook: Post \"https://127.0.0.1:1/admit?timeout=10s\": \
                        dial tcp 127.0.0.1:1: connect: connection refused";
        assert_eq!(reply.text_at("/message"), expected);
        assert!(reply.text_at("/details/causes/0/message").starts_with("failed calling webhook"));
    }
}

#[rstest]
#[case::hangs(0, Value::Null, "context deadline exceeded")]
#[case::status(404, Value::Null, "the server could not find the requested resource")]
#[case::error(500, json!("oops"), "an error on the server (\"\\\"oops\\\"\") has prevented")]
#[case::no_response(
    200, json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}),
    "received invalid webhook response: webhook response was absent"
)]
#[case::another_uid(
    200, json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": "x", "allowed": true},
    }),
    "received invalid webhook response: expected response.uid="
)]
#[tokio::test]
async fn a_broken_response_is_an_internal_error(
    #[case] status: u16,
    #[case] body: Value,
    #[case] message: &str,
) {
    let server = TestServer::start().await;
    let hook = WebhookServer::raw(move |_| (status, body.clone())).await;
    let changes = json!({"timeoutSeconds": 1});
    configure(&server, "validating", "v", json!([webhook(&hook.client_config(), &changes)])).await;
    let reply = server.post(MAPS, &map("a")).await.rejected(500, "InternalError");
    assert!(reply.text_at("/message").contains(message), "{}", reply.text_at("/message"));
}

#[rstest]
#[case("None", 201)]
#[case("NoneOnDryRun", 201)]
#[tokio::test]
async fn a_dry_run_needs_no_side_effects(#[case] side_effects: &str, #[case] code: u16) {
    let changes = json!({"sideEffects": side_effects});
    let (server, hook) = validating(|_| json!({"allowed": true}), changes).await;
    server.post(&format!("{MAPS}?dryRun=All"), &map("a")).await.expect(code);
    assert_eq!(hook.requests()[0]["dryRun"], true);
}

/// Which requests a webhook with these fields receives.
#[rstest]
#[case::subresources(json!({"rules": [rule("", "pods/*")]}), &[])]
#[case::all(json!({"rules": [rule("*", "*")]}), &["a", "b"])]
#[case::another_group(json!({"rules": [rule("apps", "*")]}), &[])]
#[case::operation(
    json!({"rules": [{
        "operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["*"],
    }]}),
    &[]
)]
#[case::cluster(
    json!({"rules": [{
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
        "scope": "Cluster",
    }]}),
    &[]
)]
#[case::objects(json!({"objectSelector": {"matchLabels": {"hook": "yes"}}}), &["b"])]
#[case::namespaces(
    json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}), &[]
)]
#[case::own_namespace(
    json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}),
    &["a", "b"]
)]
#[case::conditions(
    json!({"matchConditions": [
        {"name": "one", "expression": "request.operation == 'CREATE'"},
        {"name": "two", "expression": "object.metadata.name != 'b'"},
    ]}),
    &["a"]
)]
#[tokio::test]
async fn a_webhook_gets_the_requests_that_match(#[case] changes: Value, #[case] names: &[&str]) {
    let (server, hook) = validating(|_| json!({"allowed": true}), changes).await;
    server.post(MAPS, &map("a")).await.expect(201);
    let mut labelled = map("b");
    labelled["metadata"]["labels"] = json!({"hook": "yes"});
    server.post(MAPS, &labelled).await.expect(201);
    let requests = hook.requests();
    let seen: Vec<&str> = requests.iter().filter_map(|request| request["name"].as_str()).collect();
    assert_eq!(seen, names);
}

fn rule(group: &str, resource: &str) -> Value {
    json!({
        "operations": ["*"], "apiGroups": [group], "apiVersions": ["*"], "resources": [resource],
    })
}

#[tokio::test]
async fn a_deleted_collection_is_a_request_for_each_object() {
    let respond =
        |request: &Value| json!({"allowed": request["oldObject"]["metadata"]["name"] != "b"});
    let (server, hook) = validating(respond, json!({})).await;
    for name in ["a", "c"] {
        server.post(MAPS, &map(name)).await.expect(201);
    }
    server.delete(MAPS, "").await.expect(200);
    let requests = hook.requests();
    let deleted: Vec<&str> = requests
        .iter()
        .filter(|request| request["operation"] == "DELETE")
        .filter_map(|request| request["oldObject"]["metadata"]["name"].as_str())
        .collect();
    assert_eq!(deleted, ["a", "c"]);
}

/// The first webhook runs again after the second one, but only if its policy requests it.
#[rstest]
#[case("Never", &["first", "second"])]
#[case("IfNeeded", &["first", "second", "first"])]
#[tokio::test]
async fn a_webhook_runs_again_after_a_change(#[case] policy: &str, #[case] expected: &[&str]) {
    let server = TestServer::start().await;
    let first = WebhookServer::start(|_| json!({"allowed": true})).await;
    let patch = json!([{"op": "add", "path": "/data/by", "value": "second"}]);
    let second = WebhookServer::start(move |_| patched(&patch)).await;
    let changes = json!({"reinvocationPolicy": policy});
    let webhooks = json!([webhook(&first.client_config(), &changes)]);
    configure(&server, "mutating", "a", webhooks).await;
    let webhooks = json!([webhook(&second.client_config(), &json!({}))]);
    configure(&server, "mutating", "b", webhooks).await;
    server.post(MAPS, &map("a")).await.expect(201);
    let calls = first.requests();
    assert_eq!((calls.len(), second.requests().len()), (expected.len() - 1, 1));
    if let [_, again] = calls.as_slice() {
        assert_eq!(again["object"]["data"]["by"], "second");
    }
}

#[tokio::test]
async fn an_equivalent_version_matches() {
    let rule = json!({
        "operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"],
    });
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let spec = json!({"maxReplicas": 2, "scaleTargetRef": target});
    let scaler = json!({"metadata": {"name": "a"}, "spec": spec});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    for (policy, calls) in [("Equivalent", 1), ("Exact", 0)] {
        let changes = json!({"rules": [rule], "matchPolicy": policy});
        let (server, hook) = validating(|_| json!({"allowed": true}), changes).await;
        server.post(path, &scaler).await.expect(201);
        let requests = hook.requests();
        assert_eq!(requests.len(), calls, "{policy}");
        for request in requests {
            assert_eq!(request["object"]["apiVersion"], "autoscaling/v1");
            assert_eq!(request["resource"]["version"], "v1");
            assert_eq!(request["requestResource"]["version"], "v2");
        }
    }
}

#[tokio::test]
async fn a_webhook_behind_a_service_is_called() {
    let server = TestServer::start().await;
    let hook = WebhookServer::start(|_| json!({"allowed": true})).await;
    let service = json!({
        "metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    server.post("/api/v1/namespaces/default/services", &service).await.expect(201);
    let client_config = json!({
        "service": {"namespace": "default", "name": "hook", "port": hook.port(), "path": "/admit"},
        "caBundle": hook.ca_bundle(),
    });
    configure(&server, "validating", "v", json!([webhook(&client_config, &json!({}))])).await;
    server.post(MAPS, &map("a")).await.expect(201);
    assert_eq!(hook.requests().len(), 1);
}

#[tokio::test]
async fn a_connection_is_a_request_with_its_options() {
    let rule = json!({
        "operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods/exec"],
    });
    let respond = |_: &Value| json!({"allowed": false});
    let (server, hook) = validating(respond, json!({"rules": [rule]})).await;
    let path = "/api/v1/namespaces/default/pods/p/exec?command=ls&stdout=true&container=c";
    server.get(path).await.rejected(400, "");
    let [request] = hook.requests().try_into().expect("one request");
    assert_eq!((&request["operation"], &request["name"]), (&json!("CONNECT"), &json!("p")));
    assert_eq!(request["subResource"], "exec");
    assert_eq!(
        request["object"],
        json!({
            "kind": "PodExecOptions", "apiVersion": "v1", "command": ["ls"], "stdout": true,
            "container": "c",
        })
    );
}

#[tokio::test]
async fn a_webhook_can_use_the_older_review() {
    let changes = json!({"admissionReviewVersions": ["v1beta1"]});
    let patch = json!([{"op": "add", "path": "/data/by", "value": "hook"}]);
    let (server, _hook) = mutating(patch, changes).await;
    let created = server.post(MAPS, &map("a")).await.expect(201);
    assert_eq!(created.json["data"]["by"], "hook");
}

#[tokio::test]
async fn webhook_configurations_are_exempt() {
    let rule = rule("*", "*");
    let respond = |_: &Value| json!({"allowed": false});
    let (server, hook) = validating(respond, json!({"rules": [rule]})).await;
    server.delete(&format!("{GROUP}/validatingwebhookconfigurations/v"), "").await.expect(200);
    server.post(MAPS, &map("a")).await.expect(201);
    assert_eq!(hook.requests(), Vec::<Value>::new());
}
