//! Streams with independent clients: kubectl over SPDY and WebSocket, the Python client, the
//! JavaScript client, and a browser. Independent clients find errors that the client and server of
//! one project would share.
//!
//! The tests skip a missing client and print a message. With `KUBEPROOF_REQUIRE_PEERS=1` a missing
//! client is a failure. A missing browser is a failure only if `KUBEPROOF_CHROMIUM` is set.
//!
//! - `KUBEPROOF_KUBECTLS`: additional kubectl programs, separated by colons.
//! - `KUBEPROOF_PYTHON`: a Python with the package `kubernetes`. Default: `python3`.
//! - `KUBEPROOF_NODE_MODULES`: a directory whose `node_modules` contains `@kubernetes/client-node`.
//!   Default: the directory of the test.
//! - `KUBEPROOF_CHROMIUM`: a Chromium. Default: `chromium`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions};
use kubeproof_reference_server::{Config, Running, Server, Tls};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

/// The timeout of each command.
const DEADLINE: Duration = Duration::from_mins(1);

/// A server, and a home directory with its kubeconfig.
struct Peers {
    server: Running,
    home: TempDir,
}

impl Peers {
    async fn start() -> Self {
        // kubectl does not send its token over plain HTTP.
        let config = Config { tls: Some(Tls::default()), node: true, ..Config::default() };
        let server = Server::start(config).await.expect("a server starts");
        let home = TempDir::new().expect("a temporary directory");
        std::fs::write(home.path().join("config"), server.kubeconfig())
            .expect("a kubeconfig is written");
        Self { server, home }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.home.path().join("config")
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).kill_on_drop(true);
        command.env("HOME", self.home.path()).env("KUBECONFIG", self.kubeconfig());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn output(&self, program: &str, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = self.command(program, arguments).spawn().expect("it runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        let feed = async move {
            // A command may end before it has read all input.
            let _ = stdin.write_all(input).await;
        };
        let run = async { tokio::join!(feed, child.wait_with_output()).1 };
        timeout(DEADLINE, run).await.expect("it ends within the deadline").expect("it ends")
    }

    /// Runs a command that must succeed, and returns its output.
    async fn run(&self, program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let output = self.output(program, arguments, input).await;
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {}: {complaint}", arguments.join(" "));
        output.stdout
    }

    /// Starts a pod without kubectl.
    async fn run_pod(&self, command: &[&str]) {
        let config = Kubeconfig::read_from(self.kubeconfig()).expect("a kubeconfig");
        let config =
            kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        let pods: Api<Pod> = Api::default_namespaced(client);
        let pod = serde_json::from_value(pod("one", command)).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("a pod is created");
        let running = await_condition(pods, "one", conditions::is_pod_running());
        timeout(DEADLINE, running).await.expect("the pod starts").expect("a watch");
    }

    async fn create(&self, kubectl: &str, pod: &Value) {
        self.run(kubectl, &["create", "-f", "-"], pod.to_string().as_bytes()).await;
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let name = format!("pod/{name}");
        self.run(kubectl, &["wait", "--for=condition=Ready", "--timeout=30s", &name], b"").await;
    }
}

fn pod(name: &str, command: &[&str]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "restartPolicy": "Never", "containers": [{
            "name": "c", "image": "x", "command": command, "stdin": true, "stdinOnce": true,
            "ports": [{ "containerPort": 7 }, { "containerPort": 8080 }],
        }] },
    })
}

/// Returns whether a client is installed. Panics if a required client is missing.
async fn is_there(program: &str, arguments: &[&str]) -> bool {
    let required = std::env::var("KUBEPROOF_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    succeeds(program, arguments, required).await
}

async fn succeeds(program: &str, arguments: &[&str], required: bool) -> bool {
    let found = Command::new(program).args(arguments).output().await;
    if found.is_ok_and(|output| output.status.success()) {
        return true;
    }
    assert!(
        !required,
        "KUBEPROOF_REQUIRE_PEERS is set, but {program} {} fails",
        arguments.join(" ")
    );
    skipped(program);
    false
}

#[expect(clippy::print_stderr, reason = "a skipped test prints a message")]
fn skipped(program: &str) {
    eprintln!("not run: {program} is missing, or its package");
}

async fn kubectls() -> Vec<String> {
    let more = std::env::var("KUBEPROOF_KUBECTLS").unwrap_or_default();
    let mut there = Vec::new();
    for kubectl in ["kubectl"].into_iter().chain(more.split(':').filter(|path| !path.is_empty())) {
        if is_there(kubectl, &["version", "--client"]).await {
            there.push(kubectl.to_owned());
        }
    }
    there
}

/// Generates pseudo-random bytes, so that lost and reordered frames are visible.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(length)
    .collect()
}

#[tokio::test]
async fn kubectl_runs_commands() {
    for kubectl in kubectls().await {
        let peers = Peers::start().await;
        peers.create(&kubectl, &pod("one", &[])).await;
        let script = "echo out; echo err >&2; exit 7";
        let failed = peers.output(&kubectl, &["exec", "one", "--", "sh", "-c", script], b"").await;
        assert_eq!(failed.status.code(), Some(7), "{kubectl}");
        assert_eq!(failed.stdout, b"out\n", "{kubectl}");
        let complaint = String::from_utf8_lossy(&failed.stderr);
        assert!(
            complaint.starts_with("err\n") && complaint.contains("exit code 7"),
            "{kubectl}: {complaint}"
        );

        let input = noise(3_000_000);
        let echoed = peers.run(&kubectl, &["exec", "-i", "one", "--", "cat"], &input).await;
        assert!(echoed == input, "{kubectl}: {} of {} bytes came back", echoed.len(), input.len());

        let missing = peers.output(&kubectl, &["exec", "one", "--", "missing"], b"").await;
        let complaint = String::from_utf8_lossy(&missing.stderr);
        assert!(complaint.contains("executable file not found"), "{kubectl}: {complaint}");
    }
}

