//! kubectl with running pods: commands, logs, ports and files. kubectl before 1.31 uses SPDY, and
//! later versions use WebSocket, so the tests run with several versions.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use crate::support::{DEADLINE, Kubectl, repeat_lost_races};

/// Enough bytes to fill all buffers of a stream several times.
const MUCH: usize = 3 << 20;

fn pod(name: &str, command: &[&str], fields: &Value) -> Value {
    let mut container = json!({
        "name": "c", "image": "example.com/any:1", "command": command,
        "ports": [
            {"name": "http", "containerPort": 8080}, {"name": "echo", "containerPort": 7},
        ],
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        container[field] = value.clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
        },
    })
}

impl Kubectl {
    /// Creates a pod and waits until it runs.
    async fn run_pod(&self, pod: &Value) {
        self.create(pod).await;
        let name = pod["metadata"]["name"].as_str().expect("a name");
        self.run(&["wait", "--for=condition=Ready", &format!("pod/{name}"), "--timeout=60s"]).await;
    }
}

/// Pseudo-random bytes, so that lost or reordered pieces show.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let step = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..MUCH).map(step).collect()
}

#[tokio::test]
async fn commands_have_streams_and_exit_codes() {
    for kubectl in Kubectl::start_all().await {
        let version = kubectl.name();
        kubectl.run_pod(&pod("p", &[], &json!({}))).await;
        let output = kubectl
            .output(&["exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 7"], "")
            .await;
        assert_eq!(output.status.code(), Some(7), "{version}");
        assert_eq!(output.stdout, b"out\n", "{version}");
        assert!(output.stderr.starts_with(b"err\n"), "{version}: {output:?}");

        let missing = kubectl.fail(&["exec", "p", "--", "nothing-like-it"], "").await;
        assert!(missing.contains("executable file not found"), "{version}: {missing}");

        let noise = noise();
        let back = kubectl.output(&["exec", "-i", "p", "--", "cat"], &noise).await;
        assert!(
            back.status.success() && back.stdout == noise,
            "{version}: {} bytes came back",
            back.stdout.len()
        );
    }
}

#[tokio::test]
async fn a_command_has_a_terminal() {
    let script = tokio::process::Command::new("script").arg("--version").output().await;
    if script.is_err() {
        return;
    }
    for kubectl in Kubectl::start_all().await {
        kubectl.run_pod(&pod("p", &[], &json!({}))).await;
        let command = format!("'{}' exec -i -t p -- sh -c 'tty; stty size'", kubectl.name());
        // kubectl needs a terminal, which `script` provides.
        let run = async || {
            let mut script = tokio::process::Command::new("script");
            script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::piped()).kill_on_drop(true);
            script.env("HOME", kubectl.home()).env("KUBECONFIG", kubectl.home().join("config"));
            let mut child = script.stdout(Stdio::piped()).spawn().expect("script runs");
            let _held = child.stdin.take();
            let output = timeout(DEADLINE, child.wait_with_output()).await;
            output.expect("kubectl hangs").expect("script ends")
        };
        let output = repeat_lost_races(run).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("/dev/pts/0\r\n"), "{}: {text:?}", kubectl.name());
    }
}

#[tokio::test]
async fn attach_connects_to_the_main_process() {
    for kubectl in Kubectl::start_all().await {
        let reads = pod(
            "p",
            &["sh", "-c", "read line; echo got $line"],
            &json!({"stdin": true, "stdinOnce": true}),
        );
        kubectl.run_pod(&reads).await;
        let output = kubectl.output(&["attach", "-i", "p"], "hello\n").await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("got hello"), "{}: {output:?}", kubectl.name());
        let log = kubectl.run(&["logs", "p"]).await;
        assert_eq!(log, "got hello\n", "{}", kubectl.name());
    }
}

