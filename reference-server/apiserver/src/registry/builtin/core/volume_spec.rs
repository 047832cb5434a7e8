//! The specification of a volume, which an attachment can contain, too.

use serde_json::{Value, json};

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

/// The sources of a volume, in the order in which kube-apiserver counts them.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    FLEX,
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// The source that may follow another one.
const FLEX: &str = "flexVolume";

/// Returns the sources of a volume; a valid volume has one.
pub(super) fn sources(spec: &Value) -> Vec<(&'static str, &Value)> {
    let all = SOURCES.into_iter();
    all.filter_map(|name| Some((name, spec.get(name).filter(|it| !it.is_null())?))).collect()
}

/// Returns the errors in the specification of a persistent volume.
pub(super) fn validate(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = validate_modes(spec, path.field("accessModes"), "");
    let place = path.field("capacity");
    if spec["capacity"].as_object().is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(place, ""));
    }
    let amounts = spec["capacity"].as_object().map_or(0, serde_json::Map::len);
    if spec["capacity"]["storage"].is_null() || amounts > 1 {
        errors.push(FieldError::not_supported(place, &spec["capacity"], &[json!("storage")]));
    }
    errors.extend(validate_sources(spec, path));
    errors.extend(validate_attributes_class(spec, path));
    errors
}

/// Returns the errors in the volume of an attachment.
pub(in crate::registry::builtin) fn validate_inline(
    spec: &Value,
    path: Path<'_>,
) -> Vec<FieldError> {
    const NOT_INLINE: &str = "may not be specified in the context of inline volumes";
    let mut errors = Vec::new();
    let is_given = |field: &str| match &spec[field] {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => field != "capacity" || !fields.is_empty(),
        _ => true,
    };
    let forbidden =
        |field: &str| is_given(field).then(|| FieldError::forbidden(path.field(field), NOT_INLINE));
    errors.extend(forbidden("claimRef"));
    errors.extend(forbidden("capacity"));
    if !is_given("csi") {
        let why = "has to be specified in the context of inline volumes";
        errors.push(FieldError::required(path.field("csi"), why));
    }
    errors.extend(validate_modes(spec, path.field("accessModes"), ""));
    if is_given("persistentVolumeReclaimPolicy")
        && spec["persistentVolumeReclaimPolicy"] != "Retain"
    {
        let why = "may only be Retain in the context of inline volumes";
        errors.push(FieldError::forbidden(path.field("persistentVolumeReclaimPolicy"), why));
    }
    errors.extend(forbidden("nodeAffinity"));
    errors.extend(validate_sources(spec, path));
    errors.extend(forbidden("storageClassName"));
    if !spec["volumeMode"].is_null() && spec["volumeMode"] != "Filesystem" {
        let why = "may not specify volumeMode other than Filesystem in the context of inline \
                   volumes";
        errors.push(FieldError::forbidden(path.field("volumeMode"), why));
    }
    errors
}

fn validate_sources(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let sources = sources(spec);
    if sources.is_empty() {
        return vec![FieldError::required(path, "must specify a volume type")];
    }
    let why = "may not specify more than 1 volume type";
    let more = sources.iter().skip(1).filter(|(name, _)| *name != FLEX);
    let mut errors: Vec<_> =
        more.map(|(name, _)| FieldError::forbidden(path.field(name), why)).collect();
    let is_root = spec["hostPath"]["path"].as_str().is_some_and(is_root);
    if is_root && spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(path.field("persistentVolumeReclaimPolicy"), why));
    }
    errors
}

/// Reports whether a path leads to the root of the file system.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        depth = if part == ".." { depth.saturating_sub(1) } else { depth + 1 };
    }
    path.starts_with('/') && depth == 0
}

/// Only volumes of CSI have a class of attributes.
fn validate_attributes_class(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let Some(name) = spec["volumeAttributesClassName"].as_str() else { return Vec::new() };
    let mut errors = Vec::new();
    let place = path.field("volumeAttributesClassName");
    if name.is_empty() {
        errors.push(FieldError::required(place, "an empty string is disallowed"));
    } else {
        errors.extend(Syntax::DnsSubdomain.errors(name, place));
    }
    if !spec["csi"].is_object() {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(path.field("csi"), why));
    }
    errors
}

/// The supported access modes.
const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Returns the errors in the access modes. `empty` is the reason why one is needed.
pub(super) fn validate_modes(spec: &Value, path: Path<'_>, empty: &str) -> Vec<FieldError> {
    let modes = spec["accessModes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if modes.is_empty() {
        return vec![FieldError::required(path, empty)];
    }
    let known = MODES.map(Value::from);
    let unknown = modes.iter().filter(|mode| !known.contains(mode));
    let mut errors: Vec<_> =
        unknown.map(|mode| FieldError::not_supported(path, mode, &known)).collect();
    let once = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    let why = "may not use ReadWriteOncePod with other access modes";
    let is_other = |mode: &&Value| known.contains(mode) && **mode != "ReadWriteOncePod";
    if once && modes.iter().any(|mode| is_other(&mode)) {
        errors.push(FieldError::forbidden(path, why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn fields(errors: &[FieldError]) -> Vec<&str> {
        errors.iter().map(|error| &*error.field).collect()
    }

    #[rstest]
    #[case(json!({"hostPath": {"path": "/"}}), &[])]
    #[case(json!({"hostPath": {"path": "/"}, "flexVolume": {}}), &[])]
    #[case(json!({"flexVolume": {}, "csi": {}}), &["spec.csi"])]
    #[case(json!({"hostPath": {"path": "/a/.."}, "persistentVolumeReclaimPolicy": "Recycle"}),
           &["spec.persistentVolumeReclaimPolicy"])]
    #[case(json!({"hostPath": {"path": "/a"}, "persistentVolumeReclaimPolicy": "Recycle"}), &[])]
    #[case(json!({"csi": {}, "volumeAttributesClassName": "a"}), &[])]
    #[case(json!({"hostPath": {}, "volumeAttributesClassName": ""}),
           &["spec.volumeAttributesClassName", "spec.csi"])]
    #[case(json!({"hostPath": {}, "capacity": {"storage": "1", "cpu": "1"}}), &["spec.capacity"])]
    #[case(json!({}), &["spec"])]
    #[case(json!({"hostPath": {}, "nfs": {}}), &["spec.nfs"])]
    #[case(json!({"hostPath": {}, "accessModes": []}), &["spec.accessModes"])]
    #[case(json!({"hostPath": {}, "capacity": {}}), &["spec.capacity", "spec.capacity"])]
    fn a_volume_has_one_source(#[case] more: Value, #[case] expected: &[&str]) {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}});
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        assert_eq!(fields(&validate(&spec, Path::Root.field("spec"))), expected);
    }

    #[rstest]
    #[case(json!({}), &[])]
    #[case(json!({"capacity": {}}), &[])]
    #[case(
        json!({"capacity": {"storage": "1"}, "nodeAffinity": {}, "storageClassName": "a",
               "persistentVolumeReclaimPolicy": "Delete", "volumeMode": "Block"}),
        &["x.capacity", "x.persistentVolumeReclaimPolicy", "x.nodeAffinity", "x.storageClassName",
          "x.volumeMode"]
    )]
    #[case(json!({"nfs": {}}), &["x.csi"])]
    #[case(json!({"csi": null}), &["x.csi", "x"])]
    fn an_inline_volume_is_of_csi(#[case] more: Value, #[case] expected: &[&str]) {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "csi": {}});
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        assert_eq!(fields(&validate_inline(&spec, Path::Root.field("x"))), expected);
    }
}
