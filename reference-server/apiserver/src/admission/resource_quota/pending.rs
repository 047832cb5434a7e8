//! The requests that added their usage to quotas and have not finished.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubeproof_storage::Key;
use tokio::sync::watch;

use crate::admission::record::Record;
use crate::admission::resources::ResourceList;
use crate::registry::strategy::Context;

/// The number of unfinished requests of each namespace.
///
/// The usage in a quota includes their objects, although the store may not have them yet.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    namespaces: Mutex<HashMap<String, usize>>,
    finished: watch::Sender<()>,
}

impl Default for PendingRequests {
    fn default() -> Self {
        Self { namespaces: Mutex::default(), finished: watch::Sender::new(()) }
    }
}

impl PendingRequests {
    /// Returns whether a namespace has unfinished requests.
    pub(super) fn has(&self, namespace: &str) -> bool {
        self.namespaces().contains_key(namespace)
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
