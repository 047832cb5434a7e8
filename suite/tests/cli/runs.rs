//! What runs, what does not, and how it ends.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::kubeproof::{kubeproof, whole_run};
use crate::served::{Served, USER_TOKEN};

#[test]
fn without_a_target_the_bundled_server_is_tested_and_conforms() {
    let ended = whole_run(&[]).with(0);
    let summary = ended.stdout.lines().last().expect("a summary");
    assert!(summary.contains(" pass") && !summary.contains("fail"), "{summary}");
    assert!(ended.stderr.contains("seed "), "{}", ended.stderr);
}

/// 10,000 objects in pages beside a writer, and 500 watchers whose logs are the same.
#[test]
fn cases_about_load_do_as_much_as_they_are_told() {
    let cases = ["list/pages-hold-while-writers-work", "watch/watchers-agree"];
    let ended = kubeproof(&["run", "--load", "10", "--only", cases[0], cases[1]]).with(0);
    assert!(ended.stdout.contains("2 pass"), "{}", ended.stdout);
}

/// The pods that real nodes run: the command of a real container, which the scripted runtime takes for what it is.
#[test]
fn with_an_image_every_pod_of_the_run_is_made_of_it() {
    let image = "registry.example/busybox:1";
    let server = Served::start(&[]);
    let before = server.get("/api/v1/namespaces/default/pods")["metadata"]["resourceVersion"].clone();
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let only = ["run", "--pod-image", image, "--json", &json, "--only"];
    let cases = ["attach/*", "exec/std*", "log/*", "portforward/*", "proxy/*"];
    kubeproof(&[&only[..], &cases, &server.target()].concat()).with(0);

    let report: Value = serde_json::from_slice(&fs::read(&json).expect("a report")).expect("JSON");
    let reason = format!("what the ports of {image} answer is not known");
    let results = report["results"].as_array().expect("results");
    let skipped = results.iter().filter(|result| result["verdict"] == "skip");
    let proxies = skipped.filter(|result| result["id"].as_str().is_some_and(|id| id.starts_with("proxy/")));
    let reasons: BTreeSet<&str> = proxies.filter_map(|result| result["reason"].as_str()).collect();
    assert_eq!(reasons, BTreeSet::from([reason.as_str()]));

    let before = before.as_str().expect("a version");
    let path = format!("/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion={before}");
    let events = server.events(&path);
    let containers =
        |event: &Value| event["object"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let created: Vec<Value> =
        events.iter().filter(|event| event["type"] == "ADDED").flat_map(containers).collect();
    assert!(!created.is_empty());
    assert!(created.iter().all(|container| container["image"] == image), "{created:?}");
    let script = |container: &Value| container["command"][2].as_str().map(str::to_owned);
    assert!(created.iter().filter_map(script).any(|script| script.contains("httpd -f -p 8080")));
    server.assert_clean();
}

#[test]
fn a_pattern_that_matches_nothing_ends_with_4_and_names_the_nearest() {
    let ended = kubeproof(&["run", "--only", "watch/resume-from-every-version"]).with(4);
    assert!(ended.stderr.contains("did you mean \"watch/resumes-from-every-version\"?"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_selection_that_leaves_nothing_ends_with_4() {
    kubeproof(&["run", "--only", "watch/*", "--area", "create"]).with(4);
    kubeproof(&["list", "--only", "watch/*", "--area", "create"]).with(4);
}

/// Every case of writing is skipped when nothing may be written; that is no conformance.
#[test]
fn a_run_that_skips_everything_ends_with_4_and_reports() {
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let ended = kubeproof(&["run", "--read-only", "--only", "create/*", "--json", &json]).with(4);
    assert!(ended.stderr.contains("every case was skipped"), "{}", ended.stderr);
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("a report")).expect("JSON");
    assert!(report["summary"]["skip"].as_u64() > Some(0));
}

/// A user who may create nothing shows nothing of the server: that is no failure of it, and no success.
#[test]
fn a_run_that_could_not_tell_ends_with_5() {
    let server = Served::start(&[]);
    let target = ["--server", &server.url, "--token", USER_TOKEN, "--namespace", "default"];
    let only = ["run", "--only", "get/returns-the-object@configmaps.v1"];
    let ended = kubeproof(&[&only[..], &target].concat()).with(5);
    assert!(ended.stdout.lines().last().is_some_and(|line| line.contains("1 error")), "{}", ended.stdout);
}

#[test]
fn wrong_options_end_with_2() {
    let dir = tempfile::tempdir().expect("a directory");
    let missing = dir.path().join("missing").display().to_string();
    for arguments in [
        vec!["run", "--server", "ftp://localhost"],
        vec!["run", "--server", "https://user:password@localhost"],
        vec!["run", "--token", "t"],
        vec!["run", "--server", "http://localhost", "--kubeconfig", "k"],
        vec!["run", "--kubeconfig", &missing],
        vec!["run", "--known-failures", &missing],
        vec!["run", "--rerun", &missing],
        vec!["run", "--subject", "configmaps"],
        vec!["run", "--shard", "3/2"],
        vec!["run", "--timeout", "10"],
        vec!["run", "--jobs", "0"],
        vec!["run", "--cases", &missing],
        vec!["serve", "--fault", "create-overwrite"],
        vec!["explain", "watch/resumes"],
        vec!["explore"],
    ] {
        let ended = kubeproof(&arguments).with(2);
        assert!(ended.stderr.starts_with("error: "), "{arguments:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("password@"), "{}", ended.stderr);
    }
}

#[test]
fn a_dry_run_names_what_it_would_create_and_creates_nothing() {
    let server = Served::start(&[]);
    let version = |server: &Served| server.get("/api/v1/namespaces")["metadata"]["resourceVersion"].clone();
    let before = version(&server);
    let ended = kubeproof(&[&["run", "--dry-run"], &server.target()[..]].concat()).with(0);
    assert_eq!(version(&server), before);
    for expected in ["would run:", "  /api/v1/namespaces/kubeproof-", "customresourcedefinitions/widgets."] {
        assert!(ended.stdout.contains(expected), "{expected:?} is not in\n{}", ended.stdout);
    }
}

#[test]
fn known_failures_are_written_and_then_accepted() {
    let server = Served::start(&["--fault", "create-answers-200"]);
    let dir = tempfile::tempdir().expect("a directory");
    let known = dir.path().join("known.yaml").display().to_string();
    let run = |more: &[&str]| {
        let all = ["run", "-q", "--only", "create/*", "--known-failures", &known];
        kubeproof(&[&all, &server.target()[..], more].concat())
    };
    run(&[]).with(2);
    run(&["--update-known-failures"]).with(0);
    run(&[]).with(0);
    let correct = Served::start(&[]);
    let all = ["run", "-q", "--only", "create/*", "--known-failures", &known];
    kubeproof(&[&all, &correct.target()[..]].concat()).with(1);
}

#[test]
fn what_is_remembered_for_the_list_of_known_failures_takes_no_memory_for_answers() {
    let dir = tempfile::tempdir().expect("a directory");
    let known = dir.path().join("known.yaml").display().to_string();
    // Documents of the API: all of them together do not fit, one after the other they do.
    let all =
        ["run", "-q", "--area", "schema", "discovery", "--answer-memory", "32", "--known-failures", &known];
    let ended = kubeproof(&[&all[..], &["--update-known-failures"]].concat()).with(0);
    assert!(!ended.stdout.contains(" error"), "{}", ended.stdout);
    assert_eq!(fs::read_to_string(&known).expect("it was written"), "");
}

#[test]
fn a_strict_run_fails_for_deviations() {
    let only = ["run", "-q", "--only", "errors/unknown-paths"];
    kubeproof(&only).with(0);
    kubeproof(&[&only[..], &["--strict"]].concat()).with(1);
    let by_the_letter = kubeproof(&[&only[..], &["--letter"]].concat()).with(0);
    assert!(by_the_letter.stdout.contains(" warn") && !by_the_letter.stdout.contains("deviation"));
}

#[test]
fn a_namespace_that_was_there_stays() {
    let server = Served::start(&[]);
    let arguments = ["run", "-q", "--only", "create/*@configmaps.v1", "--namespace", "default"];
    kubeproof(&[&arguments, &server.target()[..]].concat()).with(0);
    assert!(server.names("/api/v1/namespaces").contains(&"default".to_owned()));
    assert_eq!(server.names("/api/v1/namespaces/default/configmaps"), Vec::<String>::new());
    server.assert_clean();
}

#[test]
fn a_failed_run_is_repeated_by_the_command_it_prints() {
    let server = Served::start(&["--fault", "answers-without-kind"]);
    let only = ["--only", "create/*", "get/*"];
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let ended = kubeproof(&[&["run", "--json", &json], &only[..], &server.target()].concat()).with(1);
    assert!(ended.stdout.contains(&format!("--rerun {json}")), "{}", ended.stdout);
    let again = kubeproof(&[&["run", "--rerun", &json], &server.target()[..]].concat()).with(1);
    let fails = |text: &str| text.lines().filter(|line| line.starts_with("FAIL")).count();
    assert_eq!(fails(&again.stdout), fails(&ended.stdout));
    assert!(!again.stdout.contains("pass,"), "{}", again.stdout);
}

/// What is published in a form that nobody asked for and cannot read is the server's failure, not an error of the run.
#[test]
fn documents_that_cannot_be_read_are_a_failure() {
    let server = Served::start(&["--fault", "gzip-unasked"]);
    let run = [&["run", "--only", "schema/names-and-references"], &server.target()[..]].concat();
    let ended = kubeproof(&run).with(1);
    assert!(ended.stdout.contains("no OpenAPI document that can be read"), "{}", ended.stdout);
}
