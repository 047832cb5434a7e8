//! Parts of a history that begin later or end earlier.

use std::collections::BTreeMap;

use super::part::Part;
use crate::generated::stress::check::changes::{Change, Changes};
use crate::generated::stress::history::{Operation, Outcome, Snapshot, State, Watch, WatchEnd};

impl Part {
    /// Returns the part before all changes after this one.
    pub(super) fn ended_at(&self, changes: &Changes, last: &Change) -> Self {
        let end = last.position;
        let cut = Cut::new(changes, end);
        let mut part = self.clone();
        part.retain_operations(|index| {
            let operation = &self.history.operations[index];
            match &operation.outcome {
                Outcome::Rejected(..) => !cut.met_later(operation),
                // It need not have happened.
                Outcome::Unknown(_) => true,
                _ => cut.place(index, operation).is_none_or(|position| position <= end),
            }
        });
        part.retain_watches(|index| {
            let after = changes.order.position(&self.history.watches[index].after);
            after.is_none_or(|after| after <= end)
        });
        for watch in &mut part.history.watches {
            let count = watch.events.len();
            watch.events.retain(|event| {
                changes.order.position(&event.state.version).is_none_or(|position| position <= end)
            });
            if watch.events.len() < count {
                watch.end = WatchEnd::Complete;
            }
        }
        part.end = Some(last.state.version.clone());
        part.was_complete = changes.is_complete;
        part.were_unsure.extend(changes.unsure.iter().cloned());
        part
    }

    /// Returns the part after a change, with the state that it led to.
    pub(super) fn begun_at(&self, changes: &Changes, first: &Change) -> Self {
        let begin = first.position;
        let cut = Cut::new(changes, begin);
        let initial = cut.state();
        let mut part = self.clone();
        part.retain_operations(|index| {
            let operation = &self.history.operations[index];
            cut.is_kept_after(index, operation, &initial)
        });
        for watch in &mut part.history.watches {
            begin_watch(watch, changes, first);
        }
        let objects = initial.into_values().cloned().collect();
        part.was_complete = changes.is_complete;
        part.were_unsure.extend(changes.unsure.iter().cloned());
        part.history.initial = Snapshot { version: first.state.version.clone(), objects };
        part
    }
}

/// Lets a watch begin after a change.
fn begin_watch(watch: &mut Watch, changes: &Changes, first: &Change) {
    let is_unserved = matches!(watch.end, WatchEnd::Rejected(..) | WatchEnd::Expired);
    if changes.order.position(&watch.after).is_none_or(|after| after >= first.position)
        || (is_unserved && watch.events.is_empty())
    {
        return;
    }
    watch.after.clone_from(&first.state.version);
    watch.events.retain(|event| {
        let position = changes.order.position(&event.state.version);
        position.is_none_or(|position| position > first.position)
    });
}

/// The changes up to a position, and those after it.
struct Cut<'a> {
    changes: &'a Changes,
    position: u64,
    /// The position of the change that each operation made.
    made: BTreeMap<usize, u64>,
}

impl<'a> Cut<'a> {
    fn new(changes: &'a Changes, position: u64) -> Self {
        let made =
            changes.all.iter().filter_map(|change| Some((change.operation?, change.position)));
        Self { changes, position, made: made.collect() }
    }

    /// Returns the state at the position.
    fn state(&self) -> BTreeMap<&'a str, &'a State> {
        let initial = self.changes.initial.iter();
        let mut objects: BTreeMap<&str, &State> =
            initial.map(|(name, state)| (name.as_str(), state)).collect();
        for change in self.changes.all.iter().take_while(|one| one.position <= self.position) {
            let name = change.state.name.as_str();
            if change.deleted {
                objects.remove(name);
            } else {
                objects.insert(name, &change.state);
            }
        }
        objects
    }

    /// Returns the position of what an operation made or returned.
    fn place(&self, index: usize, operation: &Operation) -> Option<u64> {
        let order = &self.changes.order;
        match &operation.outcome {
            Outcome::Object(state) => order.position(&state.version),
            Outcome::Listed(snapshot, _) => order.position(&snapshot.version),
            Outcome::Deleted(_) => self.made.get(&index).copied(),
            Outcome::Rejected(..) | Outcome::Unknown(_) => None,
        }
    }

    /// Reports whether an operation can have met a state after the position.
    fn met_later(&self, operation: &Operation) -> bool {
        let changes = operation.action.name().into_iter().flat_map(|name| self.changes.of(name));
        let mut later = changes.filter(|change| change.position > self.position);
        later.any(|change| change.begun < operation.end)
    }

    /// Reports whether an operation can have met a state before the position.
    fn met_earlier(&self, operation: &Operation) -> bool {
        let changes = operation.action.name().into_iter().flat_map(|name| self.changes.of(name));
        let last = changes.take_while(|change| change.position <= self.position).last();
        last.is_some_and(|change| change.visible >= operation.start)
    }

    /// Reports whether an operation belongs to the time after the position.
    fn is_kept_after(
        &self,
        index: usize,
        operation: &Operation,
        initial: &BTreeMap<&str, &State>,
    ) -> bool {
        let is_later = |least: u64| self.place(index, operation).is_none_or(|at| at >= least);
        match &operation.outcome {
            Outcome::Rejected(..) => !self.met_earlier(operation),
            Outcome::Listed(..) => is_later(self.position),
            Outcome::Object(state) if !operation.action.writes() => {
                let is_initial = initial.get(state.name.as_str()) == Some(&state);
                is_initial || is_later(self.position + 1)
            }
            _ => is_later(self.position + 1),
        }
    }
}
