//! The part of a history that shows a violation, as a timeline in SVG.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use super::Failure;
use super::history::{History, Operation, Outcome};
use super::text::{event_in_words, operation_in_words};

const WIDTH: f64 = 1000.0;
/// The width of the names of the lanes.
const MARGIN: f64 = 90.0;
const LANE: f64 = 30.0;
const TOP: f64 = 50.0;

/// The smallest visible width of an operation.
const LEAST: f64 = 3.0;

/// Limit on the operations that are drawn beside those of the violation.
const CONTEXT: usize = 60;

/// A bar or a mark on a lane.
struct Item {
    lane: Lane,
    from: Duration,
    to: Duration,
    class: &'static str,
    title: String,
}

/// A row of the timeline.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Lane {
    Client(usize),
    Watch(usize),
}

/// Returns a timeline of the first violation. Operations on the same objects at the same time are
/// drawn in grey.
pub fn svg(failure: &Failure) -> String {
    let Some(violation) = failure.violations.first() else { return String::new() };
    let items = items(&failure.history, &violation.operations, &violation.events);
    let lanes: BTreeSet<Lane> = items.iter().map(|item| item.lane).collect();
    let rows: BTreeMap<Lane, usize> =
        lanes.iter().enumerate().map(|(row, lane)| (*lane, row)).collect();
    let begin = items.iter().map(|item| item.from).min().unwrap_or_default();
    let end = items.iter().map(|item| item.to).max().unwrap_or_default();
    let length = end.saturating_sub(begin).as_secs_f64().max(1e-6);
    let x = |at: Duration| {
        let share = at.saturating_sub(begin).as_secs_f64() / length;
        MARGIN + share * (WIDTH - MARGIN - 20.0)
    };
    let y = |row: usize| TOP + LANE * f64::from(u32::try_from(row).unwrap_or_default());
    let height = y(lanes.len()) + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<style>.bad{{fill:#c62828}}\
         .ok{{fill:#9e9e9e}}.unknown{{fill:#ffb300}}</style>\n"
    );
    let title = format!("{} @ {}: {}", violation.rule.name(), failure.subject, violation.message);
    let _ = writeln!(svg, "<text x=\"10\" y=\"20\">{}</text>", escaped(&title));
    for (lane, row) in &rows {
        let name = match lane {
            Lane::Client(number) => format!("client {number}"),
            Lane::Watch(number) => format!("watch {number}"),
        };
        let (text, line) = (y(*row) + 16.0, y(*row) + LANE - 4.0);
        let _ = writeln!(svg, "<text x=\"10\" y=\"{text}\">{name}</text>");
        let _ = writeln!(
            svg,
            "<line x1=\"{MARGIN}\" x2=\"{WIDTH}\" y1=\"{line}\" y2=\"{line}\" stroke=\"#ddd\"/>"
        );
    }
    for item in &items {
        let row = rows.get(&item.lane).copied().unwrap_or_default();
        let (left, top) = (x(item.from), y(row) + 4.0);
        let width = (x(item.to) - left).max(LEAST);
        let _ = writeln!(
            svg,
            "<rect class=\"{}\" x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"16\">\
             <title>{}</title></rect>",
            item.class,
            escaped(&item.title)
        );
    }
    let span = format!("{:.3} ms", length * 1000.0);
    let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{}\">{span}</text>", height - 6.0);
    svg.push_str("</svg>\n");
    svg
}

fn items(history: &History, operations: &[usize], events: &[(usize, usize)]) -> Vec<Item> {
    let involved: BTreeSet<usize> = operations.iter().copied().collect();
    let of_violation = involved.iter().filter_map(|index| history.operations.get(*index));
    let of_violation: Vec<&Operation> = of_violation.collect();
    let mut items: Vec<Item> = of_violation.iter().map(|one| bar(one, "bad")).collect();
    let seen = events.iter().filter_map(|(index, number)| {
        let event = history.watches.get(*index)?.events.get(*number)?;
        Some(Item {
            lane: Lane::Watch(*index),
            from: event.at,
            to: event.at,
            class: "bad",
            title: event_in_words(&event.kind, &event.state),
        })
    });
    items.extend(seen);
    let begin = items.iter().map(|item| item.from).min().unwrap_or_default();
    let end = items.iter().map(|item| item.to).max().unwrap_or_default();
    let names: BTreeSet<&str> =
        of_violation.iter().filter_map(|operation| operation.action.name()).collect();
    let is_context = |(index, operation): &(usize, &Operation)| {
        let overlaps = operation.start <= end && operation.end >= begin;
        let is_related = operation.action.name().is_some_and(|name| names.contains(name));
        overlaps && is_related && operation.action.writes() && !involved.contains(index)
    };
    let context = history.operations.iter().enumerate().filter(is_context).take(CONTEXT);
    items.extend(context.map(|(_, operation)| {
        let is_unknown = matches!(operation.outcome, Outcome::Unknown(_));
        bar(operation, if is_unknown { "unknown" } else { "ok" })
    }));
    items
}

fn bar(operation: &Operation, class: &'static str) -> Item {
    Item {
        lane: Lane::Client(operation.client),
        from: operation.start,
        to: operation.end,
        class,
        title: operation_in_words(operation),
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
