//! No fault is dead: each of them changes what some client sees.
//!
//! One long conversation is held with a correct server and with one of each fault. What differs by chance (uids, times, random
//! names) is numbered in the order of its appearance, so the same conversation reads the same on two correct servers, and another
//! reading means that the fault was seen. Whether the suite can tell *what* is wrong is tested by the suite.

mod described;
mod options;
mod users;
mod values;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use kubeproof_reference_server::{Config, Fault, Faults};
use regex::{Captures, Regex};
use serde_json::{Value, json};

use crate::collections;
use crate::support::{CONFIG_MAPS, Reply, TestServer, Watch, config_map};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/things";
const JSON: (&str, &str) = ("content-type", "application/json");
const APPLY: (&str, &str) = ("content-type", "application/apply-patch+yaml");

/// A conversation as it is written down.
pub(crate) struct Record {
    pub(crate) server: TestServer,
    text: String,
}

impl Record {
    fn note(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let reply = self.server.send(method, path, headers, body).await;
        let warnings: Vec<_> = reply.headers.get_all("warning").iter().collect();
        let kind = reply.headers.get("content-type");
        self.note(&format!(
            "{method} {path} {body} -> {} {kind:?} {warnings:?} {}",
            reply.status, reply.text
        ));
        reply
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[JSON], &body.to_string()).await
    }

    async fn put(&mut self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, &[JSON], &body.to_string()).await
    }

    pub(crate) async fn patch(&mut self, kind: &str, path: &str, body: &Value) -> Reply {
        let kind = format!("application/{kind}-patch+json");
        self.send("PATCH", path, &[("content-type", &kind)], &body.to_string()).await
    }

    async fn delete(&mut self, path: &str, body: &str) -> Reply {
        self.send("DELETE", path, &[JSON], body).await
    }

    /// Reads the events of a stream until it ends or `enough` has come; bookmarks come when they like, and are left out.
    pub(crate) async fn watch(&mut self, path: &str, enough: &str) {
        self.watch_as(path, &[], enough).await;
    }

    pub(crate) async fn watch_as(&mut self, path: &str, headers: &[(&str, &str)], enough: &str) {
        let response = self.server.open("GET", path, headers, "").await;
        if response.status() != 200 {
            self.note(&format!("{path} -> {}", response.status()));
            return;
        }
        let mut watch = Watch::new(response.into_body());
        let read = async {
            while let Some(event) = watch.next().await {
                let text = event.to_string();
                if event["type"] != "BOOKMARK" || text.contains("initial-events-end") {
                    self.note(&format!("{path} -> {text}"));
                }
                if text.contains(enough) {
                    return;
                }
            }
            self.note(&format!("{path} -> the end"));
        };
        // A correct server never needs this; one that loses an event or forgets to end would be waited for.
        if tokio::time::timeout(TOO_LONG, read).await.is_err() {
            self.note(&format!("{path} -> nothing more"));
        }
    }
}

/// How long a stream may be silent before that counts as what there is to see.
const TOO_LONG: Duration = Duration::from_secs(4);

/// The parts of the conversation; the ones that take long come last.
const PARTS: usize = 12;

/// Holds the conversation with a server, and ends it early when a part reads otherwise than `expected`.
async fn converse(faults: Faults, expected: Option<&[String]>) -> Vec<String> {
    let config = Config { faults, history: 200, ..Config::default() };
    let mut talk = Record { server: TestServer::with(config).await, text: String::new() };
    let mut parts = Vec::new();
    for part in 0..PARTS {
        match part {
            0 => create(&mut talk).await,
            1 => {
                read(&mut talk).await;
                users::ask(&mut talk).await;
                described::ask(&mut talk).await;
                options::ask(&mut talk).await;
            }
            2 => update(&mut talk).await,
            3 => patch(&mut talk).await,
            4 => types(&mut talk).await,
            5 => {
                custom(&mut talk).await;
                values::rules(&mut talk).await;
                values::odd(&mut talk).await;
                values::versions(&mut talk).await;
            }
            6 => delete(&mut talk).await,
            7 => represent(&mut talk).await,
            8 => apply(&mut talk).await,
            9 => watch(&mut talk).await,
            10 => collections::read(&mut talk).await,
            _ => describe(&mut talk).await,
        }
        parts.push(number(&std::mem::take(&mut talk.text)));
        if expected.is_some_and(|expected| expected[part] != parts[part]) {
            break;
        }
    }
    parts
}

