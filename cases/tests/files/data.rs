//! The files of `cases/data`.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of all files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// The YAML files below a folder, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The case files.
pub(crate) fn cases() -> Vec<PathBuf> {
    let is_case = |path: &PathBuf| kind(path) == "case";
    files(&folder()).into_iter().filter(is_case).collect()
}

/// The name of the schema that a file follows.
pub(crate) fn kind(path: &Path) -> String {
    let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match parent.to_string_lossy().as_ref() {
        "data" => stem,
        "fragments" => "fragment".to_owned(),
        "subjects" => "subject".to_owned(),
        _ => "case".to_owned(),
    }
}
