//! A cause as text: what is wrong, the request that shows it, and what it affects.

use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;
use serde_json::Value;

use super::detail::{is_in_message, items, place};
use super::exchange::{one_line, request_line, response_line};
use super::lines::Lines;
use super::{Limits, clip, printable, shorten};
use crate::causes::{Cause, compressed, deciding_check};
use crate::document::CheckRecord;
use crate::paint::{Paint, verdict_name};
use crate::requirements::Requirements;

/// Maximum characters of a value or a body.
const COLUMNS: usize = 160;
/// Maximum characters of a message.
const MESSAGE: usize = 300;
/// Maximum characters of a line of names.
const NAME_COLUMNS: usize = 100;
/// Maximum exchanges of a cause.
const EXCHANGES: usize = 2;
/// Maximum changed lines of a diff, and places of a schema.
const ITEMS: usize = 4;

/// How much of a cause is shown.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Size {
    /// What is wrong, and what it affects.
    Line,
    /// The request that shows it too.
    Short,
    /// Everything, with the exchanges of the example.
    Full,
}

/// Returns the lines of a cause. They end with an empty line, unless the size is [`Size::Line`].
pub(crate) fn cause(
    cause: &Cause<'_>,
    requirements: &Requirements,
    size: Size,
    paint: Paint,
) -> String {
    let mut lines = Lines::new(Limits { lines: ITEMS, columns: COLUMNS }, paint);
    let verdict = format!("{:<5}", verdict_name(cause.verdict).to_uppercase());
    let title = paint.bold(printable(&clip(&cause.title, COLUMNS)));
    lines.line(0, &format!("{} {title}{}", paint.verdict(cause.verdict, verdict), count(cause)));
    if size == Size::Line {
        lines.names("affects  ", &compressed(&cause.results), 1);
        lines.names("blocks   ", &compressed(&cause.blocked), 1);
        return lines.text;
    }
    if let Some(check) = cause.check {
        lines.message(cause, check);
        if let Some(items) = items(check) {
            lines.block(1, "with     ", &items);
        }
        if size == Size::Full {
            lines.evidence(check);
        }
    }
    lines.files(cause);
    let curl = cause.check.and_then(|check| check.curl.as_ref());
    if size == Size::Full || curl.is_none() {
        lines.exchanges(cause);
    }
    if let Some(curl) = curl {
        lines.whole(1, "repeat   ", curl);
    }
    let rows = if size == Size::Full { 3 } else { 1 };
    lines.names("affects  ", &compressed(&cause.results), rows);
    lines.names("blocks   ", &compressed(&cause.blocked), rows);
    if size == Size::Full {
        lines.clients(cause);
    }
    // An error shows no broken rule.
    if cause.verdict != Verdict::Error {
        if let Some(id) = cause.requirement().filter(|_| size == Size::Full) {
            let level = cause.check.map_or(cause.example.level, |check| check.level);
            lines.rule(id, Some(level), requirements);
        } else if let Some(link) = link(cause, requirements) {
            lines.whole(1, "rule     ", &link);
        }
    }
    lines.explain(cause.example);
    lines.text.push('\n');
    lines.text
}

