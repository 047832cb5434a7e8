//! The kubelet itself: one worker per pod runs its containers and reports its status.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use kubeproof_streaming::portforward::PortError;
use kubeproof_streaming::remotecommand::{ExecRequest, Process, Rejection};
use kubeproof_streaming::websocket::Chunks;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::runtime::{LogError, LogOptions, Pod, PodKey, PodSpec, Runtime, StartError, State};
use crate::status;
use kubeproof_apimachinery::object::Object as _;

/// Pods have the addresses after this one.
const POD_NETWORK: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 0);

/// The requests of a kubelet to its API server. Failures are ignored, since the next change is
/// reported again, and a pod that is gone needs no report.
pub trait PodClient: Send + Sync + 'static {
    /// Merges `status` into the status of a pod. Conditions merge by type, as in
    /// [`merge_status`](crate::merge_status).
    fn patch_status<'a>(&'a self, pod: &'a Value, status: Value) -> BoxFuture<'a, ()>;

    /// Deletes a pod whose graceful deletion waited for its containers.
    fn delete<'a>(&'a self, pod: &'a Value) -> BoxFuture<'a, ()>;
}

/// The kubelet of one node. Dropping it stops its pods.
pub struct Kubelet {
    node: String,
    host: IpAddr,
    runtime: Runtime,
    client: Arc<dyn PodClient>,
    /// The current version of each pod by uid. None stops the worker.
    workers: Mutex<HashMap<String, watch::Sender<Option<Arc<Value>>>>>,
    next_address: AtomicU32,
    stop: CancellationToken,
}

impl Kubelet {
    /// Returns a kubelet for the node of this name, on a host with this address.
    pub fn new(node: impl Into<String>, host: IpAddr, client: Arc<dyn PodClient>) -> Self {
        Self {
            node: node.into(),
            host,
            runtime: Runtime::default(),
            client,
            workers: Mutex::default(),
            next_address: AtomicU32::new(1),
            stop: CancellationToken::new(),
        }
    }

    /// Returns the name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the current version of all pods on the node.
    pub fn pods(&self) -> Vec<Value> {
        let workers = self.workers();
        workers.values().filter_map(|worker| worker.borrow().as_deref().cloned()).collect()
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Option<Arc<Value>>>>> {
        // Each change is one insertion or removal, so a panic leaves the map consistent.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a new pod, or updates a known one. Pods of other nodes are ignored.
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
        let (sender, updates) = watch::channel(Some(Arc::new(pod)));
        workers.insert(uid, sender);
        let address = self.next_address.fetch_add(1, Ordering::Relaxed);
        let worker = Worker {
            runtime: self.runtime.clone(),
            client: self.client.clone(),
            host: self.host,
            ip: Ipv4Addr::from_bits(POD_NETWORK.to_bits() + (address & 0xffff)).into(),
            updates,
        };
        tokio::spawn(worker.run(self.stop.clone()));
    }

    /// Stops a pod that no longer exists.
    pub fn forget(&self, uid: &str) {
        if let Some(worker) = self.workers().remove(uid) {
            worker.send_replace(None);
        }
    }

    /// Takes the complete list of pods. Known pods that are not in the list stop.
    pub fn observe_all(&self, pods: Vec<Value>) {
        let gone: Vec<String> = {
            let workers = self.workers();
            let listed = |uid: &str| pods.iter().any(|pod| pod.meta("uid") == uid);
            workers.keys().filter(|uid| !listed(uid)).cloned().collect()
        };
        for uid in gone {
            self.forget(&uid);
        }
        for pod in pods {
            self.observe(pod);
        }
    }
}

/// The functions of the kubelet API.
impl Kubelet {
    /// Runs a command in a container.
    pub async fn exec(
        &self,
        pod: &PodKey,
        container: &str,
        request: ExecRequest,
    ) -> Result<Process, StartError> {
        self.runtime.exec(pod, container, request).await
    }

    /// Attaches to the main process of a container. The command of the request is ignored.
    pub async fn attach(
        &self,
        pod: &PodKey,
        container: &str,
        request: ExecRequest,
    ) -> Result<Process, StartError> {
        self.runtime.attach(pod, container, request).await
    }

    /// Connects to a TCP port of a pod.
    pub async fn connect(&self, pod: &PodKey, port: u16) -> Result<DuplexStream, PortError> {
        self.runtime.connect(pod, port).await
    }

    /// Reads the log of a container. With `follow`, the stream ends when the container ends.
    pub fn logs(
        &self,
        pod: &PodKey,
        container: &str,
        options: LogOptions,
    ) -> Result<Chunks, LogError> {
        let log = self.runtime.logs(pod, container, options)?;
        let pieces = stream::unfold(log, |mut log| async move {
            let piece = log.next().await?;
            Some((piece, log))
        });
        Ok(pieces.boxed())
    }

    /// Returns true for a container that has not started, or whose pod is not yet known.
    pub fn is_creating(&self, pod: &PodKey, container: &str) -> bool {
        match self.runtime.pod(pod) {
            Err(_) => true,
            Ok(pod) => pod.container(container).is_ok_and(|container| {
                let view = container.view();
                view.id.is_empty() && matches!(view.state, State::Waiting { .. })
            }),
        }
    }

    /// Returns why the kubelet rejects commands in a container, if it does.
    pub fn rejection(&self, pod: &PodKey, container: &str) -> Option<Rejection> {
        let found = match self.runtime.pod(pod) {
            Ok(found) => found,
            Err(error) => {
                return Some(Rejection {
                    status: StatusCode::NOT_FOUND,
                    message: error.to_string(),
                });
            }
        };
        let running = found
            .container(container)
            .is_ok_and(|container| matches!(container.view().state, State::Running { .. }));
        // Kubelets report a container that does not run as unknown.
        (!running).then(|| Rejection {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message: format!("container not found ({container:?})"),
        })
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

/// Runs one pod.
struct Worker {
    runtime: Runtime,
    client: Arc<dyn PodClient>,
    host: IpAddr,
    ip: IpAddr,
    /// The current version of the pod. None when it no longer exists.
    updates: watch::Receiver<Option<Arc<Value>>>,
}

impl Worker {
    async fn run(mut self, stop: CancellationToken) {
        let Some(object) = self.updates.borrow_and_update().clone() else { return };
        let spec = PodSpec::parse(&object);
        let key = spec.key.clone();
        if object.is_deleting() {
            // The pod has never run here, so nothing is left to stop.
            self.client.delete(&object).await;
            return;
        }
        let pod = self.runtime.run(spec);
        tokio::select! {
            () = self.report(&pod, object) => {}
            () = stop.cancelled() => {}
        }
        self.runtime.remove(&key);
    }

    /// Reports the status of the pod until it is deleted.
    async fn report(&mut self, pod: &Pod, mut object: Arc<Value>) {
        let mut changes = pod.changes();
        loop {
            changes.mark_unchanged();
            let is_deleting = object.is_deleting();
            if is_deleting {
                pod.stop();
            }
            let status = status::status(&object, pod, self.host, self.ip);
            if status::merge_status(&object["status"], &status) != object["status"] {
                self.client.patch_status(&object, status).await;
            }
            if is_deleting && pod.has_stopped() {
                self.client.delete(&object).await;
                return;
            }
            tokio::select! {
                // The pod owns the sender, so this cannot fail.
                _ = changes.changed() => {}
                updated = self.updates.changed() => {
                    if updated.is_err() {
                        return;
                    }
                    let Some(updated) = self.updates.borrow_and_update().clone() else { return };
                    object = updated;
                }
            }
        }
    }
}
