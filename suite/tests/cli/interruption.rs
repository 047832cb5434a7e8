//! Runs that are interrupted by a signal.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::thread;

use rstest::rstest;
use serde_json::Value;

use crate::program::command;
use crate::safety::{assert_unchanged, create_foreign_objects, snapshot};
use crate::server::{TestServer, signal};

#[rstest]
fn an_interrupted_run_cleans_up_and_reports(#[values("INT", "TERM")] name: &str) {
    let server = TestServer::start(&[]);
    let dir = tempfile::tempdir().expect("a directory");
    let (json, junit) = (dir.path().join("report.json"), dir.path().join("junit.xml"));
    let files =
        ["--json", json.to_str().expect("a path"), "--junit", junit.to_str().expect("a path")];
    let often = ["run", "-v", "--only", "create/*@widgets.v1.kubeproof.dev", "--repeat", "200"];
    let mut run = command(&[&often, &server.target()[..], &files].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");

    // Progress has a line per result.
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let has_passed = progress.by_ref().map_while(Result::ok).any(|line| line.starts_with("PASS"));
    assert!(has_passed, "no case of a custom resource finished");
    signal(&run, name);
    // The run blocks unless its output is read.
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:?}");

    assert_eq!(run.wait().expect("the run ends").code(), Some(130));
    server.assert_clean();
    let report: Value =
        serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
    assert_eq!(report["interrupted"], true);
    let results = report["results"].as_array().expect("results").len() as u64;
    assert!(
        results > 0 && Some(results) < report["planned"].as_u64(),
        "{results} of {}",
        report["planned"]
    );
    quick_junit::Report::deserialize_from_str(&std::fs::read_to_string(&junit).expect("a report"))
        .expect("JUnit");
}

#[test]
fn a_run_whose_server_is_killed_stops_with_5() {
    let mut server = TestServer::start(&[]);
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json");
    let often = ["run", "-v", "--only", "create/*@configmaps.v1", "--repeat", "200", "--json"];
    let file = [json.to_str().expect("a path")];
    let mut run = command(&[&often[..], &file, &server.target()].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut output = run.stdout.take().expect("its output");
    let output = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let has_passed = progress.by_ref().map_while(Result::ok).any(|line| line.starts_with("PASS"));
    assert!(has_passed, "no case finished");
    server.process.kill().expect("the server ends");
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    assert_eq!(run.wait().expect("the run ends").code(), Some(5), "{rest:?}");

    let report: Value =
        serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
    assert_eq!(report["stopped"]["reason"], "refused", "{}", report["stopped"]);
    assert!(report["stopped"]["after"].is_string(), "{}", report["stopped"]);
    let results = report["results"].as_array().expect("results");
    let failed: Vec<_> = results.iter().filter(|result| result["verdict"] == "fail").collect();
    assert_eq!(failed, [&Value::Null; 0]);
    let output = output.join().expect("no panic").expect("text");
    assert!(output.contains("stopped: the server refuses connections since 20"), "{output}");
    // The notice about what is left is on standard error, and nowhere else.
    let notes = rest.iter().filter(|line| line.starts_with("note: ")).count();
    assert_eq!((notes, output.matches("note: ").count()), (1, 0), "{rest:?}");
}

/// The run has a node, and cases that create namespaces and CRDs next to other objects.
#[test]
fn an_interrupted_run_removes_its_node() {
    let server = TestServer::start(&["--without", "node"]);
    create_foreign_objects(&server);
    let before = snapshot(&server);
    let often = [
        "run",
        "-v",
        "--with-node",
        "--repeat",
        "50",
        "--only",
        "namespaces/*",
        "rules/*",
        "exec/stdout-*",
    ];
    let mut run = command(&[&often[..], &server.target()].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let streams = progress.by_ref().map_while(Result::ok).any(|line| line.contains("exec/stdout-"));
    assert!(streams, "no stream finished");
    signal(&run, "INT");
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    assert_eq!(run.wait().expect("the run ends").code(), Some(130), "{rest:?}");
    assert_unchanged(&server, &before);
}

/// The server accepts the connection and never responds, so the run can end only by the signal.
#[test]
fn a_run_that_waits_for_a_response_can_be_interrupted() {
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

/// The server is stopped, so the cleanup waits for it.
#[test]
fn a_second_signal_stops_the_cleanup() {
    let server = TestServer::start(&[]);
    let target = server.target();
    let often =
        ["run", "-v", "--only", "create/*@configmaps.v1", "--repeat", "200", "--timeout", "10m"];
    let mut run = command(&[&often, &target[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the run starts");
    let mut progress = BufReader::new(run.stderr.take().expect("its progress")).lines();
    let mut reads_until =
        |what: &str| progress.by_ref().map_while(Result::ok).any(|line| line.contains(what));
    assert!(reads_until("PASS"), "no case finished");
    signal(&server.process, "STOP");
    signal(&run, "INT");
    assert!(
        reads_until("interrupt again to stop at once"),
        "the run does not announce its cleanup"
    );
    assert!(run.try_wait().expect("its state").is_none(), "the run ended after the first signal");
    signal(&run, "INT");
    assert_eq!(run.wait().expect("the run ends").code(), Some(130));
}
