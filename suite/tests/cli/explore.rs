//! `kubeproof explore` over real sockets: verdicts, limits, saved cases and cleanup.

use std::fs;

use crate::program::kubeproof;
use crate::server::TestServer;

/// The saved case fails on the broken server, and passes on a correct one.
#[test]
fn a_violation_is_shrunk_printed_and_saved_as_a_case() {
    let server = TestServer::start(&["--fault", "annotations-trimmed"]);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("explored/first.yaml");
    let save = ["--save", file.to_str().expect("a path"), "--subject", "v1/configmaps"];
    let longer = ["explore", "--max-requests", "4000", "--seed", "1"];
    let run = kubeproof(&[&longer[..], &save, &server.target()].concat()).with(1);
    assert!(run.stdout.contains("FAIL "), "{}", run.stdout);
    assert!(run.stdout.contains("curl -sk"), "{}", run.stdout);
    assert!(run.stdout.len() < 8_000, "the objects are small: {}", run.stdout);
    let text = fs::read_to_string(&file).expect("a case");
    let cases = ["--cases", dir.path().to_str().expect("a path"), "--only", "explored/*"];
    kubeproof(&["lint", dir.path().to_str().expect("a path")]).with(0);
    let broken = kubeproof(&[&["run"], &cases[..], &server.target()].concat());
    assert!(broken.stdout.contains("FAIL"), "{}{}\n{text}", broken.stdout, broken.stderr);
    let correct = TestServer::start(&[]);
    kubeproof(&[&["run"], &cases[..], &correct.target()].concat()).with(0);
    server.assert_clean();
}

#[test]
fn the_seed_repeats_the_objects() {
    let server = TestServer::start(&["--fault", "empty-labels-dropped"]);
    let only = ["explore", "--seed", "3", "--subject", "v1/configmaps"];
    let message = || {
        let run = kubeproof(&[&only[..], &server.target()].concat()).with(1);
        let line = run.stdout.lines().find(|line| line.starts_with("FAIL")).map(str::to_owned);
        line.expect("a violation")
    };
    assert_eq!(message(), message());
}

#[test]
fn a_server_that_cannot_be_explored_has_its_own_exit_codes() {
    kubeproof(&["explore", "--server", "http://127.0.0.1:1"]).with(3);
    kubeproof(&["explore", "--subject", "nothing"]).with(2);
    let server = TestServer::start(&["--without", "crds"]);
    let custom = ["explore", "--subject", "widgets.v1.kubeproof.dev"];
    kubeproof(&[&custom[..], &server.target()].concat()).with(4);
}

#[test]
fn a_file_that_cannot_be_written_is_found_before_the_first_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let unreachable = ["--server", "http://127.0.0.1:1"];
    let directory = dir.path().to_str().expect("a path");
    let explore = kubeproof(&[&["explore", "--save", directory], &unreachable[..]].concat());
    assert!(explore.with(2).stderr.contains(directory));
    let stress = kubeproof(&[&["stress", "--svg", directory], &unreachable[..]].concat());
    assert!(stress.with(2).stderr.contains(directory));
    let file = dir.path().join("new/first.yaml");
    let path = file.to_str().expect("a path");
    kubeproof(&[&["explore", "--save", path], &unreachable[..]].concat()).with(3);
    assert!(!file.exists(), "a run without a violation leaves no file");
}
