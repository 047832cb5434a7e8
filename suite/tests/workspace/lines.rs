//! The length of lines.

use std::fs;
use std::path::Path;

use rstest::rstest;

use crate::files::files;
use crate::root;

/// Maximum characters of a line.
const COLUMNS: usize = 100;

/// Generated files, whose lines are as long as the data in them.
const EXCEPTIONS: [&str; 1] = ["reports/tests/goldens/summary.md"];

#[test]
fn lines_fit_into_100_columns() {
    let root = root();
    let files = files(&root, &["rs", "md", "yaml", "yml"]);
    assert!(files.len() > EXCEPTIONS.len(), "no files in {}", root.display());
    let long = files.iter().flat_map(|file| {
        let name = file.strip_prefix(&root).expect("a file of the workspace");
        if EXCEPTIONS.iter().any(|exception| name == Path::new(exception)) {
            return Vec::new();
        }
        let text = fs::read_to_string(file).expect("UTF-8");
        let show = |line: usize| format!("{}:{line}", name.display());
        long_lines(&text).into_iter().map(show).collect()
    });
    assert_eq!(long.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn exceptions_have_long_lines() {
    for exception in EXCEPTIONS {
        let text = fs::read_to_string(root().join(exception)).expect("UTF-8");
        assert!(!long_lines(&text).is_empty(), "{exception} needs no exception");
    }
}

/// Returns the numbers of the lines that are too long.
fn long_lines(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let long = lines.filter(|(_, line)| line.chars().count() > COLUMNS);
    long.map(|(index, _)| index + 1).collect()
}

#[rstest]
#[case::as_long_as_permitted("x", 100, &[])]
#[case::longer("x", 101, &[2])]
#[case::characters_of_two_bytes("é", 100, &[])]
fn long_lines_are_found(#[case] text: &str, #[case] times: usize, #[case] expected: &[usize]) {
    assert_eq!(long_lines(&format!("first\n{}\nlast\n", text.repeat(times))), expected);
}
