//! Commands about cases and requirements.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::program::{command, kubeproof};

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&kubeproof(arguments).with(0).stdout).expect("JSON")
}

#[test]
fn cases_are_listed_as_a_table_and_as_json() {
    let table = kubeproof(&["list", "--area", "watch"]).with(0).stdout;
    assert!(table.starts_with("CASE "), "{table}");
    assert!(table.lines().skip(1).all(|line| line.starts_with("watch/")), "{table}");
    let cases = json(&["list", "--area", "watch", "--json"]);
    assert_eq!(cases.as_array().expect("a list").len(), table.lines().count() - 1);
    assert!(cases[0]["requirements"].as_array().is_some_and(|ids| !ids.is_empty()));
    let profile = json(&["list", "--profile", "watch", "apply", "--json"]);
    let of = |case: &Value| case["profile"] == "watch" || case["profile"] == "apply";
    assert!(profile.as_array().expect("a list").iter().all(of), "{profile}");
    assert!(profile.as_array().map(Vec::len) > cases.as_array().map(Vec::len));
    let older = json(&["list", "--edition", "v1.0", "--json"]);
    let all = json(&["list", "--json"]);
    assert!(older.as_array().map(Vec::len) < all.as_array().map(Vec::len));
}

#[test]
fn capabilities_and_variations_are_explained() {
    let capability = kubeproof(&["explain", "crds"]).with(0).stdout;
    let start = "crds is the name of a profile and of a capability.\n\ncrds (profile 7 of 9)\n";
    assert!(capability.starts_with(start), "{capability}");
    for expected in [
        "crds (capability of the target)\nCustom resource definitions can be created.\n",
        "Require it: kubeproof run --require crds\n",
        "Serve without it: kubeproof serve --without crds\n",
        "Cases that need it:\n  ",
    ] {
        assert!(capability.contains(expected), "{expected:?} is not in\n{capability}");
    }
    let variation = kubeproof(&["explain", "http1-only"]).with(0).stdout;
    for expected in ["http1-only (variation of the reference server)\n", "--list-variations"] {
        assert!(variation.contains(expected), "{expected:?} is not in\n{variation}");
    }
    let area = kubeproof(&["explain", "create"]).with(2).stderr;
    let expected = "\"create\" is an area; `kubeproof list --area create` prints its cases";
    assert!(area.contains(expected), "{area}");
    let output = kubeproof(&["explain", "xyzzy"]).with(2);
    assert!(output.stderr.contains("; `kubeproof list` prints all cases"), "{}", output.stderr);
}

