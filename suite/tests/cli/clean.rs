//! `kubeproof clean` removes the objects of killed runs.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread;

use rstest::rstest;

use crate::broken_targets::start_server_with;
use crate::program::{command, kubeproof};
use crate::safety::{assert_unchanged, create_foreign_objects, snapshot};
use crate::server::{TOKEN, TestServer, USER_TOKEN};

/// A run with a node, and with cases that create namespaces and CRDs, use finalizers, and let the
/// server generate names.
const RUN_WITH_ALL_OBJECTS: [&str; 13] = [
    "run",
    "-v",
    "--with-node",
    "--repeat",
    "50",
    "--only",
    "create/*@widgets.v1.kubeproof.dev",
    "namespaces/*",
    "rules/*",
    "deletion/*",
    "list/pages-cross-namespaces",
    "exec/stdout-*",
    "apply/*",
];

/// The run is killed after its first object, and after many objects.
#[rstest]
fn objects_of_a_killed_run_are_found_and_removed(#[values(0, 1, 60)] results: usize) {
    let server = TestServer::start(&["--without", "node"]);
    create_foreign_objects(&server);
    let before = snapshot(&server);
    let mut run = command(&[&RUN_WITH_ALL_OBJECTS, &server.target()[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let passed = progress.by_ref().map_while(Result::ok).filter(|line| line.starts_with("PASS"));
    assert_eq!(passed.take(results).count(), results, "the run ended before it was killed");
    while !server.names("/api/v1/namespaces").iter().any(|name| name.starts_with("kubeproof-")) {
        thread::yield_now();
    }
    run.kill().expect("it can be killed");
    run.wait().expect("it has ended");

    let clean = ["clean", "--server", &server.url, "--token", TOKEN];
    // Young objects may belong to an active run.
    let young = kubeproof(&clean).with(0);
    assert_eq!(young.stdout, "");
    assert!(young.stderr.starts_with("nothing removed: "), "{}", young.stderr);
    assert!(young.stderr.contains("younger than 10m"), "{}", young.stderr);
    let found =
        kubeproof(&[&clean[..], &["--older-than", "0", "--dry-run"]].concat()).with(0).stdout;
    assert!(found.contains("/api/v1/namespaces/kubeproof-"), "{found}");
    assert!(found.contains("/api/v1/nodes/kp-"), "{found}");
    assert!(results == 0 || found.contains("/customresourcedefinitions/widgets."), "{found}");
    assert_eq!(kubeproof(&[&clean[..], &["--older-than", "0s"]].concat()).with(0).stdout, found);
    assert_unchanged(&server, &before);
}

/// Objects of runs are distinguished from other objects of the namespace.
#[test]
fn objects_of_a_killed_run_in_an_existing_namespace_are_removed() {
    let server = TestServer::start(&[]);
    create_foreign_objects(&server);
    let before = snapshot(&server);
    let in_namespace = [
        "run",
        "-v",
        "--namespace",
        "production",
        "--repeat",
        "50",
        "--only",
        "create/*",
        "deletion/*",
    ];
    let mut run = command(&[&in_namespace[..], &server.target()].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let has_objects = || server.names("/api/v1/namespaces/production/configmaps").len() > 2;
    while !has_objects() {
        assert!(
            progress.by_ref().map_while(Result::ok).any(|line| line.starts_with("PASS")),
            "the run ended"
        );
    }
    run.kill().expect("it can be killed");
    run.wait().expect("it has ended");
    let clean = ["clean", "--server", &server.url, "--token", TOKEN, "--older-than", "0"];
    kubeproof(&[&clean[..], &["--namespace", "production"]].concat()).with(0);
    assert_unchanged(&server, &before);
}

/// Without permission to list, `clean` cannot report success.
#[test]
fn collections_that_cannot_be_listed_are_reported() {
    let server = TestServer::start(&[]);
    let output = kubeproof(&["clean", "--server", &server.url, "--token", USER_TOKEN]).with(1);
    assert!(
        output.stderr.contains("cannot list /api/v1/namespaces: 403 Forbidden"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_clean_server_a_missing_namespace_and_another_server_are_told_apart() {
    let server = TestServer::start(&[]);
    let clean = ["clean", "--server", &server.url, "--token", TOKEN, "--older-than", "0"];
    let nothing = kubeproof(&clean).with(0);
    assert_eq!(nothing.stderr, "found no objects of earlier runs\n");
    let missing = kubeproof(&[&clean[..], &["--namespace", "nope"]].concat()).with(2);
    let expected = "error: the namespace \"nope\" does not exist";
    assert!(missing.stderr.starts_with(expected), "{}", missing.stderr);
    let other = start_server_with("404 Not Found\r\nContent-Type: text/plain", "hello");
    let finished = kubeproof(&["clean", "--server", &other]).with(3);
    assert!(finished.stderr.contains("does not look like a Kubernetes API"), "{}", finished.stderr);
}

#[test]
fn a_target_is_required() {
    let output = kubeproof(&["clean"]).with(2);
    assert!(output.stderr.contains("--server"), "{}", output.stderr);
}
