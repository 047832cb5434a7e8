//! `kubeproof serve`.

use std::fs;

use crate::kubeproof::kubeproof;
use crate::served::{Served, USER_TOKEN};

#[test]
fn the_faults_are_listed_and_a_wrong_name_gets_the_nearest() {
    let ended = kubeproof(&["serve", "--list-faults"]).with(0);
    assert!(ended.stdout.lines().count() > 40);
    assert!(ended.stdout.contains("put-creates"), "{}", ended.stdout);
    let ended = kubeproof(&["serve", "--fault", "put-create"]).with(2);
    assert!(ended.stderr.contains("did you mean \"put-creates\"?"), "{}", ended.stderr);
}

#[cfg(unix)]
#[test]
fn the_kubeconfig_is_there_when_the_server_is_ready_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("kubeconfig");
    fs::write(&path, "an old one, which all may read").expect("written");
    let _server = Served::start(&["--kubeconfig-out", path.to_str().expect("a path")]);
    let kubeconfig = fs::read_to_string(&path).expect("a kubeconfig");
    assert!(kubeconfig.contains("current-context"), "{kubeconfig}");
    assert!(!kubeconfig.contains(USER_TOKEN), "{kubeconfig}");
    assert_eq!(fs::metadata(&path).expect("its mode").permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_server_that_is_asked_to_stop_ends_well() {
    for name in ["INT", "TERM"] {
        let mut server = Served::start(&[]);
        crate::served::signal(&server.process, name);
        assert_eq!(server.process.wait().expect("it ends").code(), Some(0), "{name}");
    }
}

#[test]
fn an_address_that_is_taken_is_said_to_be() {
    let server = Served::start(&[]);
    let address = server.url.strip_prefix("http://").expect("an address");
    let ended = kubeproof(&["serve", "--listen", address]).with(2);
    assert!(ended.stderr.contains("choose another address"), "{}", ended.stderr);
}
