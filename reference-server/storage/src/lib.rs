#![doc = include_str!("../README.md")]

mod object;
mod owners;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::{Notify, watch};

pub use self::object::{Change, Draft, EVENT_END, Facts, Key, Stored};
use self::owners::Owners;
pub use self::owners::Place;
pub use self::table::Event;
use self::table::Table;

/// The initial version of the server. Earlier versions are expired, as after a compaction.
const FIRST_REVISION: u64 = 1_000;

/// The size of the history, in bytes. The oldest events expire when the objects of all events need
/// more.
pub const MAX_HISTORY_BYTES: usize = 32 * 1024 * 1024;

/// All objects.
pub struct Store {
    state: RwLock<State>,
    history: usize,
    /// The newest version of the whole store.
    signal: watch::Sender<u64>,
    /// Wakes the garbage collector when owners are pending.
    garbage: Notify,
}

struct State {
    revision: u64,
    tables: BTreeMap<String, Table>,
    /// The size of the objects in all logs, in bytes.
    weight: usize,
    /// The newest version that expired because the history was full. A table without events,
    /// objects and watchers is dropped, and this version is the floor of the next table of its
    /// name.
    compacted: u64,
    owners: Owners,
}

impl State {
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

/// The reason why a version is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevisionError {
    /// The log starts after this version.
    #[error("version is expired, the oldest one is {oldest}")]
    Expired {
        /// The oldest version in the log.
        oldest: u64,
    },
    /// The version is in the future.
    #[error("version is in the future, the newest one is {current}")]
    Future {
        /// The newest version.
        current: u64,
    },
}

/// One page of a list.
#[derive(Debug, Default)]
pub struct Page {
    /// The objects, in the order of their keys.
    pub items: Vec<Arc<Stored>>,
    /// The version of the list.
    pub revision: u64,
    /// More objects follow after the last item.
    pub more: bool,
    /// The number of objects that follow.
    pub remaining: usize,
}

/// The parameters of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    /// The namespace; all namespaces when absent.
    pub namespace: Option<&'a str>,
    /// The version; the newest when absent.
    pub revision: Option<u64>,
    /// The page starts after this object.
    pub after: Option<&'a Key>,
    /// The maximum number of objects; no limit when absent.
    pub limit: Option<usize>,
}

/// The events that a watcher reads at once.
#[derive(Debug)]
pub struct News {
    /// The events, in order.
    pub events: Vec<Arc<Event>>,
    /// The version up to which these events are complete.
    pub revision: u64,
}

impl Store {
    /// Creates an empty store that keeps `history` events for each table, and
    /// [`MAX_HISTORY_BYTES`] in total.
    pub fn new(history: usize) -> Self {
        Self {
            state: RwLock::new(State {
                revision: FIRST_REVISION,
                tables: BTreeMap::new(),
                weight: 0,
                compacted: FIRST_REVISION,
                owners: Owners::default(),
            }),
            history,
            signal: watch::Sender::new(FIRST_REVISION),
            garbage: Notify::new(),
        }
    }

    /// A panic in a write leaves consistent tables, because each step is one insertion. Therefore a
    /// poisoned lock is safe to use.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the newest version.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    /// Returns an object.
    pub fn get(&self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        self.read().tables.get(table)?.get(key).cloned()
    }

    /// Returns a page of the objects that match `filter`. The number of remaining objects uses the
    /// same filter.
    pub fn list(
        &self,
        table: &str,
        range: Range<'_>,
        filter: impl Fn(&Stored) -> bool,
    ) -> Result<Page, RevisionError> {
        let state = self.read();
        let current = state.revision;
        let revision = range.revision.unwrap_or(current);
        if revision > current {
            return Err(RevisionError::Future { current });
        }
        let mut page = Page { revision, ..Page::default() };
        let Some(table) = state.tables.get(table) else {
            if revision < state.compacted {
                return Err(RevisionError::Expired { oldest: state.compacted });
            }
            return Ok(page);
        };
        if revision < table.floor() {
            return Err(RevisionError::Expired { oldest: table.floor() });
        }
        table.scan(range.namespace, revision, range.after, |object| {
            if filter(object) {
                if range.limit.is_none_or(|limit| page.items.len() < limit) {
                    page.items.push(object.clone());
                } else {
                    page.more = true;
                    page.remaining += 1;
                }
            }
        });
        Ok(page)
    }

    /// Returns the objects of a table and their version, which is the start of a watch.
    pub fn snapshot(&self, table: &str, namespace: Option<&str>) -> (Vec<Arc<Stored>>, u64) {
        let state = self.read();
        let mut items = Vec::new();
        if let Some(table) = state.tables.get(table) {
            table.scan(namespace, state.revision, None, |object| items.push(object.clone()));
        }
        (items, state.revision)
    }

