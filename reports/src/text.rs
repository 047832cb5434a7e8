//! A result in words: the same lines for the console, JUnit and Markdown.

use std::fmt::Write as _;

use kubeproof_harness::event::Place;
use serde_json::Value;

use crate::document::{CheckRecord, ExchangeRecord, FrameRecord, Record};
use crate::paint::{Paint, word};
use crate::requirements::Requirements;

/// How much of a body, a value or a diff is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Lines of each.
    pub(crate) lines: usize,
    /// Characters of a line.
    pub(crate) columns: usize,
}

impl Limits {
    /// Enough to understand a failure.
    pub(crate) const SHORT: Self = Self { lines: 24, columns: 200 };
    /// Everything.
    pub(crate) const WHOLE: Self = Self { lines: usize::MAX, columns: usize::MAX };
}

/// The first line of a result: verdict, case and subject.
pub(crate) fn title(record: &Record, paint: Paint) -> String {
    let verdict = format!("{:<9}", word(record.verdict).to_uppercase());
    let mut line =
        format!("{} {}", paint.verdict(record.verdict, verdict), paint.bold(printable(&record.title())));
    let headline = printable(&record.headline());
    if !headline.is_empty() {
        _ = write!(line, "  {headline}");
    }
    line
}

/// All that is to be said of a result below its title.
pub(crate) fn detail(record: &Record, requirements: &Requirements, limits: Limits, paint: Paint) -> String {
    let mut text = Text { lines: String::new(), limits, paint };
    text.block(1, "", &record.summary);
    for id in &record.requirements {
        let level = requirements.get(id).map_or(record.level, |requirement| requirement.level);
        text.block(1, "requirement ", &format!("{id} ({level}): {}", requirements.statement(id)));
    }
    if let Some(why) = &record.why {
        text.block(1, "why ", why);
    }
    let checks = record.broken_checks();
    for (at, check) in checks.iter().enumerate() {
        // Checks of the same step share an exchange; it is shown with the first of them.
        let told = checks[..at].iter().any(|earlier| earlier.step == check.step);
        text.check(check, if told { None } else { record.exchange(&check.step) });
    }
    if checks.is_empty() {
        // The case ended before a check was judged: what was exchanged last is all there is to see.
        if let Some(last) = record.exchanges.last() {
            text.exchange(last);
        }
    }
    text.lines
}

/// One exchange in words.
pub(crate) fn exchange(exchange: &ExchangeRecord, limits: Limits, paint: Paint) -> String {
    let mut text = Text { lines: String::new(), limits, paint };
    text.exchange(exchange);
    text.lines
}

struct Text {
    lines: String,
    limits: Limits,
    paint: Paint,
}

impl Text {
    fn check(&mut self, check: &CheckRecord, exchange: Option<&ExchangeRecord>) {
        let verdict = self.paint.verdict(check.verdict, word(check.verdict));
        self.line(
            1,
            &format!("{verdict} of check {}: {}", self.paint.bold(&check.id), printable(&check.message)),
        );
        if let Some(means) = &check.means {
            self.block(2, "means ", means);
        }
        if let Some(diff) = &check.diff {
            self.block(2, "", diff);
        } else if !check.places.is_empty() {
            self.block(2, "at ", &check.places.iter().map(place).collect::<Vec<_>>().join("\n"));
        } else {
            self.value("expected ", &check.expected);
            self.value("actual   ", &check.actual);
        }
        if let Some(exchange) = exchange {
            self.exchange(exchange);
        }
        if let Some(curl) = &check.curl {
            self.block(2, "repeat ", curl);
        }
    }

