//! The one node of a server that runs pods: it is there from the start, pods are bound to it, and its agent runs them.

mod scheduler;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::Faults;
use crate::api::Api;
use crate::apply::{Operation, Owner, Reach, Write};
use crate::encode;
use crate::kubelet::{Kubelet, Reports, merged_status};
use crate::lifecycle::{self, DeleteOptions};
use crate::object::{Object as _, timestamp, uuid};
use crate::registry::{Lookup, ResourceType};
use crate::store::{Change, Stored};

/// The name of the node.
const NODE: &str = "kubeproof";

/// The address of its host.
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// How many events are taken at once.
const BATCH: usize = 256;

/// A node as its agent registers it, with the port of the agent's own endpoint.
pub fn manifest(name: &str, address: IpAddr, port: u16) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let now = timestamp(0);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "256Gi"});
    let version = format!("kubeproof/{}", env!("CARGO_PKG_VERSION"));
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "there is enough memory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "there is enough space"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "there are enough processes"),
                condition("Ready", "True", "KubeletReady", "the scripted runtime is ready"),
            ],
            // Servers that prefer host names would try to resolve one.
            "addresses": [{"type": "InternalIP", "address": address.to_string()}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": {
                "machineID": name, "systemUUID": uuid(), "bootID": uuid(), "kernelVersion": "",
                "osImage": "kubeproof scripted runtime", "containerRuntimeVersion": version,
                "kubeletVersion": concat!("v1.36.0+kubeproof.", env!("CARGO_PKG_VERSION")),
                "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}

/// Registers the node and runs what is bound to it, until the server stops.
pub(crate) fn start(api: &Arc<Api>) {
    let catalogue = api.registry.current();
    let (Lookup::Found(nodes), Lookup::Found(pods)) =
        (catalogue.find("", "v1", "nodes"), catalogue.find("", "v1", "pods"))
    else {
        return;
    };
    register(api, &nodes);
    let reports = Arc::new(Store { api: Arc::downgrade(api), pods: pods.clone() });
    let kubelet = Arc::new(Kubelet::new(NODE, HOST, reports));
    // A server has one node, and this is only called at its start.
    let _ = api.runtime.set(kubelet.runtime().clone());
    let _ = api.agent.set(Arc::downgrade(&kubelet));
    api.spawn(run(api.clone(), nodes, pods, kubelet));
}

fn register(api: &Api, nodes: &ResourceType) {
    let mut node = manifest(NODE, HOST, 0);
    node.set_meta("uid", uuid());
    node.set_meta("creationTimestamp", timestamp(0));
    nodes.default(&mut node, Faults::none());
    let draft = encode::draft(nodes, &node);
    api.store.write(|write| write.put(&nodes.table, draft));
}

/// Watches pods and nodes, binds and runs.
async fn run(api: Arc<Api>, nodes: Arc<ResourceType>, pods: Arc<ResourceType>, kubelet: Arc<Kubelet>) {
    let mut pods_changed = api.store.subscribe(&pods.table);
    let mut nodes_changed = api.store.subscribe(&nodes.table);
    let mut seen = all(&api, &nodes, &pods, &kubelet);
    loop {
        tokio::select! {
            changed = pods_changed.changed() => {
                if changed.is_err() {
                    return;
                }
                pods_changed.mark_unchanged();
                seen = news(&api, &nodes, &pods, &kubelet, seen);
            }
            changed = nodes_changed.changed() => {
                if changed.is_err() {
                    return;
                }
                nodes_changed.mark_unchanged();
                // A pod that found no place may find one now.
                seen = all(&api, &nodes, &pods, &kubelet);
            }
        }
    }
}

/// Looks at every pod; the version that was looked at.
fn all(api: &Arc<Api>, nodes: &ResourceType, pods: &ResourceType, kubelet: &Kubelet) -> u64 {
    let (stored, revision) = api.store.snapshot(&pods.table, None);
    let objects: Vec<Value> = stored.iter().map(|stored| pods.load(stored, Faults::none())).collect();
    for object in &objects {
        scheduler::schedule(api, nodes, pods, object);
    }
    kubelet.observe_all(objects);
    revision
}

/// Looks at the pods that changed after a version.
fn news(api: &Arc<Api>, nodes: &ResourceType, pods: &ResourceType, kubelet: &Kubelet, mut seen: u64) -> u64 {
    loop {
        let Ok(news) = api.store.news(&pods.table, seen, BATCH) else {
            return all(api, nodes, pods, kubelet);
        };
        let count = news.events.len();
        for event in news.events {
            let object = pods.load(&event.object, Faults::none());
            if event.change == Change::Deleted {
                kubelet.forget(object.meta("uid"));
            } else {
                scheduler::schedule(api, nodes, pods, &object);
                kubelet.observe(object);
            }
        }
        seen = news.revision;
        if count < BATCH {
            return seen;
        }
    }
}

/// Who writes when the server itself does.
struct Author {
    manager: &'static str,
    subresource: &'static str,
}

/// Changes an object if it is still the same one; none of `change` leaves it alone.
fn amend(
    api: &Api,
    ty: &ResourceType,
    object: &Value,
    author: &Author,
    change: impl Fn(&Value) -> Option<Value>,
) {
    let key = object.key();
    loop {
        let Some(stored) = api.store.get(&ty.table, &key) else { return };
        let old = ty.load(&stored, Faults::none());
        if old.meta("uid") != object.meta("uid") {
            return;
        }
        let Some(mut new) = change(&old).filter(|new| *new != old) else { return };
        let owner = Owner {
            manager: author.manager.to_owned(),
            operation: Operation::Update,
            api_version: ty.api_version(),
            subresource: author.subresource.to_owned(),
        };
        let reach = if author.subresource == "status" { Reach::Status } else { Reach::Whole };
        let write = Write { owner, reach, schema: &ty.schema, faults: Faults::none() };
        write.track(Some(&old), &mut new, None);
        if replace(api, ty, &stored, &new) {
            return;
        }
    }
}

/// Whether nobody else was faster.
fn replace(api: &Api, ty: &ResourceType, stored: &Stored, new: &Value) -> bool {
    let draft = encode::draft(ty, new);
    api.store.write(|write| {
        match write.get(&ty.table, &stored.key) {
            Some(current) if current.revision == stored.revision => write.put(&ty.table, draft),
            _ => return false,
        };
        true
    })
}

/// Reports into the store.
struct Store {
    /// The server holds its agent, not the other way round.
    api: std::sync::Weak<Api>,
    pods: Arc<ResourceType>,
}

impl Reports for Store {
    fn status<'a>(&'a self, pod: &'a Value, status: Value) -> BoxFuture<'a, ()> {
        if let Some(api) = self.api.upgrade() {
            let author = Author { manager: "kubelet", subresource: "status" };
            amend(&api, &self.pods, pod, &author, |old| {
                let mut new = old.clone();
                new["status"] = merged_status(&old["status"], &status);
                Some(new)
            });
        }
        Box::pin(std::future::ready(()))
    }

    fn ended<'a>(&'a self, pod: &'a Value) -> BoxFuture<'a, ()> {
        if let Some(api) = self.api.upgrade() {
            let uid = Some(pod.meta("uid").to_owned());
            let options = DeleteOptions { grace: Some(0), uid, ..DeleteOptions::default() };
            // A refusal means that it is gone already.
            let _ = lifecycle::delete(&api, &self.pods, &pod.key(), &options);
        }
        Box::pin(std::future::ready(()))
    }
}
