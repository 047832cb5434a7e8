//! Report files.

use std::fs;
use std::path::Path;

use quick_junit::{NonSuccessKind, TestCaseStatus};
use serde_json::Value;

use crate::program::kubeproof;
use crate::server::{TOKEN, TestServer, USER_TOKEN};

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
    assert!(
        report["catalogue_digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:"))
    );
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
fn junit_has_a_test_case_per_result() {
    let server = TestServer::start(&["--fault", "create-returns-200"]);
    let dir = tempfile::tempdir().expect("a directory");
    let (junit, report) = (dir.path().join("junit.xml"), dir.path().join("report.json"));
    let files =
        ["--junit", junit.to_str().expect("a path"), "--json", report.to_str().expect("a path")];
    let run = ["run", "--only", "create/*", "scale/*"];
    kubeproof(&[&run, &server.target()[..], &files].concat()).with(1);

    let suites = quick_junit::Report::deserialize_from_str(&read(&junit)).expect("JUnit");
    let report = json(&report);
    let results = report["results"].as_array().expect("results");
    let mut junit_results: Vec<(String, &str)> = Vec::new();
    for case in suites.test_suites.iter().flat_map(|suite| &suite.test_cases) {
        let verdict = match &case.status {
            TestCaseStatus::Success { .. } => "success",
            TestCaseStatus::Skipped { .. } => "skipped",
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. } => "failure",
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, .. } => "error",
        };
        junit_results.push((case.classname.as_ref().expect("a class").to_string(), verdict));
    }
    let mut json_results: Vec<(String, &str)> = results
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
    junit_results.sort();
    json_results.sort();
    assert_eq!(junit_results, json_results);
    assert!(junit_results.iter().any(|(area, verdict)| area == "create" && *verdict == "failure"));
    assert_eq!(suites.failures as u64, report["summary"]["fail"].as_u64().expect("a count"));
}

/// A third of the cases runs. `KUBEPROOF_WHOLE=1` runs all of them.
#[test]
fn reports_contain_no_token() {
    let server = TestServer::start(&["--fault", "create-returns-200", "everybody-may-everything"]);
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let places: Vec<(&str, String)> =
        ["junit", "json", "html", "markdown", "sarif", "tap", "trace"]
            .into_iter()
            .map(|format| (format, place(format)))
            .collect();
    let options: Vec<String> =
        places.iter().flat_map(|(format, place)| [format!("--{format}"), place.clone()]).collect();
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    if std::env::var_os("KUBEPROOF_WHOLE").is_none() {
        options.extend(["--shard", "1/3"]);
    }
    let output =
        kubeproof(&[&["run", "-vv", "--github"], &server.target()[..], &options].concat()).with(1);

    let mut texts =
        vec![("the output".to_owned(), output.stdout), ("the progress".to_owned(), output.stderr)];
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
fn reports_are_merged_and_compared() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let (first, second, whole, merged) = (place("1"), place("2"), place("whole"), place("merged"));
    let only = ["run", "-q", "--only", "create/*", "--json"];
    kubeproof(&[&only[..], &[&first, "--shard", "1/2"]].concat()).with(0);
    kubeproof(&[&only[..], &[&second, "--shard", "2/2"]].concat()).with(0);
    kubeproof(&[&only[..], &[&whole]].concat()).with(0);
    kubeproof(&["report", "merge", &first, &second, "--json", &merged]).with(0);
    let output = kubeproof(&["report", "diff", &whole, &merged]).with(0);
    assert_eq!(output.stdout, "0 worse, 0 changed otherwise\n");

    let server = TestServer::start(&["--fault", "create-returns-200"]);
    let broken = place("broken");
    kubeproof(&[&only[..], &[&broken], &server.target()].concat()).with(1);
    let output = kubeproof(&["report", "diff", &whole, &broken]).with(1);
    assert!(output.stdout.contains("pass -> fail"), "{}", output.stdout);
    let output =
        kubeproof(&["report", "render", &broken, "--markdown", &place("summary.md")]).with(0);
    assert!(output.stdout.contains("    affects  create/"), "{}", output.stdout);
    assert!(read(&dir.path().join("summary.md")).contains("create/"));
}

#[test]
fn servers_are_compared_side_by_side() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let (right, wrong, html, markdown) = (place("1"), place("2"), place("html"), place("md"));
    let only = ["run", "-q", "--only", "create/*", "--json"];
    kubeproof(&[&only[..], &[&right]].concat()).with(0);
    let server = TestServer::start(&["--fault", "create-returns-200"]);
    kubeproof(&[&only[..], &[&wrong], &server.target()].concat()).with(1);
    let files = ["--html", &html, "--markdown", &markdown];
    let matrix = ["report", "matrix", &right, &wrong, &right];
    let output = kubeproof(&[&matrix[..], &files].concat()).with(0).stdout;
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].starts_with("#1 ") && lines[0].contains("1: "), "{output}");
    assert!(lines[1].starts_with(&format!("#2 {} (v", server.url)), "{output}");
    assert_eq!(lines[4], "different:", "{output}");
    let row: Vec<&str> = lines
        .iter()
        .find(|line| line.contains("create/stores-the-object"))
        .expect("a row")
        .split_whitespace()
        .collect();
    assert_eq!((row[1], row[2], row[row.len() - 1]), ("pass", "fail", "pass"), "{output}");
    assert!(!output.contains("create/name-required"), "{output}");
    assert!(kubeproof(&[&matrix[..], &["-v"]].concat()).with(0).stdout.contains("/name-required"));
    assert!(read(Path::new(&markdown)).contains("| create/stores-the-object | pass | fail"));
    let page = read(Path::new(&html));
    assert!(page.contains(&server.url) && page.contains("create/name-required"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<link"), "{page}");
}

#[test]
fn reports_are_verified() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("report.json");
    let place = path.display().to_string();
    kubeproof(&["run", "-q", "--only", "create/*", "--json", &place]).with(0);
    let output = kubeproof(&["report", "verify", &place]).with(0);
    assert!(output.stdout.ends_with(" results, 0 wrong values\n"), "{}", output.stdout);

    let mut report = json(&path);
    let digest = report["catalogue_digest"].take();
    report["catalogue_digest"] = "sha256:0".into();
    fs::write(&path, report.to_string()).expect("written");
    let output = kubeproof(&["report", "verify", &place]).with(0);
    assert!(output.stdout.contains("the catalogue differs"), "{}", output.stdout);

    report["catalogue_digest"] = digest;
    report["results"][0]["verdict"] = "fail".into();
    report["results"][1]["id"] = "create/no-such-case".into();
    fs::write(&path, report.to_string()).expect("written");
    let output = kubeproof(&["report", "verify", &place]).with(1);
    for expected in [
        "summary.fail: expected 1, got 0",
        "verdict of create/",
        "id of create/no-such-case",
        ", 4 wrong values",
    ] {
        assert!(output.stdout.contains(expected), "{expected:?}: {}", output.stdout);
    }
}

#[test]
fn an_unwritable_report_is_an_error_before_the_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = kubeproof(&["run", "--junit", &dir.path().display().to_string()]).with(2);
    assert!(output.stderr.contains("it is a directory"), "{}", output.stderr);
    assert_eq!(output.stdout, "");
}
