//! Being stopped in the middle.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rstest::rstest;
use serde_json::Value;

use crate::harm::{assert_unchanged, populate, snapshot};
use crate::kubeproof::command;
use crate::served::{Served, signal};

#[rstest]
fn a_stopped_run_removes_what_it_made_and_reports(#[values("INT", "TERM")] name: &str) {
    let server = Served::start(&[]);
    let dir = tempfile::tempdir().expect("a directory");
    let (json, junit) = (dir.path().join("report.json"), dir.path().join("junit.xml"));
    let files = ["--json", json.to_str().expect("a path"), "--junit", junit.to_str().expect("a path")];
    let often = ["run", "-v", "--only", "create/*@widgets.v1.kubeproof.dev", "--repeat", "200"];
    let mut run = command(&[&often, &server.target()[..], &files].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");

    // A line per result comes while the run goes.
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let has_passed = progress.by_ref().map_while(Result::ok).any(|line| line.starts_with("PASS"));
    assert!(has_passed, "no case of a custom resource came to its end");
    signal(&run, name);
    // Read on, or it waits for us.
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:?}");

    assert_eq!(run.wait().expect("the run ends").code(), Some(130));
    server.assert_clean();
    let report: Value = serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
    assert_eq!(report["interrupted"], true);
    let results = report["results"].as_array().expect("results").len() as u64;
    assert!(results > 0 && Some(results) < report["planned"].as_u64(), "{results} of {}", report["planned"]);
    quick_junit::Report::deserialize_from_str(&std::fs::read_to_string(&junit).expect("a report"))
        .expect("JUnit");
}

/// As a run in a cluster in use is stopped: with a node, cases that make namespaces and definitions, and others' objects around.
#[test]
fn a_stopped_run_takes_its_node_along() {
    let server = Served::start(&["--without", "node"]);
    populate(&server);
    let before = snapshot(&server);
    let often =
        ["run", "-v", "--with-node", "--repeat", "50", "--only", "namespaces/*", "rules/*", "exec/stdout-*"];
    let mut run = command(&[&often[..], &server.target()].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let streams = progress.by_ref().map_while(Result::ok).any(|line| line.contains("exec/stdout-"));
    assert!(streams, "no stream came to its end");
    signal(&run, "INT");
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    assert_eq!(run.wait().expect("the run ends").code(), Some(130), "{rest:?}");
    assert_unchanged(&server, &before);
}

/// The server takes the connection and never answers, so only giving up at once can end this.
#[test]
fn a_run_that_waits_for_an_answer_can_be_stopped() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("its address"));
    let mut run = command(&["run", "--server", &url, "--case-timeout", "10m"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the run starts");
    let connection = silent.accept().expect("a request");
    signal(&run, "INT");
    assert_eq!(run.wait().expect("the run ends").code(), Some(130));
    drop(connection);
}

/// The server is halted, so cleaning up would wait for it until the day is over.
#[test]
fn a_second_signal_stops_a_run_that_is_cleaning_up() {
    let server = Served::start(&[]);
    let target = server.target();
    let often = ["run", "-v", "--only", "create/*@configmaps.v1", "--repeat", "200", "--timeout", "10m"];
    let mut run = command(&[&often, &target[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let mut reads_until =
        |what: &str| progress.by_ref().map_while(Result::ok).any(|line| line.contains(what));
    assert!(reads_until("PASS"), "no case came to its end");
    signal(&server.process, "STOP");
    signal(&run, "INT");
    assert!(reads_until("once more: stop at once"), "the run does not say how to go on");
    assert!(run.try_wait().expect("its state").is_none(), "the run ended before it was told twice");
    signal(&run, "INT");
    assert_eq!(run.wait().expect("the run ends").code(), Some(130));
}
