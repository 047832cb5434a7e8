//! Commands and ports of pods over the WebSocket client of the `kube` crate.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, PostParams, TerminalSize};
use kube::runtime::wait::{await_condition, conditions};
use kubeproof_reference_server::{Config, Running, Server, Tls};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::{DEADLINE, client, object};

/// Starts a server with a running pod.
async fn start() -> (Running, Api<Pod>) {
    let config = Config { tls: Some(Tls::default()), node: true, ..Config::default() };
    let server = Server::start(config).await.expect("a server starts");
    let pods: Api<Pod> = Api::default_namespaced(client(&server).await);
    let pod: Pod = object(json!({
        "metadata": { "name": "one" },
        "spec": {
            "containers": [{ "name": "c", "image": "x", "ports": [{ "containerPort": 7 }] }],
        },
    }));
    pods.create(&PostParams::default(), &pod).await.expect("a pod is created");
    let running = await_condition(pods.clone(), "one", conditions::is_pod_running());
    timeout(DEADLINE, running).await.expect("the pod starts").expect("a watch");
    (server, pods)
}

#[tokio::test]
async fn a_command_has_streams_and_an_exit_code() {
    let (_server, pods) = start().await;
    let both = AttachParams::default().stdin(true).stderr(true);
    let script = ["sh", "-c", "cat; echo err >&2; exit 7"];
    let mut process = pods.exec("one", script, &both).await.expect("a stream");
    let mut stdin = process.stdin().expect("stdin");
    let (mut stdout, mut stderr) =
        (process.stdout().expect("stdout"), process.stderr().expect("stderr"));
    let status = process.take_status().expect("a status");
    let input: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let (mut out, mut err) = (Vec::new(), String::new());
    let talk = async {
        let write = async {
            stdin.write_all(&input).await.expect("room");
            stdin.shutdown().await.expect("an end");
        };
        let ((), read, also) =
            tokio::join!(write, stdout.read_to_end(&mut out), stderr.read_to_string(&mut err));
        read.and(also).expect("two outputs");
        status.await.expect("a status")
    };
    let status = timeout(DEADLINE, talk).await.expect("it hangs");
    assert!(out == input, "{} of {} bytes came back", out.len(), input.len());
    assert_eq!(err, "err\n");
    assert_eq!(status.reason.as_deref(), Some("NonZeroExitCode"));
    let cause = status
        .details
        .and_then(|details| details.causes)
        .and_then(|causes| causes.into_iter().next());
    assert_eq!(cause.and_then(|cause| cause.message).as_deref(), Some("7"));
}

#[tokio::test]
async fn a_terminal_is_resized() {
    let (_server, pods) = start().await;
    let terminal = AttachParams::interactive_tty();
    let script = ["sh", "-c", "while read x; do stty size; done"];
    let mut process = pods.exec("one", script, &terminal).await.expect("a stream");
    let mut sizes = process.terminal_size().expect("a terminal");
    let size = TerminalSize { width: 120, height: 40 };
    futures_util::SinkExt::send(&mut sizes, size).await.expect("room");
    let (mut stdin, mut stdout) =
        (process.stdin().expect("stdin"), process.stdout().expect("stdout"));
    let mut said = Vec::new();
    let talk = async {
        // The crate sends sizes and input on separate tasks, so their order is random.
        while !String::from_utf8_lossy(&said).contains("40 120") {
            stdin.write_all(b"\n").await.expect("room");
            assert_ne!(
                stdout.read_buf(&mut said).await.expect("bytes"),
                0,
                "the command has ended: {said:?}"
            );
        }
    };
    timeout(DEADLINE, talk).await.expect("it hangs");
}

#[tokio::test]
async fn ports_are_forwarded_or_unreachable() {
    let (_server, pods) = start().await;
    let mut forwarder = pods.portforward("one", &[7, 1]).await.expect("a stream");
    let mut echo = forwarder.take_stream(7).expect("a stream");
    let rejected = forwarder.take_error(1).expect("errors");
    echo.write_all(b"hello").await.expect("room");
    let mut back = [0; 5];
    timeout(DEADLINE, echo.read_exact(&mut back)).await.expect("it hangs").expect("five bytes");
    assert_eq!(&back, b"hello");
    let why = timeout(DEADLINE, rejected).await.expect("it hangs").expect("an error");
    assert!(why.contains("connection refused"), "{why}");
}
