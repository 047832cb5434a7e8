//! `nodes`: clients read and patch them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pod::taint;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, Subresource, restore};
use crate::registry::strategy::{ProxyTarget, Strategy};
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{
    boolean, definitions, int32, int64, list, map, object, quantity, string, time,
};
use kubeproof_apimachinery::schema::meta::with_type_meta;
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

definitions! {
    "io.k8s.api.core.v1"

    node_spec NodeSpec {
        configSource: node_config_source(), externalID: string(), podCIDR: string(),
        podCIDRs: list(string()).merged(), providerID: string(), taints: list(taint()),
        unschedulable: boolean(),
    }
    node_config_source NodeConfigSource { configMap: config_map_node_config_source() }
    config_map_node_config_source ConfigMapNodeConfigSource {
        need kubeletConfigKey: string(), need name: string(), need namespace: string(),
        resourceVersion: string(), uid: string(),
    }
    node_status NodeStatus {
        addresses: list(node_address()).merge_by("type"), allocatable: map(quantity()),
        capacity: map(quantity()), conditions: list(node_condition()).merge_by("type"),
        config: node_config_status(), declaredFeatures: list(string()),
        daemonEndpoints: node_daemon_endpoints().or_empty(),
        features: node_features(), images: list(container_image()),
        nodeInfo: node_system_info(), phase: string(),
        runtimeHandlers: list(node_runtime_handler()), volumesAttached: list(attached_volume()),
        volumesInUse: list(string()),
    }
    attached_volume AttachedVolume { always devicePath: string(), always name: string() }
    container_image ContainerImage { names: list(string()), sizeBytes: int64() }
    node_address NodeAddress { always address: string(), always type: string() }
    node_condition NodeCondition {
        lastHeartbeatTime: time(), lastTransitionTime: time(), message: string(), reason: string(),
        always status: string(), always type: string(),
    }
    node_config_status NodeConfigStatus {
        active: node_config_source(), assigned: node_config_source(), error: string(),
        lastKnownGood: node_config_source(),
    }
    node_daemon_endpoints NodeDaemonEndpoints { kubeletEndpoint: daemon_endpoint().or_empty() }
    daemon_endpoint DaemonEndpoint { always Port: int32() }
    node_features NodeFeatures { supplementalGroupsPolicy: boolean() }
    node_runtime_handler NodeRuntimeHandler {
        features: node_runtime_handler_features(), name: string(),
    }
    node_runtime_handler_features NodeRuntimeHandlerFeatures {
        recursiveReadOnlyMounts: boolean(), userNamespaces: boolean(),
    }
    node_system_info NodeSystemInfo {
        always architecture: string(), always bootID: string(),
        always containerRuntimeVersion: string(),
        always kernelVersion: string(), always kubeProxyVersion: string(),
        always kubeletVersion: string(), always machineID: string(),
        always operatingSystem: string(),
        always osImage: string(), swap: node_swap_status(), always systemUUID: string(),
    }
    node_swap_status NodeSwapStatus { capacity: int64() }
}

pub(super) fn nodes() -> BuiltinType {
    let schema = with_type_meta(object("io.k8s.api.core.v1.Node"))
        .field("spec", node_spec().or_empty())
        .field("status", node_status().or_empty());
    BuiltinType {
        namespaced: false,
        has_status: true,
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
        ..BuiltinType::namespaced("", "v1", "Node", "nodes", Arc::new(schema))
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
