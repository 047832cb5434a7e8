//! Binding pods to the one node, unless they ask for something that it is not.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Author, NODE, amend};
use crate::Faults;
use crate::api::Api;
use crate::object::{Object as _, timestamp};
use crate::registry::ResourceType;
use crate::store::Key;

/// The name of the scheduler that pods get when they ask for none.
const NAME: &str = "default-scheduler";

/// Binds a pod that has yet to be bound, or says in its status why not.
pub(super) fn schedule(api: &Arc<Api>, nodes: &ResourceType, pods: &ResourceType, pod: &Value) {
    let spec = &pod["spec"];
    let gated = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    let bound = spec["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    // One that names no scheduler comes of a server without defaults.
    let of_another = spec["schedulerName"].as_str().is_some_and(|name| name != NAME);
    if bound || gated || of_another || pod.is_deleting() {
        return;
    }
    let node = api.store.get(&nodes.table, &Key::new("", NODE));
    let node = node.map(|node| nodes.load(&node, Faults::none()));
    let misfit = match &node {
        None => Some("no nodes available to schedule pods".to_owned()),
        Some(node) => misfit(spec, node).map(|why| format!("0/1 nodes are available: 1 {why}.")),
    };
    match misfit {
        None => amend(api, pods, pod, &Author { manager: NAME, subresource: "binding" }, bind),
        Some(why) => {
            let author = Author { manager: NAME, subresource: "status" };
            amend(api, pods, pod, &author, |old| refuse(old, &why));
        }
    }
}

/// Why the node does not suit a pod.
fn misfit(spec: &Value, node: &Value) -> Option<&'static str> {
    let labels = &node["metadata"]["labels"];
    let mut wanted = spec["nodeSelector"].as_object().into_iter().flatten();
    if node["spec"]["unschedulable"] == true {
        return Some("node(s) were unschedulable");
    }
    if wanted.any(|(key, value)| labels.get(key) != Some(value)) {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    None
}

fn bind(pod: &Value) -> Option<Value> {
    if pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()) {
        return None;
    }
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = NODE.into();
    set_scheduled(&mut pod, json!({"status": "True"}));
    Some(pod)
}

fn refuse(pod: &Value, why: &str) -> Option<Value> {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.any(|condition| condition["type"] == "PodScheduled" && condition["message"] == why) {
        return None;
    }
    let mut pod = pod.clone();
    set_scheduled(&mut pod, json!({"status": "False", "reason": "Unschedulable", "message": why}));
    Some(pod)
}

fn set_scheduled(pod: &mut Value, mut condition: Value) {
    condition["type"] = "PodScheduled".into();
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = timestamp(0).into();
    let conditions = &mut pod["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|old| old["type"] != "PodScheduled");
        conditions.push(condition);
    }
}
