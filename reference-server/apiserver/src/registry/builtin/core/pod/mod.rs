//! `pods`: the type, and the rules that pods and pod templates share.

mod columns;
mod defaults;
mod ephemeral;
mod label_keys;
mod network;
mod reported;
mod resize;
mod status;
mod strategy;
mod update;
mod validate;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::defaults::complete_spec;
pub(crate) use self::validate::validate_spec;
use crate::registry::builtin::data::resource;
use crate::registry::builtin::warnings;
use crate::registry::builtin::{
    BuiltinType, FieldLabel, Hooks, PART_VERBS, PartHooks, Subresource, restore,
};
use kubeproof_apimachinery::object::timestamp;

use kubeproof_apimachinery::schema::FieldError;

pub(super) fn pods() -> BuiltinType {
    BuiltinType {
        subresources: SUBRESOURCES,
        field_labels: FIELD_LABELS,
        columns: columns::columns(),
        strategy: || Arc::new(strategy::PodStrategy),
        hooks: Hooks {
            default: complete,
            warn: warnings::workloads::pod,
            validate: validate::validate_pod,
            validate_create,
            validate_update: update::validate_update,
            prepare_create,
            prepare_update: |new, old| restore(new, old, "status"),
            prepare_status_update: status::prepare,
            validate_status: status::validate,
            warn_status: warnings::services::pod_addresses,
            ..Hooks::NONE
        },
        ..resource("", "v1", "pods")
    }
}

const SUBRESOURCES: &[Subresource] = &[
    subresource("attach", CONNECT, "PodAttachOptions"),
    subresource("binding", &["create"], "Binding"),
    part("ephemeralcontainers", &ephemeral::EPHEMERAL_CONTAINERS),
    Subresource {
        name: "eviction",
        verbs: &["create"],
        group: "policy",
        version: "v1",
        kind: "Eviction",
        part: None,
    },
    subresource("exec", CONNECT, "PodExecOptions"),
    subresource("log", &["get"], "Pod"),
    subresource("portforward", CONNECT, "PodPortForwardOptions"),
    subresource("proxy", ANY, "PodProxyOptions"),
    part("resize", &resize::RESIZE),
];

/// The verbs of streams: browsers send GET, other clients POST.
const CONNECT: &[&str] = &["create", "get"];

/// The verbs of proxies.
pub(in crate::registry::builtin) const ANY: &[&str] =
    &["create", "delete", "get", "patch", "update"];

const fn subresource(
    name: &'static str,
    verbs: &'static [&'static str],
    kind: &'static str,
) -> Subresource {
    Subresource { name, verbs, group: "", version: "v1", kind, part: None }
}

const fn part(name: &'static str, hooks: &'static PartHooks) -> Subresource {
    Subresource { part: Some(hooks), ..subresource(name, PART_VERBS, "Pod") }
}

const FIELD_LABELS: &[FieldLabel] = &[
    FieldLabel { label: "spec.nodeName", pointer: "/spec/nodeName", absent: "" },
    FieldLabel { label: "spec.restartPolicy", pointer: "/spec/restartPolicy", absent: "" },
    FieldLabel { label: "spec.schedulerName", pointer: "/spec/schedulerName", absent: "" },
    FieldLabel {
        label: "spec.serviceAccountName",
        pointer: "/spec/serviceAccountName",
        absent: "",
    },
    FieldLabel { label: "spec.hostNetwork", pointer: "/spec/hostNetwork", absent: "false" },
    FieldLabel { label: "status.phase", pointer: "/status/phase", absent: "" },
    FieldLabel { label: "status.podIP", pointer: "/status/podIP", absent: "" },
    FieldLabel {
        label: "status.nominatedNodeName",
        pointer: "/status/nominatedNodeName",
        absent: "",
    },
];

fn complete(pod: &mut Value) {
    complete_spec(&mut pod["spec"]);
    defaults::complete_pod(&mut pod["spec"]);
}

fn prepare_create(pod: &mut Value) {
    pod["status"] = json!({"phase": "Pending", "qosClass": qos_class(&pod["spec"])});
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": timestamp(0),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    label_keys::select(pod);
}