/// Server-side apply: two managers, and what each of them may do to the other.
async fn apply(talk: &mut Record) {
    let at = |name: &str, query: &str| format!("{CONFIG_MAPS}/{name}?{query}");
    let config = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    for (query, body) in [
        ("fieldManager=a&dryRun=All", config("applied", json!({"x": "1"}))),
        ("fieldManager=a", config("applied", json!({"x": "1", "y": "1"}))),
        ("fieldManager=a", config("applied", json!({"x": "1", "y": "1"}))),
        ("fieldManager=b", config("applied", json!({"x": "2"}))),
        ("fieldManager=b", config("applied", json!({"x": "1"}))),
        ("fieldManager=a", config("applied", json!({}))),
        ("fieldManager=a", config("applied", json!({"x": "1"}))),
        ("fieldManager=b&force=true", config("applied", json!({"x": "3"}))),
        ("fieldManager=c&dryRun=All", config("applied", json!({"z": "1"}))),
        ("", config("applied", json!({"x": "3"}))),
        ("fieldManager=b", json!({"metadata": {"name": "applied"}})),
        (
            "fieldManager=b",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied", "resourceVersion": "1"}}),
        ),
        (
            "fieldManager=b",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied", "managedFields": [{"manager": "x"}]}}),
        ),
    ] {
        talk.send("PATCH", &at("applied", query), &[APPLY], &body.to_string()).await;
    }
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  x: '3'\n";
    talk.send("PATCH", &at("applied", "fieldManager=b"), &[APPLY], yaml).await;
    talk.patch("merge", &at("applied", ""), &json!({"metadata": {"managedFields": [{}]}})).await;
}

