//! All changes of a history, in the order of their versions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::order::Order;
use super::{Rule, Violation};
use crate::generated::stress::history::{
    Event, EventKind, History, Outcome, Snapshot, State, WatchEnd,
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

    /// Adds the response or the event that shows it.
    pub(super) fn add_to(&self, violation: Violation) -> Violation {
        self.witness.add_to(violation)
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
    /// Objects with several deletions that look the same.
    pub(super) ambiguous: BTreeSet<String>,
    /// Whether the first watcher saw the whole round.
    pub(super) is_complete: bool,
    pub(super) by_name: BTreeMap<String, Vec<usize>>,
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
            ambiguous: BTreeSet::new(),
            is_complete: is_complete(history),
            by_name: BTreeMap::new(),
        };
        changes.all = changes.observed(history, violations);
        for (index, change) in changes.all.iter().enumerate() {
            changes.by_name.entry(change.state.name.clone()).or_default().push(index);
        }
        changes.match_writes(history, violations);
        changes.match_unknown_writes(history);
        if !changes.is_complete {
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

    /// Reports whether an object at one version cannot have another version any more.
    pub(super) fn is_outdated(&self, current: &State, version: &str) -> bool {
        let (now, then) = (self.order.position(&current.version), self.order.position(version));
        let is_older = self.order.numeric && then.is_some_and(|then| now > Some(then));
        let initial = self.initial.get(&current.name);
        let mut known = self.of(&current.name).map(|change| &change.state).chain(initial);
        // A change of another client may be missing.
        let mut is_known = || self.is_complete || known.any(|state| state.version == version);
        version != current.version && (is_older || is_known())
    }

    /// Reports whether versions can be missing that a response showed.
    pub(super) fn have_gaps(&self) -> bool {
        !self.order.numeric && !self.is_complete
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

/// Reports whether the first watcher saw the whole round: its watches continue each other.
fn is_complete(history: &History) -> bool {
    let mut reached = history.initial.version.as_str();
    let mut last = None;
    for watch in history.watches.iter().filter(|watch| watch.watcher == 0) {
        let is_unbroken = matches!(watch.end, WatchEnd::Complete | WatchEnd::Closed(_));
        if !is_unbroken || watch.after != reached {
            return false;
        }
        reached = watch.events.last().map_or(reached, |event| event.state.version.as_str());
        last = Some(&watch.end);
    }
    last == Some(&WatchEnd::Complete)
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
    let Event { kind, state, .. } = event;
    if *kind == EventKind::Bookmark {
        return format!("BOOKMARK at version {}", state.version);
    }
    format!("{} {} at version {}", kind.name(), state.name, state.version)
}
