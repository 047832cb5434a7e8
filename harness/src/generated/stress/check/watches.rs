//! Each watch reports exactly the changes after its version, in order.

use std::collections::BTreeSet;

use super::changes::{Change, Changes, described, event_described};
use super::{Rule, Violation};
use crate::generated::stress::history::{Event, EventKind, History, State, Watch, WatchEnd};

pub(super) fn check(history: &History, changes: &Changes, violations: &mut Vec<Violation>) {
    for (index, watch) in history.watches.iter().enumerate() {
        violations.extend(of_watch(index, watch, changes));
    }
}

/// Returns the first violation of a watch. Later ones often follow from it.
fn of_watch(index: usize, watch: &Watch, changes: &Changes) -> Option<Violation> {
    let mut last = changes.order.position(&watch.after)?;
    let mut seen = BTreeSet::new();
    for (number, event) in watch.events.iter().enumerate() {
        let place = (index, number);
        let Some(position) = changes.order.position(&event.state.version) else {
            return unordered(event, changes).map(|broken| broken.seen_in([place]));
        };
        let broken = if event.kind == EventKind::Bookmark {
            bookmark(event, position, last, changes)
        } else {
            next(event, position, &Before { last, seen: &seen, watch }, changes)
        };
        if let Some(broken) = broken {
            let before = number.checked_sub(1).map(|before| (index, before));
            return Some(broken.seen_in(before).seen_in([place]));
        }
        seen.insert(position);
        last = last.max(position);
    }
    let rest = match &watch.end {
        WatchEnd::Silent => omitted(last, u64::MAX, changes),
        WatchEnd::Rejected(code, reason) => {
            let message = format!(
                "expected a watch from version {}, which the server had returned, got {code} \
                 {reason}",
                watch.from
            );
            return Some(Violation::new(Rule::WrongRejection, message).seen_in([(index, 0)]));
        }
        WatchEnd::Complete | WatchEnd::Closed(_) | WatchEnd::Expired => None,
    };
    let change = rest?;
    let message = format!(
        "expected a watch from version {} to report {} at version {}, got nothing more",
        watch.from,
        described(&change.state, change.deleted),
        change.state.version
    );
    let place = (index, watch.events.len().saturating_sub(1));
    Some(Violation::new(Rule::LostEvent, message).of(change.operation).seen_in([place]))
}

/// Judges an event whose version has no position.
fn unordered(event: &Event, changes: &Changes) -> Option<Violation> {
    let what = event_described(event);
    if changes.order.is_malformed(&event.state.version) {
        let message = format!("expected {what} to have a resourceVersion");
        return Some(Violation::new(Rule::MissingVersion, message));
    }
    if event.kind == EventKind::Bookmark || !changes.is_complete {
        return None;
    }
    let message = format!("{what} is missing in the first watch, which follows all changes");
    let is_known = changes.unsure.contains(&event.state.name);
    (!is_known).then(|| Violation::new(Rule::LostEvent, message))
}

fn bookmark(event: &Event, position: u64, last: u64, changes: &Changes) -> Option<Violation> {
    if position < last {
        let message = format!(
            "expected a bookmark at the version of the last event or later, got version {}",
            event.state.version
        );
        return Some(Violation::new(Rule::Bookmark, message));
    }
    let change = omitted(last, position + 1, changes)?;
    let message = format!(
        "expected {} at version {} before the bookmark at version {}",
        described(&change.state, change.deleted),
        change.state.version,
        event.state.version
    );
    Some(Violation::new(Rule::Bookmark, message).of(change.operation))
}

/// A watch before an event.
struct Before<'a> {
    /// The highest position so far.
    last: u64,
    /// The positions of its events.
    seen: &'a BTreeSet<u64>,
    watch: &'a Watch,
}

fn next(event: &Event, position: u64, before: &Before<'_>, changes: &Changes) -> Option<Violation> {
    let Before { last, seen, watch } = *before;
    let Watch { from, after, .. } = watch;
    let what = event_described(event);
    if position <= last {
        let is_left_out = from != after && *after == event.state.version;
        let (rule, message) = if seen.contains(&position) || is_left_out {
            (Rule::RepeatedEvent, format!("{what} was sent twice"))
        } else if changes.order.position(from).is_some_and(|from| position <= from) {
            (Rule::RepeatedEvent, format!("a watch from version {from} must not send {what}"))
        } else {
            (Rule::EventOrder, format!("{what} was sent after an event of a later version"))
        };
        return Some(Violation::new(rule, message));
    }
    if let Some(change) = omitted(last, position, changes) {
        let message = format!(
            "expected a watch from version {from} to report {} at version {}; the next event was \
             {what}",
            described(&change.state, change.deleted),
            change.state.version
        );
        return Some(Violation::new(Rule::LostEvent, message).of(change.operation));
    }
    wrong_event(event, position, changes)
}

/// Returns the first change between two positions, both exclusive.
fn omitted(after: u64, before: u64, changes: &Changes) -> Option<&Change> {
    let from = changes.all.partition_point(|change| change.position <= after);
    let mut between = changes.all[from..].iter().take_while(|change| change.position < before);
    between.find(|change| !changes.unsure.contains(&change.state.name))
}

/// Compares an event with its change.
fn wrong_event(event: &Event, position: u64, changes: &Changes) -> Option<Violation> {
    let change = changes.at(position)?;
    if changes.unsure.contains(&event.state.name) || change.state.name != event.state.name {
        return None;
    }
    let before = changes.of(&event.state.name).take_while(|other| other.position < position).last();
    let before: Option<&State> = match before {
        Some(before) => (!before.deleted).then_some(&before.state),
        None => changes.initial.get(&event.state.name),
    };
    let expected = match (change.deleted, before) {
        (true, _) => EventKind::Deleted,
        (false, None) => EventKind::Added,
        (false, Some(_)) => EventKind::Modified,
    };
    if event.kind != expected {
        let message =
            format!("expected the event type {expected:?}, got {}", event_described(event));
        return Some(Violation::new(Rule::WrongEvent, message).of(change.operation));
    }
    if let (true, Some(before)) = (change.deleted, before)
        && before.content != event.state.content
    {
        let message = format!(
            "expected the last state in a DELETED event, {}, got {}",
            described(before, false),
            described(&event.state, false)
        );
        return Some(Violation::new(Rule::WrongEvent, message).of(change.operation));
    }
    None
}
