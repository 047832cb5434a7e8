//! The audit log, the metrics, and the end of a server.

use std::path::Path;
use std::time::Duration;

use kubeproof_reference_server::{AuditMode, AuditOptions, AuditPolicy, Config, Rotation, Storage};
use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, TIMEOUT, TestServer, config_map};
use crate::webhook_server::WebhookServer;

/// Starts a server with an audit log of this policy.
async fn audited(log: &Path, rules: &Value) -> TestServer {
    let policy =
        json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}).to_string();
    let policy = AuditPolicy::parse(policy.as_bytes()).expect("a policy");
    let audit = Some(AuditOptions::new(log.to_owned(), policy));
    TestServer::with(Config { audit, ..Config::default() }).await
}

/// Returns the events of a stage, in order.
fn events(log: &Path, stage: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(log).expect("a log");
    let events = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    events.filter(|event: &Value| event["stage"] == stage).collect()
}

#[tokio::test]
async fn an_event_tells_who_did_what() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("audit.log");
    let server = audited(&log, &json!([{"level": "RequestResponse"}])).await;
    let path = format!("{CONFIG_MAPS}?fieldManager=test");
    let headers = [("content-type", "application/json"), ("user-agent", "tester/1")];
    server.send("POST", &path, &headers, &config_map("a").to_string()).await.expect(201);
    let denied = [("authorization", "Bearer user")];
    server.send("GET", CONFIG_MAPS, &denied, "").await.expect(403);
    server.send("GET", CONFIG_MAPS, &[("authorization", "Bearer wrong")], "").await.expect(401);

    let events = events(&log, "ResponseComplete");
    let [created, forbidden, unknown] = events.as_slice() else { panic!("{events:#?}") };
    for (pointer, expected) in [
        ("/kind", json!("Event")),
        ("/apiVersion", json!("audit.k8s.io/v1")),
        ("/level", json!("RequestResponse")),
        ("/requestURI", json!(path)),
        ("/verb", json!("create")),
        ("/user/username", json!("kubeproof-admin")),
        ("/sourceIPs", json!(["127.0.0.1"])),
        ("/userAgent", json!("tester/1")),
        ("/objectRef/resource", json!("configmaps")),
        ("/objectRef/name", json!("a")),
        ("/objectRef/namespace", json!("default")),
        ("/responseStatus", json!({"metadata": {}, "code": 201})),
        ("/requestObject/metadata/name", json!("a")),
        ("/responseObject/kind", json!("ConfigMap")),
        ("/annotations/authorization.k8s.io~1decision", json!("allow")),
    ] {
        assert_eq!(created.pointer(pointer), Some(&expected), "{pointer} of {created:#}");
    }
    assert_eq!(forbidden["responseStatus"]["reason"], "Forbidden");
    assert_eq!(forbidden["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(unknown["responseStatus"]["code"], 401);
    assert_eq!(unknown["user"]["username"], "");
}

#[tokio::test]
async fn the_log_has_what_the_policy_asks_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("audit.log");
    let rules = json!([
        {"level": "None", "nonResourceURLs": ["/version"]},
        {"level": "Request", "omitManagedFields": true,
         "resources": [{"resources": ["configmaps"]}]},
        {"level": "Metadata", "omitStages": ["RequestReceived"]},
    ]);
    let server = audited(&log, &rules).await;
    server.get("/version").await.expect(200);
    server.get("/api").await.expect(200);
    let created = server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    server.put(&format!("{CONFIG_MAPS}/a"), &created.json).await.expect(200);
    assert_eq!(events(&log, "RequestReceived").len(), 2);
    let events = events(&log, "ResponseComplete");
    let [discovery, _, updated] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!((&discovery["level"], &discovery["verb"]), (&json!("Metadata"), &json!("get")));
    assert!(discovery.get("objectRef").is_none());
    assert!(updated["requestObject"]["metadata"].get("managedFields").is_none());
    assert!(updated["requestObject"]["metadata"]["uid"].is_string());
    assert!(updated.get("responseObject").is_none());
}

#[tokio::test]
async fn a_watch_has_an_event_for_its_start_and_its_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("audit.log");
    let server = audited(&log, &json!([{"level": "Metadata"}])).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    watch.next().await.expect("an event");
    assert_eq!(events(&log, "ResponseStarted").len(), 1);
    let watches = |stage| {
        let events = events(&log, stage).into_iter();
        events.filter(|event| event["verb"] == "watch").count()
    };
    assert_eq!(watches("ResponseComplete"), 0);
    drop(watch);
    let ended = async {
        while watches("ResponseComplete") == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, ended).await.expect("the last event");
}