/// Returns the number of results, if there are several.
fn count(cause: &Cause<'_>) -> String {
    let mut parts = Vec::new();
    if cause.results.len() > 1 {
        parts.push(plural(cause.results.len(), "result"));
    }
    if !cause.blocked.is_empty() {
        parts.push(format!("blocks {}", cause.blocked.len()));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// Returns the requirement and the URL of its section.
fn link(cause: &Cause<'_>, requirements: &Requirements) -> Option<String> {
    let id = cause.requirement()?;
    Some(format!("{id} {}", requirements.get(id)?.section_url()?))
}

impl Lines {
    /// Adds the message of the check that decided the example, unless it is the title.
    fn message(&mut self, cause: &Cause<'_>, check: &CheckRecord) {
        let message = check.message.lines().next().unwrap_or_default();
        let is_place = check.places.first().is_some_and(|first| place(first) == message);
        if message.is_empty() || message == cause.title || is_place || is_in_files(check) {
            return;
        }
        let known = cause.example.known.as_ref().map(|known| format!(" (known: {})", known.reason));
        let message = shorten(message, MESSAGE);
        self.whole(1, "found    ", &format!("{message}{}", known.unwrap_or_default()));
    }

    /// Adds what the failure means for clients.
    fn clients(&mut self, cause: &Cause<'_>) {
        let why = cause.example.why.as_deref().filter(|_| cause.verdict != Verdict::Error);
        if let Some(why) = why {
            self.whole(1, "why      ", why);
        }
    }

    /// Adds the expected and the actual value, unless the message contains them.
    fn evidence(&mut self, check: &CheckRecord) {
        if is_in_files(check) {
            return;
        }
        if !check.places.is_empty() {
            let places: Vec<_> = check.places.iter().map(place).collect();
            self.block(1, "at       ", &places.join("\n"));
            return;
        }
        if is_in_message(check) {
            return;
        }
        let changes = check.diff.as_ref().map(|diff| changes(diff)).unwrap_or_default();
        if changes.is_empty() {
            self.one_value("expected ", &check.expected);
            self.one_value("actual   ", &check.actual);
        } else {
            self.block(1, "", &changes.join("\n"));
        }
    }

    /// Adds all places in files, because each of them has to be fixed.
    fn files(&mut self, cause: &Cause<'_>) {
        let checks = cause.results.iter().filter_map(|record| deciding_check(record));
        let places: Vec<_> =
            checks.filter(|check| is_in_files(check)).flat_map(|check| &check.places).collect();
        for (at, place) in places.into_iter().map(place).enumerate() {
            self.whole(1, if at == 0 { "at       " } else { "         " }, &place);
        }
    }

    fn one_value(&mut self, label: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.block(1, label, &shorten(text, COLUMNS)),
            other => self.block(1, label, &shorten(&other.to_string(), COLUMNS)),
        }
    }

    fn exchanges(&mut self, cause: &Cause<'_>) {
        let exchanges = cause.exchanges();
        for exchange in exchanges.iter().take(EXCHANGES) {
            self.block(1, "request  ", &request_line(exchange));
            if !exchange.request_body.is_empty() {
                let body = shorten(&one_line(&exchange.request_body), COLUMNS);
                self.line(1, &format!("         {}{}", self.paint.dim("> "), printable(&body)));
            }
            let response = response_line(exchange, COLUMNS);
            self.line(1, &format!("         {}{response}", self.paint.dim("< ")));
            self.some_frames(&exchange.frames);
        }
        if exchanges.len() > EXCHANGES {
            let more = plural(exchanges.len() - EXCHANGES, "more exchange");
            self.line(1, &self.paint.dim(format!("         and {more}")));
        }
    }

    /// Adds names in rows. The last row counts the names that do not fit.
    fn names(&mut self, label: &str, names: &[String], rows: usize) {
        if names.is_empty() {
            return;
        }
        let mut text: Vec<String> = vec![String::new()];
        for (at, name) in names.iter().enumerate() {
            let last = text.len() - 1;
            let is_full =
                !text[last].is_empty() && text[last].len() + name.len() + 2 > NAME_COLUMNS;
            if is_full && text.len() == rows {
                let more = plural(names.len() - at, "more case");
                text[last].extend([" and ", &more]);
                break;
            } else if is_full {
                text.push(String::new());
            }
            let last = text.len() - 1;
            if !text[last].is_empty() {
                text[last].push(' ');
            }
            let comma = if at + 1 < names.len() { "," } else { "" };
            text[last].extend([name.as_str(), comma]);
        }
        self.block(1, label, &text.join("\n"));
    }
}

/// Returns whether the check judged a file.
fn is_in_files(check: &CheckRecord) -> bool {
    check.places.iter().any(|place| place.position.is_some())
}

/// Returns the changed lines of a unified diff.
fn changes(diff: &str) -> Vec<&str> {
    let is_change = |line: &&str| {
        line.starts_with(['-', '+']) && !line.starts_with("---") && !line.starts_with("+++")
    };
    diff.lines().filter(is_change).take(ITEMS).collect()
}
