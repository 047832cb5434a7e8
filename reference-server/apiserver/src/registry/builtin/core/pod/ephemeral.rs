//! `pods/ephemeralcontainers`: containers that are added to a running pod, for example to debug it.

use serde_json::{Map, Value, json};

use super::validate::validate_pod;
use crate::registry::builtin::{PartHooks, restore_all_but};
use kubeproof_apimachinery::schema::{FieldError, Path};

/// The annotation of a pod that a kubelet reads from a file.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// The fields that an ephemeral container cannot have.
const FORBIDDEN: [&str; 8] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

pub(super) static EPHEMERAL_CONTAINERS: PartHooks = PartHooks {
    prepare: |new, old| {
        let containers = new["spec"]["ephemeralContainers"].take();
        restore_all_but(new, old, &[("spec", "ephemeralContainers", containers)]);
    },
    validate,
    fields: &[&["spec", "ephemeralContainers"]],
};

fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    if is_mirror(old) {
        return vec![FieldError::forbidden("", "static pods do not support ephemeral containers")];
    }
    let mut errors = validate_pod(new);
    let path = "spec.ephemeralContainers";
    let named = |name: &Value| containers(new).find(|container| container["name"] == *name);
    for container in containers(old) {
        let name = &container["name"];
        match named(name) {
            Some(same) if same == container => {}
            Some(_) => {
                let why = format!("existing ephemeral containers {name} may not be changed");
                errors.push(FieldError::forbidden(path, &why));
            }
            None => {
                let why = format!("existing ephemeral containers {name} may not be removed");
                errors.push(FieldError::forbidden(path, &why));
            }
        }
    }
    errors
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["ephemeralContainers"].as_array().into_iter().flatten()
}

pub(super) fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// Returns the errors of an ephemeral container beyond those of every container. `others` are the
/// names of the containers that it can target.
pub(super) fn validate_container(
    container: &Value,
    path: Path<'_>,
    others: &[&str],
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let target = container["targetContainerName"].as_str().unwrap_or_default();
    if !target.is_empty() && !others.contains(&target) {
        errors.push(FieldError::not_found(path.field("targetContainerName"), &json!(target)));
    }
    let why = "cannot be set for an Ephemeral Container";
    for field in FORBIDDEN {
        let is_set = match &container[field] {
            Value::Null => false,
            Value::Object(fields) => field != "resources" || !fields.values().all(is_empty),
            Value::Array(items) => !items.is_empty(),
            other => other != "",
        };
        if is_set {
            errors.push(FieldError::forbidden(path.field(field), why));
        }
    }
    let mounts = path.field("volumeMounts");
    for (index, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if mount[field].as_str().is_some_and(|path| !path.is_empty()) {
                errors.push(FieldError::forbidden(mounts.index(index).field(field), why));
            }
        }
    }
    errors
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn pod(containers: &Value) -> Value {
        json!({"spec": {
            "containers": [{"name": "c", "image": "i"}], "ephemeralContainers": containers,
        }})
    }

    #[rstest]
    #[case(json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]), &[])]
    #[case(json!([{"name": "a", "image": "other"}]), &["spec.ephemeralContainers"])]
    #[case(json!([]), &["spec.ephemeralContainers"])]
    #[case(
        json!([{"name": "a", "image": "i"}, {"name": "c", "image": "i"}]),
        &["spec.ephemeralContainers[1].name"]
    )]
    #[case(
        json!([{"name": "a", "image": "i"}, {"name": "b", "targetContainerName": "a"}]),
        &["spec.ephemeralContainers[1].targetContainerName"]
    )]
    #[case(
        json!([{"name": "a", "image": "i"}, {"name": "b", "resources": {"limits": {"cpu": "1"}}}]),
        &["spec.ephemeralContainers[1].resources"]
    )]
    #[case(
        json!([{"name": "a", "image": "i"}, {"name": "b", "ports": [{"containerPort": 1}]}]),
        &["spec.ephemeralContainers[1].ports"]
    )]
    fn ephemeral_containers_are_only_added(#[case] new: Value, #[case] expected: &[&str]) {
        let old = pod(&json!([{"name": "a", "image": "i"}]));
        let errors = validate(&pod(&new), &old);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_part_is_the_list_of_containers() {
        let old = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {}});
        let mut new = json!({
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"nodeName": "m", "ephemeralContainers": [{"name": "a"}]},
        });
        (EPHEMERAL_CONTAINERS.prepare)(&mut new, &old);
        let spec = json!({"nodeName": "n", "ephemeralContainers": [{"name": "a"}]});
        assert_eq!(new, json!({"metadata": {"name": "p"}, "spec": spec, "status": {}}));
    }
}
