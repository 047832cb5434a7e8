#![doc = include_str!("../README.md")]

mod engine;
mod object;
mod observer;
mod owners;
mod saved;
mod state;
mod table;
mod write;

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

pub use self::engine::{Codec, Disk, Etcd, EtcdError, EtcdOptions, EtcdTls, OpenError, WriteError};
use self::engine::{DiskEngine, Engine, EtcdEngine, Memory};
pub use self::object::{Change, Draft, EVENT_END, Facts, Key, Stored};
use self::observer::Running;
pub use self::observer::{Observer, Request};
pub use self::owners::Place;
pub use self::saved::{Saved, SavedObject};
pub use self::state::MAX_HISTORY_BYTES;
use self::state::{Cache, FIRST_REVISION};
pub use self::table::{Event, TableRevision};
pub use self::write::Write;

/// All objects. The cache serves every read; an engine makes writes durable.
pub struct Store {
    cache: Arc<Cache>,
    engine: Box<dyn Engine>,
    observer: OnceLock<Observer>,
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

impl Page {
    /// Adds the next object, or counts it if the page is full.
    fn add(&mut self, object: &Arc<Stored>, limit: Option<usize>) {
        if limit.is_none_or(|limit| self.items.len() < limit) {
            self.items.push(object.clone());
        } else {
            self.more = true;
            self.remaining += 1;
        }
    }
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
    /// Creates an empty store in memory that keeps `history` events for each table, and
    /// [`MAX_HISTORY_BYTES`] in total.
    pub fn new(history: usize) -> Self {
        let cache = Arc::new(Cache::new(history, FIRST_REVISION));
        Self::with(Box::new(Memory(cache.clone())), cache)
    }

    /// Creates a store in memory with these objects. Versions before `revision` are expired.
    pub fn restored(
        history: usize,
        revision: u64,
        objects: impl IntoIterator<Item = (String, Stored)>,
    ) -> Self {
        let cache = Arc::new(Cache::new(history, revision));
        cache.restore(objects.into_iter().map(|(table, object)| (table, Arc::new(object))));
        Self::with(Box::new(Memory(cache.clone())), cache)
    }

    /// Creates a store on a disk with the objects of the disk. Versions before `revision` are
    /// expired.
    pub fn on_disk(
        disk: Disk,
        history: usize,
        revision: u64,
        objects: impl IntoIterator<Item = (String, Stored)>,
    ) -> io::Result<Self> {
        let cache = Arc::new(Cache::new(history, revision));
        cache.restore(objects.into_iter().map(|(table, object)| (table, Arc::new(object))));
        Ok(Self::with(Box::new(DiskEngine::start(disk, cache.clone())?), cache))
    }

    /// Creates a store on etcd, which other servers can share.
    pub async fn on_etcd(etcd: Etcd, history: usize) -> Result<Self, EtcdError> {
        let (engine, cache) = EtcdEngine::start(etcd, history).await?;
        Ok(Self::with(Box::new(engine), cache))
    }

    fn with(engine: Box<dyn Engine>, cache: Arc<Cache>) -> Self {
        Self { cache, engine, observer: OnceLock::new() }
    }

    /// Reports each finished request to `observer`, which can be set once.
    pub fn observe(&self, observer: Observer) {
        // A second observer would replace nothing.
        let _ = self.observer.set(observer);
    }

    /// Returns the size of the storage in bytes, if it has files.
    pub fn size(&self) -> Option<u64> {
        self.engine.size()
    }

    /// Returns the newest version.
    pub fn revision(&self) -> u64 {
        self.cache.read().revision
    }

    /// Returns all objects.
    pub fn saved(&self) -> Saved {
        let state = self.cache.read();
        let mut objects = Vec::new();
        for (name, table) in &state.tables {
            table.scan(None, state.revision, None, |object| {
                objects.push(SavedObject {
                    table: name.clone(),
                    key: object.key.clone(),
                    text: object.object().to_vec(),
                });
            });
        }
        Saved { revision: state.revision, objects }
    }

