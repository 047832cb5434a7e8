//! The built-in admission plugins: defaults and limits of resources, quotas, priorities, storage
//! classes, service accounts and pod security.

use http::StatusCode;
use kubeproof_reference_server::config::Config;
use kubeproof_reference_server::{AdmissionPlugins, Controllers};
use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Reply, TestServer, config_map};

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

fn pod(name: &str, container: &Value) -> Value {
    let mut container = container.clone();
    container["name"] = json!("c");
    container["image"] = json!("image");
    json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
}

fn message(reply: &Reply) -> &str {
    reply.text_at("/message")
}

#[tokio::test]
async fn limit_ranges_complete_and_limit_pods() {
    let server = TestServer::start().await;
    let item = json!({"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "1"}});
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [item]}});
    server.post("/api/v1/namespaces/default/limitranges", &range).await.expect(201);
    let created = server.post(PODS, &pod("a", &json!({}))).await.expect(201);
    let expected = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
    assert_eq!(created.json["spec"]["containers"][0]["resources"], expected);
    let set = "LimitRanger plugin set: cpu request for container c; cpu limit for container c";
    assert_eq!(created.json["metadata"]["annotations"]["kubernetes.io/limit-ranger"], set);
    let large = pod("b", &json!({"resources": {"limits": {"cpu": "3"}}}));
    let rejected = server.post(PODS, &large).await.rejected(403, "Forbidden");
    assert_eq!(
        message(&rejected),
        "pods \"b\" is forbidden: [maximum cpu usage per Container is 2, but limit is 3]"
            .replace(['[', ']'], "")
    );
}

#[tokio::test]
async fn quotas_count_objects_and_free_them() {
    let server = TestServer::start().await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "2"}}});
    server.post(QUOTAS, &quota).await.expect(201);
    let quota = format!("{QUOTAS}/q");
    let used = |reply: &Reply, count: &str| reply.text_at("/status/used/configmaps") == count;
    server.until(&quota, |reply| used(reply, "0")).await;
    for name in ["a", "b"] {
        server.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    assert!(used(&server.get(&quota).await, "2"));
    let rejected = server.post(CONFIG_MAPS, &config_map("c")).await.rejected(403, "Forbidden");
    assert_eq!(
        message(&rejected),
        "configmaps \"c\" is forbidden: exceeded quota: q, requested: configmaps=1, used: \
         configmaps=2, limited: configmaps=2"
    );
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    server.post(&dry, &config_map("c")).await.rejected(403, "Forbidden");
    server.delete(&format!("{CONFIG_MAPS}/a"), "").await.expect(200);
    server.until(&quota, |reply| used(reply, "1")).await;
    server.post(&dry, &config_map("c")).await.expect(201);
    assert!(used(&server.get(&quota).await, "1"), "a dry run uses nothing");
    // A rejected create returns what it used.
    server.post(CONFIG_MAPS, &config_map("b")).await.rejected(409, "AlreadyExists");
    assert!(used(&server.get(&quota).await, "1"));
    server.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_do_not_exceed_a_quota() {
    let server = std::sync::Arc::new(TestServer::start().await);
    let hard = json!({"count/configmaps": "5"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    server.post(QUOTAS, &quota).await.expect(201);
    let quota = format!("{QUOTAS}/q");
    server.until(&quota, |reply| !reply.json["status"]["used"].is_null()).await;
    let creates = (0..30).map(|n| {
        let server = std::sync::Arc::clone(&server);
        tokio::spawn(
            async move { server.post(CONFIG_MAPS, &config_map(&format!("m{n}"))).await.status },
        )
    });
    let mut successes = 0;
    for create in creates.collect::<Vec<_>>() {
        let status = create.await.expect("no panic");
        assert!(matches!(status, StatusCode::CREATED | StatusCode::FORBIDDEN), "{status}");
        successes += usize::from(status == StatusCode::CREATED);
    }
    assert_eq!(successes, 5);
    assert_eq!(server.get(CONFIG_MAPS).await.names().len(), 5);
    assert_eq!(server.get(&quota).await.json["status"]["used"], json!({"count/configmaps": "5"}));
}

#[tokio::test]
async fn a_quota_without_a_status_rejects() {
    let config = Config { controllers: Controllers::None, ..Config::default() };
    let server = TestServer::with(config).await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "1"}}});
    server.post(QUOTAS, &quota).await.expect(201);
    let secrets = "/api/v1/namespaces/default/secrets";
    server.post(secrets, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let status = json!({"status": {"hard": {"secrets": "1"}}});
    server.merge(&format!("{QUOTAS}/q/status"), &status).await.expect(200);
    let rejected = server.post(secrets, &json!({"metadata": {"name": "b"}})).await;
    let rejected = rejected.rejected(403, "Forbidden");
    let expected = "secrets \"b\" is forbidden: status unknown for quota: q, resources: secrets";
    assert_eq!(message(&rejected), expected);
}

