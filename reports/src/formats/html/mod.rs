//! The HTML report: one self-contained file without external scripts, styles or fonts, so that CI
//! can keep it as an artifact.

mod cause;
mod result;

use std::collections::BTreeMap;

use askama::Template;

use self::cause::CauseView;
use self::result::ResultView;
use crate::causes::causes;
use crate::document::{Document, Outcome, Record, Rung, Summary};
use crate::paint::verdict_name;
use crate::report::ReportError;
use crate::requirements::Requirements;
use crate::sections;
use crate::text::printable;
use kubeproof_cases::plural;

/// Renders the results. The template engine escapes all text of the server.
pub(super) fn render(
    document: &Document,
    requirements: &Requirements,
) -> Result<String, ReportError> {
    Page::new(document, requirements)
        .render()
        .map_err(|error| ReportError::Render { format: "HTML", message: error.to_string() })
}

#[derive(Template)]
#[template(path = "report/page.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    kubeproof: &'static str,
    conventions: &'static str,
    outcome: &'static str,
    /// The verdict whose colour the outcome has.
    colour: &'static str,
    server: String,
    version: Option<String>,
    start: Option<Start<'a>>,
    edition: String,
    interrupted: bool,
    stopped: Option<String>,
    results: String,
    seconds: String,
    facts: Vec<(&'static str, String)>,
    counts: [(&'static str, usize); 6],
    notices: Vec<String>,
    causes: Vec<CauseView>,
    ladder: Vec<RungView>,
    areas: Vec<Area>,
}

/// The start of the run.
struct Start<'a> {
    exact: &'a str,
    /// To the minute.
    short: String,
}

/// A profile.
struct RungView {
    number: usize,
    name: &'static str,
    summary: &'static str,
    /// The verdict whose colour the profile has.
    colour: &'static str,
    pass: usize,
    total: usize,
    skip: usize,
}

/// The results of an area.
struct Area {
    name: String,
    counts: String,
    results: Vec<ResultView>,
}

impl<'a> Page<'a> {
    fn new(document: &'a Document, requirements: &Requirements) -> Self {
        let (head, outcome) = (&document.head, document.outcome(false));
        let causes = causes(&document.results, false);
        Self {
            style: include_str!("../../../templates/report/page.css"),
            script: include_str!("../../../templates/report/page.js"),
            kubeproof: env!("CARGO_PKG_VERSION"),
            conventions: sections::DOCUMENT,
            outcome: outcome.name(),
            colour: match outcome {
                Outcome::Conformant => "pass",
                Outcome::NotConformant => "fail",
                Outcome::Inconclusive => "error",
            },
            server: printable(&head.target.server),
            version: head.target.version.as_deref().map(printable),
            start: head.started_at.as_deref().map(Start::new),
            edition: head.edition.to_string(),
            interrupted: document.interrupted,
            stopped: document.stopped.as_ref().map(ToString::to_string),
            results: plural(document.results.len(), "result"),
            seconds: format!("{:.1}", document.duration_ms / 1000.0),
            facts: facts(document),
            counts: document
                .summary
                .counts()
                .map(|(verdict, count)| (verdict_name(verdict), count)),
            notices: document.notices.iter().map(|notice| printable(notice)).collect(),
            causes: CauseView::all(&causes, requirements),
            ladder: document.ladder().into_iter().map(RungView::new).collect(),
            areas: areas(&document.results, requirements),
        }
    }
}

impl<'a> Start<'a> {
    fn new(exact: &'a str) -> Self {
        let minute = exact.get(..16).unwrap_or(exact).replace('T', " ");
        Self { exact, short: format!("{minute} UTC") }
    }
}

impl RungView {
    fn new(rung: Rung) -> Self {
        Self {
            number: rung.number(),
            name: rung.profile.name(),
            summary: rung.profile.summary(),
            colour: match rung {
                _ if rung.is_complete() => "pass",
                Rung { pass: 0, skip, total, .. } if skip == total => "skip",
                _ => "fail",
            },
            pass: rung.pass,
            total: rung.total,
            skip: rung.skip,
        }
    }
}

fn facts(document: &Document) -> Vec<(&'static str, String)> {
    let facts = document.facts().into_iter();
    let mut facts: Vec<_> = facts.map(|(name, fact)| (name, printable(&fact))).collect();
    let capabilities = &document.head.target.capabilities;
    if !capabilities.is_empty() {
        facts.push(("capabilities", printable(&capabilities.join(", "))));
    }
    facts
}

fn areas(results: &[Record], requirements: &Requirements) -> Vec<Area> {
    let mut areas: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in results {
        areas.entry(record.area()).or_default().push(record);
    }
    let mut anchors = Anchors::default();
    let areas = areas.into_iter().map(|(name, records)| {
        let mut summary = Summary::default();
        for record in &records {
            summary.add(record.verdict);
        }
        let counts = summary.counts().into_iter().filter(|(_, count)| *count > 0);
        let counts: Vec<_> =
            counts.map(|(verdict, count)| format!("{count} {}", verdict_name(verdict))).collect();
        let views = records.into_iter().map(|record| {
            let anchor = anchors.next(record);
            ResultView::new(record, anchor, requirements)
        });
        let results = views.collect();
        Area { name: printable(name), counts: counts.join(", "), results }
    });
    areas.collect()
}

/// Returns the anchor of a result: `case@subject`.
fn anchor(record: &Record) -> String {
    printable(&record.title().replace(" @ ", "@").replace(' ', "_"))
}

/// Makes anchors unique: with `--repeat`, a case has several results on a subject.
#[derive(Default)]
struct Anchors(BTreeMap<String, usize>);

impl Anchors {
    fn next(&mut self, record: &Record) -> String {
        let anchor = anchor(record);
        let count = self.0.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}~{count}") }
    }
}
