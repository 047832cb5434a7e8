//! A real etcd in a process.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::super::client::Client;
use super::super::compaction;
use super::super::messages::{PutRequest, Request, TxnRequest, revision};
use super::options;

/// A running etcd. Dropping it kills the process.
pub(super) struct EtcdServer {
    pub(super) url: String,
    peer: String,
    directory: TempDir,
    process: Child,
}

impl EtcdServer {
    /// Starts etcd, or returns none if it is not installed.
    pub(super) fn start() -> Option<Self> {
        let is_installed = Command::new("etcd").arg("--version").stdout(Stdio::null()).status();
        if is_installed.is_err() {
            let is_required = std::env::var("KUBEPROOF_REQUIRE_PEERS").is_ok_and(|it| it == "1");
            assert!(!is_required, "KUBEPROOF_REQUIRE_PEERS is set, but there is no etcd");
            let _ = writeln!(std::io::stderr(), "skipped: etcd is not installed");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let [url, peer] = [free_url(), free_url()];
        let process = launch(&directory, &url, &peer);
        Some(Self { url, peer, directory, process })
    }

    /// Kills etcd and starts it again.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.process = launch(&self.directory, &self.url, &self.peer);
    }

    /// Kills etcd, runs it at another address, where a client changes and compacts it, and starts
    /// it again. The clients of this address miss the changes. The compaction keeps `kept` of the
    /// two revisions.
    pub(super) async fn restart_with_changes(&mut self, changes: Vec<Request>, kept: u64) {
        let url = std::mem::replace(&mut self.url, free_url());
        self.restart();
        let client = Client::new(&options(self)).expect("valid options");
        let transact = async |success: Vec<Request>| {
            let success = success.into_iter().map(Into::into).collect();
            let transaction = TxnRequest { success, ..TxnRequest::default() };
            let response = client.transact(transaction).await.expect("etcd runs");
            revision(response.header.as_ref())
        };
        let compacted = transact(changes).await + 1 - kept;
        let value = compacted.to_string().into();
        transact(vec![Request::Put(PutRequest { key: compaction::KEY.into(), value })]).await;
        client.compact(compacted).await.expect("etcd runs");
        self.url = url;
        self.restart();
    }

    fn kill(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

fn launch(directory: &TempDir, url: &str, peer: &str) -> Child {
    Command::new("etcd")
        .arg("--data-dir")
        .arg(directory.path())
        .args(["--listen-client-urls", url, "--advertise-client-urls", url])
        .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
        .args(["--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("etcd starts")
}
