//! Golden test of the streams: `streams.golden` records what each client sends and receives.

use std::collections::HashMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubeproof_reference_server::Config;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use regex::{Captures, Regex};
use serde_json::json;

use crate::raw_streams::Exchange;
use crate::support::{CONFIG_MAPS, TestServer, config_map};

const PODS: &str = "/api/v1/namespaces/default/pods";
const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";
const END_OF_STDIN: &[u8] = &[255, 0];

/// Starts a server with pods: one container, two containers, one for attach, and one without a
/// node.
async fn server() -> TestServer {
    let server = TestServer::with(Config {
        node: true,
        admin_token: "admin".to_owned(),
        // The versions of objects are part of the golden file.
        cluster_defaults: false,
        ..Config::default()
    })
    .await;
    // The config map comes first, since the statuses of the pods change the revision at any time.
    server.post(CONFIG_MAPS, &config_map("watched")).await.expect(201);
    let container = |name: &str, command: &[&str]| {
        json!({
            "name": name, "image": "x", "command": command, "stdin": true, "stdinOnce": true,
            "env": [{ "name": "WHO", "value": name }],
            "ports": [{ "containerPort": 7 }, { "containerPort": 8080 }],
        })
    };
    let pods = [
        ("one", json!({ "containers": [container("c", &[])] })),
        (
            "two",
            json!({
                "containers": [
                    container("c", &[]),
                    { "name": "d", "image": "x", "env": [{ "name": "WHO", "value": "d" }] },
                ],
            }),
        ),
        (
            "reads",
            json!({
                "restartPolicy": "Never",
                "containers": [container("c", &["sh", "-c", "echo ready; cat"])],
            }),
        ),
        ("waits", json!({ "schedulerName": "nobody", "containers": [container("c", &[])] })),
    ];
    for (name, spec) in &pods {
        server.post(PODS, &json!({ "metadata": { "name": name }, "spec": spec })).await.expect(201);
    }
    for (name, _) in &pods[..3] {
        server
            .until(&format!("{PODS}/{name}"), |pod| pod.text_at("/status/phase") == "Running")
            .await;
    }
    server
}

fn exec(query: &str) -> String {
    format!("{PODS}/one/exec?{query}")
}

/// Returns the path of exec for a script of `sh`.
fn shell(script: &str, streams: &str) -> String {
    let script = utf8_percent_encode(script, NON_ALPHANUMERIC);
    exec(&format!("command=sh&command=-c&command={script}&{streams}"))
}

fn handshakes() -> Vec<Exchange> {
    let echo = exec("command=echo&command=hi&stdout=true&stderr=true");
    let token = URL_SAFE_NO_PAD.encode("admin");
    vec![
        Exchange::websocket(&echo, V5),
        Exchange::websocket(&echo, "bogus, v4.channel.k8s.io, channel.k8s.io"),
        Exchange::websocket(&echo, "v2.channel.k8s.io"),
        Exchange::websocket(&echo, &format!("base64url.bearer.authorization.k8s.io.{token}, {V4}")),
        Exchange::spdy(&echo, "v2.channel.k8s.io, v4.channel.k8s.io").until(b"\r\n\r\n"),
        Exchange::spdy(&echo, "v9.channel.k8s.io"),
        Exchange::plain("GET", &echo),
        Exchange::plain("POST", &echo),
        Exchange { method: "POST", ..Exchange::websocket(&echo, V4) },
        Exchange::websocket(&exec("command=echo"), V4),
        Exchange::websocket(&exec("command=echo"), V5),
        Exchange::websocket(&format!("{PODS}/waits/exec?command=echo&stdout=true"), V4),
        Exchange::websocket(
            &format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dwatched"),
            "",
        ),
        Exchange::websocket(
            &format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dwatched"),
            "",
        )
        .header("Origin", "https://test")
        .until(b"}}\n"),
        Exchange::websocket(
            &format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dwatched"),
            "any.one",
        )
        .header("Origin", "https://test")
        .until(b"}}\n"),
        Exchange::websocket(
            &format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dwatched"),
            "one, other",
        )
        .header("Origin", "https://test"),
        Exchange::websocket(&format!("{PODS}/reads/log"), "binary.k8s.io"),
        Exchange::websocket(&format!("{PODS}/reads/log"), "base64.binary.k8s.io"),
    ]
}

fn outputs() -> Vec<Exchange> {
    let two = |query: &str| {
        format!("{PODS}/two/exec?command=sh&command=-c&command=echo%20$WHO&stdout=true&{query}")
    };
    vec![
        Exchange::websocket(&shell("echo out; echo err >&2", "stdout=true&stderr=true"), V4),
        Exchange::websocket(&exec("command=seq&command=20000&stdout=true"), V4),
        Exchange::websocket(&shell("exit 7", "stdout=true"), V4),
        Exchange::websocket(&shell("exit 7", "stdout=true"), "channel.k8s.io"),
        Exchange::websocket(&exec("command=missing&stdout=true"), V4),
        Exchange::websocket(&shell("echo x y", "stdout=true"), V4),
        Exchange::websocket(&two("container=d"), V4),
        Exchange::websocket(&two("container=nope"), V4),
        Exchange::websocket(&two(""), V4),
    ]
}

