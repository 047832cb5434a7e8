//! A part of a history.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::generated::stress::check::changes::{Change, Changes};
use crate::generated::stress::history::{History, Outcome, Watch, WatchEnd};

/// The end of a watch without its last events.
const LEFT_OUT: &str = "the history leaves out the rest";

/// A part of a history, with the place of each element in the whole.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) history: History,
    /// For each operation, its index in the whole history.
    pub(super) operations: Vec<usize>,
    /// For each watch, its index in the whole history.
    pub(super) watches: Vec<usize>,
    /// The version of the last change, if the part leaves out others after it.
    pub(super) end: Option<String>,
    /// Whether the first watcher had seen everything before the last cut.
    pub(super) was_complete: bool,
    /// The objects whose changes were not all known before a cut.
    pub(super) were_unsure: BTreeSet<String>,
}

/// A change without its position, which depends on the part.
type Mark<'a> = (&'a str, bool, Option<usize>);

impl Part {
    pub(super) fn whole(history: &History) -> Self {
        Self {
            operations: (0..history.operations.len()).collect(),
            watches: (0..history.watches.len()).collect(),
            history: history.clone(),
            end: None,
            was_complete: true,
            were_unsure: BTreeSet::new(),
        }
    }

    pub(super) fn changes(&self) -> Changes {
        Changes::collect(&self.history, &mut Vec::new())
    }

    pub(super) fn operation_count(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn watch_count(&self) -> usize {
        self.watches.len()
    }

    pub(super) fn event_count(&self, watch: usize) -> usize {
        self.history.watches.get(watch).map_or(0, |watch| watch.events.len())
    }

    /// Returns the number of its elements.
    pub(super) fn size(&self) -> usize {
        let History { initial, watches, .. } = &self.history;
        let events: usize = watches.iter().map(|watch| watch.events.len()).sum();
        initial.objects.len() + self.operations.len() + watches.len() + events
    }

    /// Returns the names of all objects.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let History { initial, operations, watches, .. } = &self.history;
        let mut names: BTreeSet<&str> = BTreeSet::new();
        names.extend(initial.objects.iter().map(|state| state.name.as_str()));
        for operation in operations {
            names.extend(operation.action.name());
            match &operation.outcome {
                Outcome::Object(state) => drop(names.insert(&state.name)),
                Outcome::Listed(snapshot, _) => {
                    names.extend(snapshot.objects.iter().map(|state| state.name.as_str()));
                }
                _ => {}
            }
        }
        let events = watches.iter().flat_map(|watch| &watch.events);
        names.extend(events.map(|event| event.state.name.as_str()));
        names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Keeps some operations.
    pub(super) fn retain_operations(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let kept: Vec<bool> = (0..self.operations.len()).map(&mut keep).collect();
        retain(&mut self.operations, &kept);
        retain(&mut self.history.operations, &kept);
    }

    /// Keeps some watches.
    pub(super) fn retain_watches(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let kept: Vec<bool> = (0..self.watches.len()).map(&mut keep).collect();
        retain(&mut self.watches, &kept);
        retain(&mut self.history.watches, &kept);
    }

    pub(super) fn without_operations(&self, removed: Range<usize>) -> Self {
        let mut part = self.clone();
        part.retain_operations(|index| !removed.contains(&index));
        part
    }

    pub(super) fn without_watches(&self, removed: Range<usize>) -> Self {
        let mut part = self.clone();
        part.retain_watches(|index| !removed.contains(&index));
        part
    }

    /// Leaves out the first events of a watch, as if it had started after them.
    pub(super) fn without_first_events(&self, watch: usize, count: usize) -> Option<Self> {
        let mut part = self.clone();
        let watch = part.history.watches.get_mut(watch)?;
        // The checks leave out watches from an unknown version.
        self.changes().order.position(&watch.after)?;
        let last = watch.events.drain(..count).next_back()?;
        watch.after = last.state.version;
        Some(part)
    }

    /// Leaves out the last events of a watch, as if its client had closed it before them.
    pub(super) fn without_last_events(&self, watch: usize, count: usize) -> Self {
        let mut part = self.clone();
        if let Some(watch) = part.history.watches.get_mut(watch).filter(|_| count > 0) {
            watch.events.truncate(watch.events.len().saturating_sub(count));
            watch.end = WatchEnd::Closed(LEFT_OUT.to_owned());
        }
        part
    }

    /// Leaves out an object with all its requests, and with its states in lists and watches.
    pub(super) fn without_object(&self, name: &str) -> Self {
        let mut part = self.clone();
        part.retain_operations(|index| self.history.operations[index].action.name() != Some(name));
        part.history.initial.objects.retain(|state| state.name != name);
        for operation in &mut part.history.operations {
            if let Outcome::Listed(snapshot, _) = &mut operation.outcome {
                snapshot.objects.retain(|state| state.name != name);
            }
        }
        // The next watch of the same watcher begins at an event that is gone.
        let mut renamed: BTreeMap<usize, (String, String)> = BTreeMap::new();
        for watch in &mut part.history.watches {
            let last = |watch: &Watch| {
                watch.events.last().map_or(&watch.after, |event| &event.state.version).clone()
            };
            if let Some((before, after)) = renamed.get(&watch.watcher)
                && watch.after == *before
            {
                watch.after.clone_from(after);
            }
            let before = last(watch);
            watch.events.retain(|event| event.state.name != name);
            renamed.insert(watch.watcher, (before, last(watch)));
        }
        part
    }

    /// Reports whether it has all changes of its objects in its time, each with its request.
    pub(super) fn is_consistent(&self, whole: &Self, of_whole: &Changes) -> bool {
        let changes = self.changes();
        if changes.is_complete && !self.was_complete {
            return false;
        }
        let names = self.names();
        let position = |version: &str| of_whole.order.position(version);
        let begin = position(&self.history.initial.version);
        let end = self.end.as_deref().and_then(position);
        let is_inside = |change: &Change| {
            begin.is_none_or(|begin| change.position > begin)
                && end.is_none_or(|end| change.position <= end)
        };
        names.iter().all(|name| {
            let own: Vec<Mark<'_>> = changes.of(name).map(|one| self.mark(one)).collect();
            let expected: Vec<Mark<'_>> =
                of_whole.of(name).filter(|one| is_inside(one)).map(|one| whole.mark(one)).collect();
            if of_whole.ambiguous.contains(name) && !changes.ambiguous.contains(name) {
                return false;
            }
            if changes.unsure.contains(name) {
                return own.iter().all(|mark| mark.2.is_none() || expected.contains(mark));
            }
            let was_unsure = of_whole.unsure.contains(name) || self.were_unsure.contains(name);
            own == expected && !was_unsure
        })
    }

    fn mark<'a>(&self, change: &'a Change) -> Mark<'a> {
        let operation = change.operation.and_then(|index| self.operations.get(index)).copied();
        (change.state.version.as_str(), change.deleted, operation)
    }
}

fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    items.retain(|_| kept.next() != Some(&false));
}
