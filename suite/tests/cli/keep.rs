//! `run --keep` leaves the objects of failed cases in place, and `clean` removes them.

#![cfg(unix)]

use std::path::PathBuf;
use std::process::Command;

use crate::program::kubeproof;
use crate::safety::{assert_unchanged, create_foreign_objects, snapshot};
use crate::server::{TOKEN, TestServer};

const CASES: [&str; 4] = [
    "concurrency/one-of-two-puts-wins@configmaps.v1",
    "concurrency/one-of-two-puts-wins@widgets.v1.kubeproof.dev",
    "create/stores-the-object@configmaps.v1",
    "create/stores-the-object@gauges.v1.kubeproof.dev",
];

/// Runs the command that a run printed.
fn run_printed(command: &str) {
    let command = command.replace("kubeproof ", &format!("{} ", env!("CARGO_BIN_EXE_kubeproof")));
    let status = Command::new("sh").args(["-c", &command]).env("TOKEN", TOKEN).status();
    assert!(status.expect("the shell runs").success(), "{command}");
}

#[test]
fn objects_of_failed_cases_stay_until_clean_removes_them() {
    let server = TestServer::start(&["--fault", "lost-update"]);
    create_foreign_objects(&server);
    let before = snapshot(&server);
    let target = ["--server", &server.url, "--token", TOKEN];
    let run = [&["run", "--keep", "--no-progress", "--only"][..], &CASES[..], &target[..]].concat();
    let stdout = kubeproof(&run).with(1).stdout;
    let note = stdout.lines().find(|line| line.contains("kept ")).expect("a note");
    let namespaces = server.names("/api/v1/namespaces");
    let kept = namespaces.iter().find(|name| name.starts_with("kubeproof-"));
    let kept = kept.expect("the namespace of the run stays");
    let objects = server.names(&format!("/api/v1/namespaces/{kept}/configmaps"));
    let of_run: Vec<_> = objects.iter().filter(|name| name.starts_with("kp-")).collect();
    assert_eq!(of_run.len(), 1, "only the object of the failed case stays: {objects:?}");
    let definitions = server.names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let of_run = |name: &str| definitions.iter().any(|definition| definition.starts_with(name));
    assert!(of_run("widgets.") && !of_run("gauges."), "{definitions:?}");

    let (_, command) = note.split_once("with: ").expect("a command");
    assert!(command.starts_with("kubeproof clean --server "), "{command}");
    run_printed(command);
    assert_unchanged(&server, &before);
}

#[test]
fn without_failures_nothing_stays() {
    let server = TestServer::start(&[]);
    let target = ["--server", &server.url, "--token", TOKEN];
    let run = [&["run", "--keep", "--no-progress", "--only"][..], &CASES[..], &target[..]].concat();
    assert!(!kubeproof(&run).with(0).stdout.contains("kept "));
    server.assert_clean();
}

/// The script repeats the request on the object that the run kept.
#[test]
fn the_script_of_a_failed_check_repeats_its_request() {
    let server = TestServer::start(&["--fault", "lost-update"]);
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().to_str().expect("UTF-8");
    let target = ["--server", &server.url, "--token", TOKEN, "--trace", trace];
    let run = ["run", "--keep", "--no-progress", "--only", CASES[0]];
    kubeproof(&[&run[..], &target[..]].concat()).with(1);
    let name = "one-of-two-puts-wins@configmaps.v1.exactly-one-winner.sh";
    let script: PathBuf = directory.path().join("concurrency").join(name);
    let output = Command::new(&script).env("TOKEN", TOKEN).output().expect("it is executable");
    let response = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{response}");
    assert!(response.starts_with("HTTP/1.1 "), "{response}");
    assert!(response.contains("\"kind\":"), "{response}");
    let output = Command::new("sh").arg(&script).env_remove("TOKEN").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("set it to the bearer token"));
}
