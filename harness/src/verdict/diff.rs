//! Unified diffs of JSON documents.
//!
//! `TextDiff` of `similar` would add all its algorithms to the program, half a megabyte.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;
use similar::algorithms::{Capture, Replace, myers};
use similar::{DiffOp, DiffTag};

/// Limit on values in a diff.
const MAX_DIFF: usize = 64 << 10;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Returns a unified diff of two objects or two lists.
pub(super) fn diff(expected: &Value, actual: &Value) -> Option<String> {
    let same_shape =
        (expected.is_object() && actual.is_object()) || (expected.is_array() && actual.is_array());
    // The expression of a check is no value to compare with.
    if !same_shape || expected.get("cel").is_some() {
        return None;
    }
    let (expected, actual) =
        (serde_json::to_string_pretty(expected).ok()?, serde_json::to_string_pretty(actual).ok()?);
    // The cost grows with the square of the differences.
    if expected.len().max(actual.len()) > MAX_DIFF {
        return None;
    }
    unified(&expected.lines().collect::<Vec<_>>(), &actual.lines().collect::<Vec<_>>())
}

fn unified(old: &[&str], new: &[&str]) -> Option<String> {
    let mut capture = Replace::new(Capture::new());
    myers::diff(&mut capture, old, 0..old.len(), new, 0..new.len()).ok()?;
    let mut text = "--- expected\n+++ actual\n".to_owned();
    for hunk in capture.into_inner().into_grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let old_lines = first.old_range().start..last.old_range().end;
        let new_lines = first.new_range().start..last.new_range().end;
        writeln!(text, "@@ -{} +{} @@", place(&old_lines), place(&new_lines)).ok()?;
        for op in &hunk {
            write_lines(&mut text, op, old, new);
        }
    }
    Some(text)
}

/// Returns the first line, counted from 1, and the number of lines.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        // Without lines, it is the line before.
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(text: &mut String, op: &DiffOp, old: &[&str], new: &[&str]) {
    let mut write = |sign: char, lines: &[&str]| {
        for line in lines {
            text.push(sign);
            text.push_str(line);
            text.push('\n');
        }
    };
    if op.tag() == DiffTag::Equal {
        return write(' ', &old[op.old_range()]);
    }
    write('-', &old[op.old_range()]);
    write('+', &new[op.new_range()]);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_diff_has_the_lines_around_each_change() {
        let text = diff(
            &json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]),
            &json!([1, 2, 3, 4, 0, 6, 7, 8, 9, 10, 11, 12, 13, 14]),
        );
        let expected = [
            "--- expected",
            "+++ actual",
            "@@ -3,7 +3,7 @@",
            "   2,",
            "   3,",
            "   4,",
            "-  5,",
            "+  0,",
            "   6,",
            "   7,",
            "   8,",
            "@@ -11,5 +11,6 @@",
            "   10,",
            "   11,",
            "   12,",
            "-  13",
            "+  13,",
            "+  14",
            " ]",
            "",
        ];
        assert_eq!(text.as_deref(), Some(&*expected.join("\n")));
    }

    #[test]
    fn empty_ranges_name_the_line_before() {
        assert_eq!(
            unified(&[], &["a"]).as_deref(),
            Some("--- expected\n+++ actual\n@@ -0,0 +1 @@\n+a\n")
        );
    }

    #[test]
    fn only_documents_of_one_shape_have_a_diff() {
        assert!(diff(&json!({"a": 1}), &json!({"a": 2})).is_some());
        assert_eq!(diff(&json!({"a": 1}), &json!(2)), None);
        assert_eq!(diff(&json!(1), &json!({"a": 2})), None);
        assert_eq!(diff(&json!({"cel": "a == b"}), &json!({})), None);
    }

    #[test]
    fn long_documents_have_no_diff() {
        let around = serde_json::to_string_pretty(&json!({"a": ""})).unwrap().len();
        let text = |length: usize| json!({"a": "x".repeat(length - around)});
        assert!(diff(&json!({}), &text(MAX_DIFF)).is_some());
        assert_eq!(diff(&json!({}), &text(MAX_DIFF + 1)), None);
    }
}