async fn describe(talk: &mut Record) {
    for path in [
        "/api",
        "/apis",
        "/apis/apps",
        CRDS,
        "/api/v1",
        "/apis/apps/v1",
        "/version",
        "/openapi/v3",
        "/nope",
        "/api/v1/nope",
        "/apis/nope.io/v1/x",
    ] {
        talk.get(path).await;
    }
    talk.get("/openapi/v3/api/v1").await;
    talk.get("/api/v1/namespaces").await;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    talk.send("GET", "/apis", &[("accept", aggregated)], "").await;
    talk.send("GET", "/api", &[("accept", aggregated)], "").await;
    for token in ["Bearer wrong", "Bearer user", "Basic x"] {
        talk.send("GET", CONFIG_MAPS, &[("authorization", token)], "").await;
    }
    talk.send("PUT", CONFIG_MAPS, &[], "").await;
    let huge =
        format!(r#"{{"metadata":{{"name":"huge"}},"data":{{"x":"{}"}}}}"#, "x".repeat(3 * 1024 * 1024));
    let refused = talk.server.send("POST", CONFIG_MAPS, &[JSON], &huge).await.status;
    talk.note(&format!("{refused}"));
    talk.server.delete(&format!("{CONFIG_MAPS}/huge"), "").await;
}

async fn create(talk: &mut Record) {
    let mut full = config_map("a");
    full["metadata"]["labels"] = json!({ "app": "x", "empty": "" });
    full["metadata"]["annotations"] = json!({ "note": " spaced " });
    full["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
    full["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    talk.post(CONFIG_MAPS, &full).await;
    full["data"] = json!({ "a": "2" });
    talk.post(CONFIG_MAPS, &full).await;
    talk.post(&format!("{CONFIG_MAPS}?dryRun=All"), &full).await;
    talk.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("dry")).await;
    talk.get(&format!("{CONFIG_MAPS}/dry")).await;
    talk.post(&format!("{CONFIG_MAPS}?dryRun=Some"), &config_map("dry")).await;
    talk.post("/api/v1/namespaces/nope/configmaps", &config_map("a")).await;
    for metadata in [
        json!({}),
        json!({ "name": "Upper" }),
        json!({ "name": ".." }),
        json!({ "name": "a".repeat(70) }),
        json!({ "name": "b", "namespace": "other" }),
        json!({ "name": "b", "resourceVersion": "5" }),
        json!({ "name": "b", "labels": { "a b": "c" } }),
        json!({ "name": "b", "labels": { "a": 1 } }),
        json!({ "name": "b", "finalizers": ["nonsense"] }),
        json!({ "name": "b", "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "p" }] }),
        json!({ "generateName": "p".repeat(80) }),
    ] {
        talk.post(CONFIG_MAPS, &json!({ "metadata": metadata })).await;
    }
    let both = json!({ "metadata": { "name": "named", "generateName": "other-" } });
    talk.post(CONFIG_MAPS, &both).await;
    for _ in 0..40 {
        talk.server
            .post(CONFIG_MAPS, &json!({ "metadata": { "generateName": "many-", "labels": { "many": "1" } } }))
            .await;
    }
    let count = talk.server.get(&format!("{CONFIG_MAPS}?labelSelector=many")).await.names().len();
    talk.note(&format!("{count} generated names"));
    talk.server.delete(&format!("{CONFIG_MAPS}?labelSelector=many"), "").await;
    for body in [
        "{",
        "[]",
        "null",
        r#"{"kind":"Secret","metadata":{"name":"k"}}"#,
        r#"{"apiVersion":"v2","metadata":{"name":"k"}}"#,
    ] {
        talk.send("POST", CONFIG_MAPS, &[JSON], body).await;
    }
    let odd = r#"{"metadata":{"name":"odd"},"bogus":1,"data":{"a":"1","a":"2"},"immutable":null}"#;
    talk.send("POST", &format!("{CONFIG_MAPS}?fieldValidation=Strict"), &[JSON], odd).await;
    talk.send("POST", CONFIG_MAPS, &[JSON], odd).await;
    for media in ["text/plain", "application/json; charset=utf-8"] {
        talk.send("POST", CONFIG_MAPS, &[("content-type", media)], &config_map("media").to_string()).await;
    }
    talk.send("GET", CONFIG_MAPS, &[("accept", "text/html")], "").await;
    talk.post("/api/v1/namespaces", &json!({ "metadata": { "name": "a.b" } })).await;
}

async fn read(talk: &mut Record) {
    talk.post("/api/v1/namespaces", &json!({ "metadata": { "name": "second" } })).await;
    for name in ["elsewhere", "unseen", "a"] {
        talk.post("/api/v1/namespaces/second/configmaps", &config_map(name)).await;
    }
    for (name, tier) in [("l1", "front"), ("l2", "back"), ("l21", "frontier"), ("l3", "back")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({ "tier": tier });
        talk.post(CONFIG_MAPS, &object).await;
    }
    talk.get(&format!("{CONFIG_MAPS}/l1")).await;
    talk.get(&format!("{CONFIG_MAPS}/l")).await;
    talk.get(&format!("{CONFIG_MAPS}/l1%20")).await;
    talk.get(&format!("{CONFIG_MAPS}/l1?resourceVersion=1")).await;
    talk.get(&format!("{CONFIG_MAPS}/l1?resourceVersion=99999")).await;
    talk.get(&format!("{CONFIG_MAPS}?resourceVersion=99999")).await;
    talk.get("/api/v1/configmaps").await;
    talk.get("/api/v1/namespaces/empty/configmaps").await;
    for query in [
        "labelSelector=tier%3Dfront",
        "labelSelector=tier!%3Dfront",
        "labelSelector=tier%20in%20(front)",
        "labelSelector=tier%20notin%20(front)",
        "labelSelector=tier",
        "labelSelector=!tier",
        "labelSelector=a%20b",
        "fieldSelector=metadata.name%3Dl1",
        "fieldSelector=metadata.name!%3Dl1",
        "fieldSelector=data.a%3D1",
        "labelSelector=tier&limit=1",
        "continue=garbage",
        "resourceVersion=1&resourceVersionMatch=Exact",
    ] {
        talk.get(&format!("{CONFIG_MAPS}?{query}")).await;
    }
    let first = talk.get(&format!("{CONFIG_MAPS}?limit=4")).await;
    let token = first.text_at("/metadata/continue").to_owned();
    talk.post(CONFIG_MAPS, &config_map("zz")).await;
    talk.get(&format!("{CONFIG_MAPS}?continue={token}")).await;
    talk.get(&format!("{CONFIG_MAPS}?limit=1&fieldSelector=metadata.name!%3Da")).await;
    let after = |name: &str| format!("{CONFIG_MAPS}?limit=1&continue={name}");
    // Behind l2 comes l21, whose name begins like it.
    let page = talk.server.get(&format!("{CONFIG_MAPS}?limit=3")).await;
    talk.get(&after(page.text_at("/metadata/continue"))).await;
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    talk.send("GET", CONFIG_MAPS, &[("accept", table)], "").await;
    let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    talk.send("GET", CONFIG_MAPS, &[("accept", partial)], "").await;
}

async fn update(talk: &mut Record) {
    let path = format!("{CONFIG_MAPS}/u");
    talk.put(&path, &config_map("u")).await;
    let created = talk.post(CONFIG_MAPS, &config_map("u")).await;
    let mut object = created.json.clone();
    object["data"] = json!({ "b": "1" });
    talk.put(&path, &object).await;
    talk.put(&path, &object).await;
    talk.put(&path, &json!({ "metadata": { "name": "u" } })).await;
    talk.put(&path, &json!({ "metadata": { "name": "u" } })).await;
    for metadata in [
        json!({ "name": "other" }),
        json!({ "name": "u", "resourceVersion": "99999" }),
        json!({ "name": "u", "resourceVersion": "none" }),
        json!({ "name": "u", "deletionTimestamp": "2001-01-01T00:00:00Z" }),
        json!({ "name": "u", "uid": "11111111-1111-4111-8111-111111111111" }),
    ] {
        talk.put(&path, &json!({ "metadata": metadata, "data": { "c": "1" } })).await;
    }
    talk.post(
        CONFIG_MAPS,
        &json!({ "metadata": { "name": "fixed" }, "data": { "a": "1" }, "immutable": true }),
    )
    .await;
    talk.patch("merge", &format!("{CONFIG_MAPS}/fixed"), &json!({ "data": { "a": "2" } })).await;
    let now = talk.server.get(&path).await;
    let writes = (0..10).map(|n| {
        let mut object = now.json.clone();
        object["data"] = json!({ "writer": n.to_string() });
        let (server, path) = (&talk.server, path.as_str());
        async move { server.put(path, &object).await.status.as_u16() }
    });
    let mut codes = futures_util::future::join_all(writes).await;
    codes.sort_unstable();
    talk.note(&format!("{codes:?}"));
    talk.server.put(&path, &config_map("u")).await;
}

async fn patch(talk: &mut Record) {
    let path = format!("{CONFIG_MAPS}/p");
    talk.post(CONFIG_MAPS, &config_map("p")).await;
    talk.patch("merge", &path, &json!({ "data": { "b": "2", "a": null } })).await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": ["x.io/a"] } })).await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": ["x.io/b"] } })).await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": null } })).await;
    talk.patch("merge", &path, &json!({ "metadata": { "name": "q" } })).await;
    talk.patch("merge", &path, &json!([])).await;
    talk.patch("json", &path, &json!([{ "op": "test", "path": "/data/b", "value": "9" }])).await;
    let half =
        json!([{ "op": "add", "path": "/data/c", "value": "3" }, { "op": "remove", "path": "/data/nope" }]);
    talk.patch("json", &path, &half).await;
    talk.get(&path).await;
    talk.patch("json", &path, &json!([{ "op": "add", "path": "/metadata/finalizers", "value": ["x.io/a"] }]))
        .await;
    talk.patch("json", &path, &json!([{ "op": "add", "path": "/metadata/finalizers/-", "value": "x.io/b" }]))
        .await;
    talk.patch("strategic-merge", &path, &json!({ "metadata": { "finalizers": ["x.io/c"] } })).await;
    talk.patch("strategic-merge", &path, &json!({ "data": { "$patch": "replace", "only": "1" } })).await;
    talk.patch(
        "strategic-merge",
        &path,
        &json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["x.io/a"] } }),
    )
    .await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": null } })).await;
    talk.patch("strategic-merge", &path, &json!({ "metadata": { "finalizers": ["x.io/d", "x.io/d"] } }))
        .await;
    talk.patch("strategic-merge", &path, &json!({ "metadata": { "finalizers": ["x.io/d"] } })).await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": null } })).await;
    talk.patch("merge", &format!("{CONFIG_MAPS}/nope"), &json!({})).await;
    talk.send("PATCH", &path, &[("content-type", "text/plain")], "{}").await;
}