    fn value(&mut self, label: &str, value: &Value) {
        let text = match value {
            Value::Null => return,
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) if value.to_string().len() > self.limits.columns / 2 => {
                format!("{value:#}")
            }
            _ => value.to_string(),
        };
        self.block(2, label, &text);
    }

    fn exchange(&mut self, exchange: &ExchangeRecord) {
        let whose =
            if exchange.identity == "admin" { String::new() } else { format!(" as {}", exchange.identity) };
        let step = if exchange.step.is_empty() { String::new() } else { format!("{}: ", exchange.step) };
        self.line(2, &format!("{step}{} {}{whose}", exchange.method, printable(&exchange.target)));
        for (name, value) in &exchange.request_headers {
            self.block(3, "> ", &format!("{name}: {value}"));
        }
        self.body("> ", &exchange.request_body);
        if let Some(status) = exchange.status {
            self.line(3, &format!("< {status} {}", exchange.http_version));
        }
        for (name, value) in &exchange.response_headers {
            self.block(3, "< ", &format!("{name}: {value}"));
        }
        self.body("< ", &exchange.response_body);
        if let Some(fault) = &exchange.json_fault {
            self.block(3, "< ", &format!("(not JSON as it should be: {fault})"));
        }
        for event in &exchange.events {
            self.block(3, "< ", &format!("{} {}", event.kind, event.object));
        }
        for frame in &exchange.frames {
            self.frame(frame);
        }
        if let Some(end) = &exchange.end {
            let what = if exchange.frames.is_empty() { "watch" } else { "stream" };
            self.block(3, "< ", &format!("(end of the {what}: {end})"));
        }
        if let Some(broken) = &exchange.broken {
            self.block(3, "< ", &format!("(no answer: {broken})"));
        }
    }

    fn frame(&mut self, frame: &FrameRecord) {
        let mark = if frame.from == "client" { "> " } else { "< " };
        let channel = frame.channel.as_ref().map(|channel| format!(" {channel}")).unwrap_or_default();
        let detail = match &frame.detail {
            Value::Object(members) if !members.is_empty() => format!(" {}", frame.detail),
            _ => String::new(),
        };
        let size = if frame.from.is_empty() { String::new() } else { format!(", {} bytes", frame.size) };
        let text = if frame.text.is_empty() { String::new() } else { format!(": {:?}", frame.text) };
        self.block(3, mark, &format!("{}{channel}{detail}{size}{text}", frame.kind));
    }

    fn body(&mut self, mark: &str, body: &str) {
        if body.is_empty() {
            return;
        }
        let pretty = serde_json::from_str::<Value>(body).map(|value| {
            let compact = value.to_string();
            if compact.len() <= self.limits.columns { compact } else { format!("{value:#}") }
        });
        // A body that is shown whole is shown as it was sent.
        let text =
            if self.limits.lines == usize::MAX { body.to_owned() } else { pretty.unwrap_or(body.to_owned()) };
        self.block(3, mark, &text);
    }

    /// Lines behind a label; the label stands before the first, and if it is a mark (`> `) before all of them.
    fn block(&mut self, indent: usize, label: &str, text: &str) {
        let is_mark = label == "> " || label == "< ";
        let total = text.lines().count();
        for (at, line) in text.lines().take(self.limits.lines).enumerate() {
            let label = if at == 0 || is_mark { label.to_owned() } else { " ".repeat(label.len()) };
            let line = printable(&shorten(line, self.limits.columns));
            let line = if label.is_empty() { self.paint.diff_line(&line) } else { line };
            self.line(indent, &format!("{}{line}", self.paint.dim(label)));
        }
        if total > self.limits.lines {
            let more = format!("{label}... {} more lines", total - self.limits.lines);
            self.line(indent, &self.paint.dim(more));
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        let line = format!("{}{text}", "    ".repeat(indent));
        self.lines.push_str(line.trim_end());
        self.lines.push('\n');
    }
}

/// A place that breaks a design rule, as compilers name places, so that editors find it.
fn place(place: &Place) -> String {
    let position = place.position.as_ref();
    let position = position.map(|at| format!("{}:{}:{}: ", at.file, at.line, at.column)).unwrap_or_default();
    let because = place.because.as_ref().map(|because| format!(" (kept by Kubernetes: {because})"));
    format!("{position}{}: {}{}", place.at, place.message, because.unwrap_or_default())
}

/// The beginning of a line that is too long, and how much is missing.
pub(crate) fn shorten(line: &str, columns: usize) -> String {
    match line.char_indices().nth(columns) {
        None => line.to_owned(),
        Some((cut, _)) => format!("{}... ({} more characters)", &line[..cut], line[cut..].chars().count()),
    }
}

/// What a server sent must not steer the terminal.
fn printable(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\t';
    if !text.contains(steers) {
        return text.to_owned();
    }
    text.chars().fold(String::new(), |mut safe, c| {
        if steers(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
        safe
    })
}

/// A count and its noun.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
