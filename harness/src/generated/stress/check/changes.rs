//! All changes of a history, in the order of their versions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::order::Order;
use super::{Rule, Violation};
use crate::generated::stress::history::{
    Action, Event, EventKind, History, Operation, Outcome, Snapshot, State, WatchEnd,
};

/// A change of an object.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) position: u64,
    /// The object after the change, or the deleted object.
    pub(super) state: State,
    pub(super) deleted: bool,
    /// The operation that made it.
    pub(super) operation: Option<usize>,
    /// It had not happened before.
    pub(super) begun: Duration,
    /// Every response to a later request shows it.
    pub(super) visible: Duration,
    /// Where it was seen first.
    witness: Witness,
}

impl Change {
    fn new(position: u64, state: &State, deleted: bool, witness: Witness) -> Self {
        let (begun, visible) = (Duration::ZERO, Duration::MAX);
        Self { position, state: state.clone(), deleted, operation: None, begun, visible, witness }
    }
}

/// Where a state was seen.
#[derive(Clone, Copy, Debug)]
enum Witness {
    /// The response of a write.
    Write(usize),
    /// The response of a read.
    Read(usize),
    /// An event of a watch.
    Event(usize, usize),
}

impl Witness {
    fn add_to(self, violation: Violation) -> Violation {
        match self {
            Self::Write(operation) | Self::Read(operation) => violation.of([operation]),
            Self::Event(watch, event) => violation.seen_in([(watch, event)]),
        }
    }
}

/// The changes, and the state before them.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) order: Order,
    /// In the order of positions.
    pub(super) all: Vec<Change>,
    pub(super) initial: BTreeMap<String, State>,
    /// The position of the initial state.
    pub(super) start: Option<u64>,
    /// Objects whose changes are not all known.
    pub(super) unsure: BTreeSet<String>,
    by_name: BTreeMap<String, Vec<usize>>,
}

impl Changes {
    pub(super) fn collect(history: &History, violations: &mut Vec<Violation>) -> Self {
        let order = Order::of(history);
        let objects = history.initial.objects.iter();
        let mut changes = Self {
            start: order.position(&history.initial.version),
            order,
            all: Vec::new(),
            initial: objects.map(|state| (state.name.clone(), state.clone())).collect(),
            unsure: BTreeSet::new(),
            by_name: BTreeMap::new(),
        };
        changes.all = changes.observed(history, violations);
        for (index, change) in changes.all.iter().enumerate() {
            changes.by_name.entry(change.state.name.clone()).or_default().push(index);
        }
        let is_complete = is_complete(history);
        changes.match_writes(history, is_complete, violations);
        changes.match_unknown_writes(history);
        if !is_complete {
            let unknown = history.operations.iter().filter(|operation| {
                operation.action.writes() && (matches!(operation.outcome, Outcome::Unknown(_)))
            });
            changes.unsure.extend(unknown.filter_map(|one| one.action.name().map(str::to_owned)));
        }
        changes.find_visibility(history);
        changes
    }

