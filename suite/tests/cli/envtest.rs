//! `kubeproof envtest-assets`, and the programs that it writes, used as envtest uses them.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::kubeproof;

/// A started program. Dropping it kills the process.
struct Program {
    process: Child,
    address: String,
}

impl Program {
    /// Starts a program, and waits until it is ready.
    fn start(path: &Path, flags: &[&str]) -> Self {
        let mut process = Command::new(path)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("its first line");
        let (_, address) = line.trim().split_once("://").expect("an address");
        Self { address: address.to_owned(), process }
    }

    /// Stops the program as envtest does. Returns what it wrote to standard error.
    fn terminate(mut self) -> String {
        crate::server::signal(&self.process, "TERM");
        assert_eq!(self.process.wait().expect("it ends").code(), Some(0));
        let mut log = String::new();
        let stderr = self.process.stderr.as_mut().expect("its log");
        stderr.read_to_string(&mut log).expect("text");
        log
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn assets(dir: &Path) -> String {
    let kubectl = env!("CARGO_BIN_EXE_kubeproof");
    let dir = dir.to_str().expect("a path");
    kubeproof(&["envtest-assets", dir, "--kubectl", kubectl]).with(0).stdout
}

/// Returns a port that is free until a server listens on it.
fn free_port() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("its address").port()
}

#[test]
fn the_program_serves_the_selected_version() {
    let directory = tempfile::tempdir().expect("a directory");
    let dir = directory.path().to_str().expect("a path");
    let kubectl = env!("CARGO_BIN_EXE_kubeproof");
    let version = "--kubernetes-version=1.35";
    kubeproof(&["envtest-assets", dir, "--kubectl", kubectl, version]).with(0);
    let script = |name: &str| fs::read_to_string(directory.path().join(name)).expect("a script");
    let expected = format!("kube-apiserver {version} \"$@\"");
    assert!(script("kube-apiserver").contains(&expected), "{}", script("kube-apiserver"));
    assert!(!script("etcd").contains(version), "{}", script("etcd"));
}

#[test]
fn the_directory_has_the_programs_of_envtest() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("it's here");
    let printed = assets(&dir);
    let shell = format!("{printed}printf %s \"$KUBEBUILDER_ASSETS\"");
    let shown = Command::new("sh").args(["-c", &shell]).output().expect("a shell");
    assert_eq!(Path::new(&String::from_utf8_lossy(&shown.stdout).into_owned()), dir);
    for (program, flag) in
        [("kube-apiserver", "--client-ca-file FILE"), ("etcd", "--unsafe-no-fsync")]
    {
        let help = Command::new(dir.join(program)).arg("--help").output().expect("it starts");
        assert!(help.status.success(), "{program}: {help:?}");
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(text.lines().any(|line| line.trim_start().starts_with(flag)), "{text}");
        assert!(!text.contains("--insecure-port"), "{text}");
    }
    for (program, version) in [("kube-apiserver", "Kubernetes v1.36.0"), ("etcd", "etcd Version: ")]
    {
        let shown = Command::new(dir.join(program)).arg("--version").output().expect("it starts");
        assert!(shown.status.success(), "{program}: {shown:?}");
        assert!(String::from_utf8_lossy(&shown.stdout).starts_with(version), "{shown:?}");
    }
    let kubectl = fs::read_link(dir.join("kubectl")).expect("a link");
    assert_eq!(kubectl, Path::new(env!("CARGO_BIN_EXE_kubeproof")));
    assert_eq!(assets(&dir), printed, "a second call replaces its own files");
}

#[test]
fn other_files_are_not_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("etcd"), "the real etcd").expect("written");
    let output = kubeproof(&["envtest-assets", dir.path().to_str().expect("a path")]).with(2);
    assert!(output.stderr.contains("choose another directory"), "{}", output.stderr);
    assert_eq!(fs::read(dir.path().join("etcd")).expect("the file"), b"the real etcd");
}