fn inputs() -> Vec<Exchange> {
    let cat = || Exchange::websocket(&exec("command=cat&stdin=true&stdout=true"), V5);
    let line = exec("command=head&command=-n&command=1&stdin=true&stdout=true");
    vec![
        cat().message(b"\0hello").message(b"\0").message(b"\0 world").message(END_OF_STDIN),
        cat().message(b"\x07junk").message(b"\0ok").message(END_OF_STDIN),
        cat().frame(9, b"payload").message(b"\0after a ping").message(END_OF_STDIN),
        cat().bytes(b"\x82\x04\0abc"),
        Exchange::websocket(&exec("command=wc&command=-c&stdin=true&stdout=true"), V5)
            .message(&[b'\0'; 5001])
            .message(END_OF_STDIN),
        Exchange::websocket(&line, V4).message(b"\0hel").message(END_OF_STDIN).message(b"\0lo\n"),
        // The base64 of these bytes has padding and both characters that differ between alphabets.
        Exchange::websocket(&line, "v4.base64.channel.k8s.io").frame(1, b"0++/+Cg=="),
        Exchange::websocket(&shell("read x; stty size", "stdin=true&stdout=true&tty=true"), V4)
            .message(b"\x04{\"Width\":120,\"Height\":40}")
            .message(b"\0\n"),
        Exchange::websocket(
            &format!("{PODS}/reads/attach?command=echo&command=anew&stdin=true&stdout=true"),
            V5,
        )
        .message(b"\0in\n")
        .message(END_OF_STDIN),
    ]
}

fn spdy() -> Vec<Exchange> {
    let open = |path: &str| {
        let exchange = Exchange::spdy(path, V4).stream(1, &[("streamtype", "error")]);
        exchange.stream(3, &[("streamtype", "stdout")])
    };
    vec![
        open(&exec("command=echo&command=hi&stdout=true")).control(6, &[0, 0, 0, 1]),
        open(&exec("command=cat&stdin=true&stdout=true"))
            .stream(5, &[("streamtype", "stdin")])
            .data(5, false, b"spdy")
            .data(5, true, b"-in"),
        open(&exec("command=seq&command=20000&stdout=true")),
    ]
}

fn ports() -> Vec<Exchange> {
    let forward = |query: &str| Exchange::websocket(&format!("{PODS}/one/portforward?{query}"), V4);
    let pair = |exchange: Exchange, first: u32, port: &str, request: &str| {
        let headers = |kind| [("streamtype", kind), ("port", port), ("requestid", request)];
        exchange
            .stream(first, &headers("error"))
            .data(first, true, b"")
            .stream(first + 2, &headers("data"))
    };
    let spdy = || Exchange::spdy(&format!("{PODS}/one/portforward"), "portforward.k8s.io");
    let reset = |stream: u8| [0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, stream, 0, 0, 0, 5];
    let crossed = spdy()
        .stream(1, &[("streamtype", "error"), ("port", "7"), ("requestid", "0")])
        .stream(3, &[("streamtype", "error"), ("port", "7"), ("requestid", "1")])
        .stream(5, &[("streamtype", "data"), ("port", "7"), ("requestid", "1")])
        .data(5, true, b"crossed");
    let twice = spdy()
        .stream(1, &[("streamtype", "error"), ("port", "7"), ("requestid", "0")])
        .stream(3, &[("streamtype", "error"), ("port", "7"), ("requestid", "0")]);
    vec![
        forward("ports=7&ports=8080").message(b"\0hello").until(b"hello"),
        forward("ports=1"),
        forward("ports=abc"),
        Exchange::websocket(&format!("{PODS}/one/portforward"), "SPDY/3.1+portforward.k8s.io")
            .until(b"\r\n\r\n"),
        pair(spdy(), 1, "7", "0")
            .data(3, false, b"ping")
            .data(3, true, b"")
            .until(&[0, 0, 0, 3, 1, 0, 0, 0]),
        pair(pair(spdy(), 1, "1", "0"), 5, "7", "1")
            .data(7, true, b"pong")
            .until(&[0, 0, 0, 7, 1, 0, 0, 0])
            .until(&reset(3))
            .until(&reset(1)),
        twice.until(&reset(3)),
        spdy().stream(1, &[("streamtype", "error")]).until(&reset(1)),
        crossed.until(&[0, 0, 0, 5, 1, 0, 0, 0]),
    ]
}

/// Replaces values that differ between servers with numbers in the order of appearance.
fn number(text: &str) -> String {
    let chance = Regex::new(concat!(
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r#"|20\d\d-\d\d-\d\dT[0-9:]{8}Z|127\.0\.0\.1:\d+|resourceVersion\\":\\"\d+"#,
    ));
    let mut seen = HashMap::new();
    let numbered = chance.expect("a pattern").replace_all(text, |found: &Captures<'_>| {
        let count = seen.len();
        if found[0].contains('T') {
            return "<time>".to_owned();
        }
        // The version depends on the objects of a new server.
        if found[0].starts_with("resourceVersion") {
            return "resourceVersion".to_owned();
        }
        format!("<{}>", seen.entry(found[0].to_owned()).or_insert(count))
    });
    numbered.into_owned()
}

/// Compares the bytes of all clients, except for random values.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_match_the_golden_file() {
    let server = server().await;
    let mut record = String::new();
    // Attach changes the state of a process, so the order of the clients is fixed.
    for exchange in [handshakes(), outputs(), inputs(), spdy(), ports()].into_iter().flatten() {
        record.push_str(&number(&exchange.run(&server).await));
        record.push('\n');
    }
    server.running.shutdown().await;
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/streams.golden");
    if std::env::var_os("KUBEPROOF_BLESS").is_some() {
        std::fs::write(&golden, &record).expect("a golden");
    }
    let expected = std::fs::read_to_string(&golden).expect("a golden");
    for (line, (one, other)) in record.lines().zip(expected.lines()).enumerate() {
        assert_eq!(one, other, "line {} of {}", line + 1, golden.display());
    }
    assert_eq!(
        record.len(),
        expected.len(),
        "set KUBEPROOF_BLESS=1 to rewrite {}",
        golden.display()
    );
}