    /// Returns the changes of an object, in order.
    pub(super) fn of<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Change> + 'a {
        let indexes = self.by_name.get(name).into_iter().flatten();
        indexes.map(|index| &self.all[*index])
    }

    /// Returns the names of all objects that changed.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Returns the change at a position.
    pub(super) fn at(&self, position: u64) -> Option<&Change> {
        let index = self.all.binary_search_by_key(&position, |change| change.position).ok()?;
        self.all.get(index)
    }

    /// Joins everything that was seen after the initial state.
    fn observed(&self, history: &History, violations: &mut Vec<Violation>) -> Vec<Change> {
        let mut all: BTreeMap<u64, Change> = BTreeMap::new();
        for Sighting { state, deleted, witness } in sightings(history) {
            let Some(position) = self.order.position(&state.version) else {
                // Events without an order are judged with their watch.
                if self.order.is_malformed(&state.version) {
                    let State { name, version, .. } = state;
                    let message = format!("expected a resourceVersion for {name}, got {version:?}");
                    let violation = Violation::new(Rule::MissingVersion, message);
                    violations.push(witness.add_to(violation));
                }
                continue;
            };
            if self.start.is_some_and(|start| position <= start) {
                if let Witness::Write(_) = witness {
                    let message = format!(
                        "expected a write of {} to get a version after {}, got {}",
                        state.name, history.initial.version, state.version
                    );
                    violations.push(witness.add_to(Violation::new(Rule::VersionOrder, message)));
                }
                continue;
            }
            let Some(known) = all.get(&position) else {
                all.insert(position, Change::new(position, state, deleted, witness));
                continue;
            };
            let are_two_writes =
                matches!((known.witness, witness), (Witness::Write(_), Witness::Write(_)));
            if are_two_writes || known.state != *state || known.deleted != deleted {
                let message = format!(
                    "the version {} belongs to {} and to {}",
                    state.version,
                    described(&known.state, known.deleted),
                    described(state, deleted)
                );
                let violation = Violation::new(Rule::SharedVersion, message);
                violations.push(witness.add_to(known.witness.add_to(violation)));
            }
        }
        all.into_values().collect()
    }

    /// Matches each acknowledged write with its change.
    fn match_writes(
        &mut self,
        history: &History,
        is_complete: bool,
        violations: &mut Vec<Violation>,
    ) {
        for (index, operation) in history.operations.iter().enumerate() {
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
                Outcome::Deleted(uid) => self.deletion(name, uid.as_deref()),
                _ => continue,
            };
            if let Some(change) = change {
                let change = &mut self.all[change];
                if change.operation.is_none() {
                    (change.operation, change.begun) = (Some(index), operation.start);
                }
                continue;
            }
            if is_complete && !self.unsure.contains(name) {
                let message = format!(
                    "expected a watch to report the acknowledged {} of {name}, got no event",
                    operation.action.verb()
                );
                violations.push(Violation::new(Rule::LostEvent, message).of([index]));
            }
            self.unsure.insert(name.to_owned());
        }
    }

    /// Returns the first deletion of an object that has no operation.
    fn deletion(&self, name: &str, uid: Option<&str>) -> Option<usize> {
        let indexes = self.by_name.get(name)?.iter().copied();
        let mut deletions = indexes.filter(|index| {
            let change = &self.all[*index];
            change.deleted && change.operation.is_none()
        });
        deletions.find(|index| uid.is_none_or(|uid| self.all[*index].state.uid == uid))
    }

    /// Matches the other changes with operations whose outcome is unknown.
    fn match_unknown_writes(&mut self, history: &History) {
        let mut unknown: Vec<(usize, &Operation)> = history
            .operations
            .iter()
            .enumerate()
            .filter(|(_, operation)| matches!(operation.outcome, Outcome::Unknown(_)))
            .filter(|(_, operation)| operation.action.writes())
            .collect();
        for name in self.by_name.keys().cloned().collect::<Vec<_>>() {
            let mut before = self.initial.get(&name).cloned();
            for index in self.by_name.get(&name).cloned().unwrap_or_default() {
                let change = &mut self.all[index];
                if change.operation.is_none() {
                    let explains = |(_, operation): &(usize, &Operation)| {
                        operation.action.name() == Some(&name)
                            && may_explain(operation, change, before.as_ref())
                    };
                    if let Some(place) = unknown.iter().position(explains) {
                        let (operation, of) = unknown.swap_remove(place);
                        (change.operation, change.begun) = (Some(operation), of.start);
                    }
                }
                before = (!change.deleted).then(|| change.state.clone());
            }
        }
    }

    /// Finds when each change must be visible: the first response that shows it or a later one.
    fn find_visibility(&mut self, history: &History) {
        let mut of_lists: Vec<(u64, Duration)> = Vec::new();
        let mut of_names: BTreeMap<String, Vec<(u64, Duration)>> = BTreeMap::new();
        for operation in &history.operations {
            match &operation.outcome {
                Outcome::Object(state) => {
                    if let Some(position) = self.order.position(&state.version) {
                        let seen = of_names.entry(state.name.clone()).or_default();
                        seen.push((position, operation.end));
                    }
                }
                Outcome::Listed(snapshot, _) => {
                    let position = self.order.position(&snapshot.version);
                    of_lists.extend(position.map(|position| (position, operation.end)));
                }
                _ => {}
            }
        }
        for change in self.all.iter().filter(|change| change.deleted) {
            if let Some(operation) =
                change.operation.and_then(|index| history.operations.get(index))
                && operation.outcome.is_success()
            {
                let seen = of_names.entry(change.state.name.clone()).or_default();
                seen.push((change.position, operation.end));
            }
        }
        let of_lists = earliest_from(of_lists);
        let of_names: BTreeMap<String, Vec<(u64, Duration)>> =
            of_names.into_iter().map(|(name, seen)| (name, earliest_from(seen))).collect();
        for change in &mut self.all {
            let seen = of_names.get(&change.state.name).into_iter().chain([&of_lists]);
            let first = seen.filter_map(|seen| {
                let after = seen.partition_point(|(position, _)| *position < change.position);
                seen.get(after).map(|(_, end)| *end)
            });
            change.visible = first.min().unwrap_or(Duration::MAX);
        }
    }
}

