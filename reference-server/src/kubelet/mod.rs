//! The agent of a node: it runs the pods that are bound to the node and reports what becomes of them.
//!
//! It knows its API server only by [`Reports`], so the same agent serves the bundled server, whose store it writes to, and
//! any other server, which it talks to over HTTP.

mod endpoint;
mod status;

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::endpoint::{Endpoint, EndpointConfig, EndpointError};
pub use self::status::merged as merged_status;
use crate::object::Object as _;
use crate::runtime::{Pod, PodSpec, Runtime};

/// The first address of pods, less one.
const POD_NETWORK: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 0);

/// How an agent tells its API server about pods. What cannot be told is lost, as are words about a pod that is gone.
pub trait Reports: Send + Sync + 'static {
    /// Merges `status` into the status of this pod; conditions are merged by their type (see [`merged_status`]).
    fn status<'a>(&'a self, pod: &'a Value, status: Value) -> BoxFuture<'a, ()>;
    /// Lets go of a pod whose deletion waited for its containers to end.
    fn ended<'a>(&'a self, pod: &'a Value) -> BoxFuture<'a, ()>;
}

/// The agent of one node. Dropping it stops its pods.
pub struct Kubelet {
    node: String,
    host: IpAddr,
    runtime: Runtime,
    reports: Arc<dyn Reports>,
    workers: Mutex<HashMap<String, watch::Sender<Option<Arc<Value>>>>>,
    next_address: AtomicU32,
    stop: CancellationToken,
}

impl Kubelet {
    /// An agent for the node of this name, on a host with this address.
    pub fn new(node: impl Into<String>, host: IpAddr, reports: Arc<dyn Reports>) -> Self {
        Self {
            node: node.into(),
            host,
            runtime: Runtime::default(),
            reports,
            workers: Mutex::default(),
            next_address: AtomicU32::new(1),
            stop: CancellationToken::new(),
        }
    }

    /// What runs the containers.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The pods that it looks after, as it knows them.
    fn pods(&self) -> Vec<Value> {
        let workers = self.workers();
        workers.values().filter_map(|worker| worker.borrow().as_deref().cloned()).collect()
    }

    /// The name of its node.
    pub fn node(&self) -> &str {
        &self.node
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Option<Arc<Value>>>>> {
        // Each change is one insertion or removal.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes notice of a pod as it is now. One that is bound elsewhere is of no interest.
    pub fn observe(&self, pod: Value) {
        if pod["spec"]["nodeName"] != self.node.as_str() {
            return;
        }
        let uid = pod.meta("uid").to_owned();
        let mut workers = self.workers();
        workers.retain(|_, worker| !worker.is_closed());
        if let Some(worker) = workers.get(&uid) {
            worker.send_replace(Some(Arc::new(pod)));
            return;
        }
        if status::has_ended(&pod) && !pod.is_deleting() {
            return;
        }
        let (sender, updated) = watch::channel(Some(Arc::new(pod)));
        workers.insert(uid, sender);
        let address = self.next_address.fetch_add(1, Ordering::Relaxed);
        let worker = Worker {
            runtime: self.runtime.clone(),
            reports: self.reports.clone(),
            host: self.host,
            ip: Ipv4Addr::from_bits(POD_NETWORK.to_bits() + (address & 0xffff)).into(),
            updated,
        };
        let stop = self.stop.clone();
        tokio::spawn(worker.work(stop));
    }

    /// Takes notice that a pod is no more.
    pub fn forget(&self, uid: &str) {
        if let Some(worker) = self.workers().remove(uid) {
            worker.send_replace(None);
        }
    }

    /// Takes notice of all pods that there are: those that it does not hear of are no more.
    pub fn observe_all(&self, pods: Vec<Value>) {
        let gone: Vec<String> = {
            let workers = self.workers();
            let there = |uid: &&String| !pods.iter().any(|pod| pod.meta("uid") == uid.as_str());
            workers.keys().filter(there).cloned().collect()
        };
        for uid in gone {
            self.forget(&uid);
        }
        for pod in pods {
            self.observe(pod);
        }
    }
}

impl fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelet").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Looks after one pod.
struct Worker {
    runtime: Runtime,
    reports: Arc<dyn Reports>,
    host: IpAddr,
    ip: IpAddr,
    /// The pod as it is now; none when it is no more.
    updated: watch::Receiver<Option<Arc<Value>>>,
}

impl Worker {
    async fn work(mut self, stop: CancellationToken) {
        let Some(object) = self.updated.borrow_and_update().clone() else { return };
        let spec = PodSpec::read(&object);
        let key = spec.key.clone();
        if object.is_deleting() {
            // It has never run here.
            self.reports.ended(&object).await;
            return;
        }
        let pod = self.runtime.run(spec);
        tokio::select! {
            () = self.attend(&pod, object) => {}
            () = stop.cancelled() => {}
        }
        self.runtime.remove(&key);
    }

    async fn attend(&mut self, pod: &Pod, mut object: Arc<Value>) {
        let mut changes = pod.changes();
        loop {
            changes.mark_unchanged();
            let grace = status::grace(&object);
            if grace.is_some() {
                pod.stop();
            }
            let status = status::status(&object, pod, self.host, self.ip);
            if status::merged(&object["status"], &status) != object["status"] {
                self.reports.status(&object, status).await;
            }
            if grace.is_some() && pod.has_stopped() {
                self.reports.ended(&object).await;
                return;
            }
            tokio::select! {
                // The pod keeps the sender of its changes.
                _ = changes.changed() => {}
                updated = self.updated.changed() => {
                    let Some(new) = updated.ok().and_then(|()| self.updated.borrow_and_update().clone()) else {
                        return;
                    };
                    object = new;
                }
            }
        }
    }
}