async fn watch(talk: &mut Record) {
    talk.post(CONFIG_MAPS, &config_map("zz")).await;
    talk.watch(&format!("{CONFIG_MAPS}?watch=1"), "\"zz\"").await;
    let start = talk.server.get(CONFIG_MAPS).await;
    let start = start.text_at("/metadata/resourceVersion").parse().unwrap_or(1_000);
    let mut object = config_map("w");
    object["metadata"]["labels"] = json!({ "on": "yes" });
    let created = talk.post(CONFIG_MAPS, &object).await;
    let path = format!("{CONFIG_MAPS}/w");
    for on in ["no", "yes"] {
        talk.patch("merge", &path, &json!({ "metadata": { "labels": { "on": on } } })).await;
    }
    talk.patch("merge", &path, &json!({ "data": { "more": "1" } })).await;
    talk.post("/api/v1/namespaces/kube-public/configmaps", &config_map("unseen")).await;
    talk.delete(&path, "").await;
    talk.post(CONFIG_MAPS, &config_map("marker")).await;
    let from = |version: u64| format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}");
    talk.watch(&from(start), "\"marker\"").await;
    if let Ok(version) = created.text_at("/metadata/resourceVersion").parse() {
        talk.watch(&from(version), "\"marker\"").await;
    }
    talk.watch(&format!("{}&labelSelector=on%3Dyes", from(start)), "nothing").await;
    talk.watch(&from(1), "ERROR").await;
    let streaming =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    talk.watch(&format!("{CONFIG_MAPS}?{streaming}"), "initial-events-end").await;
}

