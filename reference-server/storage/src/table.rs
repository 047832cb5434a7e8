//! One resource: its current objects, and a bounded log of their changes.
//!
//! The log serves watches, lists at older versions and expiry. A watch is a cursor on the log, so a
//! slow watcher has no buffer of its own. It expires when the log drops the events at its cursor. A
//! list at an older version undoes the events since then. Versions before the oldest event are
//! expired.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::object::{Change, Key, Stored};

/// The size of the objects after which a read of the log stops, in bytes.
const BATCH_WEIGHT: usize = 256 * 1024;

/// A change of an object.
#[derive(Debug)]
pub struct Event {
    /// The version of the write.
    pub revision: u64,
    /// The kind of change.
    pub change: Change,
    /// The state after the change. A deletion has the last state under the version of the deletion.
    pub object: Arc<Stored>,
    /// The state before the change.
    pub previous: Option<Arc<Stored>>,
}

/// The version of the newest write to a table. Reading it takes no lock.
#[derive(Clone, Debug)]
pub struct TableRevision(Arc<AtomicU64>);

impl TableRevision {
    /// Returns the version of the newest write.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    log: VecDeque<Arc<Event>>,
    /// The newest version whose successor may be missing from the log.
    floor: u64,
    capacity: usize,
    /// The size of the objects in the log, in bytes.
    weight: usize,
    signal: watch::Sender<u64>,
    newest: TableRevision,
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
            newest: TableRevision(Arc::new(AtomicU64::new(floor))),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns the size of the objects in the log, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Returns the version of the oldest event in the log.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.log.front().map(|event| event.revision)
    }

    /// Returns the number of objects.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Reports whether nothing would be lost with this table except its floor.
    pub(super) fn is_unused(&self) -> bool {
        self.objects.is_empty()
            && self.log.is_empty()
            && self.signal.receiver_count() == 0
            && Arc::strong_count(&self.newest.0) == 1
    }

    pub(super) fn newest(&self) -> TableRevision {
        self.newest.clone()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }

    /// Returns the sender that wakes the watchers. The caller uses it after it releases the lock of
    /// the store.
    pub(super) fn announcer(&self) -> watch::Sender<u64> {
        self.signal.clone()
    }

    /// Applies a write. Returns the previous state of the object.
    pub(super) fn apply(&mut self, object: Arc<Stored>, change: Change) -> Option<Arc<Stored>> {
        let previous = match change {
            Change::Deleted => self.objects.remove(&object.key),
            Change::Added | Change::Modified => {
                self.objects.insert(object.key.clone(), object.clone())
            }
        };
        let revision = object.revision;
        self.newest.0.store(revision, Ordering::Release);
        self.record(Event { revision, change, object, previous: previous.clone() });
        previous
    }

    /// Drops all objects and events. Versions before `floor` expire.
    pub(super) fn clear(&mut self, floor: u64) {
        self.objects.clear();
        self.log.clear();
        self.weight = 0;
        self.floor = floor;
        self.newest.0.store(floor, Ordering::Release);
    }

    /// Adds an object that was stored before the log begins.
    pub(super) fn restore(&mut self, object: Arc<Stored>) {
        self.objects.insert(object.key.clone(), object);
    }

    fn record(&mut self, event: Event) {
        self.weight += event.object.size();
        self.log.push_back(Arc::new(event));
        while self.log.len() > self.capacity {
            self.drop_oldest();
        }
    }

    /// Drops the oldest event. Its version and the versions before it expire.
    pub(super) fn drop_oldest(&mut self) {
        let Some(expired) = self.log.pop_front() else { return };
        self.weight -= expired.object.size();
        self.floor = expired.revision;
    }

    /// Returns up to `max` events after `revision`, in order, and whether they are complete.
    /// Returns `None` when that version is expired. Large objects reduce the number of events,
    /// because the reader may be slow to pass them on. Events of one version stay together.
    pub(super) fn events_after(
        &self,
        revision: u64,
        max: usize,
    ) -> Option<(Vec<Arc<Event>>, bool)> {
        if revision < self.floor {
            return None;
        }
        let from = self.log.partition_point(|event| event.revision <= revision);
        let mut bytes = 0;
        let mut events: Vec<Arc<Event>> = Vec::new();
        for event in self.log.range(from..) {
            let is_full = events.len() >= max || bytes >= BATCH_WEIGHT;
            if is_full && events.last().is_none_or(|last| last.revision < event.revision) {
                return Some((events, false));
            }
            bytes += event.object.size();
            events.push(event.clone());
        }
        Some((events, true))
    }

    /// Returns the keys of the objects in a namespace.
    pub(super) fn keys_in(&self, namespace: &str) -> impl Iterator<Item = &Key> {
        let from = self.objects.range(Key::new(namespace, "")..);
        from.map(|(key, _)| key).take_while(move |key| key.namespace == namespace)
    }

    /// Calls `visit` with the objects at `revision`, in order, starting after `after`.
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
        let mut then = past
            .range((start.clone(), Bound::Unbounded))
            .take_while(|(key, _)| within(key))
            .peekable();
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

    /// Returns the objects that changed after `revision`, in their state at that version.
    fn undone(&self, revision: u64) -> BTreeMap<Key, Option<Arc<Stored>>> {
        let from = self.log.partition_point(|event| event.revision <= revision);
        let mut first = HashMap::new();
        for event in self.log.range(from..) {
            first.entry(&event.object.key).or_insert_with(|| event.previous.clone());
        }
        first.into_iter().map(|(key, object)| (key.clone(), object)).collect()
    }
}