#[tokio::test]
async fn annotations_of_webhooks_and_impersonation_are_in_the_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("audit.log");
    let server = audited(&log, &json!([{"level": "Metadata"}])).await;
    let hook =
        WebhookServer::start(|_| json!({"allowed": true, "auditAnnotations": {"checked": "yes"}}))
            .await;
    let webhook = json!({
        "name": "hook.example.com", "clientConfig": hook.client_config(), "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                   "resources": ["configmaps"]}],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let object = json!({"metadata": {"name": "hook"}, "webhooks": [webhook]});
    server.post(path, &object).await.expect(201);
    let headers = [
        ("content-type", "application/json"),
        ("impersonate-user", "jane"),
        ("impersonate-group", "system:masters"),
    ];
    let body = config_map("a").to_string();
    server.send("POST", CONFIG_MAPS, &headers, &body).await.expect(201);
    let event = events(&log, "ResponseComplete").pop().expect("an event");
    assert_eq!(event["annotations"]["hook.example.com/checked"], "yes");
    assert_eq!(event["user"]["username"], "kubeproof-admin");
    assert_eq!(event["impersonatedUser"]["username"], "jane");

    let metrics = server.get("/metrics").await.expect(200).text;
    let labels = r#"name="hook.example.com",operation="CREATE",rejected="false",type="validating""#;
    let count = "apiserver_admission_webhook_admission_duration_seconds_count";
    assert!(metrics.contains(&format!("{count}{{{labels}}} 1")), "{metrics}");
    let plugin = r#"name="NamespaceLifecycle",operation="CREATE",rejected="false",type="validate""#;
    assert!(metrics.contains(plugin), "{metrics}");
}

#[tokio::test]
async fn the_reason_of_an_authorization_names_the_binding() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("audit.log");
    let server = audited(&log, &json!([{"level": "Metadata"}])).await;
    server.bind_reader().await;
    let user = "system:serviceaccount:default:reader";
    server.send("GET", CONFIG_MAPS, &[("impersonate-user", user)], "").await.expect(200);
    let event = events(&log, "ResponseComplete").pop().expect("an event");
    let expected = "RBAC: allowed by RoleBinding \"readers/default\" of ClusterRole \"view\" to \
                    ServiceAccount \"reader/default\"";
    assert_eq!(event["annotations"]["authorization.k8s.io/reason"], expected);

    let attributes = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let review = json!({"spec": {"user": user, "resourceAttributes": attributes}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review = server.post(reviews, &review).await.expect(201);
    assert_eq!(review.json["status"], json!({"allowed": true, "reason": expected}));
}

#[tokio::test]
async fn a_log_in_batches_is_complete_when_the_server_has_stopped() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("audit.log");
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}],
    });
    let policy = AuditPolicy::parse(policy.to_string().as_bytes()).expect("a policy");
    let options = AuditOptions {
        mode: AuditMode::Batch,
        rotation: Rotation { max_bytes: 2_000, ..Rotation::default() },
        ..AuditOptions::new(log.clone(), policy)
    };
    let server = TestServer::with(Config { audit: Some(options), ..Config::default() }).await;
    for _ in 0..10 {
        server.get(CONFIG_MAPS).await.expect(200);
    }
    let TestServer { running, .. } = server;
    running.shutdown().await;
    let files = std::fs::read_dir(dir.path()).expect("a directory");
    let files: Vec<_> = files.map(|entry| entry.expect("a file").path()).collect();
    assert!(files.len() > 1, "{files:?}");
    let complete: usize = files.iter().map(|file| events(file, "ResponseComplete").len()).sum();
    assert_eq!(complete, 10);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_strict_log_that_is_full_fails_requests() {
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
        "rules": [{"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]}],
    });
    let policy = AuditPolicy::parse(policy.to_string().as_bytes()).expect("a policy");
    let options = AuditOptions {
        mode: AuditMode::BlockingStrict,
        ..AuditOptions::new("/dev/full".into(), policy)
    };
    let server = TestServer::with(Config { audit: Some(options), ..Config::default() }).await;
    server.get(CONFIG_MAPS).await.expect(200);
    let failed = server.get("/api/v1/namespaces/default/secrets").await.expect(500);
    assert_eq!(failed.reason(), "InternalError");
    let metrics = server.get("/metrics").await.expect(200).text;
    assert!(metrics.contains("apiserver_audit_error_total 1"), "{metrics}");
}