#[tokio::test]
async fn kubectl_attaches_and_copies() {
    for kubectl in kubectls().await {
        let peers = Peers::start().await;
        peers.create(&kubectl, &pod("reads", &["cat"])).await;
        let attached = peers.run(&kubectl, &["attach", "-i", "reads"], b"typed\n").await;
        assert_eq!(attached, b"typed\n", "{kubectl}");

        peers.create(&kubectl, &pod("one", &[])).await;
        let (there, back) = (peers.home.path().join("there"), peers.home.path().join("back"));
        let bytes = noise(500_000);
        std::fs::write(&there, &bytes).expect("a file");
        let path = |path: &PathBuf| path.to_str().expect("text").to_owned();
        peers.run(&kubectl, &["cp", &path(&there), "one:/tmp/there"], b"").await;
        peers.run(&kubectl, &["cp", "one:/tmp/there", &path(&back)], b"").await;
        assert!(std::fs::read(&back).expect("a file") == bytes, "{kubectl}: the copy differs");
    }
}

#[tokio::test]
async fn kubectl_forwards_ports() {
    for kubectl in kubectls().await {
        let peers = Peers::start().await;
        peers.create(&kubectl, &pod("one", &[])).await;
        let mut child = peers
            .command(&kubectl, &["port-forward", "pod/one", ":7", ":8080"])
            .spawn()
            .expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut local = async |port: u16| loop {
            let line = timeout(DEADLINE, lines.next_line())
                .await
                .expect("it ends within the deadline")
                .expect("text");
            let line = line.expect("kubectl prints another line");
            let from =
                line.strip_prefix("Forwarding from ").and_then(|rest| rest.split_once(" -> "));
            if let Some((address, to)) = from
                && to.trim() == port.to_string()
                && let Ok(address @ SocketAddr::V4(_)) = address.parse::<SocketAddr>()
            {
                return address;
            }
        };
        let (echo, http) = (local(7).await, local(8080).await);
        let bytes = noise(1_000_000);
        let (mut read, mut write) =
            TcpStream::connect(echo).await.expect("kubectl listens").into_split();
        let mut echoed = Vec::new();
        let send = async {
            write.write_all(&bytes).await.expect("kubectl reads");
            write.shutdown().await.expect("kubectl reads");
        };
        let both = async { tokio::join!(send, read.read_to_end(&mut echoed)).1 };
        timeout(DEADLINE, both).await.expect("it ends within the deadline").expect("an end");
        assert!(echoed == bytes, "{kubectl}: {} of {} bytes came back", echoed.len(), bytes.len());
        for _ in 0..3 {
            let mut socket = TcpStream::connect(http).await.expect("kubectl listens");
            let request = b"GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n";
            socket.write_all(request).await.expect("kubectl reads");
            let mut response = String::new();
            timeout(DEADLINE, socket.read_to_string(&mut response))
                .await
                .expect("it ends within the deadline")
                .expect("an end");
            assert!(response.starts_with("HTTP/1.1 200"), "{kubectl}: {response}");
        }
    }
}

#[tokio::test]
async fn the_python_client_streams() {
    let python = std::env::var("KUBEPROOF_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if is_there(&python, &["-c", "import kubernetes"]).await {
        script(&python, &["tests/peers/streams.py"], &[]).await;
    }
}

#[tokio::test]
async fn the_javascript_client_streams() {
    let modules = std::env::var("KUBEPROOF_NODE_MODULES").unwrap_or_else(|_| ".".to_owned());
    let find = format!("require.resolve('@kubernetes/client-node', {{ paths: ['{modules}'] }})");
    if is_there("node", &["-e", &find]).await {
        script("node", &["tests/peers/streams.mjs"], &[&modules]).await;
    }
}

/// The page logs its result to the console, which the browser copies to stderr.
#[tokio::test]
async fn a_browser_streams() {
    let named = std::env::var("KUBEPROOF_CHROMIUM").ok();
    let chromium = named.as_deref().unwrap_or("chromium");
    if !succeeds(chromium, &["--version"], named.is_some()).await {
        return;
    }
    let peers = Peers::start().await;
    peers.run_pod(&["sh", "-c", "echo started; cat"]).await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/streams.html");
    let (server, token) = (peers.server.addr(), peers.server.admin_token());
    let profile = format!("--user-data-dir={}", peers.home.path().join("browser").display());
    let quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--ignore-certificate-errors",
        "--enable-logging=stderr",
    ];
    let page = format!("file://{page}#wss://{server},{token}");
    let mut child = peers.command(chromium, &quiet).args([profile, page]).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut all = Vec::new();
    let verdict = async {
        while let Some(line) = lines.next_line().await.expect("text") {
            if line.contains(":CONSOLE") && (line.contains("passed") || line.contains("failed")) {
                return line;
            }
            all.push(line);
        }
        String::new()
    };
    let verdict = timeout(DEADLINE, verdict).await.unwrap_or_default();
    assert!(verdict.contains("\"passed\""), "{verdict}\n{}", all.join("\n"));
}

/// Runs a script with the kubeconfig of a server that runs a pod.
async fn script(program: &str, script: &[&str], rest: &[&str]) {
    let peers = Peers::start().await;
    peers.run_pod(&[]).await;
    let config = peers.kubeconfig();
    let config = config.to_str().expect("text");
    peers.run(program, &[script, &[config], rest].concat(), b"").await;
}
