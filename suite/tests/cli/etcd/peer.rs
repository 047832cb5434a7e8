//! A real etcd in a process.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// A running etcd. Dropping it kills the process.
pub(super) struct EtcdServer {
    pub(super) url: String,
    process: Child,
    directory: TempDir,
}

/// The files of one member: its authority, its certificate and its key.
const FILES: [&str; 3] = ["ca.pem", "leaf.pem", "key.pem"];

impl EtcdServer {
    /// Starts etcd, or returns none if it is not installed. Its clients wait until it is ready.
    pub(super) fn start() -> Option<Self> {
        Self::launch(false)
    }

    /// Starts etcd with TLS. It requires a certificate of its clients.
    pub(super) fn with_tls() -> Option<Self> {
        Self::launch(true)
    }

    /// Returns the path of a file of [`FILES`], whose certificate is for servers and clients.
    pub(super) fn file(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn launch(with_tls: bool) -> Option<Self> {
        if Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_err() {
            let is_required = std::env::var("KUBEPROOF_REQUIRE_PEERS").is_ok_and(|it| it == "1");
            assert!(!is_required, "KUBEPROOF_REQUIRE_PEERS is set, but there is no etcd");
            let _ = writeln!(std::io::stderr(), "skipped: etcd is not installed");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let [client, peer] = [(); 2].map(|()| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            listener.local_addr().expect("an address").to_string()
        });
        let scheme = if with_tls { "https" } else { "http" };
        let (url, peer) = (format!("{scheme}://{client}"), format!("http://{peer}"));
        let mut command = Command::new("etcd");
        command
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync"]);
        if with_tls {
            write_certificates(directory.path());
            let [ca, leaf, key] = FILES.map(|name| directory.path().join(name));
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(ca);
            command.arg("--cert-file").arg(leaf).arg("--key-file").arg(key);
        }
        let process =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("etcd starts");
        Some(Self { url, process, directory })
    }
}

/// Writes an authority, and a certificate of it for this machine.
fn write_certificates(directory: &Path) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let leaf = CertificateParams::new(names).expect("valid names");
    let leaf = leaf.signed_by(&key, &authority).expect("a certificate");
    for (name, text) in FILES.into_iter().zip([authority.pem(), leaf.pem(), key.serialize_pem()]) {
        fs::write(directory.join(name), text).expect("a file");
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
