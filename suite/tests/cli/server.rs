//! `kubeproof serve` as a process, with a minimal HTTP client for its state.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::command;

pub(crate) const TOKEN: &str = "token-of-the-administrator";
pub(crate) const USER_TOKEN: &str = "token-of-a-user";

/// Time for the controller of namespaces to remove a deleted one.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(20);

/// Time between two requests of a test that waits.
const POLL: Duration = Duration::from_millis(10);

/// A running server. Dropping it kills the process.
pub(crate) struct TestServer {
    pub(crate) process: Child,
    pub(crate) url: String,
}

impl TestServer {
    /// Starts a server with fixed tokens, and waits until it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--token", TOKEN, "--user-token", USER_TOKEN];
        if !arguments.iter().any(|argument| argument.starts_with("--history")) {
            all.extend(["--history", "1024"]);
        }
        all.extend(arguments);
        let mut process = command(&all).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("its first line");
        let url = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
        Self { process, url }
    }

    /// Returns the options of `run` for this server.
    pub(crate) fn target(&self) -> [&str; 6] {
        ["--server", &self.url, "--token", TOKEN, "--second-token", USER_TOKEN]
    }

    /// Reads JSON as the administrator.
    pub(crate) fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).expect("a JSON body")
    }

    /// Returns the events of a watch with a timeout.
    pub(crate) fn events(&self, path: &str) -> Vec<Value> {
        // The lines in between are chunk sizes.
        let lines = self.text(path);
        lines
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    /// Creates an object that does not belong to a run.
    pub(crate) fn create(&self, path: &str, object: &Value) {
        self.request("POST", path, &object.to_string(), "201");
    }

    fn text(&self, path: &str) -> String {
        self.request("GET", path, "", "200")
    }

    /// Sends a request, and asserts the status code. Returns the body.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str, status: &str) -> String {
        let address = self.url.strip_prefix("http://").expect("plain HTTP");
        let mut stream = TcpStream::connect(address).expect("a connection");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Connection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("the request goes out");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        let (head, body) = response.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {response}");
        body.to_owned()
    }

    /// Returns the names of the objects in a collection.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let list = self.get(path);
        let items = list["items"].as_array().expect("items");
        items
            .iter()
            .map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Asserts that runs have left no namespace and no CRD behind.
    ///
    /// A run deletes its namespace, and leaves the rest to the controller of the server.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let deadline = Instant::now() + NAMESPACE_TIMEOUT;
        loop {
            let list = self.get("/api/v1/namespaces");
            let items = list["items"].as_array().expect("items");
            let left: Vec<&Value> =
                items.iter().map(|item| &item["metadata"]).filter(|item| is_of_run(item)).collect();
            if left.is_empty() {
                break;
            }
            let is_deleted = left.iter().all(|item| item["deletionTimestamp"].is_string());
            assert!(is_deleted && Instant::now() < deadline, "{left:?}");
            thread::sleep(POLL);
        }
        let definitions = self.names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        assert_eq!(definitions, Vec::<String>::new());
    }
}

fn is_of_run(metadata: &Value) -> bool {
    metadata["name"].as_str().is_some_and(|name| name.starts_with("kubeproof-"))
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a signal to a process.
#[cfg(unix)]
pub(crate) fn signal(process: &Child, name: &str) {
    let arguments = [format!("-{name}"), process.id().to_string()];
    let status = std::process::Command::new("kill").args(arguments).status().expect("kill runs");
    assert!(status.success());
}
