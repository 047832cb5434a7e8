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
fn an_address_in_use_is_an_error() {
    let server = TestServer::start(&[]);
    let address = server.url.strip_prefix("http://").expect("an address");
    let output = kubeproof(&["serve", "--listen", address]).with(2);
    assert!(output.stderr.contains("choose another address"), "{}", output.stderr);
}
