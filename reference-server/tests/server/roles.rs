//! Roles, bindings and the checks against privilege escalation.

use kubeproof_reference_server::Config;
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

/// Starts a server that grants `jane` these rules in the namespace `default`.
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
async fn a_role_grants_its_rules(#[case] method: &str, #[case] path: &str, #[case] code: u16) {
    let server = given(json!([
        {
            "verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"],
            "resourceNames": ["mine"],
        },
        {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments"]},
    ]))
    .await;
    as_jane(&server, method, path, &Value::Null).await.expect(code);
}

#[rstest]
#[case("PUT", "application/json")]
#[case("PATCH", "application/apply-patch+yaml")]
#[tokio::test]
async fn a_write_that_creates_needs_the_permission_to_create(
    #[case] method: &str,
    #[case] media_type: &str,
) {
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/one?fieldManager=jane";
    let body = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one"},
    });
    let headers = [("impersonate-user", "jane"), ("content-type", media_type)];
    for (verbs, code) in [(&["update", "patch"][..], 403), (&["update", "patch", "create"], 201)] {
        let server = given(json!([
            {"verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]},
        ]))
        .await;
        server.send(method, path, &headers, &body.to_string()).await.expect(code);
    }
}

#[tokio::test]
async fn a_cluster_role_applies_where_it_is_bound() {
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
    list("/api/v1/namespaces/kube-system/secrets").await.rejected(403, "Forbidden");
    list("/metrics").await.rejected(403, "Forbidden");

    server
        .post(&format!("{GROUP}/clusterrolebindings"), &binding("ClusterRole", "reader", "jane"))
        .await
        .expect(201);
    list("/api/v1/secrets").await.expect(200);
    list("/metrics").await.expect(200);

    server.delete(&format!("{GROUP}/clusterroles/reader"), "").await.expect(200);
    list("/api/v1/namespaces/default/secrets").await.rejected(403, "Forbidden");
}

#[tokio::test]
async fn a_user_cannot_grant_permissions_that_they_lack() {
    let server = given(json!([
        {
            "verbs": ["create", "update"], "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "rolebindings"],
        },
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]},
        {
            "verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"],
            "resourceNames": ["free"],
        },
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
    as_jane(&server, "POST", &roles, &new("b", &secrets)).await.rejected(403, "Forbidden");
    as_jane(&server, "POST", &roles, &new("c", &everything)).await.rejected(403, "Forbidden");
    as_jane(&server, "PUT", &format!("{roles}/a"), &new("a", &secrets))
        .await
        .rejected(403, "Forbidden");
    as_jane(&server, "POST", &bindings, &binding("Role", "small", "joe")).await.expect(201);
    as_jane(&server, "POST", &bindings, &binding("Role", "free", "joe")).await.expect(201);
    as_jane(&server, "POST", &bindings, &binding("Role", "large", "jane"))
        .await
        .rejected(403, "Forbidden");
}

#[tokio::test]
async fn the_role_of_a_binding_is_immutable_and_shown_in_reviews() {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}]);
    let server = given(rules).await;
    let path = format!("{GROUP}/namespaces/default/rolebindings/given-jane");
    let other = json!({
        "metadata": {"name": "given-jane"}, "roleRef": {"kind": "ClusterRole", "name": "given"},
    });
    server
        .send("PUT", &path, &[("content-type", "application/json")], &other.to_string())
        .await
        .rejected(422, "Invalid");

    let review = json!({"spec": {"namespace": "default"}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let reviewed = as_jane(&server, "POST", path, &review).await.expect(201);
    let rules = reviewed.json["status"]["resourceRules"].as_array().expect("rules");
    assert!(rules.iter().any(|rule| rule["resources"] == json!(["pods/log"])), "{}", reviewed.text);

    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for (subresource, allowed) in [("log", true), ("", false), ("exec", false)] {
        let asked = json!({
            "verb": "get", "namespace": "default", "resource": "pods", "subresource": subresource,
        });
        let review = json!({"spec": {"user": "jane", "resourceAttributes": asked}});
        let reviewed = server.post(path, &review).await.expect(201);
        assert_eq!(reviewed.json["status"]["allowed"], allowed, "{subresource}");
    }
}

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

#[tokio::test]
async fn a_new_cluster_has_the_roles_and_the_service_of_kubernetes() {
    let server = TestServer::start().await;
    let admin = server.get(&format!("{CLUSTER_ROLES}/cluster-admin")).await.expect(200);
    assert_eq!(admin.json["rules"][0]["verbs"], json!(["*"]));
    assert_eq!(admin.json["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
    let service = server.get("/api/v1/namespaces/default/services/kubernetes").await.expect(200);
    assert_eq!(service.json["spec"]["clusterIP"], "10.0.0.1");
    assert_eq!(service.json["spec"]["ports"][0]["targetPort"], server.running.addr().port());

    let config = Config { cluster_defaults: false, ..Config::default() };
    let server = TestServer::with(config).await;
    assert_eq!(server.get(CLUSTER_ROLES).await.names(), Vec::<&str>::new());
}

/// The role `admin` collects `edit`, which collects `view`.
#[tokio::test]
async fn roles_collect_the_rules_of_other_roles() {
    let server = TestServer::start().await;
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "User", "name": "kubeproof-user"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    server.post(bindings, &binding).await.expect(201);
    let user = [("authorization", "Bearer user")];
    server.send("GET", "/api/v1/namespaces/default/pods", &user, "").await.expect(200);

    let things = "/apis/example.com/v1/namespaces/default/things";
    server.send("GET", things, &user, "").await.rejected(403, "Forbidden");
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let view = json!({
        "metadata": {"name": "view-things", "labels": {label: "true"}},
        "rules": [{"verbs": ["list"], "apiGroups": ["example.com"], "resources": ["things"]}],
    });
    server.post(CLUSTER_ROLES, &view).await.expect(201);
    let collects = |role: &str| {
        let path = format!("{CLUSTER_ROLES}/{role}");
        let server = &server;
        async move { server.until(&path, |reply| reply.text.contains("things")).await }
    };
    for role in ["view", "edit", "admin"] {
        collects(role).await;
    }
    server.send("GET", things, &user, "").await.expect(404);
}