async fn types(talk: &mut Record) {
    let labels = json!({ "app": "d" });
    let containers = json!([{ "name": "c", "image": "i", "env": [{ "name": "A", "value": "1" }], "args": ["x"], "ports": [{ "containerPort": 80 }] }]);
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": containers, "volumes": [{ "name": "v", "emptyDir": {} }] } });
    let deployment = json!({
        "metadata": { "name": "d" },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": template },
        "status": { "replicas": 9 },
    });
    let mut mismatch = deployment.clone();
    mismatch["spec"]["selector"]["matchLabels"]["app"] = "another".into();
    talk.post(DEPLOYMENTS, &mismatch).await;
    talk.server.delete(&format!("{DEPLOYMENTS}/d"), "").await;
    talk.post(DEPLOYMENTS, &deployment).await;
    let path = format!("{DEPLOYMENTS}/d");
    talk.patch("merge", &path, &json!({ "spec": { "replicas": 2 }, "status": { "replicas": 4 } })).await;
    talk.patch("merge", &path, &json!({ "metadata": { "labels": { "a": "b" } } })).await;
    let status = json!({ "status": { "replicas": 3 }, "spec": { "replicas": 7 } });
    talk.patch("merge", &format!("{path}/status"), &status).await;
    talk.get(&format!("{path}/scale")).await;
    talk.patch("merge", &format!("{path}/scale"), &json!({ "spec": { "replicas": 5 } })).await;
    talk.get(&path).await;
    let strategic = |spec: Value| json!({ "spec": { "template": { "spec": spec } } });
    for spec in [
        json!({ "containers": [{ "name": "side", "image": "s" }] }),
        json!({ "containers": [{ "name": "c", "env": [{ "name": "B", "value": "2" }], "args": ["y"] }] }),
        json!({ "containers": [{ "name": "side", "$patch": "delete" }] }),
        json!({ "$setElementOrder/containers": [{ "name": "new" }, { "name": "c" }], "containers": [{ "name": "new", "image": "n" }] }),
        json!({ "volumes": [{ "name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": { "path": "/" } }] }),
        json!({ "$setElementOrder/containers": [{ "name": "c" }, { "name": "new" }], "containers": [{ "name": "new", "image": "n2" }] }),
        json!({ "containers": [{ "image": "nameless" }] }),
    ] {
        talk.patch("strategic-merge", &path, &strategic(spec)).await;
    }
    talk.patch("merge", &path, &strategic(json!({ "containers": [{ "name": "z", "image": "z" }] }))).await;
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] }, "status": { "phase": "Running" } });
    talk.post(PODS, &pod).await;
    talk.post(
        &format!("{PODS}/p/binding"),
        &json!({ "metadata": { "name": "p" }, "target": { "name": "n" } }),
    )
    .await;
    talk.post(
        &format!("{PODS}/p/binding"),
        &json!({ "metadata": { "name": "p" }, "target": { "name": "o" } }),
    )
    .await;
    talk.get(&format!("{PODS}/p")).await;
    talk.delete(&format!("{PODS}/p"), "").await;
    talk.delete(&format!("{PODS}/p?gracePeriodSeconds=0"), "").await;
    for secret in [json!({ "stringData": { "a": "1" } }), json!({ "data": { "a": "no base64!" } })] {
        let secret = json!({ "metadata": { "name": "s" }, "stringData": secret["stringData"], "data": secret["data"] });
        talk.post("/api/v1/namespaces/default/secrets", &secret).await;
    }
    let lease =
        json!({ "metadata": { "name": "l" }, "spec": { "renewTime": "2026-01-01T00:00:00.123456Z" } });
    talk.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease).await;
    let service = json!({ "metadata": { "name": "svc" }, "spec": { "ports": [{ "port": 80 }, { "port": 80, "name": "x" }] } });
    talk.post("/api/v1/namespaces/default/services", &service).await;
    talk.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &json!({ "spec": {} })).await;
    let review =
        json!({ "spec": { "user": "nobody", "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    talk.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await;
    let mixed = json!({ "name": "v", "emptyDir": {}, "hostPath": { "path": "/" } });
    let containers = json!([{ "name": "c", "image": "i" }]);
    let pod =
        json!({ "metadata": { "name": "mixed" }, "spec": { "containers": containers, "volumes": [mixed] } });
    talk.post(PODS, &pod).await;
    talk.patch("merge", &path, &json!({ "spec": { "replicas": -1 } })).await;
    let options = json!({ "apiVersion": "apps/v1", "kind": "DeleteOptions" }).to_string();
    talk.delete(&path, &options).await;
    addresses(talk).await;
}

async fn addresses(talk: &mut Record) {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let service = |name: &str, address: &Value| json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }], "clusterIP": address } });
    let first = talk.post(SERVICES, &service("first", &Value::Null)).await;
    let address = json!(first.text_at("/spec/clusterIP"));
    talk.post(SERVICES, &service("second", &address)).await;
    talk.server.delete(&format!("{SERVICES}/second"), "").await;
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "example.com" } });
    talk.patch("merge", &format!("{SERVICES}/first"), &external).await;
    talk.post(SERVICES, &service("third", &address)).await;
    talk.patch("merge", &format!("{SERVICES}/first"), &json!({ "spec": { "type": "ClusterIP" } })).await;
}

