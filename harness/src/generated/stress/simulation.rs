//! Histories of a simulated server, which is correct or has a bug.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::check::own_key;
use super::history::{
    Action, Content, Event, EventKind, History, Operation, Outcome, Snapshot, State, Watch,
    WatchEnd,
};

const NAMES: [&str; 3] = ["a", "a-x", "b"];

/// The object at the end of a round.
const LAST: &str = "end";

const CLIENTS: usize = 3;

/// Operations of each client.
const OPERATIONS: usize = 14;

const WATCHERS: usize = 4;

/// An occasional mistake of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Bug {
    None,
    /// A GET returns the state before the last change.
    StaleGet,
    /// A list lacks an object.
    ShortList,
    /// A write with an old version succeeds.
    IgnoredVersion,
    /// A patch starts from an older state.
    LostPatch,
    /// A write gets the version of the write before.
    SharedVersion,
    /// A watch omits an event.
    LostEvent,
    /// A watch sends an event twice.
    RepeatedEvent,
    /// A watch swaps two events.
    SwappedEvents,
    /// ADDED for a changed object.
    WrongType,
}

impl Bug {
    pub(super) const ALL: [Self; 9] = [
        Self::StaleGet,
        Self::ShortList,
        Self::IgnoredVersion,
        Self::LostPatch,
        Self::SharedVersion,
        Self::LostEvent,
        Self::RepeatedEvent,
        Self::SwappedEvents,
        Self::WrongType,
    ];
}

/// Returns the history of a round.
pub(super) fn simulate(seed: u64, numeric: bool, bug: Bug) -> History {
    let mut server = Server {
        random: StdRng::seed_from_u64(seed),
        numeric,
        bug,
        version: 100,
        uids: 0,
        objects: BTreeMap::new(),
        log: Vec::new(),
        times: Vec::new(),
    };
    for name in NAMES {
        if server.random.random_ratio(1, 2) {
            server.change(name, Some(Content::new()), 0);
        }
    }
    server.log.clear();
    let initial = server.list();
    let mut operations = server.work();
    let own = Content::from([(own_key(CLIENTS), "1".to_owned())]);
    let (start, end) = (Duration::from_millis(900), Duration::from_micros(900_100));
    let action = Action::Create(LAST.to_owned(), own);
    let outcome = server.outcome(&action, CLIENTS, 900_050, 900_000);
    operations.push(Operation { client: CLIENTS, start, end, action, outcome });
    let watches = (0..WATCHERS).flat_map(|watcher| server.follow(watcher, &initial.version));
    let watches = watches.collect();
    History { numeric, initial, operations, watches }
}

/// A change in the log.
#[derive(Clone)]
struct Entry {
    at: u64,
    kind: EventKind,
    state: State,
}

struct Server {
    random: StdRng,
    numeric: bool,
    bug: Bug,
    version: u64,
    uids: u64,
    objects: BTreeMap<String, State>,
    log: Vec<Entry>,
    /// Start, effect and end of all operations, with their clients.
    times: Vec<(u64, u64, u64, usize)>,
}

impl Server {
    /// Performs all operations in the order in which they take effect.
    fn work(&mut self) -> Vec<Operation> {
        for client in 0..CLIENTS {
            let mut now = 0;
            for _ in 0..OPERATIONS {
                let start = now + self.random.random_range(1..200);
                let effect = start + self.random.random_range(1..300);
                let end = effect + self.random.random_range(1..300);
                self.times.push((effect, start, end, client));
                now = end;
            }
        }
        self.times.sort_unstable();
        let mut known: BTreeMap<(usize, &str), State> = BTreeMap::new();
        let mut operations = Vec::new();
        for (number, (effect, start, end, client)) in self.times.clone().into_iter().enumerate() {
            if self.random.random_ratio(1, 12) {
                self.touch(effect - 1);
            }
            let name = NAMES[self.random.random_range(0..NAMES.len())];
            let action = self.action(client, name, known.get(&(client, name)), number);
            let outcome = self.outcome(&action, client, effect, start);
            if let Outcome::Object(state) = &outcome {
                known.insert((client, name), state.clone());
            }
            let (start, end) = (Duration::from_micros(start), Duration::from_micros(end));
            operations.push(Operation { client, start, end, action, outcome });
        }
        operations
    }

