//! The help texts, held against the files in `goldens/help/`.
//!
//! `KUBEPROOF_BLESS=1 cargo test -p kubeproof --test cli` rewrites them; read the difference before it is committed.

use std::fs;
use std::path::Path;

use rstest::rstest;

use crate::kubeproof::kubeproof;

#[rstest]
#[case(&[])]
#[case(&["run"])]
#[case(&["list"])]
#[case(&["explain"])]
#[case(&["clean"])]
#[case(&["coverage"])]
#[case(&["lint"])]
#[case(&["lint-api"])]
#[case(&["serve"])]
#[case(&["self-test"])]
#[case(&["report"])]
#[case(&["report", "merge"])]
#[case(&["report", "render"])]
#[case(&["report", "diff"])]
#[case(&["schema"])]
#[case(&["completions"])]
#[case(&["man"])]
fn help_is_as_its_golden(#[case] command: &[&str]) {
    let help = kubeproof(&[command, &["--help"]].concat()).with(0).stdout;
    let name = if command.is_empty() { "kubeproof".to_owned() } else { command.join("-") };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/help").join(format!("{name}.txt"));
    if std::env::var_os("KUBEPROOF_BLESS").is_some() {
        fs::write(&path, &help).expect("the golden is written");
    }
    let golden = fs::read_to_string(&path).expect("a golden; KUBEPROOF_BLESS=1 makes it");
    assert_eq!(help, golden, "{} differs; KUBEPROOF_BLESS=1 rewrites it", path.display());
}

#[test]
fn shells_and_man_get_every_command() {
    let completions = kubeproof(&["completions", "bash"]).with(0).stdout;
    assert!(completions.contains("--known-failures"), "{completions}");
    let page = kubeproof(&["man"]).with(0).stdout;
    assert!(page.contains(".TH kubeproof"), "{page}");
    let page = kubeproof(&["man", "run"]).with(0).stdout;
    assert!(page.contains("dry\\-run"), "{page}");
    kubeproof(&["man", "walk"]).with(2);
}
