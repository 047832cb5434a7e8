//! `kubeproof run`: selection, options and exit codes.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::program::{Finished, command, complete_run, kubeproof};
use crate::server::{TOKEN, TestServer, USER_TOKEN};

#[test]
fn the_bundled_server_is_the_default_target_and_conforms() {
    let output = complete_run(&[]).with(0);
    let summary = output.stdout.lines().last().expect("a summary");
    assert!(summary.contains(" pass") && !summary.contains("fail"), "{summary}");
    assert!(output.stderr.contains("seed "), "{}", output.stderr);
}

/// The cases page through 10,000 objects during writes, and compare the events of 500 watchers.
#[test]
fn load_multiplies_the_work_of_cases() {
    let cases = ["list/pages-under-concurrent-writes", "watch/watchers-agree"];
    let output = kubeproof(&["run", "--load", "10", "--only", cases[0], cases[1]]).with(0);
    assert!(output.stdout.contains("2 pass"), "{}", output.stdout);
}

/// With an image, pods run real commands. The scripted runtime recognises them.
#[test]
fn every_pod_of_the_run_uses_the_given_image() {
    let image = "registry.example/busybox:1";
    let server = TestServer::start(&[]);
    let before =
        server.get("/api/v1/namespaces/default/pods")["metadata"]["resourceVersion"].clone();
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let only = ["run", "--pod-image", image, "--json", &json, "--only"];
    let cases = ["attach/*", "exec/std*", "log/*", "portforward/*", "proxy/*"];
    kubeproof(&[&only[..], &cases, &server.target()].concat()).with(0);

    let report: Value = serde_json::from_slice(&fs::read(&json).expect("a report")).expect("JSON");
    let reason = format!("the suite cannot predict the responses of the ports of {image}");
    let results = report["results"].as_array().expect("results");
    let skipped = results.iter().filter(|result| result["verdict"] == "skip");
    let proxies =
        skipped.filter(|result| result["id"].as_str().is_some_and(|id| id.starts_with("proxy/")));
    let reasons: BTreeSet<&str> = proxies.filter_map(|result| result["reason"].as_str()).collect();
    assert_eq!(reasons, BTreeSet::from([reason.as_str()]));

    let before = before.as_str().expect("a version");
    let path = format!("/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion={before}");
    let events = server.events(&path);
    let containers = |event: &Value| {
        event["object"]["spec"]["containers"].as_array().cloned().unwrap_or_default()
    };
    let created: Vec<Value> =
        events.iter().filter(|event| event["type"] == "ADDED").flat_map(containers).collect();
    assert!(!created.is_empty());
    assert!(created.iter().all(|container| container["image"] == image), "{created:?}");
    let script = |container: &Value| container["command"][2].as_str().map(str::to_owned);
    assert!(created.iter().filter_map(script).any(|script| script.contains("httpd -f -p 8080")));
    server.assert_clean();
}

#[test]
fn a_pattern_without_a_match_ends_with_4_and_a_suggestion() {
    let output = kubeproof(&["run", "--only", "watch/resume-from-every-version"]).with(4);
    assert!(
        output.stderr.contains("did you mean \"watch/resumes-from-every-version\"?"),
        "{}",
        output.stderr
    );
    assert_eq!(output.stdout, "");
}