    fn action(
        &mut self,
        client: usize,
        name: &str,
        known: Option<&State>,
        number: usize,
    ) -> Action {
        let own = Content::from([(own_key(client), number.to_string())]);
        let name = name.to_owned();
        match (self.random.random_range(0..20), known) {
            (0..4, _) => Action::Create(name, own),
            (4..7, Some(state)) => {
                let mut content = state.content.clone();
                content.extend(own);
                Action::Update(name, Some(state.version.clone()), content)
            }
            (7, _) => Action::Update(name, None, own),
            (8..11, _) => Action::MergePatch(name, own),
            (11, _) => Action::Apply(name, own),
            (12, Some(state)) => Action::Delete(name, Some(state.version.clone())),
            (13, _) => Action::Delete(name, None),
            (14, _) => Action::List(None),
            (15, _) => Action::List(Some(2)),
            _ => Action::Get(name),
        }
    }

    fn outcome(&mut self, action: &Action, client: usize, effect: u64, start: u64) -> Outcome {
        if client < CLIENTS && self.random.random_ratio(1, 25) {
            return Outcome::Rejected(429, "TooManyRequests".to_owned());
        }
        let is_unknown = client < CLIENTS && self.random.random_ratio(1, 15);
        if is_unknown && self.random.random_ratio(1, 2) {
            return Outcome::Unknown("timeout".to_owned());
        }
        let outcome = self.perform(action, effect, start);
        if is_unknown { Outcome::Unknown("timeout".to_owned()) } else { outcome }
    }

    fn perform(&mut self, action: &Action, effect: u64, start: u64) -> Outcome {
        let Some(name) = action.name() else { return self.listed(action) };
        let current = self.objects.get(name).cloned();
        let missing = || Outcome::Rejected(404, "NotFound".to_owned());
        let conflict = || Outcome::Rejected(409, "Conflict".to_owned());
        let content = action.content().cloned().unwrap_or_default();
        let is_stale = action.precondition().is_some_and(|required| {
            current.as_ref().is_none_or(|current| current.version != required)
        });
        match (action, current) {
            (
                Action::Get(_) | Action::Update(..) | Action::MergePatch(..) | Action::Delete(..),
                None,
            ) => missing(),
            (Action::Get(_), Some(current)) => self.read(current),
            (Action::Create(..), Some(_)) => conflict(),
            (_, Some(_)) if is_stale && !self.errs(Bug::IgnoredVersion) => conflict(),
            (Action::MergePatch(..), Some(_)) if self.was_changed(name, start) => conflict(),
            (Action::Delete(..), Some(current)) => {
                self.change(name, None, effect);
                Outcome::Deleted(Some(current.uid).filter(|_| self.random.random_ratio(1, 2)))
            }
            (Action::MergePatch(..) | Action::Apply(..), Some(current)) => {
                let is_lost = self.errs(Bug::LostPatch);
                let mut joined = if is_lost { Content::new() } else { current.content };
                joined.extend(content);
                Outcome::Object(self.change(name, Some(joined), effect))
            }
            _ => Outcome::Object(self.change(name, Some(content), effect)),
        }
    }

    /// Reports whether a patch may return 409: another client changed the object, now and then.
    fn was_changed(&mut self, name: &str, start: u64) -> bool {
        let changed = self.log.iter().any(|entry| entry.state.name == name && entry.at >= start);
        changed && self.random.random_ratio(1, 2)
    }

    fn read(&mut self, current: State) -> Outcome {
        if self.errs(Bug::StaleGet) {
            let of_object = self.log.iter().filter(|entry| entry.state.name == current.name);
            let older: Vec<&Entry> = of_object.collect();
            if let Some(before) = older.len().checked_sub(2).map(|place| older[place])
                && before.kind != EventKind::Deleted
            {
                return Outcome::Object(before.state.clone());
            }
        }
        Outcome::Object(current)
    }

    fn listed(&mut self, action: &Action) -> Outcome {
        let mut snapshot = self.list();
        if self.errs(Bug::ShortList) {
            snapshot.objects.pop();
        }
        let count = snapshot.objects.len();
        let pages = match action {
            Action::List(Some(limit)) if count > *limit => vec![*limit, count - limit],
            _ => vec![count],
        };
        Outcome::Listed(snapshot, pages)
    }

    fn errs(&mut self, bug: Bug) -> bool {
        self.bug == bug && self.random.random_ratio(1, 3)
    }

    /// A controller writes another part of an object.
    fn touch(&mut self, at: u64) {
        let name = NAMES[self.random.random_range(0..NAMES.len())];
        if let Some(state) = self.objects.get(name) {
            let content = state.content.clone();
            self.change(name, Some(content), at);
        }
    }