    /// Returns up to `max` events of a table after `revision`.
    pub fn news(&self, table: &str, revision: u64, max: usize) -> Result<News, RevisionError> {
        let state = self.read();
        let Some(table) = state.tables.get(table) else {
            if revision < state.compacted {
                return Err(RevisionError::Expired { oldest: state.compacted });
            }
            return Ok(News { events: Vec::new(), revision: state.revision.max(revision) });
        };
        let (events, all) = table
            .events_after(revision, max)
            .ok_or(RevisionError::Expired { oldest: table.floor() })?;
        let seen = match events.last() {
            Some(last) if !all => last.revision,
            _ => state.revision.max(revision),
        };
        Ok(News { events, revision: seen })
    }

    /// Returns a receiver that wakes at every write to this table.
    pub fn subscribe(&self, table: &str) -> watch::Receiver<u64> {
        if let Some(table) = self.read().tables.get(table) {
            return table.subscribe();
        }
        self.write(|write| write.table(table).subscribe())
    }

    /// Returns a receiver that wakes at every write.
    pub fn subscribe_all(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }

    /// Waits for owners that were deleted, started to be deleted, or gained or lost a dependent.
    /// Returns their uids.
    pub async fn pending_owners(&self) -> BTreeSet<String> {
        loop {
            let pending =
                self.state.write().unwrap_or_else(PoisonError::into_inner).owners.take_pending();
            if !pending.is_empty() {
                return pending;
            }
            self.garbage.notified().await;
        }
    }

    /// Returns the dependents of the object with this uid, even if it does not exist.
    pub fn dependents(&self, owner: &str) -> Vec<Place> {
        self.read().owners.dependents(owner)
    }

    /// Returns the object with this uid if its deletion waits for its dependents.
    pub fn waiting_owner(&self, owner: &str) -> Option<Place> {
        self.read().owners.waiting(owner)
    }

    /// Runs `change` with exclusive access. Watchers wake after it returns.
    pub fn write<R>(&self, change: impl FnOnce(&mut Write<'_>) -> R) -> R {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let mut write = Write { state: &mut state, history: self.history, touched: Vec::new() };
        let result = change(&mut write);
        let touched = write.touched;
        let revision = state.revision;
        let garbage = state.owners.has_pending();
        drop(state);
        if garbage {
            self.garbage.notify_one();
        }
        if !touched.is_empty() {
            for table in touched {
                table.send_replace(revision);
            }
            self.signal.send_replace(revision);
        }
        result
    }
}

/// Exclusive access to the store during a write.
pub struct Write<'a> {
    state: &'a mut State,
    history: usize,
    touched: Vec<watch::Sender<u64>>,
}

impl Write<'_> {
    fn table(&mut self, name: &str) -> &mut Table {
        self.state
            .tables
            .entry(name.to_owned())
            .or_insert_with(|| Table::new(self.state.compacted, self.history))
    }

    /// Returns an object.
    pub fn get(&self, table: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.state.tables.get(table)?.get(key)
    }

    /// Reports whether any table has an object in this namespace.
    pub fn has_namespace(&self, namespace: &str) -> bool {
        self.state.tables.values().any(|table| table.has_namespace(namespace))
    }

    /// Creates or replaces an object under a new version.
    pub fn put(&mut self, table: &str, draft: Draft) -> Arc<Stored> {
        self.state.revision += 1;
        let revision = self.state.revision;
        let name = table;
        let table = self.table(name);
        let announcer = table.announcer();
        let weight = table.weight();
        let (object, previous) = table.put(draft, revision);
        let weight = (weight, table.weight());
        self.touched.push(announcer);
        self.state.owners.record(name, previous.as_deref(), Some(&object));
        self.recorded(weight);
        object
    }

    /// Removes an object. Returns its last state under the version of the removal.
    pub fn delete(&mut self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        let revision = self.state.revision + 1;
        let name = table;
        let table = self.state.tables.get_mut(name)?;
        let weight = table.weight();
        let object = table.delete(key, revision)?;
        let weight = (weight, table.weight());
        self.touched.push(table.announcer());
        self.state.revision = revision;
        self.state.owners.record(name, Some(&object), None);
        self.recorded(weight);
        Some(object)
    }

    /// Bounds the history after an event changed the weight of a log from the first value to the
    /// second one.
    fn recorded(&mut self, (before, after): (usize, usize)) {
        self.state.weight = self.state.weight + after - before;
        self.state.compact();
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
