//! Roles: what they give, and that nobody gives what they do not have.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn role(server: &TestServer, scope: &str, kind: &str, name: &str, rules: Value) {
    let plural = format!("{}s", kind.to_lowercase());
    let body = json!({"metadata": {"name": name}, "rules": rules});
    server.post(&format!("{GROUP}{scope}/{plural}"), &body).await.expect(201);
}

fn binding(kind: &str, name: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": format!("{name}-{user}")},
        "roleRef": {"kind": kind, "name": name},
        "subjects": [{"kind": "User", "name": user}],
    })
}

/// Gives `jane` these rights in the namespace `default`.
async fn given(rules: Value) -> TestServer {
    let server = TestServer::start().await;
    role(&server, "/namespaces/default", "Role", "given", rules).await;
    let bindings = format!("{GROUP}/namespaces/default/rolebindings");
    server.post(&bindings, &binding("Role", "given", "jane")).await.expect(201);
    server
}

async fn as_jane(server: &TestServer, method: &str, path: &str, body: &Value) -> Reply {
    let headers = [("impersonate-user", "jane"), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(method, path, &headers, &body).await
}

#[rstest]
#[case("GET", "/api/v1/namespaces/default/configmaps/mine", 404)]
#[case("GET", "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dmine", 200)]
#[case("GET", "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dother", 403)]
#[case("GET", "/api/v1/namespaces/default/configmaps", 403)]
#[case("GET", "/api/v1/namespaces/kube-system/configmaps/mine", 403)]
#[case("GET", "/apis/apps/v1/namespaces/default/deployments", 200)]
#[case("GET", "/apis/apps/v1/namespaces/default/deployments/d/status", 403)]
#[case("PUT", "/apis/apps/v1/namespaces/default/deployments/d/scale", 403)]
#[tokio::test]
async fn a_role_gives_what_it_says(#[case] method: &str, #[case] path: &str, #[case] code: u16) {
    let server = given(json!([
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
        {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments"]},
    ]))
    .await;
    as_jane(&server, method, path, &Value::Null).await.expect(code);
}

#[tokio::test]
async fn a_role_of_the_cluster_counts_where_it_is_bound() {
    let server = TestServer::start().await;
    let rules = json!([
        {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]},
        {"verbs": ["get"], "nonResourceURLs": ["/metrics*"]},
    ]);
    role(&server, "", "ClusterRole", "reader", rules).await;
    let bindings = format!("{GROUP}/namespaces/default/rolebindings");
    server.post(&bindings, &binding("ClusterRole", "reader", "jane")).await.expect(201);
    let list = |path: &'static str| as_jane(&server, "GET", path, &Value::Null);
    list("/api/v1/namespaces/default/secrets").await.expect(200);
    list("/api/v1/namespaces/kube-system/secrets").await.refused(403, "Forbidden");
    list("/metrics").await.refused(403, "Forbidden");

    server
        .post(&format!("{GROUP}/clusterrolebindings"), &binding("ClusterRole", "reader", "jane"))
        .await
        .expect(201);
    list("/api/v1/secrets").await.expect(200);
    list("/metrics").await.expect(404);

    server.delete(&format!("{GROUP}/clusterroles/reader"), "").await.expect(200);
    list("/api/v1/namespaces/default/secrets").await.refused(403, "Forbidden");
}

#[tokio::test]
async fn nobody_gives_what_they_do_not_have() {
    let server = given(json!([
        {"verbs": ["create", "update"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]},
        {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "resourceNames": ["free"]},
    ]))
    .await;
    let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let secrets = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
    let configmaps = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]);
    for (name, rules) in [("large", &everything), ("free", &secrets), ("small", &configmaps)] {
        role(&server, "/namespaces/default", "Role", name, rules.clone()).await;
    }
    let roles = format!("{GROUP}/namespaces/default/roles");
    let bindings = format!("{GROUP}/namespaces/default/rolebindings");
    let new = |name: &str, rules: &Value| json!({"metadata": {"name": name}, "rules": rules});
    as_jane(&server, "POST", &roles, &new("a", &configmaps)).await.expect(201);
    as_jane(&server, "POST", &roles, &new("b", &secrets)).await.refused(403, "Forbidden");
    as_jane(&server, "POST", &roles, &new("c", &everything)).await.refused(403, "Forbidden");
    as_jane(&server, "PUT", &format!("{roles}/a"), &new("a", &secrets)).await.refused(403, "Forbidden");
    as_jane(&server, "POST", &bindings, &binding("Role", "small", "joe")).await.expect(201);
    as_jane(&server, "POST", &bindings, &binding("Role", "free", "joe")).await.expect(201);
    as_jane(&server, "POST", &bindings, &binding("Role", "large", "jane")).await.refused(403, "Forbidden");
}

#[tokio::test]
async fn a_binding_keeps_its_role_and_reviews_tell_of_it() {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}]);
    let server = given(rules).await;
    let path = format!("{GROUP}/namespaces/default/rolebindings/given-jane");
    let other =
        json!({"metadata": {"name": "given-jane"}, "roleRef": {"kind": "ClusterRole", "name": "given"}});
    server
        .send("PUT", &path, &[("content-type", "application/json")], &other.to_string())
        .await
        .refused(422, "Invalid");

    let review = json!({"spec": {"namespace": "default"}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let told = as_jane(&server, "POST", path, &review).await.expect(201);
    let rules = told.json["status"]["resourceRules"].as_array().expect("rules");
    assert!(rules.iter().any(|rule| rule["resources"] == json!(["pods/log"])), "{}", told.text);

    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for (subresource, allowed) in [("log", true), ("", false), ("exec", false)] {
        let asked =
            json!({"verb": "get", "namespace": "default", "resource": "pods", "subresource": subresource});
        let review = json!({"spec": {"user": "jane", "resourceAttributes": asked}});
        let told = server.post(path, &review).await.expect(201);
        assert_eq!(told.json["status"]["allowed"], allowed, "{subresource}");
    }
}
