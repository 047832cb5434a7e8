//! `kubeproof lint-api`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use rstest::rstest;
use serde_json::Value;

use crate::program::{Finished, command, kubeproof};

/// A CRD with a floating-point number in line 20.
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

/// Checks a text on standard input.
fn piped(text: &str, arguments: &[&str]) -> Finished {
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
    let output = kubeproof(&[
        "lint-api",
        path(&file),
        "--github",
        "--json",
        path(&json),
        "--sarif",
        path(&sarif),
    ])
    .with(1);
    let line = format!("{}:20:17: gadgets.v1.devices.example.com spec.ratio: ", file.display());
    assert!(output.stdout.contains(&line), "{}", output.stdout);
    let annotation = format!("::error file={},line=20,col=17,", file.display());
    assert!(output.stdout.contains(&annotation), "{}", output.stdout);

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
    let uri = format!("file://{}", file.display());
    assert_eq!(region["artifactLocation"]["uri"], uri, "{region}");
}

#[test]
fn warnings_fail_only_if_strict_and_known_failures_are_accepted() {
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
#[case::list(
    format!("kind: List\nitems:\n- {}", GADGETS.trim_end().replace('\n', "\n  ")),
    1,
    "stdin:22:19"
)]
#[case::many(format!("kind: Service\n---\n{GADGETS}"), 1, "stdin:22:17")]
#[case::json(
    r#"{
        "openapi": "3.0.0",
        "components": {"schemas": {"a.Spec": {"properties": {"max_items": {}}}}}
    }"#.to_owned(),
    1,
    "a.Spec max_items"
)]
#[case::nothing(
    "kind: Service\n---\nkind: Deployment\n".to_owned(),
    2,
    "stdin holds a Service (line 1), a Deployment (line 3)"
)]
#[case::empty(String::new(), 2, "stdin holds nothing")]
#[case::broken("a: [\n".to_owned(), 2, "stdin:1:4")]
#[case::old(
    GADGETS.replace("k8s.io/v1", "k8s.io/v1beta1"),
    2,
    "stdin:1:1: expected apiVersion apiextensions.k8s.io/v1"
)]
fn documents_are_judged_or_rejected(
    #[case] text: String,
    #[case] code: i32,
    #[case] message: &str,
) {
    let output = piped(&text, &[]).with(code);
    assert!(
        format!("{}{}", output.stdout, output.stderr).contains(message),
        "{}{}",
        output.stdout,
        output.stderr
    );
}

#[test]
fn a_directory_must_contain_schemas() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("crds")).expect("a directory");
    fs::write(dir.path().join("service.yaml"), "kind: Service\n").expect("written");
    kubeproof(&["lint-api", path(dir.path())]).with(4);
    fs::write(dir.path().join("crds/gadgets.yml"), GADGETS).expect("written");
    kubeproof(&["lint-api", path(dir.path())]).with(1);
    kubeproof(&["lint-api", path(&dir.path().join("none.yaml"))]).with(2);
    kubeproof(&["lint-api", path(dir.path()), "--only", "schema/no-flots"]).with(4);
}

/// A directory can contain templates and other files. A file that the user names must be readable.
#[test]
fn a_directory_may_contain_unreadable_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let template = dir.path().join("template.yaml");
    fs::write(&template, "{{ if .Values.crds }}\nkind: A\n{{ end }}\n").expect("written");
    fs::write(dir.path().join("binary.json"), b"\xff\xfe{}").expect("written");
    fs::write(dir.path().join("widgets.yaml"), GADGETS.replace("number", "boolean"))
        .expect("written");
    let output = kubeproof(&["lint-api", path(dir.path())]).with(0);
    for skipped in ["template.yaml:", "binary.json:"] {
        let mut lines = output.stderr.lines();
        let is_warning = |line: &str| line.starts_with("warning: ") && line.contains(skipped);
        assert!(lines.any(is_warning), "{}", output.stderr);
    }
    kubeproof(&["lint-api", path(&template)]).with(2);
}

#[rstest]
#[case("{a: ", "}", "recursion limit exceeded")]
#[case("{\"a\": ", "}", "recursion limit exceeded")]
#[case("[", "]", "recursion limit exceeded")]
#[case("- ", "", "depth")]
fn deep_nesting_is_an_error(#[case] open: &str, #[case] close: &str, #[case] message: &str) {
    let nested = |levels| format!("{}{}", open.repeat(levels), close.repeat(levels));
    // This depth is read, but the document is not a CRD.
    let output = piped(&nested(250), &[]).with(2);
    assert!(output.stderr.contains("a document without a kind (line 1)"), "{}", output.stderr);
    let output = piped(&nested(20_000), &[]).with(2);
    assert!(output.stderr.contains(message), "{}", output.stderr);
}