#[test]
fn levels_are_explained_by_their_names_and_those_of_rfc_2119() {
    let cases = json(&["list", "--json"]);
    let cases = cases.as_array().expect("a list");
    for (names, verdict) in [
        (["must", "required"], "is a failure, which fails the run"),
        (["should", "recommended"], "is a warning, which fails only --strict runs"),
        (["may", "OPTIONAL"], "is a warning, which fails only --strict runs"),
    ] {
        let [text, synonym] = names.map(|name| kubeproof(&["explain", name]).with(0).stdout);
        assert_eq!(text, synonym);
        let [name, _] = names;
        let count = cases.iter().filter(|case| case["level"] == name).count();
        for expected in [
            &format!("{name} (level)\n"),
            verdict,
            &format!("\n  Cases: {count} of {}\n", cases.len()),
            &format!("kubeproof run --level {name}\n"),
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
    }
}

#[test]
fn cases_requirements_profiles_and_faults_are_explained() {
    let case = kubeproof(&["explain", "watch/resumes-from-every-version"]).with(0).stdout;
    for expected in
        ["Why it matters:", "watch.no-missed-mutations (must", "Steps:", "for each version of"]
    {
        assert!(case.contains(expected), "{expected:?} is not in\n{case}");
    }
    let requirement = kubeproof(&["explain", "watch.no-missed-mutations"]).with(0).stdout;
    assert!(requirement.contains("watch/resumes-from-every-version"), "{requirement}");
    for expected in
        ["Why clients rely on it:", "Permitted:", "of a correct server", "with the fault"]
    {
        assert!(requirement.contains(expected), "{expected:?} is not in\n{requirement}");
    }
    let patch = kubeproof(&["explain", "patch.merge-media-type"]).with(0).stdout;
    let (_, example) = patch.split_once("Example of a correct server").expect("an example");
    let (correct, faulty) = example.split_once("Example with the fault").expect("a failure");
    assert!(correct.contains("content-type: application/merge-patch+json"), "{correct}");
    assert!(correct.contains("-> 200") && !correct.contains("-> 4"), "{correct}");
    assert!(faulty.contains("application/merge-patch+json"), "{faulty}");
    let older =
        kubeproof(&["explain", "--no-example", "metadata.namespace-dns-label"]).with(0).stdout;
    for expected in ["  v1.0: A namespace is a DNS subdomain", "  v1.3, 2022, 2024, head: "] {
        assert!(older.contains(expected), "{expected:?} is not in\n{older}");
    }
    let link = "sig-architecture/api-conventions.md#metadata\n";
    for id in ["metadata.namespace-dns-label", "namespaces/names-are-dns-labels"] {
        assert!(kubeproof(&["explain", "--no-example", id]).with(0).stdout.contains(link), "{id}");
    }
    let profile = kubeproof(&["explain", "lists"]).with(0).stdout;
    for expected in ["lists (profile 3 of 9)", "  list/pages-cover-everything (must): "] {
        assert!(profile.contains(expected), "{expected:?} is not in\n{profile}");
    }
    let fault = kubeproof(&["explain", "lost-update"]).with(0).stdout;
    for expected in [
        "lost-update (fault of the reference server)",
        "  concurrency.one-of-two-puts-fails (must, implied): ",
        "Cases that catch it:\n  ",
        "  kubeproof serve --listen 127.0.0.1:8001 --token my-token --user-token user --fault \
         lost-update\n",
        "  kubeproof run --server http://127.0.0.1:8001 --token my-token --second-token user \
         --only ",
    ] {
        assert!(fault.contains(expected), "{expected:?} is not in\n{fault}");
    }
    let older = kubeproof(&["explain", "empty-body-is-invalid"]).with(0).stdout;
    assert!(older.contains(" --edition v1.0 --only errors/"), "{older}");
    let output = kubeproof(&["explain", "watch.no-missed-mutation"]).with(2);
    assert!(
        output.stderr.contains("did you mean \"watch.no-missed-mutations\"?"),
        "{}",
        output.stderr
    );
}

#[test]
fn coverage_counts_every_requirement() {
    let coverage = json(&["coverage", "--json"]);
    let rows = coverage["rows"].as_array().expect("rows");
    let sum: u64 = rows.iter().map(|row| row["requirements"].as_u64().expect("a count")).sum();
    assert_eq!(coverage["total"]["requirements"], sum);
    let shares = coverage["shares"].as_array().expect("shares");
    let share = shares.iter().find(|one| one["testability"] == "wire" && one["edition"] == "head");
    assert_eq!(share.expect("a share")["planned"], 0);
    let table = kubeproof(&["coverage"]).with(0).stdout;
    assert_eq!(table.lines().count(), rows.len() + 3, "{table}");
    let older = json(&["coverage", "--edition", "v1.0", "--json"]);
    assert!(older["total"]["requirements"].as_u64() < Some(sum));
}

const CASE: &str = "\
summary: A list of config maps returns 200
requirements: [verbs.list]
needs: [core]
steps:
  - request:
      id: list
      method: GET
      path: /api/v1/configmaps
      expect:
        - id: is-ok
          status: 200
";

#[test]
fn cases_of_a_directory_are_checked_and_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path().display().to_string();
    kubeproof(&["lint", &place]).with(2);
    fs::create_dir(dir.path().join("ours")).expect("made");
    let file = dir.path().join("ours/can-be-listed.yaml");
    fs::write(&file, CASE).expect("written");
    kubeproof(&["lint", &place]).with(0);
    let output = kubeproof(&["run", "-v", "--cases", &place, "--only", "ours/*"]).with(0);
    assert!(output.stdout.contains("PASS      ours/can-be-listed"), "{}", output.stdout);

    fs::write(&file, CASE.replace("status:", "statu:")).expect("written");
    let output = kubeproof(&["lint", &place]).with(1);
    assert!(output.stdout.contains("can-be-listed.yaml:11:"), "{}", output.stdout);
    assert!(output.stdout.contains("did you mean `status`?"), "{}", output.stdout);
    let output = kubeproof(&["run", "--cases", &place]).with(2);
    assert!(output.stderr.contains("did you mean `status`?"), "{}", output.stderr);
}

#[test]
fn printed_schemas_match_the_committed_files() {
    for kind in ["case", "subject", "requirements"] {
        let path = format!("{}/../cases/schema/{kind}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let committed: Value =
            serde_json::from_slice(&fs::read(path).expect("a schema")).expect("JSON");
        assert_eq!(json(&["schema", kind]), committed);
    }
    assert_eq!(json(&["schema", "report"])["title"], "A report of kubeproof");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = command(&["list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
