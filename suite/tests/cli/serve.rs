//! `kubeproof serve`.

use std::fs;

use crate::program::kubeproof;
use crate::server::{TestServer, USER_TOKEN};

#[test]
fn faults_are_listed_and_an_unknown_name_gets_a_suggestion() {
    let output = kubeproof(&["serve", "--list-faults"]).with(0);
    assert!(output.stdout.lines().count() > 40);
    assert!(output.stdout.contains("put-creates"), "{}", output.stdout);
    let output = kubeproof(&["serve", "--fault", "put-create"]).with(2);
    assert!(output.stderr.contains("did you mean \"put-creates\"?"), "{}", output.stderr);
    let output = kubeproof(&["serve", "--fault", "xyzzy"]).with(2);
    let expected = "; `kubeproof serve --list-faults` prints all faults";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn an_unknown_version_of_kubernetes_gets_the_known_ones() {
    let output = kubeproof(&["serve", "--kubernetes-version", "1.20"]).with(2);
    assert!(output.stderr.contains("possible values: 1.35, 1.36"), "{}", output.stderr);
}

#[cfg(unix)]
#[test]
fn the_kubeconfig_exists_when_the_server_is_ready_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("kubeconfig");
    fs::write(&path, "an older file that is readable by all").expect("written");
    let _server = TestServer::start(&["--kubeconfig-out", path.to_str().expect("a path")]);
    let kubeconfig = fs::read_to_string(&path).expect("a kubeconfig");
    assert!(kubeconfig.contains("current-context"), "{kubeconfig}");
    assert!(!kubeconfig.contains(USER_TOKEN), "{kubeconfig}");
    assert_eq!(fs::metadata(&path).expect("its mode").permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_signal_stops_the_server_with_exit_code_0() {
    for name in ["INT", "TERM"] {
        let mut server = TestServer::start(&[]);
        crate::server::signal(&server.process, name);
        assert_eq!(server.process.wait().expect("it ends").code(), Some(0), "{name}");
    }
}

#[test]
fn tokens_are_neither_empty_nor_shared() {
    let empty = kubeproof(&["serve", "--token", ""]).with(2);
    assert!(empty.stderr.contains("expected a token, got an empty text"), "{}", empty.stderr);
    let shared = kubeproof(&["serve", "--token", "t", "--viewer-token", "t"]).with(2);
    let expected =
        "error: --token and --viewer-token are equal; each user needs a token of its own";
    assert!(shared.stderr.contains(expected), "{}", shared.stderr);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("users").display().to_string();
    fs::write(&file, "t,jane,1\n").expect("written");
    let users = kubeproof(&["serve", "--user-token", "t", "--token-auth-file", &file]).with(2);
    assert!(users.stderr.contains("the token of \"jane\""), "{}", users.stderr);
}

/// The server does not know the names of its files.
#[test]
fn errors_about_files_name_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("policy.yaml").display().to_string();
    fs::write(&file, "{apiVersion: v1, kind: Pod, spec: {}}").expect("written");
    let audit = ["serve", "--audit-log-path", "-", "--audit-policy-file", &file];
    let audit = kubeproof(&audit).with(2);
    let expected = format!("error: {file}: expected a Policy of audit.k8s.io/v1, found a \"Pod\"");
    assert!(audit.stderr.starts_with(&expected), "{}", audit.stderr);
    let ca = kubeproof(&["serve", "--client-ca-file", &file]).with(2);
    let expected = format!("error: {file}: expected PEM with a certificate");
    assert!(ca.stderr.starts_with(&expected), "{}", ca.stderr);
    let directory = kubeproof(&["serve", "--data-dir", &file]).with(2);
    assert!(directory.stderr.contains(&file), "{}", directory.stderr);
}

#[test]
fn an_address_in_use_is_an_error() {
    let server = TestServer::start(&[]);
    let address = server.url.strip_prefix("http://").expect("an address");
    let output = kubeproof(&["serve", "--listen", address]).with(2);
    assert!(output.stderr.contains("choose another address"), "{}", output.stderr);
}