/// A state in a response or an event.
struct Sighting<'a> {
    state: &'a State,
    deleted: bool,
    witness: Witness,
}

/// Returns all states of a history: those of writes first, and then those of events.
fn sightings(history: &History) -> Vec<Sighting<'_>> {
    let mut written = Vec::new();
    let mut read = Vec::new();
    for (index, operation) in history.operations.iter().enumerate() {
        match &operation.outcome {
            Outcome::Object(state) if operation.action.writes() => {
                written.push(Sighting { state, deleted: false, witness: Witness::Write(index) });
            }
            Outcome::Object(state) => {
                read.push(Sighting { state, deleted: false, witness: Witness::Read(index) });
            }
            Outcome::Listed(Snapshot { objects, .. }, _) => {
                let witness = Witness::Read(index);
                read.extend(objects.iter().map(|state| Sighting {
                    state,
                    deleted: false,
                    witness,
                }));
            }
            _ => {}
        }
    }
    for (index, watch) in history.watches.iter().enumerate() {
        let events = watch.events.iter().enumerate();
        let events = events.filter(|(_, event)| event.kind != EventKind::Bookmark);
        written.extend(events.map(|(number, event)| Sighting {
            state: &event.state,
            deleted: event.kind == EventKind::Deleted,
            witness: Witness::Event(index, number),
        }));
    }
    written.extend(read);
    written
}

/// Sorts by position, and replaces each time by the earliest of it and all later positions.
fn earliest_from(mut seen: Vec<(u64, Duration)>) -> Vec<(u64, Duration)> {
    seen.sort_unstable();
    let mut earliest = Duration::MAX;
    for (_, end) in seen.iter_mut().rev() {
        earliest = earliest.min(*end);
        *end = earliest;
    }
    seen
}

/// Reports whether the first watcher saw the whole round.
fn is_complete(history: &History) -> bool {
    let mut first = history.watches.iter().filter(|watch| watch.watcher == 0).peekable();
    let exists = first.peek().is_some();
    let mut last = None;
    let unbroken = first.all(|watch| {
        last = Some(&watch.end);
        matches!(watch.end, WatchEnd::Complete | WatchEnd::Closed(_))
    });
    exists && unbroken && last == Some(&WatchEnd::Complete)
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

/// Describes a state in a message.
pub(super) fn described(state: &State, deleted: bool) -> String {
    let State { name, uid, content, .. } = state;
    let content: Vec<String> =
        content.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let what = if deleted { "the deletion of " } else { "" };
    format!("{what}{name} {{{}}} with uid {}", content.join(" "), short(uid))
}

fn short(uid: &str) -> &str {
    uid.split('-').next().unwrap_or_default()
}

/// Describes an event in a message.
pub(super) fn event_described(event: &Event) -> String {
    let kind = match event.kind {
        EventKind::Added => "ADDED",
        EventKind::Modified => "MODIFIED",
        EventKind::Deleted => "DELETED",
        EventKind::Bookmark => return format!("BOOKMARK at version {}", event.state.version),
    };
    format!("{kind} {} at version {}", event.state.name, event.state.version)
}
