//! Each response shows a state that existed between its request and its arrival.

use std::collections::BTreeSet;
use std::time::Duration;

use super::changes::{Change, Changes};
use super::{Rule, Violation};
use crate::generated::stress::history::{Action, History, Operation, Outcome, State};

pub(super) fn check(history: &History, changes: &Changes, violations: &mut Vec<Violation>) {
    let working: BTreeSet<&str> = history
        .operations
        .iter()
        .filter(|operation| operation.outcome.is_success())
        .map(|operation| operation.action.verb())
        .collect();
    for (index, operation) in history.operations.iter().enumerate() {
        let Some(name) = operation.action.name() else { continue };
        let broken = match &operation.outcome {
            _ if changes.unsure.contains(name) => None,
            Outcome::Object(state) if !operation.action.writes() && state.name == name => {
                read(operation, state, changes)
            }
            Outcome::Rejected(code, reason) => {
                rejection(operation, (*code, reason), changes, &working)
            }
            _ => None,
        };
        violations.extend(broken.map(|broken| broken.of([index])));
    }
}

/// Judges the object that a GET returned.
fn read(operation: &Operation, state: &State, changes: &Changes) -> Option<Violation> {
    let position = changes.order.position(&state.version)?;
    let newer = changes
        .of(&state.name)
        .filter(|change| change.position > position && change.visible < operation.start)
        .last();
    if let Some(newer) = newer {
        let message = format!(
            "expected a GET of {} to return version {} or a later one, because a response showed \
             it before; got version {}",
            state.name, newer.state.version, state.version
        );
        return Some(Violation::new(Rule::StaleRead, message).of(newer.operation));
    }
    let is_initial = changes.initial.get(&state.name) == Some(state);
    if changes.start.is_some_and(|start| position <= start) && !is_initial {
        let message = format!(
            "expected a GET of {} to return the object of the list before, or a later version; \
             got version {}",
            state.name, state.version
        );
        return Some(Violation::new(Rule::StaleRead, message));
    }
    None
}

/// Judges the rejection of an operation.
fn rejection(
    operation: &Operation,
    (code, reason): (u16, &str),
    changes: &Changes,
    working: &BTreeSet<&str>,
) -> Option<Violation> {
    let name = operation.action.name()?;
    let states = observable(name, operation, changes);
    let exists = states.iter().any(Option::is_some);
    let is_missing = states.iter().any(Option::is_none);
    let is_contended = states.len() > 1;
    let is_possible = match (&operation.action, code) {
        (_, 429) => true,
        (Action::Create(..), 409) => exists,
        (Action::Get(_), 404) => is_missing,
        (Action::Create(..) | Action::Apply(..), 404) | (Action::Get(_), _) => false,
        (_, 404) => is_missing,
        // A change of another client may be missing.
        (_, 409) if !changes.is_complete => true,
        (action, 409) => {
            let differs =
                |required: &str| states.iter().flatten().any(|state| state.version != required);
            is_contended || action.precondition().is_some_and(|it| is_missing || differs(it))
        }
        _ => false,
    };
    let verb = operation.action.verb();
    // The target may not support the verb at all.
    if is_possible || !working.contains(verb) {
        return None;
    }
    let state = match states.first() {
        Some(Some(state)) if states.len() == 1 => format!("it was at version {}", state.version),
        Some(None) if states.len() == 1 => "it did not exist".to_owned(),
        _ => format!("it had {} states in that time", states.len()),
    };
    let message = format!(
        "expected the {verb} of {name} not to be rejected with {code} {reason}, because {state}"
    );
    let rule = if code == 404 { Rule::LostWrite } else { Rule::WrongRejection };
    let last = states.iter().flatten().last();
    let writer = last.and_then(|state| {
        changes.of(name).find(|change| change.state.version == state.version)?.operation
    });
    Some(Violation::new(rule, message).of(writer))
}

/// Returns the states that an operation can have met; `None` stands for a missing object.
fn observable<'a>(
    name: &str,
    operation: &Operation,
    changes: &'a Changes,
) -> Vec<Option<&'a State>> {
    let of_object: Vec<&Change> = changes.of(name).collect();
    let mut states = Vec::new();
    for step in 0..=of_object.len() {
        let change = step.checked_sub(1).map(|before| of_object[before]);
        let begun = change.map_or(Duration::ZERO, |change| change.begun);
        let is_over = of_object.get(step).is_some_and(|next| next.visible < operation.start);
        if begun < operation.end && !is_over {
            states.push(match change {
                None => changes.initial.get(name),
                Some(change) => (!change.deleted).then_some(&change.state),
            });
        }
    }
    states
}