    fn change(&mut self, name: &str, content: Option<Content>, at: u64) -> State {
        if !self.errs(Bug::SharedVersion) || self.log.is_empty() {
            self.version += self.random.random_range(1..4);
        }
        let version = self.version_text(self.version);
        let before = self.objects.get(name);
        let kind = match (&content, before) {
            (None, _) => EventKind::Deleted,
            (Some(_), None) => EventKind::Added,
            (Some(_), Some(_)) => EventKind::Modified,
        };
        let uid = before.map_or_else(
            || {
                self.uids += 1;
                format!("u{}", self.uids)
            },
            |before| before.uid.clone(),
        );
        let last = before.map(|before| before.content.clone()).unwrap_or_default();
        let is_deleted = content.is_none();
        let content = content.unwrap_or(last);
        let state = State { name: name.to_owned(), uid, version, content };
        if is_deleted {
            self.objects.remove(name);
        } else {
            self.objects.insert(name.to_owned(), state.clone());
        }
        self.log.push(Entry { at, kind, state: state.clone() });
        state
    }

    fn list(&self) -> Snapshot {
        let objects = self.objects.values().cloned().collect();
        Snapshot { version: self.version_text(self.version), objects }
    }

    /// Opaque versions are in another order than the changes.
    fn version_text(&self, version: u64) -> String {
        if self.numeric { version.to_string() } else { format!("o{}", version * 7919 % 10_007) }
    }

    /// Returns the watches of a watcher. The first one misses nothing, unless its version expires.
    fn follow(&mut self, watcher: usize, first: &str) -> Vec<Watch> {
        let mut followed = Vec::new();
        let mut next = if watcher == 0 { 0 } else { self.random.random_range(0..self.log.len()) };
        let expires = watcher == 0 && self.random.random_ratio(1, 5);
        loop {
            let rest = self.log.len() - next;
            let count = self.random.random_range(0..=rest);
            let is_last = watcher != 0 || self.random.random_ratio(1, 4);
            let count = if is_last && watcher == 0 { rest } else { count };
            let from = match next.checked_sub(1) {
                Some(before) => self.log[before].state.version.clone(),
                None => first.to_owned(),
            };
            let end = match self.random.random_range(0..4) {
                0 if count == rest => WatchEnd::Silent,
                1 if watcher != 0 => WatchEnd::Complete,
                _ if is_last && watcher == 0 => WatchEnd::Complete,
                _ => WatchEnd::Closed("closed".to_owned()),
            };
            followed.push(self.watch(watcher, &from, (next, count), end));
            next += count;
            if is_last {
                return followed;
            }
            if expires && self.random.random_ratio(1, 2) {
                let last = followed.last().and_then(|watch| watch.events.last());
                let from = last.map_or(from, |event| event.state.version.clone());
                followed.push(self.watch(watcher, &from, (next, 0), WatchEnd::Expired));
                next = self.random.random_range(next..=self.log.len());
            }
        }
    }

    fn watch(
        &mut self,
        watcher: usize,
        from: &str,
        (first, count): (usize, usize),
        end: WatchEnd,
    ) -> Watch {
        let mut events: Vec<Event> = Vec::new();
        for index in first..first + count {
            let Entry { at, kind, state } = self.log[index].clone();
            let at = Duration::from_micros(at + 400);
            let is_wrong = kind == EventKind::Modified && self.errs(Bug::WrongType);
            let kind = if is_wrong { EventKind::Added } else { kind };
            events.push(Event { at, kind, state: state.clone() });
            if self.random.random_ratio(1, 10) {
                let state = State { version: state.version, ..State::default() };
                events.push(Event { at, kind: EventKind::Bookmark, state });
            }
        }
        let place = if events.is_empty() { 0 } else { self.random.random_range(0..events.len()) };
        let is_inner = watcher != 0 && place + 1 < events.len();
        if is_inner && self.errs(Bug::LostEvent) {
            events.remove(place);
        } else if is_inner && self.errs(Bug::RepeatedEvent) {
            events.insert(place, events[place].clone());
        } else if is_inner && self.errs(Bug::SwappedEvents) {
            events.swap(place, place + 1);
        }
        let (from, after) = (from.to_owned(), from.to_owned());
        Watch { watcher, start: Duration::ZERO, from, after, events, end }
    }
}
