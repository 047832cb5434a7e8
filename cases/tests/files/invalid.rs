//! Every mistake of a file is reported as in the golden file beside it.
//!
//! `KUBEPROOF_BLESS=1` writes the golden files again. Read the difference before you commit it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kubeproof_cases::{CODES, Catalogue, Diagnostics, Loader};

use crate::bless;

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invalid");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .expect("the directory of invalid files can be read")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// A file is in the area `invalid`, unless its first line names another path.
fn diagnose(file: &Path) -> Result<Catalogue, Diagnostics> {
    let text = std::fs::read_to_string(file).expect("an invalid file can be read");
    let name = file.file_name().expect("a file has a name").to_string_lossy();
    let default = format!("invalid/{name}");
    let place =
        text.lines().next().and_then(|line| line.strip_prefix("# path: ")).unwrap_or(&default);
    Loader::without_cases().known_faults(["create-overwrites"]).file(place, &default, &text).load()
}

#[test]
fn every_mistake_is_reported_as_in_its_golden_file() {
    let mut wrong = Vec::new();
    for file in files() {
        let rendered = match diagnose(&file) {
            Ok(_) => panic!("{} has no mistake", file.display()),
            Err(errors) => errors.render(false),
        };
        wrong.extend(bless::compare(&file.with_extension("stderr"), &rendered).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_golden_belongs_to_a_file() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invalid");
    for entry in std::fs::read_dir(directory).expect("the directory of invalid files can be read") {
        let path = entry.expect("its entries can be read").path();
        assert!(path.with_extension("yaml").exists(), "{} belongs to no file", path.display());
    }
}

#[test]
fn every_code_is_shown_by_a_file() {
    let shown: BTreeSet<&str> = files()
        .iter()
        .filter_map(|file| diagnose(file).err())
        .flatten()
        .map(|error| error.code)
        .collect();
    // These relate the catalogue to all cases; `catalogue.rs` shows them.
    let elsewhere = ["no-case", "no-profile", "stale-reason"];
    let missing: Vec<&&str> =
        CODES.iter().filter(|code| !shown.contains(**code) && !elsewhere.contains(code)).collect();
    assert!(missing.is_empty(), "no invalid file shows {missing:?}");
}

#[test]
fn every_file_is_reported_not_only_the_first() {
    let wrong = "summary: x\nrequirements: [verbs.creat]\nsteps: []\n";
    let errors = Loader::without_cases()
        .file("a/one.yaml", "a/one.yaml", wrong)
        .file("b/two.yaml", "b/two.yaml", wrong)
        .load()
        .expect_err("both files are wrong");
    let places: Vec<String> =
        errors.iter().map(|error| format!("{}:{}", error.file, error.span.line)).collect();
    assert_eq!(places, ["a/one.yaml:2", "a/one.yaml:3", "b/two.yaml:2", "b/two.yaml:3"]);
}
