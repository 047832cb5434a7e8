//! Pods on a node that the server did not create: its kubelet serves their streams and logs.

use kubeproof_reference_server::Config;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::https::{HttpsServer, acceptor};
use crate::support::TestServer;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SPDY: [(&str, &str); 3] = [
    ("connection", "Upgrade"),
    ("upgrade", "SPDY/3.1"),
    ("x-stream-protocol-version", "v4.channel.k8s.io"),
];

/// Starts a server with a node that has these addresses and this port, and with a pod on it.
async fn server(addresses: &Value, port: u16) -> TestServer {
    let config = Config { node: true, admin_token: "admin".to_owned(), ..Config::default() };
    let server = TestServer::with(config).await;
    let status = json!({
        "addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    });
    let node = json!({"metadata": {"name": "far"}, "status": status});
    server.post(NODES, &node).await.expect(201);
    let spec = json!({"nodeName": "far", "containers": [{"name": "c", "image": "x"}]});
    for (name, node) in [("p", "far"), ("lost", "gone")] {
        let mut spec = spec.clone();
        spec["nodeName"] = node.into();
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        server.post(PODS, &pod).await.expect(201);
    }
    server
}

fn local() -> Value {
    json!([{"type": "Hostname", "address": "far.invalid"}, {
        "type": "InternalIP", "address": "127.0.0.1",
    }])
}

#[rstest]
#[case::log("p/log?tailLines=2&follow=true", &[],
            "Get \"https://127.0.0.1:1/containerLogs/default/p/c?follow=true&tailLines=2\": \
             dial tcp 127.0.0.1:1: connect: connection refused")]
#[case::exec("p/exec?command=ls&stdout=1", &SPDY,
             "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused")]
#[case::ports("p/portforward", &SPDY,
              "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused")]
#[tokio::test]
async fn an_unreachable_kubelet_is_an_error(
    #[case] path: &str,
    #[case] headers: &[(&str, &str)],
    #[case] message: &str,
) {
    let server = server(&local(), 1).await;
    let reply = server.send("GET", &format!("{PODS}/{path}"), headers, "").await.expect(500);
    assert_eq!((reply.text_at("/message"), reply.reason()), (message, ""));
}

#[tokio::test]
async fn a_node_has_an_address_and_exists() {
    let server = server(&json!([]), 1).await;
    let reply = server.get(&format!("{PODS}/p/exec?command=ls&stdout=1")).await.expect(500);
    assert_eq!(reply.text_at("/message"), "no preferred addresses found; known addresses: []");
    server.get(&format!("{PODS}/lost/log")).await.rejected(404, "NotFound");
    server.get(&format!("{NODES}/far/proxy/healthz")).await.expect(500);
}

#[tokio::test]
async fn the_kubelet_serves_the_log() {
    let kubelet = HttpsServer::start(|request| match request.path.as_str() {
        "/containerLogs/default/p/c?previous=true" => (400, json!("no previous container")),
        "/containerLogs/default/p/c?limitBytes=9" => (404, json!("gone")),
        _ => (200, json!({"line": 1})),
    });
    let kubelet = kubelet.await;
    let server = server(&local(), kubelet.port()).await;
    let log = async |query: &str| server.get(&format!("{PODS}/p/log{query}")).await;
    let reply = log("?timestamps=true&tailLines=1").await.expect(200);
    assert_eq!(reply.text, "{\"line\":1}");
    assert_eq!(reply.headers["content-type"], "text/plain");
    let received = kubelet.received();
    assert_eq!(received[0].path, "/containerLogs/default/p/c?tailLines=1&timestamps=true");
    assert!(!received[0].headers.contains_key("authorization"));
    let reply = log("?previous=true").await.rejected(400, "BadRequest");
    assert_eq!(reply.text_at("/message"), "\"no previous container\"");
    let reply = log("?limitBytes=9").await.rejected(404, "NotFound");
    let message = "the server could not find the requested resource ( pods/log p)";
    assert_eq!(reply.text_at("/message"), message);
}

#[tokio::test]
async fn a_rejection_of_an_upgrade_passes_through() {
    let kubelet = HttpsServer::start(|_| (403, json!("no"))).await;
    let server = server(&local(), kubelet.port()).await;
    let path = format!("{PODS}/p/attach?stdin=1&stdout=1&tty=1");
    let reply = server.send("POST", &path, &SPDY, "").await.expect(403);
    assert_eq!(reply.text, "\"no\"");
    let received = kubelet.received();
    assert_eq!(received[0].path, "/attach/default/p/c?input=1&output=1&tty=1");
    assert_eq!(received[0].method, "POST");
    assert_eq!(received[0].headers["x-stream-protocol-version"], "v4.channel.k8s.io");
    let path = format!("{PODS}/p/attach?stdout=1");
    server.get(&path).await.rejected(400, "BadRequest");
}

#[tokio::test]
async fn the_bytes_after_an_upgrade_pass_through() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let server = server(&local(), port).await;
    // The kubelet sends back what it receives after the head of the request.
    let kubelet = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut stream = acceptor().accept(stream).await.expect("a handshake");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("the head of the request"));
        }
        let response = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                        upgrade: SPDY/3.1\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n\r\n";
        stream.write_all(response.as_bytes()).await.expect("the server reads");
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).await.expect("the server writes");
        stream.write_all(&bytes).await.expect("the server reads");
        String::from_utf8(head).expect("text")
    });
    let path = format!("{PODS}/p/exec?command=sh&command=-c&command=a%20b&stdout=true&stderr=true");
    let response = server.open("POST", &path, &SPDY, "").await;
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["x-stream-protocol-version"], "v4.channel.k8s.io");
    let connection = hyper::upgrade::on(response).await.expect("the connection");
    let mut connection = hyper_util::rt::TokioIo::new(connection);
    connection.write_all(b"hello").await.expect("the server reads");
    let mut bytes = [0; 5];
    connection.read_exact(&mut bytes).await.expect("the server writes");
    assert_eq!(&bytes, b"hello");
    let head = kubelet.await.expect("the kubelet").to_lowercase();
    let line = "post /exec/default/p/c?command=sh&command=-c&command=a+b&error=1&output=1 http/1.1";
    assert_eq!(head.lines().next(), Some(line));
    assert!(
        head.contains("\r\nupgrade: spdy/3.1\r\n") && !head.contains("authorization"),
        "{head}"
    );
}
