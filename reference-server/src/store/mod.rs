//! The store: every object of the server, in memory, with one counter of versions and a bounded past.
//!
//! One lock guards it. A write is a closure that runs under it, so the checks that decide a write and the write are one step; what
//! is slow (parsing, validating, encoding) happens before, and the closure compares versions. Readers copy reference
//! counts and leave.

mod object;
mod owners;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::{Notify, watch};

pub(crate) use self::object::{Change, Draft, EVENT_END, Facts, Key, Stored};
use self::owners::Owners;
pub(crate) use self::owners::Place;
pub(crate) use self::table::Event;
use self::table::Table;

/// The version that the server starts at. Versions below it were never served, and are expired as after a compaction.
const FIRST_REVISION: u64 = 1_000;

/// All objects.
pub(crate) struct Store {
    state: RwLock<State>,
    history: usize,
    /// The newest version of the whole store.
    signal: watch::Sender<u64>,
    /// Owners are to be looked at.
    garbage: Notify,
}

struct State {
    revision: u64,
    tables: BTreeMap<String, Table>,
    owners: Owners,
}

/// Why the past cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RevisionError {
    /// The log begins after it.
    #[error("version is expired, the oldest one is {oldest}")]
    Expired { oldest: u64 },
    /// It is not there yet.
    #[error("version is in the future, the newest one is {current}")]
    Future { current: u64 },
}

/// A part of a list.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Stored>>,
    /// The version that the list shows.
    pub(crate) revision: u64,
    /// More objects follow behind the last item.
    pub(crate) more: bool,
    /// How many follow.
    pub(crate) remaining: usize,
}

/// What to list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range<'a> {
    /// All namespaces when absent.
    pub(crate) namespace: Option<&'a str>,
    /// The newest version when absent.
    pub(crate) revision: Option<u64>,
    /// Begin behind this object.
    pub(crate) after: Option<&'a Key>,
    /// All when absent.
    pub(crate) limit: Option<usize>,
}

/// News for a watcher.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) events: Vec<Arc<Event>>,
    /// The version that the watcher has seen everything of, once it has seen these events.
    pub(crate) revision: u64,
}

impl Store {
    pub(crate) fn new(history: usize) -> Self {
        Self {
            state: RwLock::new(State {
                revision: FIRST_REVISION,
                tables: BTreeMap::new(),
                owners: Owners::default(),
            }),
            history,
            signal: watch::Sender::new(FIRST_REVISION),
            garbage: Notify::new(),
        }
    }

    /// A panic inside a write leaves whole tables behind (each step is one insertion), so the poison is of no interest.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest version.
    pub(crate) fn revision(&self) -> u64 {
        self.read().revision
    }

    /// The version of the newest event that the log of a table holds.
    pub(crate) fn last_change(&self, table: &str) -> Option<u64> {
        self.read().tables.get(table)?.last_change()
    }

    /// One object.
    pub(crate) fn get(&self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        self.read().tables.get(table)?.get(key).cloned()
    }

    /// A part of a list that pass `filter`. What remains is counted by the same filter.
    pub(crate) fn list(
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
            if revision < FIRST_REVISION {
                return Err(RevisionError::Expired { oldest: FIRST_REVISION });
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

    /// The objects of a table and the version at which they were read: where a watch begins.
    pub(crate) fn snapshot(&self, table: &str, namespace: Option<&str>) -> (Vec<Arc<Stored>>, u64) {
        let state = self.read();
        let mut items = Vec::new();
        if let Some(table) = state.tables.get(table) {
            table.scan(namespace, state.revision, None, |object| items.push(object.clone()));
        }
        (items, state.revision)
    }

    /// Up to `max` events of a table after `revision`.
    pub(crate) fn news(&self, table: &str, revision: u64, max: usize) -> Result<News, RevisionError> {
        let state = self.read();
        let Some(table) = state.tables.get(table) else {
            return Ok(News { events: Vec::new(), revision: state.revision.max(revision) });
        };
        let (events, all) =
            table.events_after(revision, max).ok_or(RevisionError::Expired { oldest: table.floor() })?;
        let seen = match events.last() {
            Some(last) if !all => last.revision,
            _ => state.revision.max(revision),
        };
        Ok(News { events, revision: seen })
    }

    /// Wakes at every write to this table.
    pub(crate) fn subscribe(&self, table: &str) -> watch::Receiver<u64> {
        if let Some(table) = self.read().tables.get(table) {
            return table.subscribe();
        }
        self.write(|write| write.table(table).subscribe())
    }

    /// Wakes at every write.
    pub(crate) fn subscribe_all(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }

    /// The uids of owners that went, began to go, or lost or got a dependent; waits until there are some.
    pub(crate) async fn owners_to_look_at(&self) -> BTreeSet<String> {
        loop {
            let pending = self.state.write().unwrap_or_else(PoisonError::into_inner).owners.take_pending();
            if !pending.is_empty() {
                return pending;
            }
            self.garbage.notified().await;
        }
    }

    /// What the object of this uid owns, whether or not it exists.
    pub(crate) fn dependents(&self, owner: &str) -> Vec<Place> {
        self.read().owners.dependents(owner)
    }

    /// The object of this uid, if its deletion waits for what it owns.
    pub(crate) fn waiting_owner(&self, owner: &str) -> Option<Place> {
        self.read().owners.waiting(owner)
    }

    /// Runs `change` alone. Watchers wake when it is over.
    pub(crate) fn write<R>(&self, change: impl FnOnce(&mut Write<'_>) -> R) -> R {
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

/// The store while nobody else has it.
pub(crate) struct Write<'a> {
    state: &'a mut State,
    history: usize,
    touched: Vec<watch::Sender<u64>>,
}

impl Write<'_> {
    fn table(&mut self, name: &str) -> &mut Table {
        self.state.tables.entry(name.to_owned()).or_insert_with(|| Table::new(FIRST_REVISION, self.history))
    }

    /// One object.
    pub(crate) fn get(&self, table: &str, key: &Key) -> Option<&Arc<Stored>> {
        self.state.tables.get(table)?.get(key)
    }

    /// Whether any table has an object in this namespace.
    pub(crate) fn has_namespace(&self, namespace: &str) -> bool {
        self.state.tables.values().any(|table| table.has_namespace(namespace))
    }

    /// Creates or replaces an object under a new version.
    pub(crate) fn put(&mut self, table: &str, draft: Draft) -> Arc<Stored> {
        self.state.revision += 1;
        let revision = self.state.revision;
        let name = table;
        let table = self.table(name);
        let announcer = table.announcer();
        let (object, previous) = table.put(draft, revision);
        self.touched.push(announcer);
        self.state.owners.take_notice(name, previous.as_deref(), Some(&object));
        object
    }

    /// Removes an object; returns its last state under the version of the removal.
    pub(crate) fn delete(&mut self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        let revision = self.state.revision + 1;
        let name = table;
        let table = self.state.tables.get_mut(name)?;
        let object = table.delete(key, revision)?;
        self.touched.push(table.announcer());
        self.state.revision = revision;
        self.state.owners.take_notice(name, Some(&object), None);
        Some(object)
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
