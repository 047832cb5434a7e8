//! The Markdown summary, for pull requests and job summaries.

use std::fmt::Write as _;

use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;

use crate::causes::{Cause, causes};
use crate::document::{Document, Record};
use crate::paint::{Paint, verdict_name};
use crate::requirements::Requirements;
use crate::text::{self, Size};

/// Maximum characters of a page with details. A comment on GitHub has at most 65,536 characters.
const DETAILED: usize = 40_000;
/// Maximum results in each list of names.
const NAMED: usize = 100;

/// Renders the results, grouped by their cause.
pub(super) fn render(document: &Document, requirements: &Requirements) -> String {
    let mut page = format!("# kubeproof: {}\n\n", document.outcome(false).name());
    facts(&mut page, document);
    areas(&mut page, document);
    let causes = causes(&document.results, false);
    if !causes.is_empty() {
        _ = writeln!(page, "\n## {}\n", plural(causes.len(), "cause"));
    }
    for cause in &causes {
        if page.len() < DETAILED {
            details(&mut page, cause, requirements);
        } else {
            _ = writeln!(page, "- {}", cell(&heading(cause)));
        }
    }
    names(&mut page, "Known failures", document, Record::is_known);
    names(&mut page, "Deviations", document, |record| record.verdict == Verdict::Deviation);
    page
}

/// Adds the facts about the run, and what the server is able to do.
fn facts(page: &mut String, document: &Document) {
    page.push_str("| run | |\n|---|---|\n");
    for (name, fact) in document.facts() {
        _ = writeln!(page, "| {name} | {} |", cell(&fact));
    }
    for rung in document.ladder() {
        _ = writeln!(page, "| profile | {} |", cell(&rung.to_string()));
    }
    for text in document.notices.iter().chain(&document.stale_entries) {
        _ = writeln!(page, "| note | {} |", cell(text));
    }
}

/// Adds the number of results of each area and verdict.
fn areas(page: &mut String, document: &Document) {
    page.push_str(
        "\n| area | pass | deviation | warn | fail | error | skip |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    let rows = document.areas().into_iter().map(|(area, counts)| (cell(area), counts));
    for (area, counts) in rows.chain([("**all**".to_owned(), document.summary)]) {
        let counts = counts.counts().map(|(_, count)| count.to_string());
        _ = writeln!(page, "| {area} | {} |", counts.join(" | "));
    }
}

/// Adds a cause that a reader can open.
fn details(page: &mut String, cause: &Cause<'_>, requirements: &Requirements) {
    let detail = text::cause(cause, requirements, Size::Full, Paint::plain());
    let detail = detail.trim_end();
    // The fence is longer than any run of backticks in the text, so that text of the server cannot
    // close it.
    let fence = "`".repeat(longest_run(detail, '`').max(2) + 1);
    _ = writeln!(page, "<details><summary>{}</summary>\n", html(&heading(cause)));
    _ = writeln!(page, "{fence}text\n{detail}\n{fence}\n\n</details>\n");
}

/// Returns the verdict, what went wrong, and how much it affects.
fn heading(cause: &Cause<'_>) -> String {
    let verdict = verdict_name(cause.verdict);
    let title = text::printable(&cause.title);
    let results = plural(cause.results.len(), "result");
    let blocks = match cause.blocked.len() {
        0 => String::new(),
        count => format!(", blocks {count}"),
    };
    format!("{verdict}: {title} ({results}{blocks})")
}

/// Adds a list of results with their reasons, unless there are none.
fn names(page: &mut String, title: &str, document: &Document, has: fn(&Record) -> bool) {
    let records: Vec<&Record> = document.results.iter().filter(|record| has(record)).collect();
    if records.is_empty() {
        return;
    }
    let count = plural(records.len(), "result");
    _ = writeln!(page, "\n<details><summary>{title}: {count}</summary>\n");
    for record in records.iter().take(NAMED) {
        _ = writeln!(page, "- `{}`: {}", code(&record.title()), cell(&record.headline()));
    }
    if records.len() > NAMED {
        _ = writeln!(page, "- and {}", plural(records.len() - NAMED, "more result"));
    }
    page.push_str("\n</details>\n");
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

fn code(text: &str) -> String {
    text.replace('`', "'").replace(['\n', '\r'], " ")
}

/// Escapes text so that it cannot end a table cell or become HTML.
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
    fn text_of_the_server_stays_inside_its_cell() {
        assert_eq!(cell("a|b\n<script>"), "a\\|b &lt;script&gt;");
        assert_eq!(code("a`b"), "a'b");
        assert_eq!(longest_run("a ``` b ```` c", '`'), 4);
    }
}
