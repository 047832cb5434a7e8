//! What a killed run leaves, and who removes it.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::kubeproof::{command, kubeproof};
use crate::served::{Served, TOKEN};

#[test]
fn what_a_killed_run_leaves_is_found_and_removed() {
    let server = Served::start(&[]);
    let often = ["run", "-v", "--only", "create/*@widgets.v1.kubeproof.dev", "--repeat", "200"];
    let mut run = command(&[&often, &server.target()[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let has_passed = progress.by_ref().map_while(Result::ok).any(|line| line.starts_with("PASS"));
    assert!(has_passed, "no case of a custom resource came to its end");
    run.kill().expect("it can be killed");
    run.wait().expect("it has ended");

    let clean = ["clean", "--server", &server.url, "--token", TOKEN];
    // It may be one that goes on.
    assert_eq!(kubeproof(&clean).with(0).stdout, "");
    let found = kubeproof(&[&clean[..], &["--older-than", "0", "--dry-run"]].concat()).with(0).stdout;
    assert!(found.contains("/api/v1/namespaces/kubeproof-"), "{found}");
    assert!(found.contains("/customresourcedefinitions/widgets."), "{found}");
    assert_eq!(kubeproof(&[&clean[..], &["--older-than", "0"]].concat()).with(0).stdout, found);
    server.assert_clean();
}

#[test]
fn cleaning_needs_a_server() {
    let ended = kubeproof(&["clean"]).with(2);
    assert!(ended.stderr.contains("--server"), "{}", ended.stderr);
}
