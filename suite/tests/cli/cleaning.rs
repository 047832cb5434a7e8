//! What a killed run leaves, and who removes it.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread;

use rstest::rstest;

use crate::harm::{assert_unchanged, populate, snapshot};
use crate::kubeproof::{command, kubeproof};
use crate::served::{Served, TOKEN, USER_TOKEN};

/// With a node, and with cases that make namespaces and definitions of their own, hold objects by finalizers, and let servers give
/// names.
const LITTER: [&str; 13] = [
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

/// Killed as soon as the first thing is made, and when much is.
#[rstest]
fn what_a_killed_run_leaves_is_found_and_removed(#[values(0, 1, 60)] results: usize) {
    let server = Served::start(&["--without", "node"]);
    populate(&server);
    let before = snapshot(&server);
    let mut run = command(&[&LITTER, &server.target()[..]].concat())
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
    // It may be one that goes on.
    assert_eq!(kubeproof(&clean).with(0).stdout, "");
    let found = kubeproof(&[&clean[..], &["--older-than", "0", "--dry-run"]].concat()).with(0).stdout;
    assert!(found.contains("/api/v1/namespaces/kubeproof-"), "{found}");
    assert!(found.contains("/api/v1/nodes/kp-"), "{found}");
    assert!(results == 0 || found.contains("/customresourcedefinitions/widgets."), "{found}");
    assert_eq!(kubeproof(&[&clean[..], &["--older-than", "0"]].concat()).with(0).stdout, found);
    assert_unchanged(&server, &before);
}

/// What a run in a namespace of somebody else's left there is told from what else is in it.
#[test]
fn what_was_left_in_a_namespace_that_was_lent_is_found_there() {
    let server = Served::start(&[]);
    populate(&server);
    let before = snapshot(&server);
    let lent =
        ["run", "-v", "--namespace", "production", "--repeat", "50", "--only", "create/*", "deletion/*"];
    let mut run = command(&[&lent[..], &server.target()].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let littered = || server.names("/api/v1/namespaces/production/configmaps").len() > 2;
    while !littered() {
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

/// Who may not look has not seen that nothing is left.
#[test]
fn what_cannot_be_looked_at_is_told() {
    let server = Served::start(&[]);
    let ended = kubeproof(&["clean", "--server", &server.url, "--token", USER_TOKEN]).with(1);
    assert!(ended.stderr.contains("cannot look at /api/v1/namespaces: 403 Forbidden"), "{}", ended.stderr);
}

#[test]
fn cleaning_needs_a_server() {
    let ended = kubeproof(&["clean"]).with(2);
    assert!(ended.stderr.contains("--server"), "{}", ended.stderr);
}
