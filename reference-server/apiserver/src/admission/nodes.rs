//! The plugins around nodes: the taint of new nodes, and what pods get from their node.

use kubeproof_storage::Key;
use serde_json::{Value, json};

use super::resources::{Side, of_pod, parse};
use super::{Attributes, Decision, Operation, Plugin, decided};

const NODES: &str = "nodes";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The labels of nodes that their pods get.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Taints new nodes until they are ready.
pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create && request.is_core(NODES)
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, _request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        taint(object);
        decided(Ok(()))
    }
}

fn taint(node: &mut Value) {
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_known = |one: &Value| one["key"] == NOT_READY && one["effect"] == "NoSchedule";
    if !taints.iter().any(is_known) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        node["spec"]["taints"] = taints.into();
    }
}

/// Copies the zone and the region of a node to its pods.
pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        let is_bound = matches!(request.info.subresource.as_str(), "" | "binding");
        request.operation == Operation::Create && request.ty.is_core("pods") && is_bound
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        let name = match request.info.subresource.as_str() {
            "" => object["spec"]["nodeName"].as_str(),
            _ if object["target"]["kind"] == "Node" => object["target"]["name"].as_str(),
            _ => None,
        };
        if let Some(node) = name.and_then(|name| find(&request, name)) {
            for label in TOPOLOGY {
                let value = &node["metadata"]["labels"][label];
                if !value.is_null() {
                    object["metadata"]["labels"][label] = value.clone();
                }
            }
        }
        decided(Ok(()))
    }
}

/// Rejects a resize beyond the resources of the node.
pub(super) struct PodResizeValidator;

impl Plugin for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Update
            && request.ty.is_core("pods")
            && request.info.subresource == "resize"
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        let name = object["spec"]["nodeName"].as_str().unwrap_or_default();
        let is_same = request.old.is_some_and(|old| old["spec"] == object["spec"]);
        if name.is_empty() || is_same {
            return decided(Ok(()));
        }
        let found = find(&request, name).ok_or_else(|| (format!("node {name:?} not found"), None));
        let checked = found.and_then(|node| check_resize(object, &node));
        decided(checked.map_err(|(why, cause)| {
            let mut error = request.forbidden(object, &why);
            if let Some(cause) = cause {
                let mut status = error.to_status();
                status["details"]["causes"] = json!([{"reason": cause}]);
                error = kubeproof_apimachinery::status::ApiError::of_status(status);
            }
            error
        }))
    }
}

/// Returns why a node cannot run a pod, and the reason of the cause.
fn check_resize(pod: &Value, node: &Value) -> Result<(), (String, Option<&'static str>)> {
    let system = node["metadata"]["labels"]["kubernetes.io/os"].as_str().unwrap_or("linux");
    if system != "linux" {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let why =
            format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return Err((why, Some("UnsupportedPlatform")));
    }
    let (requests, allocatable) =
        (of_pod(&pod["spec"], Side::Requests), parse(&node["status"]["allocatable"]));
    let nanos = |list: &super::resources::ResourceList, name: &str| {
        list.get(name).map_or(0, |amount| amount.nanos())
    };
    let exceeded =
        [("cpu", 1_000_000), ("memory", 1_000_000_000)].into_iter().filter_map(|(name, unit)| {
            let (requested, available) = (nanos(&requests, name), nanos(&allocatable, name));
            (requested > available).then(|| {
                let (requested, available) = (requested / unit, available / unit);
                format!("{name}, requested: {requested}, allocatable: {available}")
            })
        });
    let exceeded: Vec<String> = exceeded.collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let why = format!("node didn't have enough allocatable resources: {}", exceeded.join("; "));
    Err((why, Some("NodeCapacity")))
}

fn find(request: &Attributes<'_>, name: &str) -> Option<Value> {
    let ty = request.context.core(NODES)?;
    let stored = request.context.store.get(&ty.table, &Key::new("", name))?;
    Some(ty.load(&stored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_has_one_taint() {
        let mut node = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
        taint(&mut node);
        taint(&mut node);
        let added = json!({"key": NOT_READY, "effect": "NoSchedule"});
        assert_eq!(node["spec"]["taints"][1], added);
        assert_eq!(node["spec"]["taints"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_pod_cannot_grow_beyond_its_node() {
        let pod = |cpu: &str| {
            let resources = json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
            json!({"spec": {"containers": [{"resources": resources}]}})
        };
        let mut node = json!({"status": {"allocatable": {"cpu": "2", "memory": "4Gi"}}});
        assert_eq!(check_resize(&pod("1500m"), &node), Ok(()));
        let (why, cause) = check_resize(&pod("2500m"), &node).unwrap_err();
        assert!(why.ends_with("cpu, requested: 2500, allocatable: 2000"), "{why}");
        assert_eq!(cause, Some("NodeCapacity"));
        node["metadata"] = json!({"name": "n", "labels": {"kubernetes.io/os": "windows"}});
        let (_, cause) = check_resize(&pod("1"), &node).unwrap_err();
        assert_eq!(cause, Some("UnsupportedPlatform"));
    }
}