#[tokio::test]
async fn logs_are_followed_to_their_end() {
    for kubectl in Kubectl::start_all().await {
        let version = kubectl.name();
        let waits = json!({"stdin": true, "stdinOnce": true});
        kubectl.run_pod(&pod("p", &["sh", "-c", "seq 3; read line; seq 4 5"], &waits)).await;
        let mut command = kubectl.command(&["logs", "-f", "--tail=2", "p"]);
        let mut follow = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
        let mut next = async || {
            timeout(DEADLINE, lines.next_line()).await.expect("a line, or the end").unwrap()
        };
        assert_eq!((next().await, next().await), (Some("2".into()), Some("3".into())), "{version}");
        kubectl.output(&["attach", "-i", "p"], "go\n").await;
        assert_eq!((next().await, next().await), (Some("4".into()), Some("5".into())), "{version}");
        assert_eq!(next().await, None, "{version}");
        let timed = kubectl.run(&["logs", "--timestamps", "--tail=1", "p"]).await;
        assert!(timed.ends_with("Z 5\n"), "{version}: {timed}");
    }
}

#[tokio::test]
async fn a_port_is_forwarded_for_http() {
    for kubectl in Kubectl::start_all().await {
        let version = kubectl.name();
        kubectl.run_pod(&pod("p", &[], &json!({}))).await;
        let forward = Forward::start(&kubectl, 8080).await;
        for path in ["/one", "/two?x=1"] {
            let response = timeout(DEADLINE, fetch(&forward.address, path))
                .await
                .expect("the server responds");
            assert!(response.starts_with("HTTP/1.1 200 OK"), "{version}: {response}");
            let body: Value =
                serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap()).unwrap();
            assert_eq!(body["path"], path.split('?').next().unwrap(), "{version}");
        }
    }
}

#[tokio::test]
async fn a_forwarded_port_keeps_all_bytes() {
    for kubectl in Kubectl::start_all().await {
        let version = kubectl.name();
        kubectl.run_pod(&pod("p", &[], &json!({}))).await;
        let forward = Forward::start(&kubectl, 7).await;
        let noise = noise();
        let connection = TcpStream::connect(&forward.address).await;
        let connection = connection.expect("kubectl listens");
        let (mut read, mut write) = connection.into_split();
        let mut echoed = Vec::new();
        let send = async {
            write.write_all(&noise).await.expect("kubectl reads");
            write.shutdown().await.expect("kubectl reads");
        };
        let both = async { tokio::join!(send, read.read_to_end(&mut echoed)).1 };
        timeout(DEADLINE, both).await.expect("the echo ends").expect("bytes");
        assert!(echoed == noise, "{version}: {} of {} bytes came back", echoed.len(), noise.len());
    }
}

/// kubectl, which forwards a port.
struct Forward {
    address: String,
    _process: Child,
    /// kubectl ends if nobody reads its output.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Forward {
    /// Forwards a port of the pod `p`.
    async fn start(kubectl: &Kubectl, port: u16) -> Self {
        let mut command = kubectl.command(&["port-forward", "pod/p", &format!(":{port}")]);
        let process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut process = process.expect("kubectl runs");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let first = timeout(DEADLINE, output.next_line()).await.expect("a port is opened");
        let first = first.expect("text").unwrap_or_else(|| panic!("{} ends", kubectl.name()));
        let address = first.split_whitespace().find(|word| word.starts_with("127.0.0.1:"));
        let address = address.expect("an address").to_owned();
        Self { address, _process: process, _output: output }
    }
}

async fn fetch(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).await.expect("kubectl listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.expect("kubectl reads");
    let mut response = String::new();
    connection.read_to_string(&mut response).await.expect("text");
    response
}

#[tokio::test]
async fn files_are_copied_in_both_directions() {
    for kubectl in Kubectl::start_all().await {
        let version = kubectl.name();
        kubectl.run_pod(&pod("p", &[], &json!({}))).await;
        let there = kubectl.home().join("there");
        std::fs::create_dir_all(there.join("deep")).unwrap();
        std::fs::write(there.join("deep/noise"), noise()).unwrap();
        std::fs::write(there.join("empty"), "").unwrap();
        let (from, back) = (there.to_str().unwrap(), kubectl.home().join("back"));
        kubectl.run(&["cp", from, "p:/tmp"]).await;
        assert_eq!(
            kubectl.run(&["exec", "p", "--", "ls", "/tmp/there"]).await,
            "deep\nempty\n",
            "{version}"
        );
        kubectl.run(&["cp", "p:/tmp/there", back.to_str().unwrap()]).await;
        assert!(std::fs::read(back.join("deep/noise")).unwrap() == noise(), "{version}");
        assert!(std::fs::read(back.join("empty")).unwrap().is_empty(), "{version}");
    }
}
