//! The smallest histories of a round as JSON, for other programs.

use std::time::Duration;

use serde_json::{Value, json as value};

use super::check::Minimal;
use super::history::{
    Action, Event, History, Operation, Outcome, Snapshot, State, Watch, WatchEnd,
};
use super::report::Failure;

/// Returns the violations of a round, each with the smallest history that shows it.
pub fn json(failure: &Failure, seed: u64) -> String {
    let violations: Vec<Value> = failure.minimal.iter().map(violation).collect();
    let document = value!({
        "schema": "kubeproof.stress/v1",
        "seed": seed,
        "subject": failure.subject,
        "round": failure.round,
        "violations": violations,
    });
    format!("{document:#}\n")
}

fn violation(minimal: &Minimal) -> Value {
    let Minimal { history, violation } = minimal;
    let events = violation.events.iter();
    let events: Vec<Value> =
        events.map(|(watch, event)| value!({"watch": watch, "event": event})).collect();
    value!({
        "rule": violation.rule.name(),
        "message": violation.message,
        "operations": violation.operations,
        "events": events,
        "history": of_history(history),
    })
}

fn of_history(history: &History) -> Value {
    let History { numeric, initial, operations, watches } = history;
    value!({
        "ordered_versions": numeric,
        "initial": of_snapshot(initial),
        "operations": operations.iter().map(of_operation).collect::<Vec<_>>(),
        "watches": watches.iter().map(of_watch).collect::<Vec<_>>(),
    })
}

fn of_snapshot(snapshot: &Snapshot) -> Value {
    let objects: Vec<Value> = snapshot.objects.iter().map(of_state).collect();
    value!({"version": snapshot.version, "objects": objects})
}

fn of_state(state: &State) -> Value {
    let State { name, uid, version, content } = state;
    value!({"name": name, "uid": uid, "version": version, "content": content})
}

fn of_operation(operation: &Operation) -> Value {
    let Operation { client, start, end, action, outcome } = operation;
    let limit = match action {
        Action::List(limit) => *limit,
        _ => None,
    };
    value!({
        "client": client,
        "start_ms": milliseconds(*start),
        "end_ms": milliseconds(*end),
        "verb": action.verb(),
        "name": action.name(),
        "content": action.content(),
        "version": action.precondition(),
        "limit": limit,
        "outcome": of_outcome(outcome),
    })
}

fn of_outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Object(state) => value!({"object": of_state(state)}),
        Outcome::Deleted(uid) => value!({"deleted": {"uid": uid}}),
        Outcome::Listed(snapshot, pages) => {
            value!({"list": of_snapshot(snapshot), "pages": pages})
        }
        Outcome::Rejected(code, reason) => value!({"code": code, "reason": reason}),
        Outcome::Unknown(why) => value!({"unknown": why}),
    }
}

fn of_watch(watch: &Watch) -> Value {
    let Watch { watcher, start, from, after, events, end } = watch;
    let end = match end {
        WatchEnd::Complete => value!("complete"),
        WatchEnd::Closed(why) => value!({"closed": why}),
        WatchEnd::Expired => value!("expired"),
        WatchEnd::Rejected(code, reason) => value!({"code": code, "reason": reason}),
        WatchEnd::Silent => value!("silent"),
    };
    value!({
        "watcher": watcher,
        "start_ms": milliseconds(*start),
        "from": from,
        "after": after,
        "events": events.iter().map(of_event).collect::<Vec<_>>(),
        "end": end,
    })
}

fn of_event(event: &Event) -> Value {
    let Event { at, kind, state } = event;
    value!({"at_ms": milliseconds(*at), "type": kind.name(), "object": of_state(state)})
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
