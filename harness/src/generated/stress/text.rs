//! The part of a history that shows a violation, as text.

use std::fmt::Write as _;
use std::time::Duration;

use super::check::{Minimal, Violation};
use super::history::{Content, EventKind, History, Operation, Outcome, State, Watch, WatchEnd};
use super::report::Failure;

/// Returns the first violation of each rule, with the smallest history that shows it.
pub fn text(failure: &Failure) -> String {
    let Failure { subject, round, violations, minimal } = failure;
    let mut text = String::new();
    for Minimal { history, violation } in minimal {
        let Violation { rule, message, .. } = violation;
        let _ = writeln!(text, "FAIL {} @ {subject} in round {round}: {message}", rule.name());
        for line in lines(history) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let hidden = violations.len().saturating_sub(minimal.len());
    if hidden > 0 {
        let _ = writeln!(text, "and {hidden} more in this round");
    }
    text
}

/// Returns a line for each object, operation and event, in the order of time.
fn lines(history: &History) -> Vec<String> {
    let mut lines: Vec<(Duration, String)> = Vec::new();
    let operations = history.operations.iter().map(|operation| {
        let times = format!("{} to {}", time(operation.start), time(operation.end));
        let words = operation_in_words(operation);
        (operation.start, format!("{times:24} client {}: {words}", operation.client))
    });
    lines.extend(operations);
    for (index, watch) in history.watches.iter().enumerate() {
        let title = watch_in_words(index, watch);
        let line = |at, words: &str| (at, format!("{:24} {title}: {words}", time(at)));
        let events = watch.events.iter();
        lines.extend(events.map(|one| line(one.at, &event_in_words(&one.kind, &one.state))));
        if watch.events.is_empty() || watch.end == WatchEnd::Silent {
            let last = watch.events.last().map_or(watch.start, |event| event.at);
            lines.push(line(last, &end_in_words(&watch.end)));
        }
    }
    // Events of the same time keep the order of their watch.
    lines.sort_by_key(|(at, _)| *at);
    let before = history.initial.objects.iter().map(before_in_words);
    before.chain(lines.into_iter().map(|(_, line)| line)).collect()
}

/// Describes an object before the first operation.
pub(super) fn before_in_words(state: &State) -> String {
    let State { name, version, content, .. } = state;
    format!("{:24} {name} version {version} {}", "before", entries(content))
}

/// Describes a watch.
pub(super) fn watch_in_words(index: usize, watch: &Watch) -> String {
    let Watch { from, after, .. } = watch;
    let rest = if from == after { String::new() } else { format!(", after version {after}") };
    format!("watch {index} from version {from}{rest}")
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
    if *kind == EventKind::Bookmark {
        return format!("BOOKMARK version {}", state.version);
    }
    format!("{} {} version {} {}", kind.name(), state.name, state.version, entries(&state.content))
}

pub(super) fn end_in_words(end: &WatchEnd) -> String {
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
