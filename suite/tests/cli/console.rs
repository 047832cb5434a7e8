//! The console output of a new user: short, grouped by cause, with a request to repeat.

use crate::program::{Finished, complete_run, kubeproof};
use crate::server::TestServer;

/// Twenty bugs in different parts of a server.
const TWENTY: [&str; 20] = [
    "micro-times-cut",
    "put-of-nothing-succeeds",
    "version-precondition-ignored",
    "malformed-selector-selects-all",
    "selector-exit-is-silent",
    "accept-ignored",
    "status-code-always-500",
    "apply-force-ignored",
    "discovery-scale-has-parent-kind",
    "nullable-ignored",
    "uppercase-names",
    "field-selector-metadata-only",
    "malformed-version-ignored",
    "patches-not-strict",
    "rules-ignored",
    "exit-code-without-cause",
    "log-previous-ignored",
    "uid-missing",
    "role-names-ignored",
    "lost-update",
];

/// Returns the lines of both outputs.
fn lines(output: &Finished) -> Vec<&str> {
    output.stderr.lines().chain(output.stdout.lines()).collect()
}

/// Returns the curl commands of the output.
fn curl_commands(output: &Finished) -> Vec<&str> {
    let repeat = output.stdout.lines().filter_map(|line| line.trim().strip_prefix("repeat"));
    repeat.map(str::trim).collect()
}

#[test]
fn one_bug_fits_on_a_screen_with_a_complete_curl_command() {
    let server = TestServer::start(&["--fault", "lost-update"]);
    let output = complete_run(&server.target()).with(1);
    let lines = lines(&output);
    assert!(lines.len() <= 40, "{} lines:\n{}", lines.len(), output.stdout);
    let first = output.stdout.lines().next().expect("a first line");
    assert!(first.starts_with("FAIL  "), "{first}");
    let commands = curl_commands(&output);
    let first = commands.first().expect("a curl command");
    assert!(first.starts_with("curl ") && first.contains(&server.url), "{first}");
    assert!(commands.iter().all(|command| !command.contains("more character")), "{commands:?}");
    assert!(output.stdout.contains("explain  kubeproof explain concurrency/"), "{}", output.stdout);
    let last = output.stdout.lines().last().expect("a summary");
    assert!(last.starts_with("not conformant, "), "{last}");
}

#[test]
fn twenty_bugs_fit_on_150_lines() {
    let server = TestServer::start(&[&["--fault"], &TWENTY[..]].concat());
    let output = complete_run(&server.target()).with(1);
    let lines = lines(&output);
    assert!(lines.len() <= 150, "{} lines:\n{}", lines.len(), output.stdout);
    assert!(output.stdout.contains("`metadata.uid` is missing ("), "{}", output.stdout);
    assert!(output.stdout.contains("\nfix first: "), "{}", output.stdout);
    // Each affected case is listed once.
    let affected: Vec<&str> =
        output.stdout.lines().filter(|line| line.trim().starts_with("affects")).collect();
    let mut unique = affected.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(affected.len(), unique.len(), "{affected:#?}");
}

#[test]
fn verbose_output_lists_every_result() {
    let server = TestServer::start(&["--fault", "create-returns-200"]);
    let only = ["run", "--only", "create/stores-*", "-v", "--no-progress"];
    let output = kubeproof(&[&only[..], &server.target()].concat()).with(1);
    let fails = output.stdout.lines().filter(|line| line.starts_with("FAIL      create/"));
    assert!(fails.count() > 1, "{}", output.stdout);
}

#[test]
fn the_next_step_has_a_cause_and_an_example() {
    let server = TestServer::start(&["--fault", "micro-times-cut", "uid-missing"]);
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let run = ["run", "-q", "--only", "create/*", "list/*", "--json", &json];
    kubeproof(&[&run[..], &server.target()].concat()).with(1);
    let output = kubeproof(&["next", &json]).with(0);
    assert!(output.stdout.starts_with("profile 2 of 9: crud, "), "{}", output.stdout);
    let parts =
        ["`metadata.uid` is missing", "request  ", "repeat   curl ", "A correct server passes:"];
    for part in parts {
        assert!(output.stdout.contains(part), "{part} is not in\n{}", output.stdout);
    }
    assert!(output.stdout.contains("\nExample of a correct server"), "{}", output.stdout);
    let short = kubeproof(&["next", &json, "--no-example"]).with(0);
    assert!(!short.stdout.contains("Example of a correct server"), "{}", short.stdout);
}

#[test]
fn the_next_step_of_a_smaller_server_is_what_it_lacks() {
    let server = TestServer::start(&["--without", "watch"]);
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let run = ["run", "-q", "--only", "create/stores-*", "watch/*", "--json", &json];
    kubeproof(&[&run[..], &server.target()].concat());
    let output = kubeproof(&["next", &json]).with(0);
    assert!(output.stdout.starts_with("profile 5 of 9: watch, "), "{}", output.stdout);
    assert!(output.stdout.contains("The server does not offer this profile"), "{}", output.stdout);
}

#[test]
fn nothing_is_next_without_failures() {
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    kubeproof(&["run", "-q", "--only", "create/stores-*", "--json", &json]).with(0);
    let output = kubeproof(&["next", &json]).with(0);
    assert!(output.stdout.starts_with("Nothing is left to do"), "{}", output.stdout);
}
