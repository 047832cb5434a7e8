//! What gates a run: the configuration file, required features, merged shards, the rerun target.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Finished, command, kubeproof};
use crate::server::{TOKEN, TestServer};

fn run_in(directory: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = command(&[&["run"], arguments].concat());
    command.current_dir(directory).envs(variables.iter().copied());
    command.output().expect("the binary runs").into()
}

fn report(directory: &Path, name: &str) -> Value {
    let text = fs::read(directory.join(name)).expect("a report");
    serde_json::from_slice(&text).expect("a JSON report")
}

#[test]
fn options_come_from_the_file_the_environment_and_the_command_line() {
    let server = TestServer::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let config =
        format!("server = {:?}\nonly = [\"get/*\"]\njson = \"out.json\"\nseed = 5\n", server.url);
    fs::write(directory.path().join("kubeproof.toml"), config).expect("written");
    let variables = [("KUBEPROOF_TOKEN", TOKEN), ("KUBEPROOF_SEED", "6")];
    run_in(directory.path(), &variables, &["--only", "create/taken-*"]).with(0);

    let report = report(directory.path(), "out.json");
    assert_eq!(report["seed"], 6);
    assert_eq!(report["target"]["server"], server.url);
    let results = report["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result["id"] == "create/taken-name-rejected"));
    let command = report["command"].as_str().expect("a command");
    assert!(command.contains("--seed=6") && !command.contains(TOKEN), "{command}");
}

#[test]
fn a_mistake_in_the_configuration_is_a_usage_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ci.toml");
    for (config, expected) in [
        ("onlly = [\"get/*\"]", "has no option \"onlly\"; did you mean \"only\"?"),
        ("jobs = \"many\"", "note: --jobs is from ci.toml\n"),
    ] {
        fs::write(&path, config).expect("written");
        let finished = run_in(directory.path(), &[], &["--config", "ci.toml"]).with(2);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
    let variable = run_in(directory.path(), &[("KUBEPROOF_JOBS", "x")], &[]).with(2);
    let expected = "note: --jobs is from KUBEPROOF_JOBS\n";
    assert!(variable.stderr.contains(expected), "{}", variable.stderr);
    let missing = run_in(directory.path(), &[], &["--config", "none.toml"]).with(2);
    assert!(missing.stderr.contains("none.toml"), "{}", missing.stderr);
}

#[test]
fn a_variable_that_is_almost_an_option_has_a_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    let variables = [("KUBEPROOF_ONYL", "get/*"), ("KUBEPROOF_SERVICE_HOST", "10.0.0.1")];
    let finished = run_in(directory.path(), &variables, &["--only", "none/none"]).with(4);
    let warnings: Vec<_> =
        finished.stderr.lines().filter(|line| line.starts_with("warning")).collect();
    let expected = "warning: KUBEPROOF_ONYL names no option; did you mean KUBEPROOF_ONLY?";
    assert_eq!(warnings, [expected]);
}

/// Each command with a target reads the variables of the target, and no others.
#[test]
fn commands_with_a_target_read_its_variables() {
    let server = TestServer::start(&[]);
    let run = |arguments: &[&str], token: &str| -> Finished {
        let mut command = command(arguments);
        command.env("KUBEPROOF_SERVER", &server.url).env("KUBEPROOF_TOKEN", token);
        command.env("KUBEPROOF_SEED", "1234567890").env("KUBEPROOF_STRICT", "1");
        command.output().expect("the binary runs").into()
    };
    let subject = ["--subject", "v1/configmaps"];
    let stress = [&["stress", "--duration", "1s"], &subject[..]].concat();
    let explore = [&["explore", "--max-requests", "20"], &subject[..]].concat();
    for arguments in [&stress[..], &explore, &["clean", "--dry-run"]] {
        let finished = run(arguments, TOKEN).with(0);
        let own = arguments[0] == "clean" || finished.stdout.contains(&server.url);
        assert!(own && !finished.stdout.contains("seed 1234567890"), "{}", finished.stdout);
        run(arguments, "of-nobody").with(3);
    }
}

#[test]
fn a_missing_feature_fails_a_run_that_requires_it() {
    let server = TestServer::start(&[]);
    let run = ["run", "--only", "get/*", "create/*", "--server", &server.url, "--token", TOKEN];
    kubeproof(&run).with(0);
    kubeproof(&[&run[..], &["--require", "crds", "--require-profile", "read"]].concat()).with(0);
    let required = ["--require", "crds", "second-user"];
    let finished = kubeproof(&[&run[..], &required].concat()).with(1);
    let expected = "the target lacks the capability second-user";
    assert!(finished.stdout.contains(expected), "{}", finished.stdout);
    assert!(finished.stdout.contains(" --require second-user\n"), "{}", finished.stdout);
    assert!(!finished.stdout.contains("kubeproof explain"), "{}", finished.stdout);
    let none = kubeproof(&[&run[..], &["--require-profile", "watch"]].concat()).with(1);
    assert!(none.stdout.contains("select no case of the profile"), "{}", none.stdout);
    let unknown = kubeproof(&["run", "--require", "cdrs"]).with(2);
    assert!(
        unknown.stderr.contains("[possible values: admission-policies, "),
        "{}",
        unknown.stderr
    );
}

#[test]
fn a_merged_run_has_the_exit_code_of_the_whole_run() {
    let server = TestServer::start(&["--fault", "already-exists-as-bad-request"]);
    let directory = tempfile::tempdir().expect("a directory");
    let part = |part: &str, code: i32| {
        let file = directory.path().join(part.replace('/', "-")).display().to_string();
        let selection = ["run", "-q", "--only", "create/taken-*", "--shard", part, "--json", &file];
        let finished = kubeproof(&[&selection[..], &server.target()].concat());
        assert!([0, code].contains(&finished.code.expect("a code")), "{}", finished.stderr);
        file
    };
    let (first, second) = (part("1/2", 1), part("2/2", 1));
    kubeproof(&["report", "merge", "-q", &first, &second]).with(1);
    let merged = kubeproof(&["report", "merge", &first, &second]).with(1);
    let rerun = format!("\nrerun: kubeproof run --server {} --token \"$TOKEN\" ", server.url);
    assert!(merged.stdout.contains(&rerun), "{}", merged.stdout);
    let missing = kubeproof(&["report", "merge", "-q", &first]).with(2);
    assert!(missing.stderr.contains("shard 2/2 is missing"), "{}", missing.stderr);
    let twice = kubeproof(&["report", "merge", "-q", &second, &second]).with(2);
    assert!(twice.stderr.contains("two reports contain shard 2/2"), "{}", twice.stderr);
}

#[test]
fn a_rerun_without_a_target_never_tests_another_server() {
    let server = TestServer::start(&["--fault", "already-exists-as-bad-request"]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.json").display().to_string();
    let first = ["run", "-q", "--only", "create/taken-*@configmaps.v1", "--json", &file];
    kubeproof(&[&first[..], &server.target()].concat()).with(1);
    let without = kubeproof(&["run", "--rerun", &file]).with(2);
    let expected = format!("the report of --rerun is about {}", server.url);
    assert!(without.stderr.contains(&expected), "{}", without.stderr);
    kubeproof(&[&["run", "-q", "--rerun", &file][..], &server.target()].concat()).with(1);
}
