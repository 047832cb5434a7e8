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

    /// Starts a server for each kubectl: the one on PATH, and other versions in the same directory.
    pub(crate) async fn start_all() -> Vec<Self> {
        let Some(first) = Self::start().await else { return Vec::new() };
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&paths)
            .map(|directory| directory.join("kubectl"))
            .find(|path| path.exists());
        let directory = found.and_then(|path| Some(path.canonicalize().ok()?.parent()?.to_owned()));
        let entries = directory
            .and_then(|directory| std::fs::read_dir(directory).ok())
            .into_iter()
            .flatten()
            .flatten();
        let is_version = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| {
                name.starts_with("kubectl.1.") || name.starts_with("kubectl-1.")
            })
        };
        let mut all = vec![first];
        for program in entries.map(|entry| entry.path()).filter(is_version) {
            all.push(Self::with(program).await);
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

    pub(crate) async fn output(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("a pipe to kubectl");
        let write = async {
            // A command may end before it has read everything.
            let _ = stdin.write_all(input.as_ref()).await;
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

#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn skipped(error: &std::io::Error) {
    eprintln!("not run: kubectl cannot be run: {error}");
}
