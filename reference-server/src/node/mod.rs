//! The node of a server that runs pods. The server registers it, binds pods to it and runs its
//! kubelet.

mod client;
mod scheduler;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apiserver::loopback::{
    Client, DeleteOptions, FieldManager, Object, Resource, WeakClient,
};
use kubeproof_apiserver::{AUTHORITY_ANNOTATION, ApiServer, SERVER_ANNOTATION};
use kubeproof_kubelet::{Kubelet, PodClient, merge_status};
use serde_json::Value;

pub use kubeproof_kubelet::node::manifest;

/// The name of the only node.
const NODE: &str = "kubeproof";

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The events that one step reads.
const BATCH: usize = 256;

/// Registers the node and runs its pods until the server stops. `ca_pem` is the authority of the
/// certificate of the server, if it has one.
pub(crate) async fn start(api: &ApiServer, client: &Client, ca_pem: Option<&str>) {
    let (Some(nodes), Some(pods)) =
        (client.resource("", "v1", "nodes"), client.resource("", "v1", "pods"))
    else {
        return;
    };
    let name = name(api);
    let mut node = manifest(&name, HOST, 0);
    // Other servers forward requests for the pods of this node.
    let annotate = |node: &mut Value| {
        let annotations = &mut node["metadata"]["annotations"];
        annotations[SERVER_ANNOTATION] = api.address().into();
        if let Some(ca_pem) = ca_pem {
            annotations[AUTHORITY_ANNOTATION] = ca_pem.into();
        }
    };
    if api.shares_storage() {
        annotate(&mut node);
    }
    node["status"]["nodeInfo"]["kubeletVersion"] = kubelet_version(api).into();
    client.create(&nodes, node).await;
    // A restarted server finds its node, and can have another authority.
    if let Some(known) = client.get(&nodes, "", &name).filter(|_| api.shares_storage()) {
        client.modify(&known, None, annotate).await;
    }
    let pod_client = LoopbackPodClient { client: client.downgrade(), pods: pods.clone() };
    let kubelet = Arc::new(Kubelet::new(&name, HOST, Arc::new(pod_client)));
    api.set_kubelet(Arc::new(client::LocalKubelet::new(&kubelet)));
    let node = Node { client: client.clone(), nodes, pods, kubelet };
    client.spawn(node.run());
}

/// Returns the name of the node. Each server of a shared storage has its own, and keeps it when it
/// restarts at the same address.
fn name(api: &ApiServer) -> String {
    if !api.shares_storage() {
        return NODE.to_owned();
    }
    let address = api.address().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    format!("{NODE}-{}", address.trim_matches('-'))
}

/// The version of the kubelet is that of the server.
fn kubelet_version(api: &ApiServer) -> String {
    format!("v{}.0+kubeproof.{}", api.version, env!("CARGO_PKG_VERSION"))
}

/// The scheduler and the kubelet of the node, and what they watch.
struct Node {
    client: Client,
    nodes: Resource,
    pods: Resource,
    kubelet: Arc<Kubelet>,
}

impl Node {
    /// Watches pods and nodes, and passes the changes to the scheduler and the kubelet.
    async fn run(self) {
        let mut pods_changed = self.client.subscribe(&self.pods);
        let mut nodes_changed = self.client.subscribe(&self.nodes);
        let mut seen = self.handle_all().await;
        loop {
            tokio::select! {
                () = pods_changed.changed() => seen = self.handle_events(seen).await,
                // A pending pod may now fit.
                () = nodes_changed.changed() => seen = self.handle_all().await,
            }
        }
    }

    /// Handles all pods, and returns their revision.
    async fn handle_all(&self) -> u64 {
        let list = self.client.list(&self.pods, None);
        let pods: Vec<Value> = list.items.iter().map(Object::value).collect();
        let node = self.kubelet.node();
        for (object, pod) in list.items.iter().zip(&pods) {
            scheduler::schedule(&self.client, (&self.nodes, node), object, pod).await;
        }
        self.kubelet.observe_all(pods);
        list.revision
    }

    /// Handles the pods that changed after a revision.
    async fn handle_events(&self, mut seen: u64) -> u64 {
        let place = (&self.nodes, self.kubelet.node());
        loop {
            let Ok((events, revision)) = self.client.events_after(&self.pods, seen, BATCH) else {
                return self.handle_all().await;
            };
            for event in &events {
                if event.is_removal {
                    self.kubelet.forget(event.object.uid());
                } else {
                    let pod = event.object.value();
                    scheduler::schedule(&self.client, place, &event.object, &pod).await;
                    self.kubelet.observe(pod);
                }
            }
            seen = revision;
            if events.len() < BATCH {
                return seen;
            }
        }
    }
}

/// Writes what the kubelet reports to the API server.
struct LoopbackPodClient {
    /// The server owns the kubelet, so this reference is weak.
    client: WeakClient,
    pods: Resource,
}

impl LoopbackPodClient {
    /// Returns the current version of a pod, unless it is gone.
    fn current(&self, pod: &Value) -> Option<(Client, Object)> {
        let client = self.client.upgrade()?;
        let current = client.get(&self.pods, pod.meta("namespace"), pod.meta("name"))?;
        (current.uid() == pod.meta("uid")).then_some((client, current))
    }
}

impl PodClient for LoopbackPodClient {
    fn patch_status<'a>(&'a self, pod: &'a Value, status: Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some((client, pod)) = self.current(pod) else { return };
            let manager = FieldManager { name: "kubelet", subresource: "status" };
            let merge = |pod: &mut Value| pod["status"] = merge_status(&pod["status"], &status);
            client.modify(&pod, Some(manager), merge).await;
        })
    }

    fn delete<'a>(&'a self, pod: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some((client, pod)) = self.current(pod) else { return };
            let uid = Some(pod.uid().to_owned());
            let options = DeleteOptions { grace: Some(0), uid, ..DeleteOptions::default() };
            // An error means that the pod is already gone.
            let _ = client.delete(&pod, &options).await;
        })
    }
}
