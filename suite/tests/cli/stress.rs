//! `kubeproof stress` over real sockets: verdicts, exit codes, restarts and cleanup.

use std::fs;

use crate::program::{command, kubeproof};
use crate::server::TestServer;

const SHORT: [&str; 5] = ["stress", "--duration", "2s", "--clients", "4"];

#[test]
fn a_violation_is_shown_as_text_and_as_a_timeline() {
    let server = TestServer::start(&["--fault", "stale-write-accepted"]);
    let dir = tempfile::tempdir().expect("a directory");
    let (svg, json) = (dir.path().join("history.svg"), dir.path().join("history.json"));
    let files = ["--svg", svg.to_str().expect("a path"), "--json", json.to_str().expect("a path")];
    let longer = ["stress", "--duration", "30s", "--seed", "1", "--subject", "v1/configmaps"];
    let run = kubeproof(&[&longer[..], &files, &server.target()].concat()).with(1);
    assert!(run.stdout.contains("seed 1\n"), "{}", run.stdout);
    assert!(run.stdout.contains("FAIL lost update @ configmaps.v1"), "{}", run.stdout);
    assert!(run.stdout.contains("client "), "{}", run.stdout);
    let svg = fs::read_to_string(&svg).expect("a timeline");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("class=\"bad\"") && svg.contains(">client "), "{svg}");
    let json = fs::read_to_string(&json).expect("a history");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let first = &json["violations"][0];
    assert_eq!(first["rule"], "lost update", "{json:#}");
    let operations = first["history"]["operations"].as_array().expect("operations");
    assert!((1..=4).contains(&operations.len()), "the history is not minimal: {json:#}");
    server.assert_clean();
}

/// The server under test is not restarted, so all writes survive.
#[test]
fn the_restart_command_runs_during_the_run() {
    let server = TestServer::start(&[]);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("restarts");
    let restart = format!("echo restarted >> {}", file.display());
    let longer = ["stress", "--duration", "6s", "--clients", "2", "--restart-command", &restart];
    let only = ["--subject", "v1/configmaps"];
    let run = kubeproof(&[&longer[..], &only, &server.target()].concat()).with(0);
    assert!(!run.stdout.contains(" 0 restarts"), "{}", run.stdout);
    assert!(fs::read_to_string(&file).expect("a file").starts_with("restarted\n"));
    let failing = ["--restart-command", "exit 3"];
    let run = kubeproof(&[&SHORT[..], &only, &failing, &server.target()].concat()).with(5);
    assert!(run.stderr.contains("\"exit 3\" failed"), "{}", run.stderr);
    server.assert_clean();
}

/// A server in memory starts again without its objects.
#[cfg(unix)]
#[test]
fn a_server_that_loses_its_data_in_a_restart_loses_acknowledged_writes() {
    let mut first = TestServer::start(&[]);
    let address = first.url.strip_prefix("http://").expect("plain HTTP").to_owned();
    let program = env!("CARGO_BIN_EXE_kubeproof");
    let token = crate::server::TOKEN;
    let dir = tempfile::tempdir().expect("a directory");
    let pid = dir.path().join("pid");
    fs::write(&pid, first.process.id().to_string()).expect("written");
    let file = pid.display();
    let restart = format!(
        "kill -9 $(cat {file}); {program} serve --listen {address} --token {token} \
         > /dev/null 2>&1 & echo $! > {file}"
    );
    let longer = ["stress", "--duration", "20s", "--clients", "2", "--restart-command", &restart];
    let only = ["--subject", "v1/configmaps"];
    let run = kubeproof(&[&longer[..], &only, &first.target()].concat());
    let second = fs::read_to_string(&pid).expect("the id of the second server");
    let killed = std::process::Command::new("kill").args(["-9", second.trim()]).status();
    assert!(killed.expect("kill runs").success());
    first.process.wait().expect("the first server ended");
    let run = run.with(1);
    assert!(run.stdout.contains("FAIL lost write"), "{}", run.stdout);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_removes_its_objects() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let server = TestServer::start(&[]);
    let longer = ["stress", "--duration", "10m"];
    let mut run = command(&[&longer[..], &server.target()].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the run starts");
    let mut first = String::new();
    let mut output = BufReader::new(run.stdout.take().expect("its output"));
    output.read_line(&mut first).expect("its first line");
    let namespaces = "/api/v1/namespaces";
    while !server.names(namespaces).iter().any(|name| name.starts_with("kubeproof-")) {
        assert!(run.try_wait().expect("its state").is_none(), "the run ended");
    }
    crate::server::signal(&run, "INT");
    assert_eq!(run.wait().expect("the run ends").code(), Some(130));
    server.assert_clean();
}

/// A server that dies during a round is no correct server, although the history breaks no rule.
#[cfg(unix)]
#[test]
fn a_server_that_dies_ends_the_run_with_5() {
    let mut server = TestServer::start(&[]);
    let longer = ["stress", "--duration", "20s", "--subject", "v1/configmaps"];
    let run = command(&[&longer[..], &server.target()].concat())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the run starts");
    let is_begun = || {
        let names = server.names("/api/v1/configmaps");
        names.iter().any(|name| name.starts_with("kp-"))
    };
    while !is_begun() {}
    server.process.kill().expect("the server is killed");
    server.process.wait().expect("the server ended");
    let output = run.wait_with_output().expect("the run ends");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{words}");
    assert!(words.contains("the server went away"), "{words}");
}

/// A deleted namespace stays until it is empty, so no history has its deletions.
#[test]
fn resources_that_outlive_their_deletion_are_left_out() {
    let server = TestServer::start(&[]);
    let namespaces = ["--subject", "namespaces.v1"];
    let run = kubeproof(&[&SHORT[..], &namespaces, &server.target()].concat()).with(4);
    assert!(run.stderr.contains("a delete does not remove the object at once"), "{}", run.stderr);
}

#[test]
fn a_server_that_cannot_be_tested_has_its_own_exit_codes() {
    kubeproof(&["stress", "--server", "http://127.0.0.1:1"]).with(3);
    kubeproof(&["stress", "--restart-command", "true"]).with(2);
    kubeproof(&["stress", "--subject", "nothing"]).with(2);
    let server = TestServer::start(&["--without", "crds"]);
    let custom = ["stress", "--subject", "widgets.v1.kubeproof.dev"];
    kubeproof(&[&custom[..], &server.target()].concat()).with(4);
}
