//! Compares the help texts with the golden files in `goldens/help/`.
//!
//! `KUBEPROOF_BLESS=1 cargo test -p kubeproof --test cli help` rewrites the files. Read the diff
//! before you commit it.

use std::fs;
use std::path::Path;

use rstest::rstest;

use crate::program::kubeproof;

#[rstest]
#[case(&[])]
#[case(&["run"])]
#[case(&["stress"])]
#[case(&["explore"])]
#[case(&["list"])]
#[case(&["explain"])]
#[case(&["clean"])]
#[case(&["coverage"])]
#[case(&["case-pages"])]
#[case(&["lint"])]
#[case(&["lint-api"])]
#[case(&["serve"])]
#[case(&["envtest-assets"])]
#[case(&["kube-apiserver"])]
#[case(&["etcd"])]
#[case(&["self-test"])]
#[case(&["report"])]
#[case(&["report", "merge"])]
#[case(&["report", "render"])]
#[case(&["report", "diff"])]
#[case(&["report", "matrix"])]
#[case(&["report", "verify"])]
#[case(&["next"])]
#[case(&["schema"])]
#[case(&["completions"])]
#[case(&["man"])]
fn help_matches_its_golden(#[case] command: &[&str]) {
    let help = kubeproof(&[command, &["--help"]].concat()).with(0).stdout;
    let name = if command.is_empty() { "kubeproof".to_owned() } else { command.join("-") };
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/goldens/help")
        .join(format!("{name}.txt"));
    if std::env::var_os("KUBEPROOF_BLESS").is_some() {
        fs::write(&path, &help).expect("the golden is written");
    }
    let golden = fs::read_to_string(&path).expect("a golden; KUBEPROOF_BLESS=1 writes it");
    assert_eq!(help, golden, "{} differs; KUBEPROOF_BLESS=1 rewrites it", path.display());
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let completions = kubeproof(&["completions", "bash"]).with(0).stdout;
    assert!(completions.contains("--known-failures"), "{completions}");
    let page = kubeproof(&["man"]).with(0).stdout;
    assert!(page.contains(".TH kubeproof"), "{page}");
    let page = kubeproof(&["man", "run"]).with(0).stdout;
    assert!(page.contains("dry\\-run"), "{page}");
    kubeproof(&["man", "walk"]).with(2);
}

/// Returns the completions of bash for the last word.
#[cfg(unix)]
fn completed(words: &[&str]) -> Vec<String> {
    let script = r#"
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _kubeproof kubeproof "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let completions = kubeproof(&["completions", "bash"]).with(0).stdout;
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("kubeproof.bash");
    fs::write(&file, completions).expect("written");
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .arg(&file)
        .args([&["kubeproof"], words].concat())
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[cfg(unix)]
#[rstest]
#[case(&["run", "--only", "create/taken-name"], "create/taken-name-rejected")]
#[case(&["list", "--skip", "watch/resumes"], "watch/resumes-from-every-version")]
#[case(&["run", "--area", "port"], "portforward")]
#[case(&["serve", "--fault", "lost-up"], "lost-update")]
#[case(&["explain", "lost-up"], "lost-update")]
#[case(&["explain", "create/taken-name"], "create/taken-name-rejected")]
#[case(&["explain", "http.409-cr"], "http.409-create")]
#[case(&["run", "--edition", "v1.3"], "v1.3")]
fn completions_complete_names(#[case] words: &[&str], #[case] expected: &str) {
    assert_eq!(completed(words), [expected]);
}