async fn custom(talk: &mut Record) {
    let spec = json!({
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": { "type": "integer", "minimum": 1, "maximum": 9, "default": 1 },
            "must": { "type": "string" },
            "color": { "type": "string", "enum": ["red", "blue"], "default": "red" },
            "code": { "type": "string", "pattern": "^[a-z]+$" },
            "when": { "type": "string", "format": "date-time" },
            "nil": { "type": "string", "nullable": true },
            "items": { "type": "array", "items": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" }, "n": { "type": "integer", "default": 5 } } }, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"] },
        },
    });
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": { "type": "object", "properties": { "phase": { "type": "string" } } } } });
    let columns = json!([
        { "name": "Phase", "type": "string", "jsonPath": ".status.phase" },
        { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
    ]);
    let mut crd = json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": { "plural": "things", "kind": "Thing", "shortNames": ["th"], "categories": ["all"] },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} }, "schema": { "openAPIV3Schema": schema }, "additionalPrinterColumns": columns }],
        },
    });
    let mut loose = crd.clone();
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] =
        json!({ "minimum": 1 });
    talk.post(CRDS, &loose).await;
    talk.delete(&format!("{CRDS}/things.example.com"), "").await;
    let gone = format!("{CRDS}/things.example.com");
    let gone = talk.server.until(&gone, |reply| reply.status == 404);
    let gone = tokio::time::timeout(TOO_LONG, gone).await.is_ok();
    talk.note(&format!("the definition is gone: {gone}"));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] =
        json!(["must"]);
    talk.post(CRDS, &crd).await;
    let thing = |name: &str, spec: Value| json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name }, "spec": spec, "status": { "phase": "x" } });
    for (name, spec) in [
        (
            "t",
            json!({ "must": "m", "size": 3, "nil": null, "bogus": 1, "items": [{ "id": "a", "deep": 1 }] }),
        ),
        ("t1", json!({ "size": 3 })),
        ("t2", json!({ "must": "m", "size": 10 })),
        ("t3", json!({ "must": "m", "size": 11, "color": "green" })),
        ("t4", json!({ "must": "m", "color": "green" })),
        ("t5", json!({ "must": "m", "code": "A1" })),
        ("t6", json!({ "must": "m", "when": "noon" })),
        ("t7", json!({ "must": "m", "items": [{ "id": "a" }, { "id": "a" }] })),
        ("t8", json!({ "must": "m", "items": [{ "id": "a" }, { "n": 1 }] })),
        ("t9", json!({ "must": 5 })),
    ] {
        talk.post(THINGS, &thing(name, spec)).await;
    }
    talk.get(THINGS).await;
    talk.send("GET", THINGS, &[("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")], "").await;
    talk.patch(
        "merge",
        &format!("{THINGS}/t/status"),
        &json!({ "status": { "phase": "Up" }, "spec": { "size": 9 } }),
    )
    .await;
    talk.patch("merge", &format!("{THINGS}/t"), &json!({ "spec": { "color": "blue" } })).await;
    talk.patch("strategic-merge", &format!("{THINGS}/t"), &json!({ "spec": { "color": "red" } })).await;
    talk.get("/apis/example.com/v1").await;
    talk.get("/openapi/v3/apis/example.com/v1").await;
    versions(talk).await;
}