    /// Returns the number of objects of each table that has some.
    pub fn counts(&self) -> Vec<(String, usize)> {
        let state = self.cache.read();
        let counts = state.tables.iter().map(|(name, table)| (name.clone(), table.len()));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Returns an object.
    pub fn get(&self, table: &str, key: &Key) -> Option<Arc<Stored>> {
        self.cache.read().get(table, key).cloned()
    }

    /// Returns a page of the objects that match `filter`. The number of remaining objects uses the
    /// same filter.
    pub fn list(
        &self,
        table: &str,
        range: Range<'_>,
        filter: impl Fn(&Stored) -> bool,
    ) -> Result<Page, RevisionError> {
        let state = self.cache.read();
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
                page.add(object, range.limit);
            }
        });
        Ok(page)
    }

    /// Returns the objects of a table and their version, which is the start of a watch.
    pub fn snapshot(&self, table: &str, namespace: Option<&str>) -> (Vec<Arc<Stored>>, u64) {
        let state = self.cache.read();
        let mut items = Vec::new();
        if let Some(table) = state.tables.get(table) {
            table.scan(namespace, state.revision, None, |object| items.push(object.clone()));
        }
        (items, state.revision)
    }

    /// Returns up to `max` events of a table after `revision`.
    pub fn news(&self, table: &str, revision: u64, max: usize) -> Result<News, RevisionError> {
        let state = self.cache.read();
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
        if let Some(table) = self.cache.read().tables.get(table) {
            return table.subscribe();
        }
        self.cache.lock().table(table).subscribe()
    }

    /// Returns the version of the newest write to a table, which changes with each write.
    pub fn newest(&self, table: &str) -> TableRevision {
        if let Some(table) = self.cache.read().tables.get(table) {
            return table.newest();
        }
        self.cache.lock().table(table).newest()
    }

    /// Returns a receiver that wakes at every removal of an object.
    pub fn subscribe_removals(&self) -> watch::Receiver<u64> {
        self.cache.removals.subscribe()
    }

    /// Returns a receiver that wakes at every write.
    pub fn subscribe_all(&self) -> watch::Receiver<u64> {
        self.cache.signal.subscribe()
    }

    /// Waits for owners that were deleted, started to be deleted, or gained or lost a dependent.
    /// Returns their uids.
    pub async fn pending_owners(&self) -> BTreeSet<String> {
        loop {
            let pending = self.cache.lock().owners.take_pending();
            if !pending.is_empty() {
                return pending;
            }
            self.cache.garbage.notified().await;
        }
    }

    /// Returns the dependents of the object with this uid, even if it does not exist.
    pub fn dependents(&self, owner: &str) -> Vec<Place> {
        self.cache.read().owners.dependents(owner)
    }

    /// Returns the object with this uid if its deletion waits for its dependents.
    pub fn waiting_owner(&self, owner: &str) -> Option<Place> {
        self.cache.read().owners.waiting(owner)
    }

    /// Waits until reads see all writes that ended before the call, on any server.
    pub async fn catch_up(&self) -> Result<(), WriteError> {
        self.engine.catch_up().await
    }

    /// Reports whether other servers write to the storage, too.
    pub fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    /// Returns a page at a version for which [`Self::list`] has returned
    /// [`RevisionError::Expired`], if the storage still has it.
    pub async fn list_past(
        &self,
        table: &str,
        (range, revision): (Range<'_>, u64),
        filter: impl Fn(&Stored) -> bool,
    ) -> Result<Option<Page>, WriteError> {
        let running = self.observer.get().map(|observer| (observer, Running::list(table)));
        let past = self.engine.past(table, range.namespace, revision).await;
        if let Some((observer, running)) = running {
            running.finish(observer, past.is_err());
        }
        let Some(objects) = past? else { return Ok(None) };
        let mut page = Page { revision, ..Page::default() };
        let rest = objects.iter().filter(|object| range.after.is_none_or(|key| object.key > *key));
        for object in rest.filter(|object| filter(object)) {
            page.add(object, range.limit);
        }
        Ok(Some(page))
    }

    /// Reports whether a write can wait for a disk or for other servers.
    pub fn writes_wait(&self) -> bool {
        self.engine.waits()
    }

    /// Runs `change`, which sees the newest version. Returns its result, and the object of its last
    /// operation. At that time, the write is durable and readers see it.
    ///
    /// A write that loses a race against another server calls `change` again.
    pub async fn write<R: Send>(
        &self,
        mut change: impl FnMut(&mut Write<'_>) -> R + Send,
    ) -> Result<(R, Option<Arc<Stored>>), WriteError> {
        let mut result = None;
        let mut running = self.observer.get().map(|observer| (observer, Running::start()));
        let mut run = |write: &mut Write<'_>| {
            result = Some(change(write));
            if let Some((_, running)) = &mut running {
                running.set(write.last());
            }
        };
        let committed = self.engine.commit(&mut run).await;
        if let Some((observer, running)) = running {
            running.finish(observer, committed.is_err());
        }
        let object = committed?;
        let result = result.ok_or_else(|| WriteError::Failed("the write did not run".into()))?;
        Ok((result, object))
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
