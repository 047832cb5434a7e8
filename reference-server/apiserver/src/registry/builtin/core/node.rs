//! `nodes`: clients read and patch them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, Subresource, restore};
use crate::registry::strategy::{ProxyTarget, Strategy};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

pub(super) fn nodes() -> BuiltinType {
    BuiltinType {
        subresources: &[Subresource {
            name: "proxy",
            verbs: super::pod::ANY,
            group: "",
            version: "v1",
            kind: "NodeProxyOptions",
            part: None,
        }],
        field_labels: &[FieldLabel {
            label: "spec.unschedulable",
            pointer: "/spec/unschedulable",
            absent: "false",
        }],
        columns: vec![
            column("Status", "string", Cell::Computed(status)),
            column("Roles", "string", Cell::Computed(roles)),
            age(),
            column("Version", "string", Cell::Computed(version)),
            wide("Internal-IP", "string", Cell::Computed(|node| address(node, "InternalIP"))),
            wide("External-IP", "string", Cell::Computed(|node| address(node, "ExternalIP"))),
            wide("OS-Image", "string", Cell::Computed(|node| info(node, "osImage"))),
            wide("Kernel-Version", "string", Cell::Computed(|node| info(node, "kernelVersion"))),
            wide(
                "Container-Runtime",
                "string",
                Cell::Computed(|node| info(node, "containerRuntimeVersion")),
            ),
        ],
        strategy: || Arc::new(NodeStrategy),
        hooks: Hooks {
            prepare_update: |new, old| restore(new, old, "status"),
            is_new_generation: |_, _| false,
            keeps_status: true,
            ..Hooks::NONE
        },
        has_generation: false,
        ..resource("", "v1", "nodes")
    }
}

#[derive(Debug)]
struct NodeStrategy;

impl Strategy for NodeStrategy {
    fn proxy_target(&self) -> Option<ProxyTarget> {
        Some(ProxyTarget::Node)
    }
}

fn status(node: &Value) -> Value {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions
        .filter(|condition| condition["type"] == "Ready")
        .map(|condition| &condition["status"]);
    let mut text = match ready.next_back().and_then(Value::as_str) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        text.push_str(",SchedulingDisabled");
    }
    json!(text)
}

fn roles(node: &Value) -> Value {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> =
        labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    if roles.is_empty() { json!("<none>") } else { json!(roles.join(",")) }
}

fn version(node: &Value) -> Value {
    json!(node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default())
}

fn info(node: &Value, field: &str) -> Value {
    let text = node["status"]["nodeInfo"][field].as_str().filter(|text| !text.is_empty());
    json!(text.unwrap_or("<unknown>"))
}

fn address(node: &Value, kind: &str) -> Value {
    let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    addresses
        .find(|entry| entry["type"] == kind)
        .map_or(json!("<none>"), |entry| entry["address"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_shows_its_condition_and_roles() {
        let node = json!({
            "metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
            },
        });
        assert_eq!(status(&node), "Ready,SchedulingDisabled");
        assert_eq!(roles(&node), "control-plane");
        assert_eq!(address(&node, "InternalIP"), "10.1.0.1");
        assert_eq!(address(&node, "ExternalIP"), "<none>");
        assert_eq!((version(&node), info(&node, "osImage")), (json!(""), json!("<unknown>")));
    }
}
