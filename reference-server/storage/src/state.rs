//! The cache: all objects and their history, which serves every read.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::{Notify, watch};

use super::object::{Change, Key, Stored};
use super::owners::Owners;
use super::table::Table;

/// The size of the history, in bytes. The oldest events expire when the objects of all events need
/// more.
pub const MAX_HISTORY_BYTES: usize = 32 * 1024 * 1024;

/// The initial version of the server. Earlier versions are expired, as after a compaction.
pub(crate) const FIRST_REVISION: u64 = 1_000;

/// A write of one object.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) table: String,
    pub(crate) change: Change,
    /// The object after the write. A deletion has its last state.
    pub(crate) object: Arc<Stored>,
}

/// What writes touched.
#[derive(Default)]
struct Touched {
    /// The senders that wake the watchers of the tables.
    tables: Vec<watch::Sender<u64>>,
    /// An object was removed.
    has_removal: bool,
}

pub(crate) struct State {
    pub(crate) revision: u64,
    pub(crate) tables: BTreeMap<String, Table>,
    /// The size of the objects in all logs, in bytes.
    weight: usize,
    /// The newest version that expired because the history was full. A table without events,
    /// objects and watchers is dropped, and this version is the floor of the next table of its
    /// name.
    pub(crate) compacted: u64,
    pub(crate) owners: Owners,
    /// The number of events that each table keeps.
    history: usize,
}

impl State {
    fn new(history: usize, revision: u64) -> Self {
        Self {
            revision,
            tables: BTreeMap::new(),
            weight: 0,
            compacted: revision,
            owners: Owners::default(),
            history,
        }
    }

    pub(crate) fn table(&mut self, name: &str) -> &mut Table {
        self.tables
            .entry(name.to_owned())
            .or_insert_with(|| Table::new(self.compacted, self.history))
    }

    /// Returns an object.
    pub(crate) fn get(&self, table: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.tables.get(table)?.get(key)
    }

    /// Returns the objects that match, with their table.
    pub(crate) fn objects(
        &self,
        matches: impl Fn(&str, &Stored) -> bool,
    ) -> Vec<(String, Arc<Stored>)> {
        let mut found = Vec::new();
        for (name, table) in &self.tables {
            table.scan(None, self.revision, None, |object| {
                if matches(name, object) {
                    found.push((name.clone(), object.clone()));
                }
            });
        }
        found
    }

    /// Applies writes in order. Returns what they touched.
    fn apply_all(&mut self, operations: impl IntoIterator<Item = Operation>) -> Touched {
        let mut touched = Touched::default();
        for operation in operations {
            touched.has_removal |= operation.change == Change::Deleted;
            touched.tables.push(self.apply(operation));
        }
        touched
    }

    /// Applies a write. Returns the sender that wakes the watchers of its table.
    fn apply(&mut self, operation: Operation) -> watch::Sender<u64> {
        let Operation { table: name, change, object } = operation;
        self.revision = object.revision;
        let table = self.table(&name);
        let announcer = table.announcer();
        let before = table.weight();
        let previous = table.apply(object.clone(), change);
        let after = table.weight();
        let new = (change != Change::Deleted).then_some(&*object);
        self.owners.record(&name, previous.as_deref(), new);
        self.weight = self.weight + after - before;
        self.compact();
        announcer
    }

    /// Drops the oldest events of a history that is too large. The newest event stays.
    fn compact(&mut self) {
        while self.weight > MAX_HISTORY_BYTES {
            let tables = self.tables.iter_mut();
            let oldest = tables.filter_map(|(name, table)| Some((table.oldest()?, name, table)));
            let Some((revision, name, table)) = oldest.min_by_key(|(revision, ..)| *revision)
            else {
                return;
            };
            if revision == self.revision {
                return;
            }
            self.weight -= table.weight();
            table.drop_oldest();
            self.weight += table.weight();
            self.compacted = revision;
            if table.is_unused() {
                let name = name.clone();
                self.tables.remove(&name);
            }
        }
    }
}

/// The state of a store, and what wakes its readers.
pub(crate) struct Cache {
    state: RwLock<State>,
    /// The newest version of the whole store.
    pub(crate) signal: watch::Sender<u64>,
    /// The version of the newest removal.
    pub(crate) removals: watch::Sender<u64>,
    /// Wakes the garbage collector when owners are pending.
    pub(crate) garbage: Notify,
}

impl Cache {
    /// Creates an empty cache. Versions before `revision` are expired.
    pub(crate) fn new(history: usize, revision: u64) -> Self {
        Self {
            state: RwLock::new(State::new(history, revision)),
            signal: watch::Sender::new(revision),
            removals: watch::Sender::new(revision),
            garbage: Notify::new(),
        }
    }

    /// A panic in a write leaves consistent tables, because each step is one insertion. Therefore a
    /// poisoned lock is safe to use.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds objects that were stored before the history begins.
    pub(crate) fn restore(&self, objects: impl IntoIterator<Item = (String, Arc<Stored>)>) {
        let mut state = self.lock();
        for (table, object) in objects {
            state.owners.record(&table, None, Some(&object));
            state.table(&table).restore(object);
        }
    }

    /// Replaces all objects. The versions before `revision` expire.
    pub(crate) fn reset(
        &self,
        revision: u64,
        objects: impl IntoIterator<Item = (String, Arc<Stored>)>,
    ) {
        let mut state = self.lock();
        state.revision = revision;
        state.compacted = revision;
        state.weight = 0;
        state.owners = Owners::default();
        for table in state.tables.values_mut() {
            table.clear(revision);
        }
        for (table, object) in objects {
            state.owners.record(&table, None, Some(&object));
            state.table(&table).restore(object);
        }
        let tables = state.tables.values().map(Table::announcer).collect();
        self.announce(state, Touched { tables, has_removal: true });
    }

    /// Applies writes in order, and wakes their watchers after it releases the lock.
    pub(crate) fn apply(
        &self,
        mut state: RwLockWriteGuard<'_, State>,
        operations: impl IntoIterator<Item = Operation>,
    ) {
        let touched = state.apply_all(operations);
        self.announce(state, touched);
    }

    /// Does the same, and continues at a version that may be newer than all of them.
    pub(crate) fn apply_up_to(
        &self,
        mut state: RwLockWriteGuard<'_, State>,
        operations: impl IntoIterator<Item = Operation>,
        newest: u64,
    ) {
        let touched = state.apply_all(operations);
        state.revision = newest;
        self.announce(state, touched);
    }

    /// Wakes the watchers of tables and of the whole store.
    fn announce(&self, state: RwLockWriteGuard<'_, State>, touched: Touched) {
        let revision = state.revision;
        let garbage = state.owners.has_pending();
        drop(state);
        if garbage {
            self.garbage.notify_one();
        }
        for table in touched.tables {
            table.send_replace(revision);
        }
        if touched.has_removal {
            self.removals.send_replace(revision);
        }
        self.signal.send_if_modified(|newest| {
            let is_newer = *newest < revision;
            *newest = (*newest).max(revision);
            is_newer
        });
    }
}