fn validate_create(pod: &Value) -> Vec<FieldError> {
    let given = pod["spec"]["ephemeralContainers"].as_array();
    let is_given = given.is_some_and(|containers| !containers.is_empty());
    let why = "cannot be set on create";
    let error = || FieldError::forbidden("spec.ephemeralContainers", why);
    is_given.then(error).into_iter().chain(mirror_without_node(pod)).collect()
}

/// Returns the error of a pod that mirrors one of a node and names no node.
fn mirror_without_node(pod: &Value) -> Option<FieldError> {
    let mirrored = pod["metadata"]["annotations"].get(ephemeral::MIRROR)?;
    let has_node = pod["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty());
    let why = "must set spec.nodeName if mirror pod annotation is set";
    let field = format!("metadata.annotations[{}]", ephemeral::MIRROR);
    (!has_node).then(|| FieldError::invalid(field, mirrored, why))
}

/// Returns the `QoS` class of a pod. Guaranteed means that every container has limits for both
/// resources and requests the same. Best effort means that no container requests anything.
fn qos_class(spec: &Value) -> &'static str {
    let own = Some(&spec["resources"]).filter(|own| own.is_object());
    let containers = || {
        // The resources of the whole pod replace those of its containers.
        let lists = ["containers", "initContainers"].into_iter().filter(|_| own.is_none());
        let all = lists.flat_map(|list| spec[list].as_array().into_iter().flatten());
        all.map(|container| &container["resources"]).chain(own)
    };
    // The default of a request is its limit.
    let amount = |resources: &Value, kind: &str, name: &str| {
        let amount = resources[kind][name].as_str().or_else(|| resources["limits"][name].as_str());
        amount.map(str::to_owned)
    };
    let asks = |resources: &&Value| {
        ["limits", "requests"].iter().any(|kind| {
            ["cpu", "memory"].iter().any(|name| amount(resources, kind, name).is_some())
        })
    };
    let is_full = |resources: &Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(resources, "limits", name);
            limit.is_some() && limit == amount(resources, "requests", name)
        })
    };
    if !containers().any(|resources| asks(&resources)) {
        "BestEffort"
    } else if containers().all(is_full) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn pod(body: &Value) -> Value {
        let pods = pods();
        let mut pod = body.clone();
        pods.schema().check_types(&pod).unwrap();
        pods.schema().prune(&mut pod);
        pods.schema().apply_defaults(&mut pod);
        (pods.hooks.default)(&mut pod);
        (pods.hooks.prepare_create)(&mut pod);
        pod
    }

    #[test]
    fn a_pod_of_one_line_is_filled_in() {
        let pod = pod(&json!({
            "spec": {
                "containers": [{"name": "c", "image": "img:1", "ports": [{"containerPort": 80}]}],
            },
            "status": {"phase": "Running"},
        }));
        assert_eq!(
            pod,
            json!({
                "metadata": {},
                "spec": {
                    "containers": [{
                        "name": "c",
                        "image": "img:1",
                        "imagePullPolicy": "IfNotPresent",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }],
                    "dnsPolicy": "ClusterFirst",
                    "enableServiceLinks": true,
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
                "status": {"phase": "Pending", "qosClass": "BestEffort"},
            })
        );
    }

    #[rstest]
    #[case(json!({}), "BestEffort")]
    #[case(json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed")]
    #[case(json!({"limits": {"cpu": "1"}}), "Burstable")]
    #[case(
        json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}),
        "Burstable"
    )]
    fn the_class_follows_from_the_resources(#[case] resources: Value, #[case] class: &str) {
        let pod = pod(
            &json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}),
        );
        assert_eq!(pod["status"]["qosClass"], class);
    }

    #[test]
    fn empty_resources_of_a_pod_replace_those_of_its_containers() {
        let container = json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}});
        let pod = pod(&json!({"spec": {"containers": [container], "resources": {}}}));
        assert_eq!(pod["status"]["qosClass"], "BestEffort");
    }

    #[test]
    fn quantities_and_empty_values_become_canonical() {
        let pod = pod(&json!({"spec": {"containers": [{
            "name": "c", "image": "i", "command": [], "env": null,
            "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}},
        }]}}));
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["resources"]["limits"], json!({"cpu": "500m", "memory": "1Gi"}));
        assert!(container.get("command").is_none() && container.get("env").is_none());
    }
}
