//! Logs and proxies of running pods.

use std::time::Duration;

use kubeproof_reference_server::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Reply, TestServer, Watch};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Starts a server with three pods: one logs and serves HTTP, one has failed once, and one is
/// pending.
async fn server() -> TestServer {
    let config = Config { node: true, admin_token: "admin".to_owned(), ..Config::default() };
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
            json!({
                "containers": [container(
                    "if [ -e /tmp/was ]; then echo second; sleep infinity; fi; touch /tmp/was; \
                     echo first; exit 1",
                )],
            }),
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
        server
            .until(&format!("{PODS}/{name}"), |pod| pod.text_at("/status/phase") == "Running")
            .await;
    }
    let restarted = |pod: &Reply| pod.json["status"]["containerStatuses"][0]["restartCount"] == 1;
    server.until(&format!("{PODS}/fails"), restarted).await;
    server.until(&format!("{PODS}/fails/log"), |log| log.text.contains("second")).await;
    server.until(&format!("{PODS}/web/log"), |log| log.text.contains('5')).await;
    for (name, target) in [("web", json!("http")), ("none", json!(80))] {
        let ports = json!([{"name": "main", "port": 80, "targetPort": target}]);
        let service = json!({
            "metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports},
        });
        server.post(SERVICES, &service).await.expect(201);
    }
    server
}

#[tokio::test]
async fn a_log_is_text_and_supports_options() {
    let server = server().await;
    let log = async |query: &str| server.get(&format!("{PODS}/{query}")).await;
    assert_eq!(log("web/log").await.expect(200).text, "1\n2\n3\n4\n5\n");
    assert_eq!(log("web/log?tailLines=2&limitBytes=3").await.expect(200).text, "4\n5");
    assert_eq!(log("fails/log?previous=true").await.expect(200).text, "first\n");
    assert_eq!(log("waits/log").await.expect(204).text, "");
    let rejected = log("web/log?tailLines=-1").await.rejected(422, "Invalid");
    assert_eq!(rejected.json["details"]["causes"][0]["field"], "tailLines");
    log("web/log?previous=true").await.rejected(400, "BadRequest");
    log("two/log").await.rejected(400, "BadRequest");
    log("none/log").await.rejected(404, "NotFound");
}

#[tokio::test]
async fn a_proxy_forwards_requests_without_the_token() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/services/web:main/proxy/a%2Fb/../c?x=1";
    let reply = server.send("PUT", path, &[("x-mine", "1")], "body").await.expect(200);
    assert_eq!(
        (
            reply.text_at("/method"),
            reply.text_at("/path"),
            reply.text_at("/query"),
            reply.text_at("/body")
        ),
        ("PUT", "/a%2Fb/../c", "x=1", "body")
    );
    let headers = &reply.json["headers"];
    assert_eq!((&headers["x-mine"], &headers["authorization"]), (&json!(["1"]), &Value::Null));
    let moved = server.get("/api/v1/namespaces/default/pods/web/proxy?x=1").await.expect(301);
    assert_eq!(moved.headers["location"], "/api/v1/namespaces/default/pods/web/proxy/?x=1");
    server
        .get("/api/v1/namespaces/default/services/none/proxy/")
        .await
        .rejected(503, "ServiceUnavailable");
}

#[tokio::test]
async fn a_followed_log_streams_new_lines() {
    let server = server().await;
    let stamped = server.get(&format!("{PODS}/web/log?timestamps=true")).await.expect(200).text;
    let times: Vec<&str> =
        stamped.lines().filter_map(|line| line.split_once(' ')).map(|(time, _)| time).collect();
    assert!(
        times.len() == 5 && times.is_sorted() && times.iter().all(|time| time.ends_with('Z')),
        "{stamped}"
    );
    let response =
        server.open("GET", &format!("{PODS}/web/log?follow=true&tailLines=1"), &[], "").await;
    let mut follower = Watch::new(response.into_body());
    assert_eq!(follower.line().await.as_deref(), Some("5"));
    let early = tokio::time::timeout(Duration::from_millis(50), follower.line()).await;
    assert!(early.is_err(), "the container runs on, and so does its log: {early:?}");
}

#[tokio::test]
async fn a_proxy_forwards_an_upgraded_connection() {
    let server = server().await;
    let upgrade = [("connection", "Upgrade"), ("upgrade", "echo")];
    let response = server.open("GET", &format!("{PODS}/web/proxy/x"), &upgrade, "").await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["upgrade"]),
        (101, &"echo".parse().expect("a value"))
    );
    let connection = hyper::upgrade::on(response).await.expect("the connection");
    let mut connection = hyper_util::rt::TokioIo::new(connection);
    let mut back = [0; 5];
    connection.write_all(b"hello").await.expect("the proxy reads");
    connection.read_exact(&mut back).await.expect("the proxy writes");
    assert_eq!(&back, b"hello");
}
