//! `pods/resize`: the CPU and memory of containers, without a restart of the pod.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::ephemeral::is_mirror;
use super::qos_class;
use super::validate::validate_pod;
use crate::registry::builtin::{PartHooks, restore_all_but};
use kubeproof_apimachinery::schema::{FieldError, Path};

const LISTS: [&str; 2] = ["initContainers", "containers"];
/// The resources that can change.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
/// The restarts of a container whose resources change.
const RESTARTS: [&str; 2] = ["NotRequired", "RestartContainer"];
const ONLY: &str = "only cpu and memory resources are mutable";

pub(super) static RESIZE: PartHooks = PartHooks {
    prepare,
    validate,
    fields: &[
        &["spec", "containers", "*", "resizePolicy"],
        &["spec", "containers", "*", "resources"],
        &["spec", "initContainers", "*", "resizePolicy"],
        &["spec", "initContainers", "*", "resources"],
        &["spec", "resources"],
    ],
};

/// Keeps the resources of the pod and of its containers. If the containers are other ones, they
/// stay as they are, so that validation reports them.
fn prepare(new: &mut Value, old: &Value) {
    let names = |pod: &Value, list: &str| -> Vec<Value> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.map(|container| container["name"].clone()).collect()
    };
    let merged = LISTS.map(|list| {
        if names(new, list) == names(old, list) {
            ("spec", list, with_resources_of(&new["spec"][list], &old["spec"][list]))
        } else {
            ("spec", list, new["spec"][list].take())
        }
    });
    let [init_containers, containers] = merged;
    let resources = ("spec", "resources", new["spec"]["resources"].take());
    restore_all_but(new, old, &[init_containers, containers, resources]);
}

fn with_resources_of(new: &Value, old: &Value) -> Value {
    let mut merged = old.clone();
    for (index, container) in merged.as_array_mut().into_iter().flatten().enumerate() {
        let Some(fields) = container.as_object_mut() else { continue };
        for field in ["resources", "resizePolicy"] {
            match new[index].get(field) {
                Some(value) => fields.insert(field.to_owned(), value.clone()),
                None => fields.remove(field),
            };
        }
    }
    merged
}

fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    if is_mirror(old) {
        return vec![FieldError::forbidden("", "static pods cannot be resized")];
    }
    if old["spec"]["os"]["name"] == "windows" {
        return vec![FieldError::forbidden("", "windows pods cannot be resized")];
    }
    let mut errors = validate_pod(new);
    if qos_class(&old["spec"]) != qos_class(&new["spec"]) {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", &old["status"]["qosClass"], why));
    }
    if !node_supports_resize(old) {
        let why = "Pod running on node without support for resize";
        errors.push(FieldError::forbidden("spec", why));
    }
    let spec = Path::Root.field("spec");
    let (new, old) = (&new["spec"], &old["spec"]);
    errors.extend(removed(&new["resources"], &old["resources"], spec.field("resources")));
    let moved: Vec<_> = LISTS.iter().rev().flat_map(|list| reordered(new, old, list)).collect();
    if !moved.is_empty() {
        errors.extend(moved);
        return errors;
    }
    for list in LISTS {
        let path = spec.field(list);
        for (index, container) in old[list].as_array().into_iter().flatten().enumerate() {
            let changed = &new[list][index]["resources"];
            let path = path.index(index);
            errors.extend(removed(changed, &container["resources"], path.field("resources")));
        }
    }
    if without_resizable(new) != without_resizable(old) {
        errors.push(FieldError::forbidden("spec", ONLY));
    }
    errors
}

/// Returns the errors in the `resizePolicy` of a container of `list`.
pub(super) fn validate_policies(
    spec: &Value,
    list: &str,
    container: &Value,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = HashSet::new();
    let place = path.field("resizePolicy");
    let policies = container["resizePolicy"].as_array().filter(|_| LISTS.contains(&list));
    for (index, policy) in policies.into_iter().flatten().enumerate() {
        let text = |field: &str| policy[field].as_str().unwrap_or_default();
        let (name, restart) = (text("resourceName"), text("restartPolicy"));
        if !known.insert(name) {
            errors.push(FieldError::duplicate(place.index(index), &json!(name)));
        }
        for (value, supported) in [(name, RESIZABLE), (restart, RESTARTS)] {
            if value.is_empty() {
                errors.push(FieldError::required(place, ""));
            } else if !supported.contains(&value) {
                let supported = supported.map(Value::from);
                errors.push(FieldError::not_supported(place, &json!(value), &supported));
            }
        }
        if spec["restartPolicy"] == "Never" && restart != RESTARTS[0] {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(place, &json!(restart), why));
        }
        let is_sidecar = container["restartPolicy"] == "Always";
        if list == LISTS[0] && !is_sidecar && restart == RESTARTS[1] {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            let place = place.index(index).field("restartPolicy").to_string();
            errors.push(FieldError::invalid(place, &json!(restart), why));
        }
    }
    errors
}

/// A kubelet that can resize reports the resources of running containers. Without a running
/// container, the node may support it.
fn node_supports_resize(pod: &Value) -> bool {
    let statuses = pod["status"]["containerStatuses"].as_array();
    let mut running =
        statuses.into_iter().flatten().filter(|status| !status["state"]["running"].is_null());
    running.next().is_none_or(|status| !status["resources"].is_null())
}

