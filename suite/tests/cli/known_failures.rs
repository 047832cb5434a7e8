//! `--known-failures`: globs, flaky cases, expired entries and both notations of subjects.

use std::fs;

use crate::program::{Finished, kubeproof};
use crate::server::TestServer;

/// The only cases of the tests. The subjects have both notations.
const ONLY: [&str; 4] = [
    "run",
    "--only",
    "create/stores-the-object@configmaps.v1",
    "get/returns-the-object@v1/configmaps",
];

/// Runs with a list of known failures.
fn run(server: &TestServer, list: &str, more: &[&str]) -> (Finished, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("known.yaml");
    fs::write(&path, list).expect("written");
    let known = ["--no-progress", "--known-failures", path.to_str().expect("a path")];
    let output = kubeproof(&[&ONLY, &known[..], &server.target(), more].concat());
    (output, fs::read_to_string(&path).expect("the list"))
}

#[test]
fn a_glob_permits_failures_and_needs_one() {
    let glob = "# ours\n- case: '{create,get}/*'\n  subject: v1/configmaps\n  reason: r\n";
    let broken = TestServer::start(&["--fault", "create-returns-200"]);
    run(&broken, "[]", &[]).0.with(1);
    run(&broken, glob, &[]).0.with(0);
    let (output, updated) = run(&broken, glob, &["--update-known-failures"]);
    output.with(0);
    assert_eq!(updated, glob);

    let correct = TestServer::start(&[]);
    // The run leaves out other cases that the glob matches.
    run(&correct, glob, &[]).0.with(0);
    let narrow = "- case: get/returns-the-*\n  reason: r\n";
    let whole = ["--only", "get/returns-the-*"];
    let output = run(&correct, narrow, &whole).0.with(1);
    assert!(
        output.stdout.contains("known.yaml:1: no case of get/returns-the-* fails"),
        "{}",
        output.stdout
    );
    let (output, updated) =
        run(&correct, narrow, &[&whole[..], &["--update-known-failures"]].concat());
    output.with(0);
    assert_eq!(updated, "");
}

#[test]
fn a_flaky_case_may_pass_or_fail() {
    let list = "- case: get/returns-the-object\n  flaky: true\n  reason: r\n";
    run(&TestServer::start(&[]), list, &[]).0.with(0);
}

#[test]
fn an_expired_entry_fails_the_run_and_is_listed() {
    let broken = TestServer::start(&["--fault", "create-returns-200"]);
    let list = "- case: create/*\n  expires: 2020-01-31\n  reason: r\n";
    let output = run(&broken, list, &[]).0.with(1);
    assert!(
        output.stdout.contains("known.yaml:1: the entry create/* expired on 2020-01-31"),
        "{}",
        output.stdout
    );
}
