//! The controller that removes the taint of new nodes when they are ready.

use kubeproof_apiserver::loopback::{Client, Resource};
use serde_json::Value;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Starts the controller, which runs until the server stops.
pub(crate) fn start(client: &Client) {
    let Some(nodes) = client.resource("", "v1", "nodes") else { return };
    let looped = client.clone();
    client.spawn(async move {
        let mut changes = looped.subscribe(&nodes);
        loop {
            changes.reset();
            remove_taints(&looped, &nodes).await;
            changes.changed().await;
        }
    });
}

async fn remove_taints(client: &Client, nodes: &Resource) {
    for node in client.list(nodes, None).items {
        let mut changed = node.value();
        remove_taint(&mut changed);
        if changed != node.value() {
            client.modify(&node, None, remove_taint).await;
        }
    }
}

/// Removes the taint from a node that is ready.
fn remove_taint(node: &mut Value) {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
    let Some(taints) = node.pointer_mut("/spec/taints").and_then(Value::as_array_mut) else {
        return;
    };
    if is_ready {
        taints.retain(|taint| taint["key"] != NOT_READY);
        if taints.is_empty()
            && let Some(spec) = node["spec"].as_object_mut()
        {
            spec.remove("taints");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ready_node_keeps_its_other_taints() {
        let node = |status: &str, taints: &[Value]| {
            let conditions = json!([{"type": "Ready", "status": status}]);
            json!({"spec": {"taints": taints}, "status": {"conditions": conditions}})
        };
        let (own, other) = (json!({"key": NOT_READY}), json!({"key": "a"}));
        let mut waiting = node("False", std::slice::from_ref(&own));
        remove_taint(&mut waiting);
        assert_eq!(waiting["spec"]["taints"], json!([own]));
        let mut ready = node("True", &[own.clone(), other.clone()]);
        remove_taint(&mut ready);
        assert_eq!(ready["spec"]["taints"], json!([other]));
        let mut ready = node("True", &[own]);
        remove_taint(&mut ready);
        assert_eq!(ready["spec"], json!({}));
    }
}
