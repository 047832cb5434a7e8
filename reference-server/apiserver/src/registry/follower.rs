//! Parsed objects of a table that follow the store.
//!
//! Each access first applies the changes since the previous one, so a change applies to the next
//! request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard};

use kubeproof_storage::{Change, Key, Store, Stored, TableRevision};

/// The number of changes to read at once.
const BATCH: usize = 1_000;

/// The parsed objects of one table, which follow the table.
pub(crate) struct Follower<T> {
    table: &'static str,
    parse: fn(&[u8]) -> Option<T>,
    /// The version of the table, from the first access on.
    newest: OnceLock<TableRevision>,
    state: RwLock<State<T>>,
}

struct State<T> {
    items: BTreeMap<Key, T>,
    revision: u64,
}

impl<T> Follower<T> {
    /// Creates an index of a table. It has no object that `parse` returns none for.
    pub(crate) fn new(table: &'static str, parse: fn(&[u8]) -> Option<T>) -> Self {
        // The version before the first one is expired, so the first read is a list.
        let state = RwLock::new(State { items: BTreeMap::new(), revision: 0 });
        Self { table, parse, newest: OnceLock::new(), state }
    }

    /// Calls `read` with the objects, which are at least as new as the start of the call.
    pub(crate) fn read<R>(&self, store: &Store, read: impl FnOnce(&BTreeMap<Key, T>) -> R) -> R {
        read(&self.current(store).items)
    }

    fn current(&self, store: &Store) -> RwLockReadGuard<'_, State<T>> {
        let read = || self.state.read().unwrap_or_else(PoisonError::into_inner);
        let state = read();
        let newest = self.newest.get_or_init(|| store.newest(self.table));
        if state.revision > 0 && state.revision >= newest.get() {
            return state;
        }
        drop(state);
        // A panic leaves an older state, which the next call completes.
        self.catch_up(store, &mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        read()
    }

    fn catch_up(&self, store: &Store, state: &mut State<T>) {
        while state.revision > 0 {
            let Ok(news) = store.news(self.table, state.revision, BATCH) else { break };
            let is_complete = news.events.is_empty();
            for event in news.events {
                let key = &event.object.key;
                let parsed = match event.change {
                    Change::Deleted => None,
                    Change::Added | Change::Modified => (self.parse)(event.object.object()),
                };
                match parsed {
                    Some(parsed) => state.items.insert(key.clone(), parsed),
                    None => state.items.remove(key),
                };
            }
            state.revision = news.revision;
            if is_complete {
                return;
            }
        }
        let (objects, revision) = store.snapshot(self.table, None);
        let parse = |object: &Stored| Some((object.key.clone(), (self.parse)(object.object())?));
        state.items = objects.iter().filter_map(|object| parse(object)).collect();
        state.revision = revision;
    }
}

impl<T> fmt::Debug for Follower<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("table", &self.table).finish_non_exhaustive()
    }
}
