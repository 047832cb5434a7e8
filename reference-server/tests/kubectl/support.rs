//! kubectl, a server, and a home directory with the kubeconfig of the server.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use kubeproof_reference_server::{Config, Running, Server, Tls};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// The timeout of each command.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// How often a command runs if kubectl loses its output.
const RACES: u32 = 10;

/// A server, and a home directory for kubectl.
pub(crate) struct Kubectl {
    _server: Running,
    home: TempDir,
    program: PathBuf,
}

impl Kubectl {
    /// Returns `None` if kubectl is missing and not required.
    pub(crate) async fn start() -> Option<Self> {
        if let Err(error) = Command::new("kubectl").args(["version", "--client"]).output().await {
            let required =
                std::env::var("KUBEPROOF_REQUIRE_KUBECTL").is_ok_and(|value| value == "1");
            assert!(
                !required,
                "KUBEPROOF_REQUIRE_KUBECTL=1, but kubectl cannot be run: {error}; install it \
                 (Debian: kubernetes-client)"
            );
            skipped(&error);
            return None;
        }
        Some(Self::with("kubectl".into()).await)
    }

    /// Starts a server for each kubectl: the one on PATH, and those of `KUBEPROOF_KUBECTLS`.
    pub(crate) async fn start_all() -> Vec<Self> {
        let mut all: Vec<Self> = Self::start().await.into_iter().collect();
        for program in additional_programs() {
            all.push(Self::with(program).await);
        }
        all
    }

    /// Starts a server for the first and the last kubectl of `KUBEPROOF_KUBECTLS`, the oldest and
    /// the newest version in CI, or for the one on PATH.
    pub(crate) async fn start_oldest_and_newest() -> Vec<Self> {
        let mut programs = additional_programs().into_iter();
        let mut all = Vec::new();
        for program in programs.next().into_iter().chain(programs.next_back()) {
            all.push(Self::with(program).await);
        }
        if all.is_empty() {
            all.extend(Self::start().await);
        }
        all
    }

    async fn with(program: PathBuf) -> Self {
        // kubectl does not send its token over plain HTTP.
        let config = Config { tls: Some(Tls::default()), node: true, ..Config::default() };
        let server = Server::start(config).await.expect("a server starts");
        let home = TempDir::new().expect("a temporary directory");
        std::fs::write(home.path().join("config"), server.kubeconfig())
            .expect("a kubeconfig is written");
        Self { _server: server, home, program }
    }

    /// Returns the name of the program, for messages.
    pub(crate) fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// Returns the path of a file in the home directory.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).kill_on_drop(true).stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("KUBECONFIG", self.home.path().join("config"));
        command
    }

    /// Returns the minor version of the program: 33 for 1.33.
    pub(crate) async fn minor(&self) -> u32 {
        let version = self.run(&["version", "--client", "-o", "json"]).await;
        let version: Value = serde_json::from_str(&version).expect("JSON");
        let minor = version["clientVersion"]["minor"].as_str().expect("a version");
        minor.trim_end_matches('+').parse().expect("a number")
    }

    /// Runs a line in a shell that finds this kubectl. The home is the working directory.
    pub(crate) async fn shell(&self, line: &str) -> Output {
        let bin = self.home.path().join("bin");
        if !bin.exists() {
            std::fs::create_dir(&bin).expect("a directory");
            std::os::unix::fs::symlink(&self.program, bin.join("kubectl")).expect("a link");
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let run = async || {
            let mut command = Command::new("sh");
            command.args(["-c", line]).current_dir(self.home.path()).kill_on_drop(true);
            let kubeconfig = self.home.path().join("config");
            command.env("HOME", self.home.path()).env("KUBECONFIG", kubeconfig);
            command.env("PATH", format!("{}:{path}", bin.display())).stdin(Stdio::null());
            let output = timeout(DEADLINE, command.output()).await;
            output.unwrap_or_else(|_| panic!("{line} hangs")).expect("sh runs")
        };
        repeat_lost_races(run).await
    }

    pub(crate) async fn output(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
        repeat_lost_races(async || self.output_once(arguments, input.as_ref()).await).await
    }

    async fn output_once(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("a pipe to kubectl");
        let write = async {
            // A command may end before it has read everything.
            let _ = stdin.write_all(input).await;
            drop(stdin);
        };
        let both = async { tokio::join!(child.wait_with_output(), write).0 };
        timeout(DEADLINE, both).await.expect("kubectl hangs").expect("kubectl ends")
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, "").await
    }

    pub(crate) async fn run_with(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input).await;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {out}{err}", arguments.join(" "));
        out
    }

    /// Runs a command that must fail, and returns its error output.
    pub(crate) async fn fail(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input).await;
        assert!(!output.status.success(), "kubectl {} should fail", arguments.join(" "));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(crate) async fn apply(&self, object: &Value) -> String {
        self.run_with(&["apply", "-f", "-"], &object.to_string()).await
    }

    pub(crate) async fn create(&self, object: &Value) -> String {
        self.run_with(&["create", "-f", "-"], &object.to_string()).await
    }

    /// Returns a value of an object.
    pub(crate) async fn value(&self, object: &str, path: &str) -> String {
        self.run(&["get", object, "-o", &format!("jsonpath={{{path}}}")]).await
    }
}

/// Runs a command again if kubectl lost output of a stream. Before 1.34, kubectl can read from a
/// WebSocket before it has made all streams, and drops the frames of the missing ones
/// (kubernetes/kubernetes#131189). A server as fast as this one makes that likely.
pub(crate) async fn repeat_lost_races(run: impl AsyncFn() -> Output) -> Output {
    for _ in 1..RACES {
        let output = run().await;
        let is_lost = |text: &[u8]| String::from_utf8_lossy(text).contains("Unknown stream id");
        if !is_lost(&output.stderr) && !is_lost(&output.stdout) {
            return output;
        }
    }
    run().await
}

fn additional_programs() -> Vec<PathBuf> {
    let programs = std::env::var("KUBEPROOF_KUBECTLS").unwrap_or_default();
    programs.split(':').filter(|program| !program.is_empty()).map(PathBuf::from).collect()
}

#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn skipped(error: &std::io::Error) {
    eprintln!("not run: kubectl cannot be run: {error}");
}
