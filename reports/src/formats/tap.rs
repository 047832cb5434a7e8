//! The Test Anything Protocol, version 14.

use std::fmt::Write as _;

use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record};
use crate::paint::verdict_name;

/// Renders the results.
pub(super) fn render(document: &Document) -> String {
    let mut tap = format!("TAP version 14\n1..{}\n", document.results.len());
    for (name, fact) in document.facts() {
        _ = writeln!(tap, "# {name}: {}", fact.replace(['\n', '\r'], " "));
    }
    for (at, record) in document.results.iter().enumerate() {
        line(&mut tap, at + 1, record);
    }
    if document.interrupted {
        tap.push_str("Bail out! the run was interrupted\n");
    } else if let Some(stopped) = &document.stopped {
        _ = writeln!(tap, "Bail out! the run stopped: {}", escape(&stopped.to_string()));
    }
    tap
}

fn line(tap: &mut String, number: usize, record: &Record) {
    let bad =
        matches!(record.verdict, Verdict::Fail | Verdict::Error) || record.surprise().is_some();
    let ok = if bad { "not ok" } else { "ok" };
    _ = write!(tap, "{ok} {number} - {}", escape(&record.title()));
    if let Some(known) = record.known.as_ref().filter(|_| record.is_known()) {
        _ = write!(tap, " # TODO {}", escape(&known.reason));
    } else if record.verdict == Verdict::Skip {
        _ = write!(tap, " # SKIP {}", escape(&record.reason));
    }
    tap.push('\n');
    if !record.needs_attention() {
        return;
    }
    tap.push_str("  ---\n");
    // Every JSON string is a valid YAML string.
    let mut field = |name: &str, text: &str| {
        _ = writeln!(tap, "  {name}: {}", serde_json::Value::from(text));
    };
    field("verdict", verdict_name(record.verdict));
    field("message", &record.headline());
    field("requirements", &record.requirements.join(", "));
    for check in record.failed_checks() {
        field(&format!("check_{}", check.id), &check.message);
    }
    tap.push_str("  ...\n");
}

/// Escapes `#`, which starts a directive. A test point is one line.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#").replace(['\n', '\r'], " ")
}
