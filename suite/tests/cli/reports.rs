//! Reports as files, and what must not be in them.

use std::fs;
use std::path::Path;

use quick_junit::{NonSuccessKind, TestCaseStatus};
use serde_json::Value;

use crate::kubeproof::kubeproof;
use crate::served::{Served, TOKEN, USER_TOKEN};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).expect("a JSON report")
}

#[test]
fn the_json_report_has_the_fixed_form() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("report.json");
    let arguments = ["run", "-q", "--seed", "7", "--only", "create/*", "get/*", "--json"];
    kubeproof(&[&arguments[..], &[path.to_str().expect("a path")]].concat()).with(0);
    let report = json(&path);
    assert_eq!(report["schema"], "kubeproof.report/v1");
    assert_eq!(report["edition"], "head");
    assert_eq!(report["seed"], 7);
    assert!(report["catalogue_digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")));
    assert!(report["target"]["server"].is_string());
    let results = report["results"].as_array().expect("results");
    assert!(!results.is_empty());
    for verdict in ["pass", "deviation", "warn", "fail", "skip", "error"] {
        let count = results.iter().filter(|result| result["verdict"] == verdict).count();
        assert_eq!(report["summary"][verdict], count, "{verdict}");
    }
    for result in results {
        let id = result["id"].as_str().expect("an id");
        assert!(id.starts_with("create/") || id.starts_with("get/"), "{id}");
        assert!(result["subject"].is_string() && result["reason"].is_string(), "{id}");
        assert!(["must", "should", "may"].iter().any(|level| result["level"] == *level), "{id}");
        assert!(result["requirements"].as_array().is_some_and(|ids| !ids.is_empty()), "{id}");
        assert!(result["duration_ms"].is_f64(), "{id}");
        for check in result["checks"].as_array().expect("checks") {
            assert!(check["id"].is_string() && check["verdict"].is_string(), "{id}");
            assert!(check.get("expected").is_some() && check.get("actual").is_some(), "{id}");
        }
    }
}

#[test]
fn junit_has_a_test_case_per_result_and_is_red_when_the_run_fails() {
    let server = Served::start(&["--fault", "create-answers-200"]);
    let dir = tempfile::tempdir().expect("a directory");
    let (junit, report) = (dir.path().join("junit.xml"), dir.path().join("report.json"));
    let files = ["--junit", junit.to_str().expect("a path"), "--json", report.to_str().expect("a path")];
    let read_by_all = ["run", "--only", "create/*", "scale/*"];
    kubeproof(&[&read_by_all, &server.target()[..], &files].concat()).with(1);

    let suites = quick_junit::Report::deserialize_from_str(&read(&junit)).expect("JUnit");
    let report = json(&report);
    let results = report["results"].as_array().expect("results");
    let mut told: Vec<(String, &str)> = Vec::new();
    for case in suites.test_suites.iter().flat_map(|suite| &suite.test_cases) {
        let verdict = match &case.status {
            TestCaseStatus::Success { .. } => "success",
            TestCaseStatus::Skipped { .. } => "skipped",
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. } => "failure",
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, .. } => "error",
        };
        told.push((case.classname.as_ref().expect("a class").to_string(), verdict));
    }
    let mut known: Vec<(String, &str)> = results
        .iter()
        .map(|result| {
            let area = result["id"].as_str().and_then(|id| id.split('/').next()).expect("an area");
            let verdict = match result["verdict"].as_str().expect("a verdict") {
                "fail" => "failure",
                "error" => "error",
                "skip" => "skipped",
                _ => "success",
            };
            (area.to_owned(), verdict)
        })
        .collect();
    told.sort();
    known.sort();
    assert_eq!(told, known);
    assert!(told.iter().any(|(area, verdict)| area == "create" && *verdict == "failure"));
    assert_eq!(suites.failures as u64, report["summary"]["fail"].as_u64().expect("a count"));
}

#[test]
fn no_token_is_in_any_report() {
    let server = Served::start(&["--fault", "create-answers-200", "everybody-may-everything"]);
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let places: Vec<(&str, String)> = ["junit", "json", "html", "markdown", "sarif", "tap", "trace"]
        .into_iter()
        .map(|format| (format, place(format)))
        .collect();
    let options: Vec<String> =
        places.iter().flat_map(|(format, place)| [format!("--{format}"), place.clone()]).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let ended = kubeproof(&[&["run", "-vv", "--github"], &server.target()[..], &options].concat()).with(1);

    let mut texts = vec![("the output".to_owned(), ended.stdout), ("the progress".to_owned(), ended.stderr)];
    collect(dir.path(), &mut texts);
    assert!(texts.len() > 100, "a trace per case is among the {} texts", texts.len());
    for (name, text) in texts {
        assert!(!text.contains(TOKEN) && !text.contains(USER_TOKEN), "{name} holds a token");
    }
}

fn collect(directory: &Path, texts: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, texts);
        } else {
            texts.push((path.display().to_string(), read(&path)));
        }
    }
}

#[test]
fn reports_of_shards_merge_and_two_runs_compare() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let (first, second, whole, merged) = (place("1"), place("2"), place("whole"), place("merged"));
    let only = ["run", "-q", "--only", "create/*", "--json"];
    kubeproof(&[&only[..], &[&first, "--shard", "1/2"]].concat()).with(0);
    kubeproof(&[&only[..], &[&second, "--shard", "2/2"]].concat()).with(0);
    kubeproof(&[&only[..], &[&whole]].concat()).with(0);
    kubeproof(&["report", "merge", &first, &second, "--json", &merged]).with(0);
    let ended = kubeproof(&["report", "diff", &whole, &merged]).with(0);
    assert_eq!(ended.stdout, "0 worse, 0 changed otherwise\n");

    let server = Served::start(&["--fault", "create-answers-200"]);
    let broken = place("broken");
    kubeproof(&[&only[..], &[&broken], &server.target()].concat()).with(1);
    let ended = kubeproof(&["report", "diff", &whole, &broken]).with(1);
    assert!(ended.stdout.contains("pass -> fail"), "{}", ended.stdout);
    let ended = kubeproof(&["report", "render", &broken, "--markdown", &place("summary.md")]).with(0);
    assert!(ended.stdout.contains("FAIL      create/"), "{}", ended.stdout);
    assert!(read(&dir.path().join("summary.md")).contains("create/"));
}

#[test]
fn a_place_that_cannot_be_written_to_is_known_before_the_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let ended = kubeproof(&["run", "--junit", &dir.path().display().to_string()]).with(2);
    assert!(ended.stderr.contains("it is a directory"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}
