//! `--oracle`: two servers with the same cases and the same seed.

use std::fs;

use serde_json::Value;

use crate::program::{Finished, kubeproof};
use crate::server::{TOKEN, TestServer, USER_TOKEN};

const FAULT: [&str; 2] = ["--fault", "already-exists-as-bad-request"];

/// Runs a few cases against a target and an oracle.
fn run(target: &TestServer, oracle: &TestServer, more: &[&str]) -> Finished {
    let only = ["run", "--no-progress", "--seed", "7", "--only", "create/*@configmaps.v1"];
    let of_oracle =
        ["--oracle", &oracle.url, "--oracle-token", TOKEN, "--oracle-second-token", USER_TOKEN];
    kubeproof(&[&only[..], &target.target(), &of_oracle, more].concat())
}

#[test]
fn only_differences_between_target_and_oracle_count() {
    let (correct, broken) = (TestServer::start(&[]), TestServer::start(&FAULT));
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();

    let output = run(&broken, &correct, &["--json", &json]).with(1);
    let first = output.stdout.lines().next().expect("a line");
    assert_eq!(first, "only the target fails:", "{}", output.stdout);
    let line = "  create/taken-name-rejected @ configmaps.v1: fail, oracle pass  ";
    assert!(output.stdout.contains(line), "{}", output.stdout);
    assert!(!output.stdout.contains("create/name-required"), "{}", output.stdout);
    assert!(!output.stdout.contains(TOKEN), "{}", output.stdout);
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("a report")).expect("JSON");
    let results = report["results"].as_array().expect("results");
    assert!(!results.is_empty() && results.iter().all(|result| result["verdict"] == "fail"));
    let command = report["command"].as_str().expect("a command");
    assert!(command.contains("--oracle-token \"$ORACLE_TOKEN\""), "{command}");

    let output = run(&correct, &broken, &[]).with(0);
    assert!(output.stdout.starts_with("only the oracle fails:\n"), "{}", output.stdout);

    let also_broken = TestServer::start(&FAULT);
    let output = run(&broken, &also_broken, &[]).with(0);
    assert!(output.stdout.starts_with("target: "), "{}", output.stdout);
    assert!(
        output.stdout.lines().last().is_some_and(|line| line.starts_with("differences: 0 of "))
    );
    for server in [&correct, &broken, &also_broken] {
        server.assert_clean();
    }
}

#[test]
fn an_oracle_must_be_reachable() {
    let server = TestServer::start(&[]);
    let only = ["run", "--no-progress", "--only", "get/returns-the-object@configmaps.v1"];
    let oracle = ["--oracle", &server.url, "--oracle-token", "wrong"];
    let output = kubeproof(&[&only[..], &oracle].concat()).with(3);
    assert!(output.stderr.contains("rejects the credential"), "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    kubeproof(&["run", "--oracle-token", "t"]).with(2);
    kubeproof(&["run", "--oracle", &server.url, "--dry-run"]).with(2);
}
