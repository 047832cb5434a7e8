//! Logs and proxies of pods that run, and that every fault of them is seen by some client.

use std::sync::Arc;

use kubeproof_reference_server::{Config, Fault, Faults};
use serde_json::{Value, json};

use crate::support::{Reply, TestServer, Watch};

const PODS: &str = "/api/v1/namespaces/default/pods";
/// How long a faulty server may take; one that stops for good is seen too.
const TOO_LONG: std::time::Duration = std::time::Duration::from_secs(20);
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// The faults that show on logs and proxies only.
pub(crate) fn is_of_connections(fault: Fault) -> bool {
    let all = Fault::LogOptionsUnchecked as usize..=Fault::ProxyUpgradeRefused as usize;
    all.contains(&(fault as usize))
}

/// A server with a pod that has written and serves HTTP, one that has failed once, and one that no node takes.
async fn server(faults: Faults) -> TestServer {
    let config = Config { faults, node: true, admin_token: "admin".to_owned(), ..Config::default() };
    let server = TestServer::with(config).await;
    let container = |script: &str| {
        json!({
            "name": "c", "image": "x", "command": ["sh", "-c", script],
            "ports": [{"name": "http", "containerPort": 8080}],
        })
    };
    let pods = [
        ("web", json!({"containers": [container("seq 5; read never; echo six")]})),
        (
            "fails",
            json!({"containers": [container("if [ -e /tmp/was ]; then echo second; sleep infinity; fi; touch /tmp/was; echo first; exit 1")]}),
        ),
        ("waits", json!({"schedulerName": "nobody", "containers": [container("seq 1")]})),
        ("two", json!({"containers": [container("sleep infinity"), {"name": "d", "image": "x"}]})),
    ];
    for (name, spec) in &pods {
        let mut spec = spec.clone();
        if *name == "web" {
            spec["containers"][0]["stdin"] = true.into();
        }
        server
            .post(PODS, &json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}))
            .await
            .expect(201);
    }
    for name in ["web", "two"] {
        server.until(&format!("{PODS}/{name}"), |pod| pod.text_at("/status/phase") == "Running").await;
    }
    let restarted = |pod: &Reply| pod.json["status"]["containerStatuses"][0]["restartCount"] == 1;
    server.until(&format!("{PODS}/fails"), restarted).await;
    server.until(&format!("{PODS}/fails/log"), |log| log.text.contains("second")).await;
    server.until(&format!("{PODS}/web/log"), |log| log.text.contains('5')).await;
    for (name, target) in [("web", json!("http")), ("none", json!(80))] {
        let ports = json!([{"name": "main", "port": 80, "targetPort": target}]);
        let service =
            json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports}});
        server.post(SERVICES, &service).await.expect(201);
    }
    server
}

/// Whether lines begin with times that rise.
fn timed(text: &str) -> bool {
    let times: Option<Vec<&str>> = text
        .lines()
        .map(|line| line.split_once(' ').map(|(time, _)| time).filter(|time| time.ends_with('Z')))
        .collect();
    times.is_some_and(|times| times.is_sorted() && !times.is_empty())
}

/// What a client sees that reads logs.
async fn logs(server: &TestServer) -> Vec<String> {
    let mut said = Vec::new();
    for query in [
        "web/log",
        "web/log?tailLines=2",
        "web/log?tailLines=0",
        "web/log?limitBytes=3",
        "web/log?sinceTime=2999-01-01T00:00:00Z",
        "web/log?sinceSeconds=3600",
        "web/log?tailLines=-1&sinceSeconds=0&limitBytes=0",
        "web/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z",
        "web/log?tailLines=x",
        "web/log?previous=true",
        "fails/log",
        "fails/log?previous=true",
        "fails/log?container=nope",
        "two/log",
        "waits/log",
        "none/log",
    ] {
        let reply = server.get(&format!("{PODS}/{query}")).await;
        let content_type = reply.headers.get("content-type").cloned();
        said.push(format!("{query}: {} {content_type:?} {}", reply.status, reply.text));
    }
    let reply = server.get(&format!("{PODS}/web/log?timestamps=true")).await;
    said.push(format!("timestamps: {}", timed(&reply.text)));
    let response = server.open("GET", &format!("{PODS}/web/log?follow=true&tailLines=1"), &[], "").await;
    let mut follower = Watch::new(response.into_body());
    let first = follower.line().await;
    let second = tokio::time::timeout(std::time::Duration::from_millis(50), follower.line()).await;
    said.push(format!("follow: {first:?}, ended early: {}", matches!(second, Ok(None))));
    said
}

