//! The pods behind a service.

use kubeproof_apimachinery::object::Object as _;
use serde_json::Value;

use super::Lookup;
use super::strategy::Context;
use crate::kubelet_client::PodRef;

/// A port of a ready pod of a service.
#[derive(Clone, Debug)]
pub(crate) struct PodPort {
    pub(crate) pod: PodRef,
    /// The node that runs the pod.
    pub(crate) node: String,
    pub(crate) ip: String,
    pub(crate) port: u16,
}

/// Returns the ready pods that the selector of a service selects, with the target of the port. If
/// some are on the node of this server, it returns only those.
pub(crate) fn of_service(
    context: Context<'_>,
    node: Option<&str>,
    service: &Value,
    port: &Value,
) -> Vec<PodPort> {
    let all = on_all_nodes(context, service, port);
    let is_local = |pod: &PodPort| Some(pod.node.as_str()) == node;
    if all.iter().any(is_local) { all.into_iter().filter(is_local).collect() } else { all }
}

fn on_all_nodes(context: Context<'_>, service: &Value, port: &Value) -> Vec<PodPort> {
    let namespace = service.meta("namespace");
    let Lookup::Found(pods) = context.registry.current().find("", "v1", "pods") else {
        return Vec::new();
    };
    let selector = service["spec"]["selector"].as_object();
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else {
        return Vec::new();
    };
    let (candidates, _) = context.store.snapshot(&pods.table, Some(namespace));
    let selected = candidates.into_iter().filter(|stored| {
        let labels = &stored.facts.labels;
        !stored.facts.deleting
            && selector
                .iter()
                .all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
    });
    selected.filter_map(|stored| ready_port(&pods.load(&stored), port)).collect()
}

fn ready_port(pod: &Value, port: &Value) -> Option<PodPort> {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if !conditions.any(|one| one["type"] == "Ready" && one["status"] == "True") {
        return None;
    }
    let target = match &port["targetPort"] {
        Value::Null => number(&port["port"]),
        Value::String(name) => ports(pod)
            .find(|port| port["name"] == name.as_str())
            .and_then(|port| number(&port["containerPort"])),
        target => number(target),
    };
    Some(PodPort {
        pod: pod_ref(pod),
        node: pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned(),
        ip: pod["status"]["podIP"].as_str().unwrap_or_default().to_owned(),
        port: target?,
    })
}

/// Returns the ports of the containers of a pod.
pub(crate) fn ports(pod: &Value) -> impl Iterator<Item = &Value> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.flat_map(|container| container["ports"].as_array().into_iter().flatten())
}

/// Returns a port number.
pub(crate) fn number(port: &Value) -> Option<u16> {
    u16::try_from(port.as_u64()?).ok()
}

/// Returns the pod as the kubelet identifies it.
pub(crate) fn pod_ref(pod: &Value) -> PodRef {
    PodRef {
        namespace: pod.meta("namespace").to_owned(),
        name: pod.meta("name").to_owned(),
        uid: pod.meta("uid").to_owned(),
    }
}
