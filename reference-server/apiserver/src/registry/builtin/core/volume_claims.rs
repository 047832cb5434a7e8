//! Persistent volumes and claims.

use serde_json::{Value, json};

use crate::registry::builtin::data::{hooks, resource};
use crate::registry::builtin::{BuiltinType, Hooks};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::object::{Object, timestamp};
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![volumes(), claims()]
}

fn volumes() -> BuiltinType {
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
            validate: validate_volume,
            validate_update: |new, old| {
                if sources(&new["spec"]) == sources(&old["spec"]) {
                    return Vec::new();
                }
                let why = "spec.persistentvolumesource is immutable after creation";
                vec![FieldError::forbidden("spec.persistentvolumesource", why)]
            },
            prepare_create: |volume| {
                let now = timestamp(0);
                volume["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
            },
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("", "v1", "persistentvolumes")
    }
}

fn claims() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        columns: vec![
            column("Status", "string", Cell::Computed(phase)),
            column("Volume", "string", Cell::Computed(|it| text(&it["spec"]["volumeName"], ""))),
            column("Capacity", "string", Cell::Computed(|it| capacity(&it["status"]["capacity"]))),
            column(
                "Access Modes",
                "string",
                Cell::Computed(|it| modes(&it["status"]["accessModes"])),
            ),
            column("StorageClass", "string", Cell::Computed(class)),
            column("VolumeAttributesClass", "string", Cell::Computed(attributes_class)),
            age(),
            wide(
                "VolumeMode",
                "string",
                Cell::Computed(|it| text(&it["spec"]["volumeMode"], "<unset>")),
            ),
        ],
        hooks: Hooks {
            validate: validate_claim,
            validate_update: validate_claim_update,
            prepare_create: |claim| {
                claim["status"] = json!({"phase": "Pending"});
                complete_sources(&mut claim["spec"]);
            },
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("", "v1", "persistentvolumeclaims")
    }
}

/// The fields of a volume that are not its source.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Returns the sources of a volume; a valid volume has one.
fn sources(spec: &Value) -> Vec<(&String, &Value)> {
    let fields = spec.as_object().into_iter().flatten();
    fields.filter(|(name, _)| !NO_SOURCES.contains(&name.as_str())).collect()
}

fn validate_volume(volume: &Value) -> Vec<FieldError> {
    let spec = &volume["spec"];
    let path = Path::Root.field("spec");
    let modes = validate_modes(spec, path.field("accessModes"));
    let mut errors: Vec<_> = modes.into_iter().collect();
    if spec["capacity"].as_object().is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required("spec.capacity", ""));
    }
    let amounts = spec["capacity"].as_object().map_or(0, serde_json::Map::len);
    if spec["capacity"]["storage"].is_null() || amounts > 1 {
        let supported = [json!("storage")];
        errors.push(FieldError::not_supported("spec.capacity", &spec["capacity"], &supported));
    }
    errors.extend(validate_attributes_class(spec, path));
    let sources = sources(spec);
    if sources.is_empty() {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    // kube-apiserver does not count this source.
    let counted = sources.iter().filter(|(name, _)| *name != "flexVolume");
    for (name, _) in counted.skip(1) {
        let why = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(format!("spec.{name}"), why));
    }
    errors
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

fn validate_claim(claim: &Value) -> Vec<FieldError> {
    validate_claim_spec(&claim["spec"], Path::Root.field("spec"))
}

/// Returns the errors of a claim at `path`, which is that of a claim or of an ephemeral volume.
pub(in crate::registry::builtin) fn validate_claim_spec(
    spec: &Value,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors: Vec<_> = validate_modes(spec, path.field("accessModes")).into_iter().collect();
    let amount = &spec["resources"]["requests"]["storage"];
    let place = path.field("resources");
    let place = place.key("storage");
    match amount.as_str() {
        None => errors.push(FieldError::required(place, "")),
        Some(text) if text == "0" || text.starts_with('-') => {
            errors.push(FieldError::invalid(place, amount, "must be greater than zero"));
        }
        Some(_) => {}
    }
    for field in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.get(field) {
            errors.extend(validate_source(source, path.field(field)));
        }
    }
    errors
}

/// Makes both fields for the source of the data agree. The older field has only claims and
/// snapshots. A source in another namespace needs a feature that is off by default.
fn complete_sources(spec: &mut Value) {
    let (old, new) = ("dataSource", "dataSourceRef");
    let Some(fields) = spec.as_object_mut() else { return };
    let is_supported = |source: &Value| {
        let text = |field: &str| source[field].as_str().unwrap_or_default();
        match text("kind") {
            "PersistentVolumeClaim" => text("apiGroup").is_empty(),
            "VolumeSnapshot" => text("apiGroup") == "snapshot.storage.k8s.io",
            _ => false,
        }
    };
    if fields.get(old).is_some_and(|source| !is_supported(source)) {
        fields.remove(old);
    }
    if fields.get(new).is_some_and(|source| source["namespace"].is_string()) {
        fields.remove(new);
    }
    for (from, to) in [(old, new), (new, old)] {
        if let (Some(source), None) = (fields.get(from).cloned(), fields.get(to)) {
            fields.insert(to.to_owned(), source);
        }
    }
}

