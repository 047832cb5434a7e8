//! The Test Anything Protocol, version 14.

use std::fmt::Write as _;

use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record};
use crate::paint::word;

/// Renders the results.
pub fn render(document: &Document) -> String {
    let mut tap = format!("TAP version 14\n1..{}\n", document.results.len());
    for (at, record) in document.results.iter().enumerate() {
        line(&mut tap, at + 1, record);
    }
    if document.interrupted {
        tap.push_str("Bail out! the run was interrupted\n");
    }
    tap
}

fn line(tap: &mut String, number: usize, record: &Record) {
    let bad = matches!(record.verdict, Verdict::Fail | Verdict::Error) || record.surprise().is_some();
    let ok = if bad { "not ok" } else { "ok" };
    _ = write!(tap, "{ok} {number} - {}", escape(&record.title()));
    if let Some(known) = record.known.as_ref().filter(|_| record.is_known()) {
        _ = write!(tap, " # TODO {}", escape(&known.reason));
    } else if record.verdict == Verdict::Skip {
        _ = write!(tap, " # SKIP {}", escape(&record.reason));
    }
    tap.push('\n');
    if !record.is_remarkable() {
        return;
    }
    tap.push_str("  ---\n");
    // A JSON string is a YAML string, whatever stands in it.
    let mut field = |name: &str, text: &str| {
        _ = writeln!(tap, "  {name}: {}", serde_json::Value::from(text));
    };
    field("verdict", word(record.verdict));
    field("message", &record.headline());
    field("requirements", &record.requirements.join(", "));
    for check in record.broken_checks() {
        field(&format!("check_{}", check.id), &check.message);
    }
    tap.push_str("  ...\n");
}

/// `#` would begin a directive.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}
