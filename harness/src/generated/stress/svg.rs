//! The smallest history that shows a violation, as a timeline in SVG.

use std::fmt::Write as _;
use std::time::Duration;

use super::check::Minimal;
use super::history::{History, Operation, Outcome, Watch};
use super::report::Failure;
use super::text::{
    before_in_words, end_in_words, event_in_words, operation_in_words, watch_in_words,
};

const WIDTH: f64 = 1400.0;
/// The begin and the end of the time.
const LEFT: f64 = 90.0;
const RIGHT: f64 = 490.0;
/// The begin of the descriptions.
const WORDS: f64 = 505.0;
const ROW: f64 = 24.0;
const LINE: f64 = 16.0;

/// The smallest visible width of an operation.
const LEAST: f64 = 4.0;

/// The characters of a line of the title.
const TITLE: usize = 190;

/// A bar or a mark on a row of its own.
struct Row {
    /// The client or the watch, on its first row.
    lane: String,
    from: Duration,
    to: Duration,
    class: &'static str,
    words: String,
}

/// Returns a timeline of the first violation. Its operations and events are red.
pub fn svg(failure: &Failure) -> String {
    let Some(minimal) = failure.minimal.first() else { return String::new() };
    let rows = rows(minimal);
    let violation = &minimal.violation;
    let title = format!("{} @ {}: {}", violation.rule.name(), failure.subject, violation.message);
    let mut lines = wrapped(&title);
    lines.extend(minimal.history.initial.objects.iter().map(before_in_words));
    let top = LINE * (number(lines.len()) + 1.5);
    let height = top + ROW * number(rows.len()) + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<style>.bad{{fill:#c62828}}\
         .ok{{fill:#9e9e9e}}.unknown{{fill:#ffb300}}.span{{fill:#bbdefb}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (index, line) in lines.iter().enumerate() {
        write_text(&mut svg, (10.0, LINE * (number(index) + 1.25)), line);
    }
    let begin = rows.iter().filter(|row| row.class != "span").map(|row| row.from).min();
    let begin = begin.unwrap_or_default();
    let end = rows.iter().map(|row| row.to).max().unwrap_or_default();
    let scale = Scale { begin, length: end.saturating_sub(begin).as_secs_f64().max(1e-6) };
    for (index, row) in rows.iter().enumerate() {
        draw(&mut svg, row, top + ROW * number(index), &scale);
    }
    let span = format!("{:.3} ms", scale.length * 1000.0);
    write_text(&mut svg, (LEFT, height - 10.0), &span);
    svg.push_str("</svg>\n");
    svg
}

/// The time that the rows show.
struct Scale {
    begin: Duration,
    length: f64,
}

impl Scale {
    fn place(&self, at: Duration) -> f64 {
        let share = at.saturating_sub(self.begin).as_secs_f64() / self.length;
        LEFT + share * (RIGHT - LEFT)
    }
}

fn draw(svg: &mut String, row: &Row, top: f64, scale: &Scale) {
    let (left, right) = (scale.place(row.from), scale.place(row.to));
    let (base, width) = (top + ROW / 2.0 + 4.0, (right - left).max(LEAST));
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{top}\" y2=\"{top}\" stroke=\"#eee\"/>\n\
         <rect class=\"{}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"16\"/>",
        row.class,
        top + 4.0,
    );
    write_text(svg, (10.0, base), &row.lane);
    write_text(svg, (WORDS, base), &row.words);
}

fn write_text(svg: &mut String, (left, base): (f64, f64), text: &str) {
    if !text.is_empty() {
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"{base:.1}\">{}</text>", escaped(text));
    }
}

/// Returns the rows of all clients and watches, each in the order of time.
fn rows(minimal: &Minimal) -> Vec<Row> {
    let Minimal { history, violation } = minimal;
    let class_of = |index: usize, operation: &Operation| match operation.outcome {
        _ if violation.operations.contains(&index) => "bad",
        Outcome::Unknown(_) => "unknown",
        _ => "ok",
    };
    let mut operations: Vec<(usize, &Operation)> = history.operations.iter().enumerate().collect();
    operations.sort_by_key(|(_, operation)| (operation.client, operation.start));
    let mut rows: Vec<Row> = operations
        .into_iter()
        .map(|(index, operation)| Row {
            lane: format!("client {}", operation.client),
            from: operation.start,
            to: operation.end,
            class: class_of(index, operation),
            words: operation_in_words(operation),
        })
        .collect();
    let last = last_time(history);
    for (index, watch) in history.watches.iter().enumerate() {
        let is_bad = |event: usize| violation.events.contains(&(index, event));
        rows.extend(rows_of_watch(index, watch, last, is_bad));
    }
    let mut lane = String::new();
    for row in &mut rows {
        if row.lane == lane {
            row.lane.clear();
        } else {
            lane.clone_from(&row.lane);
        }
    }
    rows
}

fn rows_of_watch(
    index: usize,
    watch: &Watch,
    last: Duration,
    is_bad: impl Fn(usize) -> bool,
) -> Vec<Row> {
    let lane = format!("watch {index}");
    let mut words = watch_in_words(index, watch);
    if watch.events.is_empty() {
        words = format!("{words}: {}", end_in_words(&watch.end));
    }
    let from = watch.start.min(last);
    let class = if watch.events.is_empty() && is_bad(0) { "bad" } else { "span" };
    let whole = Row { lane: lane.clone(), from, to: last, class, words };
    let events = watch.events.iter().enumerate().map(|(number, event)| Row {
        lane: lane.clone(),
        from: event.at,
        to: event.at,
        class: if is_bad(number) { "bad" } else { "ok" },
        words: event_in_words(&event.kind, &event.state),
    });
    [whole].into_iter().chain(events).collect()
}

fn last_time(history: &History) -> Duration {
    let operations = history.operations.iter().map(|operation| operation.end);
    let events = history.watches.iter().flat_map(|watch| &watch.events).map(|event| event.at);
    operations.chain(events).max().unwrap_or_default()
}

/// Breaks a text between words.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < TITLE => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or_default())
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