fn validate_modes(spec: &Value, path: Path<'_>) -> Option<FieldError> {
    let modes = spec["accessModes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if modes.is_empty() {
        return Some(FieldError::required(path, "at least 1 access mode is required"));
    }
    let once = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    let why = "may not use ReadWriteOncePod with other access modes";
    let is_alone = modes.iter().all(|mode| mode == "ReadWriteOncePod");
    (once && !is_alone).then(|| FieldError::forbidden(path, why))
}

/// A claim takes its data from another claim, or from an object of another group.
fn validate_source(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let text = |field: &str| source[field].as_str().unwrap_or_default();
    let (group, kind) = (text("apiGroup"), text("kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        return vec![FieldError::invalid(path, &json!(kind), why)];
    }
    let group = Some(group).filter(|group| !group.is_empty());
    group
        .into_iter()
        .flat_map(|it| Syntax::DnsSubdomain.errors(it, path.field("apiGroup")))
        .collect()
}

/// Only the requested size, the class of attributes and an unset volume may change.
fn validate_claim_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let fixed = |claim: &Value| {
        let mut spec = claim["spec"].as_object().cloned().unwrap_or_default();
        spec.retain(|name, _| !["resources", "volumeAttributesClassName"].contains(&name.as_str()));
        if old["spec"]["volumeName"].is_null() {
            spec.remove("volumeName");
        }
        if old["spec"]["storageClassName"].is_null() {
            spec.remove("storageClassName");
        }
        spec
    };
    if fixed(new) == fixed(old) {
        return Vec::new();
    }
    let why = "spec is immutable after creation except resources.requests and \
               volumeAttributesClassName for bound claims";
    vec![FieldError::forbidden("spec", why)]
}

fn text(value: &Value, absent: &str) -> Value {
    json!(value.as_str().unwrap_or(absent))
}

fn phase(object: &Value) -> Value {
    if object.meta("deletionTimestamp").is_empty() {
        text(&object["status"]["phase"], "")
    } else {
        json!("Terminating")
    }
}

fn capacity(capacity: &Value) -> Value {
    text(&capacity["storage"], "")
}

fn modes(modes: &Value) -> Value {
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

fn claim(volume: &Value) -> Value {
    let reference = &volume["spec"]["claimRef"];
    match (reference["namespace"].as_str(), reference["name"].as_str()) {
        (None, None) => json!(""),
        (namespace, name) => {
            json!(format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default()))
        }
    }
}

fn class(object: &Value) -> Value {
    text(&object["spec"]["storageClassName"], "")
}

fn attributes_class(object: &Value) -> Value {
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
    #[case(json!({"kind": "PersistentVolumeClaim"}), true)]
    #[case(json!({"kind": "VolumeSnapshot", "apiGroup": "snapshot.storage.k8s.io"}), true)]
    #[case(json!({"kind": "Odd", "apiGroup": "a.b"}), false)]
    fn both_fields_for_sources_agree(#[case] source: Value, #[case] is_supported: bool) {
        let mut spec = json!({"dataSource": source});
        complete_sources(&mut spec);
        assert_eq!(spec.get("dataSourceRef").is_some(), is_supported);
        assert_eq!(spec.get("dataSource"), spec.get("dataSourceRef"));
        let mut spec = json!({"dataSourceRef": source});
        complete_sources(&mut spec);
        assert_eq!(spec, json!({"dataSource": source, "dataSourceRef": source}));
    }

    #[test]
    fn a_source_in_another_namespace_is_dropped() {
        let mut spec = json!({"dataSourceRef": {"kind": "Odd", "namespace": "a"}});
        complete_sources(&mut spec);
        assert_eq!(spec, json!({}));
    }

    #[rstest]
    #[case(json!({"hostPath": {"path": "/"}}), &[])]
    #[case(json!({"hostPath": {"path": "/"}, "flexVolume": {}}), &[])]
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
        assert_eq!(fields(validate_volume(&json!({ "spec": spec }))), expected);
    }

    #[test]
    fn a_claim_asks_for_storage() {
        let claim = |storage: Value| {
            let resources = json!({"requests": {"storage": storage}});
            json!({"spec": {"accessModes": ["ReadWriteMany"], "resources": resources}})
        };
        assert_eq!(fields(validate_claim(&claim(json!("1Gi")))), [""; 0]);
        let place = ["spec.resources[storage]"];
        assert_eq!(fields(validate_claim(&claim(json!("0")))), place);
        assert_eq!(fields(validate_claim(&claim(Value::Null))), place);
        let (old, mut new) = (claim(json!("1Gi")), claim(json!("2Gi")));
        assert_eq!(fields(validate_claim_update(&new, &old)), [""; 0]);
        new["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
        assert_eq!(fields(validate_claim_update(&new, &old)), ["spec"]);
        assert_eq!(modes(&old["spec"]["accessModes"]), "RWX");
    }
}
