//! The requests that added their usage to quotas and have not finished.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kubeproof_storage::Key;
use tokio::sync::watch;

use crate::admission::record::Record;
use crate::admission::resources::ResourceList;
use crate::registry::strategy::Context;

/// The time that a request of another server may need to store its object after it has added its
/// usage to a quota.
const SETTLED: Duration = Duration::from_secs(1);

/// The number of unfinished requests of each namespace.
///
/// The usage in a quota includes their objects, although the store may not have them yet.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    namespaces: Mutex<HashMap<String, usize>>,
    /// The newest known version of each quota, and since when it is known. Only servers that share
    /// a storage need it.
    versions: Mutex<HashMap<Key, (u64, Instant)>>,
    finished: watch::Sender<()>,
}

impl Default for PendingRequests {
    fn default() -> Self {
        Self {
            namespaces: Mutex::default(),
            versions: Mutex::default(),
            finished: watch::Sender::new(()),
        }
    }
}

impl PendingRequests {
    /// Returns whether a namespace has unfinished requests.
    pub(super) fn has(&self, namespace: &str) -> bool {
        self.namespaces().contains_key(namespace)
    }

    /// Returns whether the requests of other servers that changed a quota have finished.
    pub(super) fn has_settled(&self, key: &Key, version: u64) -> bool {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.retain(|known, (_, since)| known == key || since.elapsed() < 10 * SETTLED);
        let (known, since) = versions.entry(key.clone()).or_insert((version, Instant::now()));
        if *known != version {
            (*known, *since) = (version, Instant::now());
        }
        since.elapsed() >= SETTLED
    }

    /// Returns a receiver that wakes when a request finishes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.finished.subscribe()
    }

    fn namespaces(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>, namespace: &str) -> PendingRequest {
        *self.namespaces().entry(namespace.to_owned()).or_default() += 1;
        PendingRequest { all: Arc::clone(self), namespace: namespace.to_owned() }
    }
}

/// One unfinished request. It is finished when it is dropped.
#[derive(Debug)]
struct PendingRequest {
    all: Arc<PendingRequests>,
    namespace: String,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let mut namespaces = self.all.namespaces();
        if let Some(count) = namespaces.get_mut(&self.namespace) {
            *count -= 1;
            if *count == 0 {
                namespaces.remove(&self.namespace);
            }
        }
        drop(namespaces);
        self.all.finished.send_replace(());
    }
}

/// What one request added to quotas.
#[derive(Debug, Default)]
pub(crate) struct Charges {
    added: Vec<(Key, ResourceList)>,
    pending: Option<PendingRequest>,
}

impl Charges {
    /// Marks the request as unfinished.
    pub(super) fn begin(&mut self, pending: &Arc<PendingRequests>, namespace: &str) {
        self.pending = Some(pending.begin(namespace));
    }

    pub(super) fn add(&mut self, quota: Key, added: ResourceList) {
        self.added.push((quota, added));
    }

    /// Finishes the request, whose object is stored.
    pub(crate) fn finish(&mut self) {
        self.added.clear();
        self.pending = None;
    }
}

/// Returns the usage of a request that failed.
pub(crate) async fn release(context: Context<'_>, record: &Record) {
    let Charges { added, pending } = std::mem::take(&mut *record.charges());
    for (quota, added) in added {
        // After a failure of the storage, the server must start again, and recalculates all quotas.
        let _ = super::return_usage(context, &quota, &added).await;
    }
    drop(pending);
}
