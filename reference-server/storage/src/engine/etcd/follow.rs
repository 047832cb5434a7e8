//! Keeps the cache up to date with one watch.
//!
//! The watch covers all keys of etcd, because each revision changes a key. So the cache has reached
//! a revision when it has an event of that revision or of a later one. Progress notifications would
//! be an alternative, but etcd before 3.4.25 sends them ahead of events.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tonic::Status;

use super::messages::{Event, EventType, KeyValue, WatchCreateRequest};
use super::{Shared, compaction, load};
use crate::object::{Change, Key, Stored};
use crate::state::Operation;

/// The time before a lost watch starts again.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a watch ended.
enum End {
    /// The connection is lost, or the server stops.
    Lost,
    /// etcd does not have the next revision any more.
    Compacted,
}

/// Follows etcd until the future is dropped.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        match watch(&shared).await {
            Ok(End::Compacted) => {
                if reload(&shared).await.is_err() {
                    sleep(PAUSE).await;
                }
            }
            Ok(End::Lost) | Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Applies events from the revision of the cache on.
async fn watch(shared: &Shared) -> Result<End, Status> {
    let seen = shared.cache.read().revision;
    let create = WatchCreateRequest {
        key: b"\0".to_vec(),
        range_end: b"\0".to_vec(),
        start_revision: (seen + 1).cast_signed(),
        fragment: true,
    };
    let mut responses = shared.client.watch(create).await?;
    let mut events = Vec::new();
    let mut is_checked = false;
    while let Ok(Some(response)) = responses.message().await {
        if response.canceled && response.compact_revision > 0 {
            return Ok(End::Compacted);
        }
        if response.canceled {
            break;
        }
        // A watch from the compacted revision itself starts, but etcd before 3.4.36 omits the
        // deletions of that revision.
        if !is_checked && compaction::last(&shared.client).await? > seen {
            return Ok(End::Compacted);
        }
        is_checked = true;
        events.extend(response.events);
        if !response.fragment {
            shared.apply(std::mem::take(&mut events));
        }
    }
    shared.client.switch();
    Ok(End::Lost)
}

/// Replaces the content of a cache that has missed events.
async fn reload(shared: &Shared) -> Result<(), super::EtcdError> {
    let loaded = load::without_history(&shared.client, &shared.layout).await?;
    let kept: BTreeSet<(&str, &Key)> =
        loaded.objects.iter().map(|(table, object)| (table.as_str(), &object.key)).collect();
    let gone = shared.cache.read().objects(|table, object| !kept.contains(&(table, &object.key)));
    for (table, object) in gone {
        shared.layout.codec.observe(&table, Change::Deleted, &object);
    }
    shared.cache.reset(loaded.revision, loaded.objects);
    Ok(())
}

impl Shared {
    /// Applies complete revisions at once, so that no reader sees a part of a transaction.
    fn apply(&self, events: Vec<Event>) {
        let mut newest = 0;
        let mut batch = Batch { shared: self, changed: HashMap::new(), operations: Vec::new() };
        for Event { kind, kv } in events {
            let Some(kv) = kv else { continue };
            newest = kv.mod_revision.cast_unsigned();
            batch.add(kind == i32::from(EventType::Put), &kv);
        }
        let operations = batch.operations;
        let state = self.cache.lock();
        // A watch that starts again may repeat events.
        if newest > state.revision {
            self.cache.apply_up_to(state, operations, newest);
        }
    }
}

/// The changes of one response.
struct Batch<'a> {
    shared: &'a Shared,
    /// The newest states of the changed objects. The value of a deleted object is absent.
    changed: HashMap<(String, Key), Option<Arc<Stored>>>,
    operations: Vec<Operation>,
}

impl Batch<'_> {
    fn add(&mut self, is_put: bool, kv: &KeyValue) {
        let Some((table, key)) = self.shared.layout.place(&kv.key) else { return };
        let place = (table, key);
        let old = match self.changed.get(&place) {
            Some(changed) => changed.clone(),
            None => self.shared.cache.read().get(&place.0, &place.1).cloned(),
        };
        let revision = kv.mod_revision.cast_unsigned();
        let change = if old.is_some() { Change::Modified } else { Change::Added };
        let layout = &self.shared.layout;
        // Readers cannot see a value that this server cannot decode.
        let new = is_put.then(|| layout.decode(&place.0, &kv.value, (revision, change)).ok());
        let (change, object) = match (new.flatten(), old) {
            (Some(new), _) => (change, Arc::new(new)),
            (None, Some(old)) => (Change::Deleted, Arc::new(old.at(revision, Change::Deleted))),
            (None, None) => return,
        };
        layout.codec.observe(&place.0, change, &object);
        let kept = (change != Change::Deleted).then(|| object.clone());
        self.operations.push(Operation { table: place.0.clone(), change, object });
        self.changed.insert(place, kept);
    }
}
