//! A real etcd in a process.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running etcd. Dropping it kills the process.
pub(super) struct EtcdServer {
    pub(super) url: String,
    process: Child,
    _directory: TempDir,
}

impl EtcdServer {
    /// Starts etcd, or returns none if it is not installed. Its clients wait until it is ready.
    pub(super) fn start() -> Option<Self> {
        if Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_err() {
            let is_required = std::env::var("KUBEPROOF_REQUIRE_PEERS").is_ok_and(|it| it == "1");
            assert!(!is_required, "KUBEPROOF_REQUIRE_PEERS is set, but there is no etcd");
            let _ = writeln!(std::io::stderr(), "skipped: etcd is not installed");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let [url, peer] = [(); 2].map(|()| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            format!("http://{}", listener.local_addr().expect("an address"))
        });
        let process = Command::new("etcd")
            .arg("--data-dir")
            .arg(directory.path())
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd starts");
        Some(Self { url, process, _directory: directory })
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