#[test]
fn etcd_is_healthy_and_stops() {
    let dir = tempfile::tempdir().expect("a directory");
    assets(dir.path());
    let url = format!("http://127.0.0.1:{}", free_port());
    let flags = [
        "--listen-peer-urls=http://localhost:0",
        "--data-dir=nowhere",
        "--unsafe-no-fsync=true",
        &format!("--advertise-client-urls={url}"),
        &format!("--listen-client-urls={url}"),
        "--experimental-new-flag",
    ];
    let etcd = Program::start(&dir.path().join("etcd"), &flags);
    let mut stream = TcpStream::connect(&etcd.address).expect("a connection");
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("the request goes out");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.ends_with("{\"health\":\"true\",\"reason\":\"\"}"), "{response}");
    let log = etcd.terminate();
    assert_eq!(log, "warning: kubeproof ignores the flag --experimental-new-flag\n");
}

#[test]
fn the_api_server_accepts_the_flags_of_envtest_and_stops() {
    let dir = tempfile::tempdir().expect("a directory");
    assets(dir.path());
    let certificates = dir.path().join("certificates");
    let port = free_port();
    let flags = [
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        &format!("--cert-dir={}", certificates.display()),
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:1",
        &format!("--secure-port={port}"),
        "--service-account-issuer=https://127.0.0.1:1/",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--feature-gates=A=true",
    ];
    let server = Program::start(&dir.path().join("kube-apiserver"), &flags);
    assert_eq!(server.address, format!("127.0.0.1:{port}"));
    let certificate = fs::read_to_string(certificates.join("apiserver.crt")).expect("a file");
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"), "{certificate}");
    let log = server.terminate();
    assert_eq!(log, "warning: kubeproof ignores the flag --feature-gates\n");
}

/// jenvtest writes flags and values as separate arguments, gives some flags twice, and uses a
/// client certificate as its own authority.
#[test]
fn the_programs_accept_the_flags_of_jenvtest() {
    let dir = tempfile::tempdir().expect("a directory");
    assets(dir.path());
    let (port, peer) = (free_port(), "http://localhost:0");
    let url = format!("http://0.0.0.0:{port}");
    let flags = [
        ["-data-dir", "nowhere"],
        ["-wal-dir", "nowhere"],
        ["--listen-client-urls", &url],
        ["--advertise-client-urls", &url],
        ["--initial-cluster", "default=http://localhost:0"],
        ["--initial-advertise-peer-urls", peer],
        ["--listen-peer-urls", peer],
    ];
    let etcd = Program::start(&dir.path().join("etcd"), flags.as_flattened());
    assert_eq!(etcd.address, format!("0.0.0.0:{port}"));
    assert_eq!(etcd.terminate(), "");

    let file = |name: &str| dir.path().join(name).display().to_string();
    for (certificate, key) in [("apiserver.crt", "apiserver.key"), ("client.crt", "client.key")] {
        let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
        let pair = pair.expect("a certificate");
        fs::write(file(certificate), pair.cert.pem()).expect("written");
        fs::write(file(key), pair.signing_key.serialize_pem()).expect("written");
    }
    let port = free_port().to_string();
    let (key, client) = (file("apiserver.key"), file("client.crt"));
    let flags = [
        ["--cert-dir", dir.path().to_str().expect("a path")],
        ["--secure-port", &port],
        ["--etcd-servers", &url],
        ["--authorization-mode", "RBAC"],
        ["--service-account-issuer", "https://localhost"],
        ["--service-account-signing-key-file", &key],
        ["--service-account-signing-key-file", &key],
        ["--service-account-key-file", &key],
        ["--service-account-issuer", &file("apiserver.crt")],
        ["--disable-admission-plugins", "ServiceAccount"],
        ["--client-ca-file", &client],
        ["--service-cluster-ip-range", "10.0.0.0/24"],
    ];
    let flags = [flags.as_flattened(), &["--allow-privileged"]].concat();
    let server = Program::start(&dir.path().join("kube-apiserver"), &flags);
    assert!(server.address.ends_with(&format!(":{port}")), "{}", server.address);
    assert_eq!(server.terminate(), "");
}