/// Returns the errors of containers that were added, removed, renamed or reordered.
fn reordered(new: &Value, old: &Value, list: &str) -> Vec<FieldError> {
    let containers = |spec: &Value| spec[list].as_array().cloned().unwrap_or_default();
    let (new, old) = (containers(new), containers(old));
    if new.len() != old.len() {
        let why = format!("{list} may not be added or removed on resize");
        return vec![FieldError::forbidden(format!("spec.{list}"), &why)];
    }
    let pairs = new.iter().zip(&old).enumerate();
    pairs
        .filter(|(_, (new, old))| new["name"] != old["name"])
        .map(|(index, _)| {
            let why = "containers may not be renamed or reordered on resize";
            FieldError::forbidden(format!("spec.{list}[{index}].name"), why)
        })
        .collect()
}

/// Returns the errors of requests and limits that a resize removes.
fn removed(new: &Value, old: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (kind, why) in [
        ("requests", "resource requests cannot be removed"),
        ("limits", "resource limits cannot be removed"),
    ] {
        let mut names = old[kind].as_object().into_iter().flat_map(Map::keys);
        if names.any(|name| new[kind].get(name).is_none()) {
            errors.push(FieldError::forbidden(path.field(kind), why));
        }
    }
    errors
}

/// Returns the spec without the amounts that can change.
fn without_resizable(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let keep = |resources: &mut Value| {
        for kind in ["requests", "limits"] {
            if let Some(amounts) = resources.get_mut(kind).and_then(Value::as_object_mut) {
                amounts.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
            }
        }
        if let Some(kinds) = resources.as_object_mut() {
            kinds.retain(|_, amounts| amounts.as_object().is_none_or(|it| !it.is_empty()));
        }
    };
    for list in LISTS {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            keep(&mut container["resources"]);
        }
    }
    if let Some(fields) = spec.as_object_mut() {
        let mut resources = fields.remove("resources").unwrap_or_default();
        keep(&mut resources);
        if resources.as_object().is_some_and(|kinds| !kinds.is_empty()) {
            fields.insert("resources".to_owned(), resources);
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        let resources = json!({
            "requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"},
            "limits": {"cpu": "2", "example.com/gpu": "1"},
        });
        let container = json!({"name": "c", "image": "i", "resources": resources});
        json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    }

    #[rstest]
    #[case("/spec/containers/0/resources/requests/cpu", json!("1500m"), &[])]
    #[case(
        "/spec/containers/0/resources/requests",
        json!({"cpu": "1", "example.com/gpu": "1"}),
        &["spec.containers[0].resources.requests"]
    )]
    #[case("/spec/containers/0/resources/limits/example.com~1gpu", json!("2"), &["spec"])]
    #[case("/spec/containers/0/name", json!("d"), &["spec.containers[0].name"])]
    #[case("/spec/containers", json!([]), &["spec", "spec.containers"])]
    #[case(
        "/spec/containers/0/resources",
        json!({"limits": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"},
            "requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}}),
        &["spec"]
    )]
    #[case("/spec/containers/0/image", json!("other"), &[])]
    #[case("/metadata", json!({"name": "p", "labels": {"a": "b"}}), &[])]
    fn only_cpu_and_memory_change(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let old = pod();
        let mut new = old.clone();
        *new.pointer_mut(pointer).expect("a field") = value;
        prepare(&mut new, &old);
        let errors = validate(&new, &old);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
        assert_eq!(new["metadata"], old["metadata"]);
        if pointer.ends_with("image") {
            assert_eq!(new, old);
        }
    }

    #[rstest]
    #[case("containers", json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]), &[])]
    #[case("containers", json!([{"restartPolicy": "NotRequired"}]), &[("", "Required value")])]
    #[case(
        "containers",
        json!([{"resourceName": "gpu", "restartPolicy": "X"}]),
        &[("", "Unsupported value"), ("", "Unsupported value")]
    )]
    #[case(
        "containers",
        json!([
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        ]),
        &[("[1]", "Duplicate value")]
    )]
    #[case(
        "initContainers",
        json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
        &[("[0].restartPolicy", "Invalid value")]
    )]
    #[case("ephemeralContainers", json!([{}]), &[])]
    fn policies_are_validated(
        #[case] list: &str,
        #[case] policies: Value,
        #[case] expected: &[(&str, &str)],
    ) {
        let container = json!({ "name": "c", "resizePolicy": policies });
        let errors = validate_policies(&json!({}), list, &container, Path::Root.field("c"));
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for (error, (place, message)) in errors.iter().zip(expected) {
            assert_eq!(error.field, format!("c.resizePolicy{place}"));
            assert!(error.message.starts_with(message), "{}", error.message);
        }
    }

    #[test]
    fn pods_that_never_restart_have_no_restarting_policy() {
        let policies = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        let container = json!({ "resizePolicy": policies, "restartPolicy": "Always" });
        let spec = json!({"restartPolicy": "Never"});
        let errors = validate_policies(&spec, "initContainers", &container, Path::Root.field("c"));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].message.contains("must be 'NotRequired'"), "{}", errors[0].message);
    }

    #[test]
    fn a_node_without_support_cannot_resize() {
        let mut old = pod();
        old["status"] = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]});
        assert_eq!(validate(&old, &old)[0].field, "spec");
        old["status"]["containerStatuses"][0]["resources"] = json!({});
        assert!(validate(&old, &old).is_empty());
    }
}
