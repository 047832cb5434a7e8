//! The files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold no sources.
const OTHER: [&str; 2] = [".git", "target"];

/// Returns all Rust files below a directory, sorted.
pub(crate) fn rust_files(directory: &Path) -> Vec<PathBuf> {
    files(directory, &["rs"])
}

/// Returns all files with one of these extensions below a directory, sorted.
pub(crate) fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            let name = path.file_name().expect("a name");
            if !OTHER.iter().any(|other| name == *other) {
                found.extend(files(&path, extensions));
            }
        } else if extensions.iter().any(|known| path.extension().is_some_and(|it| it == *known)) {
            found.push(path);
        }
    }
    found.sort();
    found
}
