//! The part of a history that shows a violation, as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use super::Failure;
use super::check::Violation;
use super::history::{Content, EventKind, History, Operation, Outcome, State, WatchEnd};

/// Limit on the violations in a report. Later ones often follow from the first.
const VIOLATIONS: usize = 5;

/// Returns the violations of a round, each with the operations and the events that show it.
pub fn text(failure: &Failure) -> String {
    let Failure { subject, round, history, violations } = failure;
    let mut text = String::new();
    let mut rules = BTreeSet::new();
    let first_of_each = violations.iter().filter(|violation| rules.insert(violation.rule));
    for violation in first_of_each.take(VIOLATIONS) {
        let Violation { rule, message, .. } = violation;
        let _ = writeln!(text, "FAIL {} @ {subject} in round {round}: {message}", rule.name());
        for line in lines(history, violation) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let hidden = violations.len().saturating_sub(rules.len().min(VIOLATIONS));
    if hidden > 0 {
        let _ = writeln!(text, "and {hidden} more in this round");
    }
    text
}

/// Returns a line for each operation and event of a violation, in the order of time.
fn lines(history: &History, violation: &Violation) -> Vec<String> {
    let mut lines: Vec<(Duration, String)> = Vec::new();
    let operations: BTreeSet<usize> = violation.operations.iter().copied().collect();
    for operation in operations.iter().filter_map(|index| history.operations.get(*index)) {
        let times = format!("{} to {}", time(operation.start), time(operation.end));
        let words = operation_in_words(operation);
        lines.push((operation.start, format!("{times:24} client {}: {words}", operation.client)));
    }
    let events: BTreeSet<(usize, usize)> = violation.events.iter().copied().collect();
    for (index, number) in events {
        let Some(watch) = history.watches.get(index) else { continue };
        let from = &watch.from;
        let line = |at, words: &str| {
            let times = time(at);
            (at, format!("{times:24} watch {index} from version {from}: {words}"))
        };
        match watch.events.get(number) {
            Some(event) => lines.push(line(event.at, &event_in_words(&event.kind, &event.state))),
            None => lines.push(line(watch.start, &end_in_words(&watch.end))),
        }
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns milliseconds since the start of the run.
fn time(at: Duration) -> String {
    format!("{:.3} ms", at.as_secs_f64() * 1000.0)
}

/// Describes a request and its response.
pub(super) fn operation_in_words(operation: &Operation) -> String {
    let action = &operation.action;
    let mut words = action.verb().to_owned();
    if let Some(name) = action.name() {
        let _ = write!(words, " {name}");
    }
    if let Some(content) = action.content() {
        let _ = write!(words, " {}", entries(content));
    }
    if let Some(version) = action.precondition() {
        let _ = write!(words, " at version {version}");
    }
    let outcome = match &operation.outcome {
        Outcome::Object(state) => format!("version {} {}", state.version, entries(&state.content)),
        Outcome::Deleted(_) => "deleted".to_owned(),
        Outcome::Listed(snapshot, _) => {
            let objects = snapshot.objects.iter();
            let objects = objects.map(|state| format!("{}@{}", state.name, state.version));
            let objects = objects.collect::<Vec<_>>().join(" ");
            format!("version {} [{objects}]", snapshot.version)
        }
        Outcome::Rejected(code, reason) => format!("{code} {reason}"),
        Outcome::Unknown(why) => format!("unknown ({why})"),
    };
    format!("{words} -> {outcome}")
}

/// Describes an event.
pub(super) fn event_in_words(kind: &EventKind, state: &State) -> String {
    let kind = match kind {
        EventKind::Added => "ADDED",
        EventKind::Modified => "MODIFIED",
        EventKind::Deleted => "DELETED",
        EventKind::Bookmark => return format!("BOOKMARK version {}", state.version),
    };
    format!("{kind} {} version {} {}", state.name, state.version, entries(&state.content))
}

fn end_in_words(end: &WatchEnd) -> String {
    match end {
        WatchEnd::Complete => "closed by the client".to_owned(),
        WatchEnd::Closed(why) => format!("closed: {why}"),
        WatchEnd::Expired => "410 Gone".to_owned(),
        WatchEnd::Rejected(code, reason) => format!("{code} {reason}"),
        WatchEnd::Silent => "no event".to_owned(),
    }
}

fn entries(content: &Content) -> String {
    let entries: Vec<String> =
        content.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", entries.join(" "))
}
