//! Each list, in pages or not, is the state at its version, and that version is current.

use std::collections::BTreeMap;

use super::changes::Changes;
use super::{Rule, Violation};
use crate::generated::stress::history::{Action, History, Operation, Outcome, Snapshot};

pub(super) fn check(history: &History, changes: &Changes, violations: &mut Vec<Violation>) {
    for (index, operation) in history.operations.iter().enumerate() {
        let Outcome::Listed(snapshot, pages) = &operation.outcome else { continue };
        let found = page_size(operation, pages)
            .into_iter()
            .chain(twice(snapshot))
            .chain(current(operation, snapshot, changes))
            .chain(complete(operation, snapshot, changes));
        violations.extend(found.map(|broken| broken.of([index])));
    }
}

fn page_size(operation: &Operation, pages: &[usize]) -> Option<Violation> {
    let Action::List(Some(limit)) = operation.action else { return None };
    let larger = pages.iter().find(|size| **size > limit)?;
    let message = format!("expected at most {limit} objects on a page, got {larger}");
    Some(Violation::new(Rule::PageSize, message))
}

fn twice(snapshot: &Snapshot) -> Option<Violation> {
    let objects = &snapshot.objects;
    let repeated = objects
        .iter()
        .enumerate()
        .find(|(place, state)| objects[..*place].iter().any(|other| other.name == state.name));
    let (_, state) = repeated?;
    let message = format!("expected each object once in a list, got {} twice", state.name);
    Some(Violation::new(Rule::MixedList, message))
}

/// A list is not older than what other responses showed before its request.
fn current(operation: &Operation, snapshot: &Snapshot, changes: &Changes) -> Option<Violation> {
    if snapshot.version.is_empty() {
        let message = "expected a list to have a resourceVersion, got none".to_owned();
        return Some(Violation::new(Rule::MissingVersion, message));
    }
    let position = changes.order.position(&snapshot.version)?;
    let newer = changes
        .all
        .iter()
        .rfind(|change| change.position > position && change.visible < operation.start)?;
    let message = format!(
        "expected a list of version {} or a later one, because a response showed {} before; got \
         version {}",
        newer.state.version, newer.state.name, snapshot.version
    );
    Some(Violation::new(Rule::StaleRead, message).of(newer.operation))
}

/// A list has exactly the objects at its version.
fn complete(operation: &Operation, snapshot: &Snapshot, changes: &Changes) -> Option<Violation> {
    let position = changes.order.position(&snapshot.version)?;
    if changes.start.is_some_and(|start| position < start) || changes.have_gaps() {
        return None;
    }
    let mut expected: BTreeMap<&str, (&str, Option<usize>)> = changes
        .initial
        .iter()
        .map(|(name, state)| (name.as_str(), (state.version.as_str(), None)))
        .collect();
    for change in changes.all.iter().take_while(|change| change.position <= position) {
        if change.deleted {
            expected.remove(change.state.name.as_str());
        } else {
            let state = (change.state.version.as_str(), change.operation);
            expected.insert(&change.state.name, state);
        }
    }
    let mut listed: BTreeMap<&str, &str> = snapshot
        .objects
        .iter()
        .map(|state| (state.name.as_str(), state.version.as_str()))
        .collect();
    for name in &changes.unsure {
        expected.remove(name.as_str());
        listed.remove(name.as_str());
    }
    let wrong = |name: &str, got: &str, expected: &str| {
        format!(
            "expected the {} of version {} to have {name} {expected}, got {got}",
            operation.action.verb(),
            snapshot.version
        )
    };
    for (name, (version, writer)) in &expected {
        let got = match listed.get(name) {
            Some(listed) if listed == version => continue,
            Some(listed) => format!("version {listed}"),
            None => "none".to_owned(),
        };
        let message = wrong(name, &got, &format!("at version {version}"));
        return Some(Violation::new(Rule::MixedList, message).of(*writer));
    }
    let extra = listed.iter().find(|(name, _)| !expected.contains_key(*name))?;
    let message = wrong(extra.0, &format!("version {}", extra.1), "not at all");
    let writer = changes.of(extra.0).find(|change| change.state.version == *extra.1);
    Some(Violation::new(Rule::MixedList, message).of(writer.and_then(|change| change.operation)))
}
