//! Persistent volumes, and what claims have in common with them.

use serde_json::{Value, json};

use super::amounts::round_up;
use super::volume_spec;
use crate::registry::builtin::data::{hooks, resource};
use crate::registry::builtin::{BuiltinType, Hooks, take_status_and_metadata, warnings};
use kubeproof_apimachinery::object::{Object, timestamp};
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

pub(super) fn volumes() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        columns: vec![
            column("Capacity", "string", Cell::Computed(|it| capacity(&it["spec"]["capacity"]))),
            column(
                "Access Modes",
                "string",
                Cell::Computed(|it| modes(&it["spec"]["accessModes"])),
            ),
            column(
                "Reclaim Policy",
                "string",
                Cell::Pointer("/spec/persistentVolumeReclaimPolicy"),
            ),
            column("Status", "string", Cell::Computed(phase)),
            column("Claim", "string", Cell::Computed(claim)),
            column("StorageClass", "string", Cell::Computed(class)),
            column("VolumeAttributesClass", "string", Cell::Computed(attributes_class)),
            column("Reason", "string", Cell::Computed(|it| text(&it["status"]["reason"], ""))),
            age(),
            wide(
                "VolumeMode",
                "string",
                Cell::Computed(|it| text(&it["spec"]["volumeMode"], "<unset>")),
            ),
        ],
        hooks: Hooks {
            checks_prefix: true,
            default: |volume| round_up(volume.pointer_mut("/spec/capacity")),
            validate: |volume| volume_spec::validate(&volume["spec"], Path::Root.field("spec")),
            validate_update: validate_volume_update,
            prepare_create: |volume| {
                let now = timestamp(0);
                volume["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
            },
            prepare_status_update,
            warn: warnings::storage::persistent_volume,
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("", "v1", "persistentvolumes")
    }
}

/// A new phase has a new time, unless the client sets it.
fn prepare_status_update(new: &mut Value, old: &Value) {
    take_status_and_metadata(new, old);
    let field = "lastPhaseTransitionTime";
    let same = |field: &str| new["status"][field] == old["status"][field];
    let is_absent = new["status"][field].is_null();
    let time = match (same("phase"), is_absent || same(field)) {
        (true, _) if is_absent => old["status"][field].clone(),
        (false, true) => json!(timestamp(0)),
        _ => return,
    };
    if !time.is_null() {
        new["status"][field] = time;
    }
}

/// The source and the mode never change, and the nodes only if there were none. A CSI driver may
/// get a secret to expand the volume. As in kube-apiserver, two paths lack `spec`.
fn validate_volume_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (now, before) = (&new["spec"], &old["spec"]);
    let mut errors = Vec::new();
    let mut source = now.clone();
    if before["csi"]["controllerExpandSecretRef"].is_null() {
        forget(&mut source, &["csi", "controllerExpandSecretRef"]);
    }
    if volume_spec::sources(&source) != volume_spec::sources(before) {
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", why));
    }
    errors.extend(changed_mode(new, old));
    if !before["nodeAffinity"].is_null() && now["nodeAffinity"] != before["nodeAffinity"] {
        let why = "field is immutable, except for updating from beta label to GA";
        errors.push(FieldError::invalid("nodeAffinity", &now["nodeAffinity"], why));
    }
    let class = "volumeAttributesClassName";
    if !before[class].is_null() && now[class].is_null() {
        let why = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(format!("spec.{class}"), why));
    }
    errors
}

fn claim(volume: &Value) -> Value {
    let reference = &volume["spec"]["claimRef"];
    match (reference["namespace"].as_str(), reference["name"].as_str()) {
        (None, None) => json!(""),
        (namespace, name) => {
            json!(format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default()))
        }
    }
}

/// Returns the error of a changed mode. As in kube-apiserver, its path lacks `spec`.
pub(super) fn changed_mode(new: &Value, old: &Value) -> Option<FieldError> {
    let (now, before) = (&new["spec"]["volumeMode"], &old["spec"]["volumeMode"]);
    (now != before).then(|| FieldError::invalid("volumeMode", now, "field is immutable"))
}

/// Removes the field at the end of the path.
pub(super) fn forget(object: &mut Value, path: &[&str]) {
    let Some((field, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |object, name| object.get_mut(*name));
    if let Some(fields) = parent.and_then(Value::as_object_mut) {
        fields.remove(*field);
    }
}

pub(super) fn text(value: &Value, absent: &str) -> Value {
    json!(value.as_str().unwrap_or(absent))
}

pub(super) fn phase(object: &Value) -> Value {
    if object.meta("deletionTimestamp").is_empty() {
        text(&object["status"]["phase"], "")
    } else {
        json!("Terminating")
    }
}

pub(super) fn capacity(capacity: &Value) -> Value {
    text(&capacity["storage"], "")
}

pub(super) fn modes(modes: &Value) -> Value {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = modes.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = known.iter().filter(|(mode, _)| modes.iter().any(|one| one == mode));
    json!(texts.map(|(_, text)| *text).collect::<Vec<_>>().join(","))
}

pub(super) fn class(object: &Value) -> Value {
    text(&object["spec"]["storageClassName"], "")
}

pub(super) fn attributes_class(object: &Value) -> Value {
    text(&object["spec"]["volumeAttributesClassName"], "<unset>")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn fields(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case("/csi/driver", json!("other"), &["spec.persistentvolumesource"])]
    #[case("/csi/controllerExpandSecretRef", json!({"name": "a", "namespace": "b"}), &[])]
    #[case("/volumeMode", json!("Block"), &["volumeMode"])]
    #[case("/nodeAffinity/required", json!({}), &["nodeAffinity"])]
    #[case("/persistentVolumeReclaimPolicy", json!("Delete"), &[])]
    #[case("/volumeAttributesClassName", Value::Null, &["spec.volumeAttributesClassName"])]
    fn a_volume_keeps_its_source_and_nodes(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let old = json!({"spec": {
            "csi": {"driver": "a"}, "nodeAffinity": {"required": {"nodeSelectorTerms": []}},
            "volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain",
            "volumeAttributesClassName": "fast",
        }});
        let mut new = old.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        new["spec"].pointer_mut(parent).unwrap()[field] = value;
        assert_eq!(fields(validate_volume_update(&new, &old)), expected);
    }
    #[rstest]
    #[case(json!({"phase": "Bound", "lastPhaseTransitionTime": "b"}), Some("b"))]
    #[case(json!({"phase": "Available"}), Some("a"))]
    #[case(json!({"phase": "Available", "lastPhaseTransitionTime": "b"}), Some("b"))]
    #[case(json!({"phase": "Bound"}), None)]
    #[case(json!({"phase": "Bound", "lastPhaseTransitionTime": "a"}), None)]
    fn a_new_phase_has_a_new_time(#[case] status: Value, #[case] expected: Option<&str>) {
        let old = json!({"status": {"phase": "Available", "lastPhaseTransitionTime": "a"}});
        let mut new = json!({"metadata": {}, "status": status});
        prepare_status_update(&mut new, &old);
        let time = new["status"]["lastPhaseTransitionTime"].as_str().unwrap();
        assert_eq!(Some(time).filter(|time| time.len() == 1), expected);
    }
}