/// What a client sees that goes through a proxy, but for what differs between two servers.
async fn proxies(server: &TestServer) -> Vec<String> {
    let mut said = Vec::new();
    let json = ("content-type", "application/json");
    for (method, path, body) in [
        ("GET", "/pods/web:8080/proxy/a/b%2Fc//d/?x=1&y=%20", ""),
        ("POST", "/pods/web/proxy/in", "a body"),
        ("PUT", "/pods/http:web:8080/proxy/in", "a body"),
        ("PATCH", "/services/web/proxy/in", "{}"),
        ("DELETE", "/services/web:main/proxy/status/404", ""),
        ("GET", "/services/web:80/proxy/status/503", ""),
        ("GET", "/pods/web/proxy?x=1", ""),
        ("GET", "/pods/web:9/proxy/", ""),
        ("GET", "/pods/https:web:8080/proxy/", ""),
        ("GET", "/pods/none/proxy/", ""),
        ("GET", "/pods/waits/proxy/", ""),
        ("GET", "/services/none/proxy/", ""),
        ("GET", "/services/web:nope/proxy/", ""),
        ("GET", "/services/a:b:c:d/proxy/", ""),
    ] {
        let path = format!("/api/v1/namespaces/default{path}");
        let reply = server.send(method, &path, &[json], body).await;
        let mut text = reply.text.clone();
        if let Value::Object(mut told) = reply.json.clone() {
            if let Some(headers) = told.get_mut("headers").and_then(Value::as_object_mut) {
                headers.remove("host");
                headers.remove("x-forwarded-host");
            }
            text = Value::Object(told).to_string();
        }
        let text = text.replace(|c: char| c.is_ascii_digit() && path.contains(":9"), "#");
        let location = reply.headers.get("location").cloned();
        said.push(format!("{method} {path}: {} {location:?} {text}", reply.status));
    }
    let upgrade = [("connection", "Upgrade"), ("upgrade", "echo")];
    let response = server.open("GET", "/api/v1/namespaces/default/pods/web/proxy/x", &upgrade, "").await;
    said.push(format!("upgrade: {} {:?}", response.status(), response.headers().get("upgrade")));
    if response.status() == 101 {
        let connection = hyper::upgrade::on(response).await.expect("the connection");
        let mut connection = hyper_util::rt::TokioIo::new(connection);
        let mut back = [0; 5];
        tokio::io::AsyncWriteExt::write_all(&mut connection, b"hello").await.expect("the proxy reads");
        tokio::io::AsyncReadExt::read_exact(&mut connection, &mut back).await.expect("the proxy writes");
        said.push(format!("echoed: {}", String::from_utf8_lossy(&back)));
    }
    said
}

async fn converse(faults: Faults) -> Vec<String> {
    let server = server(faults).await;
    let said = [logs(&server).await, proxies(&server).await].concat();
    server.running.shutdown().await;
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_fault_of_logs_and_proxies_is_seen_by_some_client() {
    let correct = Arc::new(converse(Faults::none()).await);
    let again = converse(Faults::none()).await;
    for (one, other) in correct.iter().zip(&again) {
        assert_eq!(one, other, "the talks read the same on two correct servers");
    }
    let talks: Vec<_> = Fault::all()
        .filter(|fault| is_of_connections(*fault))
        .map(|fault| {
            let correct = Arc::clone(&correct);
            let talk = async move { tokio::time::timeout(TOO_LONG, converse(fault.into())).await };
            (fault, tokio::spawn(async move { talk.await.is_ok_and(|said| said == *correct) }))
        })
        .collect();
    let mut unseen = Vec::new();
    for (fault, talk) in talks {
        if talk.await.is_ok_and(|same| same) {
            unseen.push(fault.name());
        }
    }
    assert!(unseen.is_empty(), "nobody sees these faults: {unseen:?}");
}

#[tokio::test]
async fn a_log_is_text_and_takes_options() {
    let server = server(Faults::none()).await;
    let log = async |query: &str| server.get(&format!("{PODS}/{query}")).await;
    assert_eq!(log("web/log").await.expect(200).text, "1\n2\n3\n4\n5\n");
    assert_eq!(log("web/log?tailLines=2&limitBytes=3").await.expect(200).text, "4\n5");
    assert_eq!(log("fails/log?previous=true").await.expect(200).text, "first\n");
    assert_eq!(log("waits/log").await.expect(204).text, "");
    let refused = log("web/log?tailLines=-1").await.refused(422, "Invalid");
    assert_eq!(refused.json["details"]["causes"][0]["field"], "tailLines");
    log("web/log?previous=true").await.refused(400, "BadRequest");
    log("two/log").await.refused(400, "BadRequest");
    log("none/log").await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_proxy_passes_on_what_it_gets_but_for_the_token() {
    let server = server(Faults::none()).await;
    let path = "/api/v1/namespaces/default/services/web:main/proxy/a%2Fb/../c?x=1";
    let reply = server.send("PUT", path, &[("x-mine", "1")], "body").await.expect(200);
    assert_eq!(
        (reply.text_at("/method"), reply.text_at("/path"), reply.text_at("/query"), reply.text_at("/body")),
        ("PUT", "/a%2Fb/../c", "x=1", "body")
    );
    let headers = &reply.json["headers"];
    assert_eq!((&headers["x-mine"], &headers["authorization"]), (&json!(["1"]), &Value::Null));
    let moved = server.get("/api/v1/namespaces/default/pods/web/proxy?x=1").await.expect(301);
    assert_eq!(moved.headers["location"], "/api/v1/namespaces/default/pods/web/proxy/?x=1");
    server.get("/api/v1/namespaces/default/services/none/proxy/").await.refused(503, "ServiceUnavailable");
}
