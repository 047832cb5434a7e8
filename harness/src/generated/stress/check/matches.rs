//! Finds the operation that made each change.

use super::changes::{Change, Changes};
use super::{Rule, Violation};
use crate::generated::stress::history::{Action, History, Operation, Outcome, State};

impl Changes {
    /// Matches each acknowledged write with its change.
    pub(super) fn match_writes(&mut self, history: &History, violations: &mut Vec<Violation>) {
        let mut operations: Vec<(usize, &Operation)> =
            history.operations.iter().enumerate().collect();
        // Without a uid, a precondition tells deletions apart. The others happened in the order of
        // their ends.
        operations.sort_by_key(|(_, one)| {
            let has_uid = matches!(one.outcome, Outcome::Deleted(Some(_)));
            (!has_uid, one.action.precondition().is_none(), one.end)
        });
        for (index, operation) in operations {
            let Some(name) = operation.action.name().filter(|_| operation.action.writes()) else {
                continue;
            };
            let change = match &operation.outcome {
                Outcome::Object(state) => {
                    if self.order.is_malformed(&state.version) {
                        continue;
                    }
                    let position = self.order.position(&state.version);
                    if position.is_some() && position <= self.start {
                        continue;
                    }
                    position.and_then(|position| {
                        self.all.binary_search_by_key(&position, |change| change.position).ok()
                    })
                }
                Outcome::Deleted(None)
                    if !self.is_complete || has_unknown_deletion(history, name) =>
                {
                    self.ambiguous.insert(name.to_owned());
                    self.unsure.insert(name.to_owned());
                    continue;
                }
                Outcome::Deleted(uid) => {
                    self.deletion(name, uid.as_deref(), operation.action.precondition())
                }
                _ => continue,
            };
            if let Some(change) = change {
                let change = &mut self.all[change];
                if change.operation.is_none() {
                    (change.operation, change.begun) = (Some(index), operation.start);
                }
                continue;
            }
            if self.is_complete && !self.unsure.contains(name) {
                let message = format!(
                    "expected a watch to report the acknowledged {} of {name}, got no event",
                    operation.action.verb()
                );
                violations.push(Violation::new(Rule::LostEvent, message).of([index]));
            }
            self.unsure.insert(name.to_owned());
        }
    }

    /// Returns the first deletion of an object that has no operation. Prefers one whose last state
    /// fulfils the precondition.
    fn deletion(&self, name: &str, uid: Option<&str>, required: Option<&str>) -> Option<usize> {
        let indexes = self.by_name.get(name)?;
        let version_before = |place: usize| match place.checked_sub(1) {
            Some(before) => indexes.get(before).map(|index| &self.all[*index].state.version),
            None => self.initial.get(name).map(|state| &state.version),
        };
        let fits = |(place, index): &(usize, &usize)| {
            let change = &self.all[**index];
            let is_open = change.deleted && change.operation.is_none();
            let holds = version_before(*place).is_some_and(|it| Some(it.as_str()) == required);
            let is_of_object = uid.is_none_or(|uid| change.state.uid == uid);
            (is_open && is_of_object).then_some(holds)
        };
        let mut open = indexes.iter().enumerate().filter_map(|one| Some((fits(&one)?, *one.1)));
        let first = open.clone().next()?;
        Some(open.find(|(holds, _)| *holds).unwrap_or(first).1)
    }

    /// Matches the other changes with operations whose outcome is unknown.
    pub(super) fn match_unknown_writes(&mut self, history: &History) {
        let mut unknown: Vec<(usize, &Operation)> = history
            .operations
            .iter()
            .enumerate()
            .filter(|(_, operation)| matches!(operation.outcome, Outcome::Unknown(_)))
            .filter(|(_, operation)| operation.action.writes())
            .collect();
        // One that began too late cannot explain a change.
        unknown.sort_by_key(|(_, operation)| operation.start);
        for name in self.by_name.keys().cloned().collect::<Vec<_>>() {
            let mut before = self.initial.get(&name).cloned();
            for index in self.by_name.get(&name).cloned().unwrap_or_default() {
                let change = &mut self.all[index];
                if change.operation.is_none() {
                    let explains = |(_, operation): &(usize, &Operation)| {
                        operation.action.name() == Some(&name)
                            && may_explain(operation, change, before.as_ref())
                    };
                    // A precondition that holds tells two deletions apart.
                    let holds = |(_, operation): &(usize, &Operation)| {
                        let current = before.as_ref().map(|before| before.version.as_str());
                        operation.action.precondition().is_none_or(|it| Some(it) == current)
                    };
                    let place = unknown.iter().position(|one| explains(one) && holds(one));
                    if let Some(place) = place.or_else(|| unknown.iter().position(explains)) {
                        let (operation, of) = unknown.remove(place);
                        (change.operation, change.begun) = (Some(operation), of.start);
                    }
                }
                before = (!change.deleted).then(|| change.state.clone());
            }
        }
    }
}

/// Reports whether an object may have been deleted by an operation without a response.
fn has_unknown_deletion(history: &History, name: &str) -> bool {
    history.operations.iter().any(|operation| {
        let is_deletion = matches!(&operation.action, Action::Delete(of, _) if of == name);
        is_deletion && matches!(operation.outcome, Outcome::Unknown(_))
    })
}

/// Reports whether an operation without a response may have made a change.
fn may_explain(operation: &Operation, change: &Change, before: Option<&State>) -> bool {
    if change.deleted {
        return matches!(operation.action, Action::Delete(..));
    }
    let key = own_key(operation.client);
    let written = operation.action.content().and_then(|content| content.get(&key));
    let had = before.and_then(|before| before.content.get(&key));
    written.is_some() && change.state.content.get(&key) == written && had != written
}

/// Returns the entry that a client changes with each of its writes.
pub(in crate::generated::stress) fn own_key(client: usize) -> String {
    format!("c{client}")
}
