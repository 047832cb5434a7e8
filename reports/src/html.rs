//! A page of its own: no script, style or font from elsewhere, so it can be kept as an artifact and opened anywhere.

use askama::Template;
use kubeproof_harness::event::Verdict;

use crate::ReportError;
use crate::document::{Document, Record, Summary};
use crate::paint::{Paint, word};
use crate::requirements::Requirements;
use crate::text::{self, Limits};

/// Renders the results. Everything that a server sent is escaped by the template engine.
pub fn render(document: &Document, requirements: &Requirements) -> Result<String, ReportError> {
    let page = Page {
        document,
        version: env!("CARGO_PKG_VERSION"),
        seconds: format!("{:.1}", document.duration_ms / 1000.0),
        counts: document.summary.counts().map(|(verdict, count)| (word(verdict), count)),
        areas: document.areas().into_iter().map(|(name, summary)| Area { name, summary }).collect(),
        rows: document.results.iter().map(|record| Row::new(record, requirements)).collect(),
    };
    page.render().map_err(|error| ReportError::Render { format: "HTML", message: error.to_string() })
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    document: &'a Document,
    version: &'static str,
    seconds: String,
    counts: [(&'static str, usize); 6],
    areas: Vec<Area<'a>>,
    rows: Vec<Row<'a>>,
}

struct Area<'a> {
    name: &'a str,
    summary: Summary,
}

struct Row<'a> {
    record: &'a Record,
    verdict: &'static str,
    headline: String,
    /// Failures are told in whole, and stand open.
    open: bool,
    detail: String,
    milliseconds: String,
}

impl<'a> Row<'a> {
    fn new(record: &'a Record, requirements: &Requirements) -> Self {
        Self {
            record,
            verdict: word(record.verdict),
            headline: record.headline(),
            open: matches!(record.verdict, Verdict::Fail | Verdict::Error),
            detail: text::detail(record, requirements, Limits::SHORT, Paint::plain()),
            milliseconds: format!("{:.1}", record.duration_ms),
        }
    }
}
