//! A summary in Markdown, for pull requests and the summaries of CI jobs.

use std::fmt::Write as _;

use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record};
use crate::paint::{Paint, word};
use crate::requirements::Requirements;
use crate::text::{self, Limits, plural};

/// Results told in detail; CI systems cut long summaries off, and nobody reads them.
const DETAILED: usize = 50;

/// Renders the results.
pub fn render(document: &Document, requirements: &Requirements) -> String {
    let summary = document.summary;
    let mut page = format!("# kubeproof: {}\n\n", outcome(document));
    let head = &document.head;
    let version = head.target.version.as_deref().unwrap_or("unknown version");
    _ = writeln!(
        page,
        "`{}` ({}), {}, seed {}.\n",
        code(&head.target.server),
        cell(version),
        results(document),
        head.seed
    );

    page.push_str(
        "| area | pass | deviation | warn | fail | error | skip |\n|---|--:|--:|--:|--:|--:|--:|\n",
    );
    let rows = document.areas().into_iter().map(|(area, counts)| (cell(area), counts));
    for (area, counts) in rows.chain([("**all**".to_owned(), summary)]) {
        let counts = counts.counts().map(|(_, count)| count.to_string());
        _ = writeln!(page, "| {area} | {} |", counts.join(" | "));
    }
    for verdict in [Verdict::Fail, Verdict::Error, Verdict::Warn, Verdict::Deviation] {
        let records: Vec<_> = document.results.iter().filter(|record| record.verdict == verdict).collect();
        section(&mut page, verdict, &records, requirements);
    }
    page
}

fn outcome(document: &Document) -> &'static str {
    if document.failures(false).next().is_some() {
        "not conformant"
    } else if document.interrupted {
        "interrupted"
    } else if document.errors().next().is_some() || document.summary.total() == document.summary.skip {
        "not judged in full"
    } else {
        "conformant"
    }
}

fn results(document: &Document) -> String {
    let seconds = document.duration_ms / 1000.0;
    format!("{} in {seconds:.1} s", plural(document.summary.total(), "result"))
}

fn section(page: &mut String, verdict: Verdict, records: &[&Record], requirements: &Requirements) {
    if records.is_empty() {
        return;
    }
    _ = writeln!(page, "\n## {}\n", word(verdict));
    let detailed = matches!(verdict, Verdict::Fail | Verdict::Error);
    for (at, record) in records.iter().enumerate() {
        let line = format!("`{}`: {}", code(&record.title()), cell(&record.headline()));
        if detailed && at < DETAILED {
            let detail = text::detail(record, requirements, Limits::SHORT, Paint::plain());
            // A fence longer than any run of backticks inside it cannot be closed by what a server sent.
            let fence = "`".repeat(longest_run(&detail, '`').max(2) + 1);
            _ = writeln!(page, "<details><summary>{}</summary>\n", html(&record.title()));
            _ = writeln!(page, "{line}\n\n{fence}text\n{detail}{fence}\n\n</details>\n");
        } else {
            _ = writeln!(page, "- {line}");
        }
    }
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

fn code(text: &str) -> String {
    text.replace('`', "'").replace(['\n', '\r'], " ")
}

/// Text that cannot end a table's cell, nor become HTML.
fn cell(text: &str) -> String {
    html(text).replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_sent_cannot_break_out_of_its_place() {
        assert_eq!(cell("a|b\n<script>"), "a\\|b &lt;script&gt;");
        assert_eq!(code("a`b"), "a'b");
        assert_eq!(longest_run("a ``` b ```` c", '`'), 4);
    }
}
