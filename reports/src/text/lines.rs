//! Collects lines with indents, labels and limits.

use kubeproof_cases::plural;
use serde_json::Value;

use super::{Limits, printable, shorten};
use crate::paint::Paint;

pub(super) struct Lines {
    pub(super) text: String,
    pub(super) limits: Limits,
    pub(super) paint: Paint,
}

impl Lines {
    pub(super) fn new(limits: Limits, paint: Paint) -> Self {
        Self { text: String::new(), limits, paint }
    }

    /// Adds lines after a label. The label precedes the first line; the marks `>` and `<` precede
    /// all lines.
    pub(super) fn block(&mut self, indent: usize, label: &str, text: &str) {
        let is_mark = label == "> " || label == "< ";
        let total = text.lines().count();
        for (at, line) in text.lines().take(self.limits.lines).enumerate() {
            let label = if at == 0 || is_mark { label.to_owned() } else { " ".repeat(label.len()) };
            let line = printable(&shorten(line, self.limits.columns));
            let line = if label.is_empty() { self.paint.diff_line(&line) } else { line };
            self.line(indent, &format!("{}{line}", self.paint.dim(label)));
        }
        if total > self.limits.lines {
            let more = plural(total - self.limits.lines, "more line");
            self.line(indent, &self.paint.dim(format!("{label}... {more}")));
        }
    }

    /// Adds a line after a label without shortening it. A shortened command is useless.
    pub(super) fn whole(&mut self, indent: usize, label: &str, text: &str) {
        let text = printable(&text.lines().collect::<Vec<_>>().join(" "));
        self.line(indent, &format!("{}{text}", self.paint.dim(label)));
    }

    pub(super) fn value(&mut self, indent: usize, label: &str, value: &Value) {
        let text = match value {
            Value::Null => return,
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_)
                if value.to_string().len() > self.limits.columns / 2 =>
            {
                format!("{value:#}")
            }
            _ => value.to_string(),
        };
        self.block(indent, label, &text);
    }

    pub(super) fn line(&mut self, indent: usize, text: &str) {
        let line = format!("{}{text}", "    ".repeat(indent));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}
