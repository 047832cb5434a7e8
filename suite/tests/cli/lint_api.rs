//! `lint-api`: schemas in files, without a server.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use rstest::rstest;
use serde_json::Value;

use crate::kubeproof::{Ended, command, kubeproof};

/// Its worst is a float, at line 20.
const GADGETS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.devices.example.com
spec:
  group: devices.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                ratio: {type: number}
                note:
                  type: string
";

fn path(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// Checks what comes over standard input.
fn piped(text: &str, arguments: &[&str]) -> Ended {
    let mut process = command(&[&["lint-api", "-"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    process.stdin.take().expect("its input").write_all(text.as_bytes()).expect("it reads");
    process.wait_with_output().expect("it ends").into()
}

#[test]
fn a_finding_is_shown_at_its_line_in_every_report() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gadgets.yaml");
    fs::write(&file, GADGETS).expect("written");
    let (json, sarif) = (dir.path().join("out.json"), dir.path().join("out.sarif"));
    let ended =
        kubeproof(&["lint-api", path(&file), "--github", "--json", path(&json), "--sarif", path(&sarif)])
            .with(1);
    let line = format!("{}:20:17: gadgets.v1.devices.example.com spec.ratio: ", file.display());
    assert!(ended.stdout.contains(&line), "{}", ended.stdout);
    let annotation = format!("::error file={},line=20,col=17,", file.display());
    assert!(ended.stdout.contains(&annotation), "{}", ended.stdout);

    let report: Value = serde_json::from_slice(&fs::read(&json).expect("a report")).expect("JSON");
    let results = report["results"].as_array().expect("results");
    let result = |id| results.iter().find(|result| result["id"] == id).expect("the case");
    let float = &result("schema/no-floats-in-spec")["checks"][0];
    assert_eq!(float["places"][0]["position"]["line"], 20, "{float}");
    assert_eq!(float["actual"]["types"], 1, "{float}");
    assert_eq!(result("schema/strings-are-bounded")["verdict"], "warn");
    assert_eq!(result("schema/no-phase")["verdict"], "pass");

    let sarif: Value = serde_json::from_slice(&fs::read(&sarif).expect("a report")).expect("JSON");
    let findings = sarif["runs"][0]["results"].as_array().expect("results");
    let region = &findings
        .iter()
        .find(|finding| finding["ruleId"] == "primitive.no-float-in-spec")
        .expect("the float")["locations"][0]["physicalLocation"];
    assert_eq!(region["region"]["startLine"], 20, "{region}");
    assert_eq!(region["artifactLocation"]["uri"], path(&file), "{region}");
}

#[test]
fn warnings_fail_the_strict_and_known_failures_fail_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, known) = (dir.path().join("gadgets.yaml"), dir.path().join("known.yaml"));
    fs::write(&file, GADGETS.replace("number", "boolean")).expect("written");
    let lint = |more: &[&str]| kubeproof(&[&["lint-api", path(&file)], more].concat());
    lint(&[]).with(0);
    lint(&["--strict"]).with(1);
    lint(&["--strict", "--edition", "2022"]).with(0);
    lint(&["--strict", "--level", "must"]).with(0);
    lint(&["--strict", "--known-failures", path(&known), "--update-known-failures"]).with(0);
    lint(&["--strict", "--known-failures", path(&known)]).with(0);
    fs::write(&file, GADGETS).expect("written");
    lint(&["--known-failures", path(&known)]).with(1);
}

#[rstest]
#[case::list(format!("kind: List\nitems:\n- {}", GADGETS.trim_end().replace('\n', "\n  ")), 1, "stdin:22:19")]
#[case::many(format!("kind: Service\n---\n{GADGETS}"), 1, "stdin:22:17")]
#[case::json(r#"{"openapi": "3.0.0", "components": {"schemas": {"a.Spec": {"properties": {"max_items": {}}}}}}"#.to_owned(), 1, "a.Spec max_items")]
#[case::nothing("kind: Service\n---\nkind: Deployment\n".to_owned(), 2, "stdin holds a Service (line 1), a Deployment (line 3)")]
#[case::empty(String::new(), 2, "stdin holds nothing")]
#[case::broken("a: [\n".to_owned(), 2, "stdin:1:4")]
#[case::old(GADGETS.replace("k8s.io/v1", "k8s.io/v1beta1"), 2, "stdin:1:1: expected apiVersion apiextensions.k8s.io/v1")]
fn documents_are_judged_or_refused(#[case] text: String, #[case] code: i32, #[case] told: &str) {
    let ended = piped(&text, &[]).with(code);
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains(told), "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_directory_is_searched_and_must_hold_something() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("crds")).expect("a directory");
    fs::write(dir.path().join("service.yaml"), "kind: Service\n").expect("written");
    kubeproof(&["lint-api", path(dir.path())]).with(4);
    fs::write(dir.path().join("crds/gadgets.yml"), GADGETS).expect("written");
    kubeproof(&["lint-api", path(dir.path())]).with(1);
    kubeproof(&["lint-api", path(&dir.path().join("none.yaml"))]).with(2);
    kubeproof(&["lint-api", path(dir.path()), "--only", "schema/no-flots"]).with(4);
}

#[rstest]
#[case("{a: ", "}", "recursion limit exceeded")]
#[case("{\"a\": ", "}", "recursion limit exceeded")]
#[case("[", "]", "recursion limit exceeded")]
#[case("- ", "", "depth")]
fn what_is_nested_too_deep_is_told(#[case] open: &str, #[case] close: &str, #[case] told: &str) {
    let nested = |levels| format!("{}{}", open.repeat(levels), close.repeat(levels));
    // As deep as is read, it is no definition, and that is all.
    let ended = piped(&nested(250), &[]).with(2);
    assert!(ended.stderr.contains("a document without a kind (line 1)"), "{}", ended.stderr);
    let ended = piped(&nested(20_000), &[]).with(2);
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}
