//! Streams with independent clients: the Python client, the JavaScript client, and a browser.
//! Independent clients find errors that the client and server of one project would share. The tests
//! `kubectl` stream with kubectl.
//!
//! The tests skip a missing client and print a message. With `KUBEPROOF_REQUIRE_PEERS=1` a missing
//! client is a failure. A missing browser is a failure only if `KUBEPROOF_CHROMIUM` is set.
//!
//! - `KUBEPROOF_PYTHON`: a Python with the package `kubernetes`. Default: `python3`.
//! - `KUBEPROOF_NODE_MODULES`: a directory whose `node_modules` contains `@kubernetes/client-node`.
//!   Default: the directory of the test.
//! - `KUBEPROOF_CHROMIUM`: a Chromium. Default: `chromium`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions};
use kubeproof_reference_server::{Config, Running, Server, Tls};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
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
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a program, which must succeed.
    async fn run(&self, program: &str, arguments: &[&str]) {
        let output = timeout(DEADLINE, self.command(program, arguments).output()).await;
        let output = output.expect("it ends within the deadline").expect("it runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {}: {complaint}", arguments.join(" "));
    }

    /// Starts a pod.
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
    peers.run(program, &[script, &[config], rest].concat()).await;
}
