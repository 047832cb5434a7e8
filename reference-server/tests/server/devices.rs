//! Claims for devices: who may change their status, and which namespaces have admin access.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const STATUS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a/status";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";

fn claim(admin: bool) -> Value {
    let exactly = json!({"deviceClassName": "c", "adminAccess": admin});
    let requests = json!([{"name": "r", "exactly": exactly}]);
    json!({"metadata": {"name": "a"}, "spec": {"devices": {"requests": requests}}})
}

fn with_status(status: Value) -> Value {
    let mut claim = claim(false);
    claim["status"] = status;
    claim
}

/// Returns a status with an allocated device, and with a report about it.
fn allocated(has_report: bool) -> Value {
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "x"});
    let report = json!({"driver": "d", "pool": "p", "device": "x"});
    let reports = if has_report { vec![report] } else { Vec::new() };
    json!({"allocation": {"devices": {"results": [result]}}, "devices": reports})
}

fn rule(resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": verbs})
}

/// Starts a server with a claim. `jane` may change its status, and has one more permission.
async fn given(resource: &str, verb: &str) -> TestServer {
    let server = TestServer::start().await;
    let rules = [rule("resourceclaims/status", &["update", "patch"]), rule(resource, &[verb])];
    let role = json!({"metadata": {"name": "j"}, "rules": rules});
    server.post(&format!("{ROLES}/clusterroles"), &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": "j"}, "roleRef": {"kind": "ClusterRole", "name": "j"},
        "subjects": [{"kind": "User", "name": "jane"}],
    });
    server.post(&format!("{ROLES}/clusterrolebindings"), &binding).await.expect(201);
    server.post(CLAIMS, &claim(false)).await.expect(201);
    server
}

async fn as_jane(server: &TestServer, method: &str, body: &Value) -> Reply {
    let ty = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let headers = [("impersonate-user", "jane"), ("content-type", ty)];
    server.send(method, STATUS, &headers, &body.to_string()).await
}

#[rstest]
#[case("resourceclaims/driver", "*", "PUT", false, "status.allocation")]
#[case("resourceclaims/binding", "update", "PUT", false, "")]
#[case("resourceclaims/binding", "update", "PATCH", false, "status.allocation")]
#[case("resourceclaims/binding", "*", "PUT", true, "status.devices")]
#[tokio::test]
async fn each_part_of_a_status_needs_its_permission(
    #[case] resource: &str,
    #[case] verb: &str,
    #[case] method: &str,
    #[case] has_report: bool,
    #[case] rejected: &str,
) {
    let server = given(resource, verb).await;
    let reply = as_jane(&server, method, &with_status(allocated(has_report))).await;
    if rejected.is_empty() {
        reply.expect(200);
    } else {
        let reply = reply.expect(422);
        assert_eq!(reply.text_at("/details/causes/0/field"), rejected);
    }
}

#[tokio::test]
async fn a_driver_reports_on_its_devices() {
    let server = given("resourceclaims/driver", "arbitrary-node:update").await;
    server.put(STATUS, &with_status(allocated(false))).await.expect(200);
    as_jane(&server, "PUT", &with_status(allocated(true))).await.expect(200);
    // The report ends with the allocation.
    let reply = server.put(STATUS, &with_status(json!({}))).await.expect(200);
    assert_eq!(reply.json["status"], json!({}));
}

#[rstest]
#[case("true", 201)]
#[case("false", 422)]
#[tokio::test]
async fn admin_access_needs_a_label(#[case] label: &str, #[case] code: u16) {
    let server = TestServer::start().await;
    let labels = json!({"resource.kubernetes.io/admin-access": label});
    let namespace = json!({"metadata": {"name": "n", "labels": labels}});
    server.post("/api/v1/namespaces", &namespace).await.expect(201);
    let claims = "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims";
    let reply = server.post(claims, &claim(true)).await.expect(code);
    if code == 422 {
        let field = "spec.devices.requests[0].adminAccess";
        assert_eq!(reply.text_at("/details/causes/0/field"), field);
    }
    server.post(claims, &claim(false)).await.expect(if code == 422 { 201 } else { 409 });
}

#[tokio::test]
async fn only_the_change_of_a_spec_is_reported() {
    let server = TestServer::start().await;
    server.post(CLAIMS, &claim(false)).await.expect(201);
    let mut changed = claim(false);
    changed["spec"]["devices"]["requests"][0]["name"] = json!("R");
    let reply = server.put(&format!("{CLAIMS}/a"), &changed).await.expect(422);
    assert_eq!(reply.json["details"]["causes"].as_array().map(Vec::len), Some(1));
    assert_eq!(reply.text_at("/details/causes/0/field"), "spec");
}

#[tokio::test]
async fn a_status_is_applied_without_the_metadata() {
    let server = TestServer::start().await;
    server.post(CLAIMS, &claim(false)).await.expect(201);
    let mut applied = with_status(allocated(true));
    applied["apiVersion"] = json!("resource.k8s.io/v1");
    applied["kind"] = json!("ResourceClaim");
    applied["metadata"]["labels"] = json!({"a": "b"});
    applied["status"]["devices"][0]["data"] = json!({"c": 1});
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{STATUS}?fieldManager=driver");
    let reply = server.send("PATCH", &path, &headers, &applied.to_string()).await.expect(200);
    assert!(reply.json["metadata"]["labels"].is_null());
    let fields = &reply.json["metadata"]["managedFields"][0]["fieldsV1"];
    assert!(fields["f:metadata"].is_null(), "{fields}");
    let key = r#"k:{"device":"x","driver":"d","pool":"p"}"#;
    assert_eq!(fields["f:status"]["f:devices"][key]["f:data"], json!({}));
}