#[tokio::test]
async fn metrics_count_the_requests_to_the_storage() {
    let dir = tempfile::tempdir().expect("a directory");
    let storage = Storage::Disk(dir.path().to_owned());
    let server = TestServer::with(Config { storage, ..Config::default() }).await;
    server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    server.delete(&format!("{CONFIG_MAPS}/a"), "").await.expect(200);
    let metrics = server.get("/metrics").await.expect(200).text;
    for operation in ["create", "delete"] {
        let labels = format!(r#"{{group="",operation="{operation}",resource="configmaps"}}"#);
        for name in ["etcd_requests_total", "etcd_request_duration_seconds_count"] {
            assert!(metrics.contains(&format!("{name}{labels} ")), "{name}{labels} in {metrics}");
        }
    }
    assert!(metrics.contains(r#"apiserver_storage_objects{resource="namespaces"} 4"#), "{metrics}");
    assert!(metrics.contains(r#"apiserver_storage_size_bytes{storage_cluster_id="default"} "#));
}

#[tokio::test]
async fn the_metrics_of_a_custom_resource_end_with_its_definition() {
    let server = TestServer::start().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let widgets = "/apis/example.com/v1/widgets";
    server.post(definitions, &definition).await.expect(201);
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    server.post(widgets, &widget).await.expect(201);
    server.watch(&format!("{widgets}?watch=1")).await.next().await.expect("an event");
    let metrics = server.get("/metrics").await.expect(200).text;
    for name in [
        "apiserver_request_total",
        "apiserver_request_duration_seconds_count",
        "apiserver_longrunning_requests",
        "apiserver_watch_events_total",
        "etcd_request_duration_seconds_count",
        "etcd_requests_total",
    ] {
        let has_series = |line: &str| line.starts_with(name) && line.contains("\"widgets\"");
        assert!(metrics.lines().any(has_series), "{name} in {metrics}");
    }

    let definition = format!("{definitions}/widgets.example.com");
    server.delete(&definition, "").await.expect(200);
    server.until(&definition, |reply| reply.status == 404).await;
    let metrics = server.get("/metrics").await.expect(200).text;
    let rest: Vec<_> = metrics.lines().filter(|line| line.contains("widgets")).collect();
    assert!(rest.is_empty(), "{rest:#?}");
    assert!(metrics.contains(r#"resource="customresourcedefinitions""#), "{metrics}");
}

#[tokio::test]
async fn metrics_have_the_names_of_kube_apiserver() {
    let server = TestServer::start().await;
    server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    watch.next().await.expect("an event");
    let metrics = server.get("/metrics").await.expect(200).text;
    let line = |start: &str, labels: &[&str]| {
        let has = |line: &&str| {
            line.starts_with(start) && labels.iter().all(|label| line.contains(label))
        };
        let found = metrics.lines().find(has).unwrap_or_else(|| panic!("{start} in {metrics}"));
        found.rsplit_once(' ').expect("a value").1.to_owned()
    };
    let created = [r#"resource="configmaps""#, r#"verb="POST""#, r#"scope="resource""#];
    assert_eq!(line("apiserver_request_total", &created), "1");
    assert_eq!(line("apiserver_request_duration_seconds_count", &created), "1");
    let watched = [r#"resource="configmaps""#, r#"verb="WATCH""#];
    assert_eq!(line("apiserver_longrunning_requests", &watched), "1");
    assert_ne!(line("apiserver_watch_events_total", &watched[..1]), "0");
    assert_ne!(line("apiserver_resource_objects", &watched[..1]), "0");
    line("apiserver_current_inflight_requests", &[r#"request_kind="mutating""#]);
    line("kubernetes_build_info", &[r#"major="1""#]);
    line("process_start_time_seconds", &[]);
}

/// The delay is longer than the test.
#[tokio::test]
async fn a_server_that_drains_is_not_ready_and_serves_requests() {
    let delay = Duration::from_hours(1);
    let server = TestServer::with(Config { shutdown_delay: delay, ..Config::default() }).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    let checks = async {
        let reply = server.until("/readyz", |reply| reply.status == 500).await;
        assert!(reply.text.contains("[-]shutdown failed: reason withheld"), "{}", reply.text);
        server.get("/livez").await.expect(200);
        server.get(CONFIG_MAPS).await.expect(200);
        let ended = async { while watch.next().await.is_some() {} };
        tokio::time::timeout(TIMEOUT, ended).await.expect("the end of the watch");
    };
    tokio::select! {
        () = checks => {}
        () = server.running.drain() => panic!("the delay was ignored"),
    }
}

#[tokio::test]
async fn a_drained_server_has_no_listener() {
    let server = TestServer::start().await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    let address = server.running.addr();
    server.running.drain().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the listener exists");
    while watch.next().await.is_some() {}
}

#[tokio::test]
async fn running_requests_end_before_the_server() {
    let server = TestServer::start().await;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let hook = WebhookServer::start(move |_| {
        let released = released.lock().expect("one request");
        released.recv().expect("the test goes on");
        json!({"allowed": true})
    })
    .await;
    let webhook = json!({
        "name": "slow.example.com", "clientConfig": hook.client_config(), "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "of-the-test", "expression": "object.metadata.name == 'a'"}],
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                   "resources": ["configmaps"]}],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let object = json!({"metadata": {"name": "slow"}, "webhooks": [webhook]});
    server.post(path, &object).await.expect(201);
    let map = config_map("a");
    let create = async { server.post(CONFIG_MAPS, &map).await.expect(201) };
    let drain = async {
        while hook.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        let address = server.running.addr();
        let release = async {
            while tokio::net::TcpStream::connect(address).await.is_ok() {}
            release.send(()).expect("the webhook waits");
        };
        tokio::join!(server.running.drain(), release);
    };
    let (created, ()) = tokio::join!(create, drain);
    assert_eq!(created.text_at("/metadata/name"), "a");
}
