//! Results, checks and exchanges as the page shows them.

use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;
use serde_json::Value;

use crate::document::{CheckRecord, ExchangeRecord, Record};
use crate::paint::{Paint, verdict_name};
use crate::requirements::{Requirement, Requirements};
use crate::site::case_url;
use crate::text::{self, Limits, is_in_message, items, place, printable, shorten};

/// Maximum size of a value or a diff.
const LIMITS: Limits = Limits { lines: 60, columns: 400 };

/// The indentation of the lines of an exchange.
const INDENT: &str = "            ";

/// A case on a subject.
pub(super) struct ResultView {
    pub(super) anchor: String,
    pub(super) id: String,
    pub(super) verdict: &'static str,
    pub(super) profile: &'static str,
    /// The part of the id after the area.
    pub(super) name: String,
    pub(super) subject: String,
    pub(super) headline: String,
    pub(super) summary: String,
    pub(super) why: Option<String>,
    pub(super) failed: Vec<CheckView>,
    /// The exchanges of a case that ended before its first check.
    pub(super) exchanges: Vec<ExchangeView>,
    /// The checks that passed.
    pub(super) passed: Option<String>,
    pub(super) rules: Vec<RuleView>,
    pub(super) facts: String,
    /// The URL of the page of the case, for results that need attention.
    pub(super) page: Option<String>,
}

/// A check that did not pass.
pub(super) struct CheckView {
    pub(super) verdict: &'static str,
    pub(super) id: String,
    pub(super) message: String,
    pub(super) means: Option<String>,
    pub(super) diff: Vec<DiffLine>,
    /// Expected and actual values, or places.
    pub(super) values: Vec<(&'static str, String)>,
    pub(super) curl: Option<String>,
    pub(super) exchanges: Vec<ExchangeView>,
}

/// A line of a unified diff.
pub(super) struct DiffLine {
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// A request and its response.
pub(super) struct ExchangeView {
    pub(super) title: String,
    pub(super) text: String,
}

/// A requirement, with a link to its section.
pub(super) struct RuleView {
    pub(super) id: String,
    pub(super) level: String,
    pub(super) statement: String,
    pub(super) url: Option<String>,
}

impl ResultView {
    pub(super) fn new(record: &Record, anchor: String, requirements: &Requirements) -> Self {
        let failed: Vec<_> =
            record.failed_checks().iter().map(|check| CheckView::new(check, record)).collect();
        let ended_early = failed.is_empty() && record.needs_attention();
        let last = record.exchanges.last().filter(|_| ended_early);
        let (area, name) = record.id.split_once('/').unwrap_or(("", &record.id));
        let rules = record.requirements.iter().map(|id| RuleView::new(id, record, requirements));
        let mut facts = vec![format!("{:.1} ms", record.duration_ms), record.level.to_string()];
        facts.extend(record.profile.map(|profile| format!("profile {}", profile.name())));
        facts.push(format!("area {area}"));
        Self {
            anchor,
            id: record.id.clone(),
            verdict: verdict_name(record.verdict),
            profile: record.profile.map_or("", |profile| profile.name()),
            name: printable(name),
            subject: printable(&record.subject),
            headline: printable(&record.headline()),
            summary: printable(&record.summary),
            why: record.why.as_deref().map(|why| joined(why, " ")),
            failed,
            exchanges: last.into_iter().map(ExchangeView::new).collect(),
            passed: passed(record),
            rules: rules.collect(),
            facts: facts.join(", "),
            page: case_url(&record.id).filter(|_| record.needs_attention()),
        }
    }
}

impl CheckView {
    pub(super) fn new(check: &CheckRecord, record: &Record) -> Self {
        let mut values = Vec::new();
        values.extend(items(check).map(|text| ("with", printable(&text))));
        if !check.places.is_empty() {
            let places: Vec<_> = check.places.iter().map(|one| printable(&place(one))).collect();
            values.push(("at", places.join("\n")));
        } else if check.diff.is_none() && !is_in_message(check) {
            values.extend(value(&check.expected).map(|text| ("expected", text)));
            values.extend(value(&check.actual).map(|text| ("actual", text)));
        }
        let exchanges = record.exchanges_of(check).into_iter().map(ExchangeView::new);
        Self {
            verdict: verdict_name(check.verdict),
            id: printable(&check.id),
            message: printable(&check.message),
            means: check.means.as_deref().map(|means| joined(means, " ")),
            diff: check.diff.as_deref().map(diff).unwrap_or_default(),
            values,
            curl: check.curl.as_deref().map(|curl| joined(curl, "\n")),
            exchanges: exchanges.collect(),
        }
    }
}

impl ExchangeView {
    pub(super) fn new(exchange: &ExchangeRecord) -> Self {
        let response = match (exchange.status, &exchange.broken) {
            (Some(status), _) => status.to_string(),
            (None, Some(_)) => "no response".to_owned(),
            (None, None) => String::new(),
        };
        let request = format!("{} {} → {response}", exchange.method, exchange.target);
        let title = match exchange.step.as_str() {
            "" => request,
            step => format!("{step}: {request}"),
        };
        let text = text::exchange(exchange, LIMITS, Paint::plain());
        // The first line repeats the title.
        let lines = text.lines().skip(1).map(|line| line.strip_prefix(INDENT).unwrap_or(line));
        Self { title: printable(&title), text: lines.collect::<Vec<_>>().join("\n") }
    }
}

impl RuleView {
    pub(super) fn new(id: &str, record: &Record, requirements: &Requirements) -> Self {
        let known = requirements.get(id);
        Self {
            id: id.to_owned(),
            level: known.map_or(record.level, |known| known.level).to_string(),
            statement: known.map(|known| known.statement.clone()).unwrap_or_default(),
            url: known.and_then(Requirement::section_url),
        }
    }
}

/// Returns the lines of a text.
fn joined(text: &str, separator: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join(separator)
}

/// Returns the names of the checks that passed.
fn passed(record: &Record) -> Option<String> {
    let passed = record.checks.iter().filter(|check| check.verdict == Verdict::Pass);
    let names: Vec<_> = passed.map(|check| printable(&check.id)).collect();
    let count = names.len();
    let verb = if count == 1 { "passes" } else { "pass" };
    (count > 0).then(|| format!("{} {verb}: {}", plural(count, "check"), names.join(", ")))
}

fn diff(text: &str) -> Vec<DiffLine> {
    let class = |line: &str| match line.as_bytes().first() {
        Some(b'+') => "added",
        Some(b'-') => "removed",
        _ => "",
    };
    let is_heading = |line: &&str| line.starts_with("--- ") || line.starts_with("+++ ");
    let lines = text.lines().filter(|line| !is_heading(line)).take(LIMITS.lines);
    lines
        .map(|line| DiffLine {
            class: class(line),
            text: printable(&shorten(line, LIMITS.columns)),
        })
        .collect()
}

/// Returns a value as readable text. Returns `None` for null, which means that there is no value.
fn value(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) if value.to_string().len() > 80 => format!("{value:#}"),
        _ => value.to_string(),
    };
    let total = text.lines().count();
    let lines = text.lines().take(LIMITS.lines);
    let mut lines: Vec<_> = lines.map(|line| printable(&shorten(line, LIMITS.columns))).collect();
    if total > LIMITS.lines {
        lines.push(format!("... {}", plural(total - LIMITS.lines, "more line")));
    }
    Some(lines.join("\n"))
}
