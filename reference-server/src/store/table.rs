//! One resource: its objects now, and a bounded log of how they came to be.
//!
//! The log serves three readers. A watch is a cursor on it, so a watcher holds no buffer of its own and a slow one costs
//! nothing until the log has moved on without it. A list at an older version takes the objects of now and undoes the events since.
//! A version before the oldest event is expired.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::watch;

use super::object::{Change, Draft, Key, Stored};

/// How many bytes a log holds before its oldest events go.
const MAX_WEIGHT: usize = 64 * 1024 * 1024;

/// How many bytes of objects are enough for one reading of the log.
const BATCH_WEIGHT: usize = 256 * 1024;

/// One change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) change: Change,
    /// The state after the change; of a deletion the last one, under the version of the deletion.
    pub(crate) object: Arc<Stored>,
    /// The state before.
    pub(crate) previous: Option<Arc<Stored>>,
}

/// The objects and the log of one resource.
pub(super) struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    log: VecDeque<Arc<Event>>,
    /// The newest version whose successor may be missing from the log.
    floor: u64,
    capacity: usize,
    /// The bytes of the objects in the log.
    weight: usize,
    signal: watch::Sender<u64>,
}

impl Table {
    pub(super) fn new(floor: u64, capacity: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            floor,
            capacity: capacity.max(1),
            weight: 0,
            signal: watch::Sender::new(floor),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn last_change(&self) -> Option<u64> {
        self.log.back().map(|event| event.revision)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }

    /// Wakes the watchers; called when the lock on the store is free again.
    pub(super) fn announcer(&self) -> watch::Sender<u64> {
        self.signal.clone()
    }

    /// The object as it is now, and as it was.
    pub(super) fn put(&mut self, draft: Draft, revision: u64) -> (Arc<Stored>, Option<Arc<Stored>>) {
        let (object, previous, change) = match self.objects.entry(draft.key.clone()) {
            Entry::Vacant(slot) => {
                let object = Arc::new(Stored::new(draft, revision, Change::Added));
                (slot.insert(object).clone(), None, Change::Added)
            }
            Entry::Occupied(mut slot) => {
                let object = Arc::new(Stored::new(draft, revision, Change::Modified));
                let previous = slot.insert(object.clone());
                (object, Some(previous), Change::Modified)
            }
        };
        self.record(Event { revision, change, object: object.clone(), previous: previous.clone() });
        (object, previous)
    }

    pub(super) fn delete(&mut self, key: &Key, revision: u64) -> Option<Arc<Stored>> {
        let previous = self.objects.remove(key)?;
        let object = Arc::new(previous.at(revision, Change::Deleted));
        self.record(Event {
            revision,
            change: Change::Deleted,
            object: object.clone(),
            previous: Some(previous),
        });
        Some(object)
    }

    fn record(&mut self, event: Event) {
        self.weight += event.object.size();
        self.log.push_back(Arc::new(event));
        while self.log.len() > self.capacity || (self.weight > MAX_WEIGHT && self.log.len() > 1) {
            let Some(expired) = self.log.pop_front() else { return };
            self.weight -= expired.object.size();
            self.floor = expired.revision;
        }
    }

    /// Up to `max` events after `revision`, in order, and whether these are all; none when that version is expired. There are fewer
    /// if their objects are large: whoever asks may be slow to pass them on.
    pub(super) fn events_after(&self, revision: u64, max: usize) -> Option<(Vec<Arc<Event>>, bool)> {
        if revision < self.floor {
            return None;
        }
        let from = self.log.partition_point(|event| event.revision <= revision);
        let mut bytes = 0;
        let mut events = Vec::new();
        for event in self.log.range(from..) {
            if events.len() == max || bytes >= BATCH_WEIGHT {
                return Some((events, false));
            }
            bytes += event.object.size();
            events.push(event.clone());
        }
        Some((events, true))
    }

    /// Whether any object lives in this namespace.
    pub(super) fn has_namespace(&self, namespace: &str) -> bool {
        self.objects
            .range(Key::new(namespace, "")..)
            .next()
            .is_some_and(|(key, _)| key.namespace == namespace)
    }

    /// Calls `visit` with the objects as they were at `revision`, in order, from behind `after`.
    pub(super) fn scan(
        &self,
        namespace: Option<&str>,
        revision: u64,
        after: Option<&Key>,
        mut visit: impl FnMut(&Arc<Stored>),
    ) {
        let start = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let within = |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        let past = self.undone(revision);
        let mut then =
            past.range((start.clone(), Bound::Unbounded)).take_while(|(key, _)| within(key)).peekable();
        let mut now = self
            .objects
            .range((start, Bound::Unbounded))
            .take_while(|(key, _)| within(key))
            .filter(|(key, _)| !past.contains_key(key))
            .peekable();
        loop {
            let from_past = match (then.peek(), now.peek()) {
                (None, None) => return,
                (Some((past, _)), Some((present, _))) => past < present,
                (past, _) => past.is_some(),
            };
            let object = if from_past {
                then.next().and_then(|(_, object)| object.as_ref())
            } else {
                now.next().map(|(_, object)| object)
            };
            if let Some(object) = object {
                visit(object);
            }
        }
    }

    /// The objects that changed after `revision`, as they were at it.
    fn undone(&self, revision: u64) -> BTreeMap<Key, Option<Arc<Stored>>> {
        let from = self.log.partition_point(|event| event.revision <= revision);
        let mut first = HashMap::new();
        for event in self.log.range(from..) {
            first.entry(&event.object.key).or_insert_with(|| event.previous.clone());
        }
        first.into_iter().map(|(key, object)| (key.clone(), object)).collect()
    }
}