async fn versions(talk: &mut Record) {
    const NOTES: &str = "/apis/notes.example.com/v1/notes";
    let version = |name: &str, default: &str| {
        let properties = json!({
            "mode": { "type": "string", "default": default },
            "list": { "type": "array", "items": { "type": "string" } },
            "text": { "type": "string" },
            "count": { "type": "integer" },
        });
        let spec = json!({ "type": "object", "properties": properties });
        let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
        json!({ "name": name, "served": true, "storage": name == "v1", "schema": schema })
    };
    let names = json!({ "plural": "notes", "kind": "Note" });
    let versions = json!([version("v1", "first"), version("v2", "second")]);
    let spec =
        json!({ "group": "notes.example.com", "scope": "Cluster", "names": names, "versions": versions });
    let definition = json!({ "metadata": { "name": "notes.notes.example.com" }, "spec": spec });
    let before = talk.post(CRDS, &definition).await;
    let metadata = json!({ "name": "n", "annotations": { "a": "b" } });
    let spec = json!({ "list": [], "text": "", "count": 9_007_199_254_740_993_i64 });
    let note = |version: &str, metadata: Value, spec: Value| json!({ "apiVersion": format!("notes.example.com/{version}"), "kind": "Note", "metadata": metadata, "spec": spec });
    talk.post(NOTES, &note("v1", metadata, spec)).await;
    talk.get("/apis/notes.example.com/v2/notes/n").await;
    let other = note("v2", json!({ "name": "m" }), json!({}));
    talk.post("/apis/notes.example.com/v2/notes", &other).await;
    let added = json!([{
        "op": "add",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later",
        "value": { "type": "string", "default": "late" },
    }]);
    let after = talk.patch("json", &format!("{CRDS}/notes.notes.example.com"), &added).await;
    talk.get(&format!("{NOTES}/n")).await;
    let since = "/status/conditions/0/lastTransitionTime";
    talk.note(&format!("the condition holds since then: {}", before.text_at(since) == after.text_at(since)));
}

/// Versions, forms and encodings of lists and watches.
async fn represent(talk: &mut Record) {
    let partial = "application/json;v=v1;g=meta.k8s.io;as=PartialObjectMetadata";
    let long = json!({ "metadata": { "name": "form", "labels": { "form": "1" } }, "data": { "x": "x".repeat(1 << 18) } });
    talk.server.post(CONFIG_MAPS, &long).await;
    let one = format!("{CONFIG_MAPS}/form");
    let coding = talk.server.get(&one).await.headers.get("content-encoding").cloned();
    talk.note(&format!("an answer that nobody wanted compressed: {coding:?}"));
    talk.server.delete(&one, "").await;
    let small = talk
        .post(
            CONFIG_MAPS,
            &json!({ "metadata": { "name": "form", "labels": { "form": "1" } }, "data": { "a": "1" } }),
        )
        .await;
    let version = small.text_at("/metadata/resourceVersion").to_owned();
    talk.post(CONFIG_MAPS, &config_map("form2")).await;
    for accept in [partial, "application/yaml;q=0.1, application/json;q=0.9"] {
        talk.send("GET", &one, &[("accept", accept)], "").await;
    }
    for query in [
        "resourceVersionMatch=Exact".to_owned(),
        format!("resourceVersion={version}&resourceVersionMatch=Exact"),
    ] {
        talk.get(&format!("{CONFIG_MAPS}?{query}")).await;
    }
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: \"1\"}\n";
    talk.send("POST", &format!("{CONFIG_MAPS}?dryRun=All"), &[("content-type", "application/yaml")], yaml)
        .await;
    let expired = r#"{"v":"meta.k8s.io/v1","rv":2,"start":"default/a\u0000"}"#;
    let expired = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(expired);
    talk.get(&format!("{CONFIG_MAPS}?limit=1&continue={expired}")).await;
    talk.patch("merge", &one, &json!({ "data": { "a": 1 } })).await;
    let initial = "watch=true&labelSelector=form&timeoutSeconds=1";
    talk.watch(&format!("{CONFIG_MAPS}?{initial}&resourceVersion=0"), "form").await;
    let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    talk.watch(&format!("{CONFIG_MAPS}?{initial}&{streaming}"), "initial-events-end").await;
    talk.watch_as(&format!("{CONFIG_MAPS}?{initial}"), &[("accept", partial)], "form").await;
    talk.post(
        "/api/v1/namespaces/default/secrets",
        &json!({ "metadata": { "name": "form" }, "type": "a/b" }),
    )
    .await;
    talk.get("/api/v1/namespaces/default/secrets?fieldSelector=type%3Dc/d").await;
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage, "schema": schema });
    let names = json!({ "plural": "pairs", "kind": "Pair" });
    talk.post(CRDS, &json!({
        "metadata": { "name": "pairs.example.com" },
        "spec": { "group": "example.com", "scope": "Cluster", "names": names, "versions": [version("v1", true), version("v2", false)] },
    })).await;
    talk.post(
        "/apis/example.com/v1/pairs",
        &json!({ "apiVersion": "example.com/v1", "kind": "Pair", "metadata": { "name": "p" } }),
    )
    .await;
    talk.watch("/apis/example.com/v2/pairs?watch=true&timeoutSeconds=1", "Pair").await;
    let deep = json!({ "metadata": { "name": "deep", "bogus": 1 } });
    talk.post(&format!("{CONFIG_MAPS}?dryRun=All"), &deep).await;
}

