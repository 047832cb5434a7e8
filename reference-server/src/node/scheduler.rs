//! Binds pods to the node if it fits them.

use kubeproof_apimachinery::object::{Object as _, timestamp};
use kubeproof_apiserver::loopback::{Client, FieldManager, Object, Resource};
use serde_json::{Value, json};

const NAME: &str = "default-scheduler";

/// Binds a pending pod to a node, or writes the reason to its status. `pod` is the parsed object.
pub(super) async fn schedule(
    client: &Client,
    (nodes, node): (&Resource, &str),
    object: &Object,
    pod: &Value,
) {
    let spec = &pod["spec"];
    let gated = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    let bound = spec["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    // Without defaulting, a pod has no scheduler name.
    let of_another = spec["schedulerName"].as_str().is_some_and(|name| name != NAME);
    if bound || gated || of_another || pod.is_deleting() {
        return;
    }
    let misfit = match client.get(nodes, "", node) {
        None => Some("no nodes available to schedule pods".to_owned()),
        Some(found) => {
            misfit(spec, &found.value()).map(|why| format!("0/1 nodes are available: 1 {why}."))
        }
    };
    match misfit {
        None => {
            let bind = |pod: &mut Value| bind(pod, node);
            client.modify(object, Some(manager("binding")), bind).await;
        }
        Some(why) => {
            let change = |pod: &mut Value| reject(pod, &why);
            client.modify(object, Some(manager("status")), change).await;
        }
    }
}

fn manager(subresource: &'static str) -> FieldManager {
    FieldManager { name: NAME, subresource }
}

/// Returns why the node does not fit a pod.
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

fn bind(pod: &mut Value, node: &str) {
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        pod["spec"]["nodeName"] = node.into();
        set_scheduled(pod, json!({"status": "True"}));
    }
}

fn reject(pod: &mut Value, why: &str) {
    if pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()) {
        // Another server has bound it in the meantime.
        return;
    }
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let is_known = conditions
        .any(|condition| condition["type"] == "PodScheduled" && condition["message"] == why);
    if !is_known {
        let condition = json!({"status": "False", "reason": "Unschedulable", "message": why});
        set_scheduled(pod, condition);
    }
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