#[tokio::test]
async fn classes_set_priorities() {
    let server = TestServer::start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let existing = server.get(classes).await;
    assert_eq!(existing.names(), ["system-cluster-critical", "system-node-critical"]);
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    server.post(classes, &class).await.expect(201);
    let mut named = pod("a", &json!({}));
    named["spec"]["priorityClassName"] = json!("high");
    let created = server.post(PODS, &named).await.expect(201);
    assert_eq!(created.json["spec"]["priority"], 1000);
    let plain = server.post(PODS, &pod("b", &json!({}))).await.expect(201);
    assert_eq!(plain.json["spec"]["priority"], 0);
    named["spec"]["priorityClassName"] = json!("other");
    let rejected = server.post(PODS, &named).await.rejected(403, "Forbidden");
    let expected = "pods \"a\" is forbidden: no PriorityClass with name other was found";
    assert_eq!(message(&rejected), expected);
    let system = format!("{classes}/system-node-critical");
    server.delete(&system, "").await.rejected(403, "Forbidden");
}

#[tokio::test]
async fn claims_get_the_default_storage_class() {
    let server = TestServer::start().await;
    let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let class =
        json!({"metadata": {"name": "fast", "annotations": annotations}, "provisioner": "p"});
    server.post("/apis/storage.k8s.io/v1/storageclasses", &class).await.expect(201);
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    });
    let claim = json!({"metadata": {"name": "c"}, "spec": spec});
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let created = server.post(claims, &claim).await.expect(201);
    assert_eq!(created.text_at("/spec/storageClassName"), "fast");
}

#[tokio::test]
async fn labels_of_a_namespace_enforce_pod_security() {
    let server = TestServer::start().await;
    let namespace = |labels: Value| json!({"metadata": {"name": "secure", "labels": labels}});
    let label = "pod-security.kubernetes.io/enforce";
    let wrong = server.post("/api/v1/namespaces", &namespace(json!({label: "strict"}))).await;
    let wrong = wrong.rejected(422, "Invalid");
    assert!(message(&wrong).contains("must be one of privileged, baseline, restricted"));
    server.post("/api/v1/namespaces", &namespace(json!({label: "baseline"}))).await.expect(201);
    let pods = "/api/v1/namespaces/secure/pods";
    let privileged = pod("p", &json!({"securityContext": {"privileged": true}}));
    let rejected = server.post(pods, &privileged).await.rejected(403, "Forbidden");
    assert_eq!(
        message(&rejected),
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \
         \"c\" must not set securityContext.privileged=true)"
    );
    server.post(pods, &pod("p", &json!({}))).await.expect(201);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": privileged["spec"]});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": template,
    }});
    let deployments = "/apis/apps/v1/namespaces/secure/deployments";
    let created = server.post(deployments, &deployment).await.expect(201);
    let warning = created.headers["warning"].to_str().expect("text");
    assert!(warning.contains("would violate PodSecurity"), "{warning}");
    let labels = json!({"metadata": {"labels": {label: "restricted"}}});
    let changed = server.merge("/api/v1/namespaces/secure", &labels).await.expect(200);
    let warning = changed.headers["warning"].to_str().expect("text");
    assert!(warning.contains("violate the new PodSecurity enforce level"), "{warning}");
}

#[tokio::test]
async fn pods_get_service_accounts_if_the_plugin_is_enabled() {
    let plugins = AdmissionPlugins::default();
    let plugins = plugins.change(["ServiceAccount"], ["Priority"]).expect("known plugins");
    let server = TestServer::with(Config { admission_plugins: plugins, ..Config::default() }).await;
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "new"}})).await.expect(201);
    let pods = "/api/v1/namespaces/new/pods";
    let created = server.post(pods, &pod("a", &json!({}))).await.expect(201);
    assert_eq!(created.text_at("/spec/serviceAccountName"), "default");
    assert!(created.text_at("/spec/volumes/0/name").starts_with("kube-api-access-"));
    assert!(created.json["spec"]["priority"].is_null(), "a disabled plugin does nothing");
    let mut other = pod("b", &json!({}));
    other["spec"]["serviceAccountName"] = json!("other");
    let rejected = server.post(pods, &other).await.rejected(403, "Forbidden");
    assert_eq!(
        message(&rejected),
        "pods \"b\" is forbidden: error looking up service account new/other: serviceaccount \
         \"other\" not found"
    );
}

#[tokio::test]
async fn the_default_account_returns_after_its_removal() {
    let plugins = AdmissionPlugins::default();
    let plugins = plugins.change(["ServiceAccount"], []).expect("known plugins");
    let server = TestServer::with(Config { admission_plugins: plugins, ..Config::default() }).await;
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "new"}})).await.expect(201);
    let path = "/api/v1/namespaces/new/serviceaccounts/default";
    let first = server.until(path, |reply| reply.status == 200).await;
    server.delete(path, "").await.expect(200);
    let uid = first.text_at("/metadata/uid");
    let is_new = |reply: &Reply| reply.status == 200 && reply.text_at("/metadata/uid") != uid;
    server.until(path, is_new).await;
}