async fn delete(talk: &mut Record) {
    let path = format!("{CONFIG_MAPS}/x");
    talk.post(CONFIG_MAPS, &config_map("x")).await;
    for options in [
        json!({ "preconditions": { "uid": "y" } }),
        json!({ "preconditions": { "resourceVersion": "1" } }),
        json!({ "propagationPolicy": "Bogus" }),
    ] {
        talk.delete(&path, &options.to_string()).await;
        talk.server.post(CONFIG_MAPS, &config_map("x")).await;
    }
    talk.delete(&format!("{path}?dryRun=All"), "").await;
    talk.get(&path).await;
    talk.server.post(CONFIG_MAPS, &config_map("x")).await;
    talk.delete(&format!("{path}?propagationPolicy=Orphan"), "").await;
    talk.delete(&format!("{path}?propagationPolicy=Background"), "").await;
    talk.delete(&path, "").await;
    talk.post(CONFIG_MAPS, &config_map("x")).await;
    talk.delete(&path, "").await;
    talk.post(CONFIG_MAPS, &config_map("x")).await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": ["x.io/hold"] } })).await;
    talk.delete(&path, "").await;
    talk.get(&path).await;
    talk.delete(&path, "").await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": ["x.io/hold", "x.io/more"] } })).await;
    talk.put(
        &path,
        &json!({ "metadata": { "name": "x", "finalizers": ["x.io/hold"] }, "data": { "z": "1" } }),
    )
    .await;
    talk.patch("merge", &path, &json!({ "metadata": { "finalizers": null } })).await;
    talk.get(&path).await;
    let namespace = "/api/v1/namespaces/second";
    talk.patch(
        "merge",
        &format!("{namespace}/configmaps/elsewhere"),
        &json!({ "metadata": { "finalizers": ["x.io/hold"] } }),
    )
    .await;
    talk.delete(namespace, "").await;
    talk.post(&format!("{namespace}/configmaps"), &config_map("late")).await;
    let release = json!({ "metadata": { "finalizers": null } });
    talk.server.merge(&format!("{namespace}/configmaps/elsewhere"), &release).await;
    let gone = talk.server.until(namespace, |reply| reply.status == 404);
    let gone = tokio::time::timeout(TOO_LONG, gone).await.is_ok();
    talk.note(&format!("the namespace is gone: {gone}"));
    let left = talk.server.get(&format!("{namespace}/configmaps")).await.text.contains("unseen");
    talk.note(&format!("and left something behind: {left}"));
    talk.delete(&format!("{CONFIG_MAPS}?labelSelector=tier%3Dback"), "").await;
    talk.get(CONFIG_MAPS).await;
    talk.delete(CONFIG_MAPS, "").await;
}

/// Numbers what differs by chance in the order of its appearance.
pub(crate) fn number(text: &str) -> String {
    let chance = Regex::new(
        r#"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\dT[0-9:]{8}Z|127\.0\.0\.1:\d+|p{58}[a-z0-9]{5}|"\d+s""#,
    );
    let mut seen = HashMap::new();
    let numbered = chance.expect("a pattern").replace_all(text, |found: &Captures<'_>| {
        let count = seen.len();
        if found[0].contains('T') || found[0].ends_with("s\"") {
            return "<time>".to_owned();
        }
        format!("<{}>", seen.entry(found[0].to_owned()).or_insert(count))
    });
    numbered.into_owned()
}

/// Faults that the conversation does not speak of yet; the cases of the suite prove them.
const UNSPOKEN: &[&str] = &[
    "apply-duplicates-untold",
    "config-map-keys-unchecked",
    "patches-not-strict",
    "watch-is-for-one-version",
    "yaml-duplicates-untold",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_fault_is_seen_by_some_client() {
    let (correct, again) = tokio::join!(converse(Faults::none(), None), converse(Faults::none(), None));
    let correct: Arc<[String]> = correct.into();
    let lines = |parts: &[String]| parts.join("").lines().map(str::to_owned).collect::<Vec<_>>();
    let differs = lines(&correct).into_iter().zip(lines(&again)).find(|(one, other)| one != other);
    assert_eq!(differs, None, "the conversation reads the same on two correct servers");
    let talks: Vec<_> = Fault::all()
        .filter(|fault| !crate::streams::is_of_streams(*fault))
        .filter(|fault| !crate::connect::is_of_connections(*fault))
        .filter(|fault| !UNSPOKEN.contains(&fault.name()))
        .map(|fault| {
            let correct = correct.clone();
            (fault, tokio::spawn(async move { converse(fault.into(), Some(&correct)).await == *correct }))
        })
        .collect();
    let mut unseen = Vec::new();
    for (fault, talk) in talks {
        // An answer that the client cannot make sense of ends a conversation, and is seen.
        if talk.await.is_ok_and(|same| same) {
            unseen.push(fault.name());
        }
    }
    assert!(unseen.is_empty(), "nobody sees these faults: {unseen:?}");
}