#[test]
fn an_empty_selection_ends_with_4() {
    kubeproof(&["run", "--only", "watch/*", "--area", "create"]).with(4);
    kubeproof(&["list", "--only", "watch/*", "--area", "create"]).with(4);
    for command in ["run", "list"] {
        let output = kubeproof(&[command, "--only", "errors/empty-body-of-v1-0"]).with(4);
        let words = "is not part of the edition head; add --edition v1.0";
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
}

/// Otherwise, the run would skip all cases with a second user, and pass.
#[test]
fn a_rejected_second_credential_ends_with_3() {
    let server = TestServer::start(&[]);
    let arguments = ["run", "--server", &server.url, "--token", TOKEN, "--second-token", "wrong"];
    let output = kubeproof(&arguments).with(3);
    let words = "rejects the credential of --second-token: /api returned 401";
    assert!(output.stderr.contains(words), "{}", output.stderr);
}

#[test]
fn two_credentials_of_one_user_are_not_a_second_user() {
    let server = TestServer::start(&[]);
    let only = ["--only", "users/forbidden-names-the-resource", "--no-progress", "-v"];
    let target = ["--server", &server.url, "--token", TOKEN, "--second-token", TOKEN];
    let output = kubeproof(&[&["run"], &only[..], &target].concat()).with(4);
    let words = "both credentials belong to the user \"kubeproof-admin\"";
    assert!(output.stdout.contains(words), "{}", output.stdout);
}

/// As in kubectl, all files of the variable but one may be missing.
#[test]
fn missing_files_of_kubeconfig_are_passed_over() {
    let server = TestServer::start(&[]);
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{{name: a, cluster: {{server: '{}'}}}}]\n\
         users: [{{name: a, user: {{token: {TOKEN}}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n",
        server.url
    );
    fs::write(dir.path().join("config"), text).expect("written");
    for (files, code) in [(["missing", "config"], 0), (["missing", "other"], 2)] {
        let files = files.map(place).join(":");
        let mut run = command(&["run", "--kubeconfig", "--only", "get/returns-the-object"]);
        Finished::from(run.env("KUBECONFIG", files).output().expect("the binary runs")).with(code);
    }
}

/// A read-only run skips all cases that write, which does not prove conformance.
#[test]
fn a_run_that_skips_everything_ends_with_4_and_reports() {
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let output = kubeproof(&["run", "--read-only", "--only", "create/*", "--json", &json]).with(4);
    assert!(output.stderr.contains("every case was skipped"), "{}", output.stderr);
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("a report")).expect("JSON");
    assert!(report["summary"]["skip"].as_u64() > Some(0));
}

/// Without permission to create objects, cases cannot judge the server.
#[test]
fn a_run_with_only_errors_ends_with_5() {
    let server = TestServer::start(&[]);
    let target = ["--server", &server.url, "--token", USER_TOKEN, "--namespace", "default"];
    let only = ["run", "--only", "get/returns-the-object@configmaps.v1"];
    let output = kubeproof(&[&only[..], &target].concat()).with(5);
    assert!(
        output.stdout.lines().last().is_some_and(|line| line.contains("1 error")),
        "{}",
        output.stdout
    );
}

/// Each case would fail, although the server is right to reject the object.
#[test]
fn a_subject_needs_a_valid_object() {
    let output =
        kubeproof(&["run", "--subject", "ingresses.v1.networking.k8s.io", "--only", "create/*"])
            .with(2);
    let words =
        "rejects the object that kubeproof made for the subject ingresses.v1.networking.k8s.io";
    assert!(output.stderr.contains(words), "{}", output.stderr);
    assert!(
        output.stderr.contains("--subject ingresses.v1.networking.k8s.io=FILE"),
        "{}",
        output.stderr
    );
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("other.yaml");
    fs::write(&file, "kind: ConfigMap\napiVersion: v1\n").expect("written");
    let subject = format!("deployments.v1.apps={}", file.display());
    for command in ["run", "stress", "explore"] {
        let output = kubeproof(&[command, "--subject", &subject]).with(2);
        let words = "contains a ConfigMap, expected a Deployment";
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
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
        vec!["run", "--junit", "a.xml", "--json", "a.xml"],
        vec!["run", "--json", "-"],
        vec!["run", "--timeout", "10"],
        vec!["run", "--jobs", "0"],
        vec!["run", "--cases", &missing],
        vec!["serve", "--fault", "create-overwrite"],
        vec!["explain", "watch/resumes"],
        vec!["examine"],
    ] {
        let output = kubeproof(&arguments).with(2);
        assert!(output.stderr.starts_with("error: "), "{arguments:?}: {}", output.stderr);
        assert!(!output.stderr.contains("password@"), "{}", output.stderr);
    }
}

#[test]
fn a_dry_run_lists_objects_and_creates_none() {
    let server = TestServer::start(&[]);
    let version = |server: &TestServer| {
        server.get("/api/v1/namespaces")["metadata"]["resourceVersion"].clone()
    };
    let before = version(&server);
    let output = kubeproof(&[&["run", "--dry-run"], &server.target()[..]].concat()).with(0);
    assert_eq!(version(&server), before);
    for expected in
        ["would run:", "  /api/v1/namespaces/kubeproof-", "customresourcedefinitions/widgets."]
    {
        assert!(output.stdout.contains(expected), "{expected:?} is not in\n{}", output.stdout);
    }
}

#[test]
fn known_failures_are_written_and_then_accepted() {
    let server = TestServer::start(&["--fault", "create-returns-200"]);
    let dir = tempfile::tempdir().expect("a directory");
    let known = dir.path().join("known.yaml").display().to_string();
    let run = |more: &[&str]| {
        let all = ["run", "-q", "--only", "create/*", "--known-failures", &known];
        kubeproof(&[&all, &server.target()[..], more].concat())
    };
    run(&[]).with(2);
    run(&["--update-known-failures"]).with(0);
    run(&[]).with(0);
    let correct = TestServer::start(&[]);
    let all = ["run", "-q", "--only", "create/*", "--known-failures", &known];
    kubeproof(&[&all, &correct.target()[..]].concat()).with(1);
}

#[test]
fn results_for_the_list_of_known_failures_hold_no_response_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let known = dir.path().join("known.yaml").display().to_string();
    // The API documents of one case fit into the memory, but not those of all cases. With more
    // jobs, cases that run at the same time could use it up.
    let all = [
        "run",
        "-q",
        "--area",
        "schema",
        "discovery",
        "--jobs",
        "1",
        "--response-memory",
        "32",
        "--known-failures",
        &known,
    ];
    let output = kubeproof(&[&all[..], &["--update-known-failures"]].concat()).with(0);
    assert!(!output.stdout.contains(" error"), "{}", output.stdout);
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
fn an_existing_namespace_is_kept() {
    let server = TestServer::start(&[]);
    let arguments = ["run", "-q", "--only", "create/*@configmaps.v1", "--namespace", "default"];
    kubeproof(&[&arguments, &server.target()[..]].concat()).with(0);
    assert!(server.names("/api/v1/namespaces").contains(&"default".to_owned()));
    assert_eq!(server.names("/api/v1/namespaces/default/configmaps"), Vec::<String>::new());
    server.assert_clean();
}

#[test]
fn the_printed_command_repeats_the_failures() {
    let server = TestServer::start(&["--fault", "responses-without-kind"]);
    let only = ["--only", "create/*", "get/*"];
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let output =
        kubeproof(&[&["run", "--json", &json], &only[..], &server.target()].concat()).with(1);
    assert!(output.stdout.contains(&format!("--rerun {json}")), "{}", output.stdout);
    let rerun = kubeproof(&[&["run", "--rerun", &json], &server.target()[..]].concat()).with(1);
    let fails = |text: &str| text.lines().filter(|line| line.starts_with("FAIL")).count();
    assert_eq!(fails(&rerun.stdout), fails(&output.stdout));
    assert!(!rerun.stdout.contains("pass,"), "{}", rerun.stdout);
}

/// The server compresses documents without a request for it, which is a failure of the server and
/// not an error of the run.
#[test]
fn unreadable_documents_are_a_failure() {
    let server = TestServer::start(&["--fault", "gzip-unasked"]);
    let run = [&["run", "--only", "schema/durations-have-units"], &server.target()[..]].concat();
    let output = kubeproof(&run).with(1);
    assert!(output.stdout.contains("without a valid OpenAPI document"), "{}", output.stdout);
}
