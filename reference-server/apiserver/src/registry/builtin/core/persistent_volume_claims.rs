//! Claims of persistent volumes.

use serde_json::{Value, json};

use super::amounts::{round_up, round_up_resources};
use super::persistent_volumes::{
    attributes_class, capacity, changed_mode, class, forget, modes, phase, text,
};
use super::volume_spec::validate_modes;
use crate::registry::builtin::checks::statuses::claim_amounts;
use crate::registry::builtin::data::{hooks, resource};
use crate::registry::builtin::{BuiltinType, Hooks, warnings};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path, quantity};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

pub(super) fn claims() -> BuiltinType {
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
            checks_prefix: true,
            warn: warnings::storage::claim,
            default: |claim| {
                round_up_resources(&mut claim["spec"]);
                for list in ["/status/capacity", "/status/allocatedResources"] {
                    round_up(claim.pointer_mut(list));
                }
            },
            validate: validate_claim,
            validate_update: validate_claim_update,
            validate_status: claim_amounts,
            prepare_create: |claim| {
                claim["status"] = json!({"phase": "Pending"});
                complete_sources(&mut claim["spec"], false);
            },
            prepare_update: |new, old| {
                let has_source = old["spec"]["dataSource"].is_object();
                complete_sources(&mut new["spec"], has_source);
            },
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("", "v1", "persistentvolumeclaims")
    }
}

fn validate_claim(claim: &Value) -> Vec<FieldError> {
    validate_claim_spec(&claim["spec"], Path::Root.field("spec"))
}

/// Returns the errors of a claim at `path`, which is that of a claim or of an ephemeral volume.
pub(in crate::registry::builtin) fn validate_claim_spec(
    spec: &Value,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors =
        validate_modes(spec, path.field("accessModes"), "at least 1 access mode is required");
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
    let (old, new) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for (field, source) in [("dataSource", old), ("dataSourceRef", new)] {
        errors.extend(source.into_iter().flat_map(|it| validate_source(it, path.field(field))));
    }
    if let (Some(old), Some(new)) = (old, new)
        && ["apiGroup", "kind", "name"].iter().any(|field| old[field] != new[field])
    {
        errors.push(FieldError::invalid(path, &json!({}), "must match dataSourceRef"));
    }
    errors
}

/// Makes both fields for the source of the data agree. Without the newer field, the older one has
/// only claims and snapshots, unless the stored claim has a source. A source in another namespace
/// needs a feature that is off by default.
fn complete_sources(spec: &mut Value, has_source: bool) {
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
    let is_checked = !has_source && !fields.contains_key(new);
    if is_checked && fields.get(old).is_some_and(|source| !is_supported(source)) {
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

/// A volume and a storage class may be set once. A bound claim may change the requested size and
/// the class of attributes. The size gets smaller only while it is above that of the volume.
fn validate_claim_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (mut now, mut before) = (new["spec"].clone(), old["spec"].clone());
    for field in ["volumeName", "storageClassName"] {
        if before[field].is_null() {
            forget(&mut now, &[field]);
        }
    }
    if old["status"]["phase"] == "Bound" {
        for spec in [&mut now, &mut before] {
            forget(spec, &["volumeAttributesClassName"]);
            forget(spec, &["resources", "requests", "storage"]);
        }
    }
    let mut errors = Vec::new();
    if now != before {
        let why = "spec is immutable after creation except resources.requests and \
                   volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
    let size = |pointer: &str, claim: &Value| {
        claim.pointer(pointer).and_then(Value::as_str).and_then(quantity::nanos).unwrap_or(0)
    };
    let (asked, held) = ("/spec/resources/requests/storage", "/status/capacity/storage");
    if size(asked, new) < size(asked, old) && size(asked, new) <= size(held, old) {
        let why = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden("spec.resources.requests.storage", why));
    }
    errors.extend(changed_mode(new, old));
    let class = "volumeAttributesClassName";
    if !old["status"]["currentVolumeAttributesClassName"].is_null() {
        let why = match new["spec"][class].as_str() {
            None => "nil",
            Some("") => "empty string",
            Some(_) => return errors,
        };
        let why = format!(
            "update to {why} is forbidden when status.currentVolumeAttributesClassName is not nil"
        );
        errors.push(FieldError::forbidden(format!("spec.{class}"), &why));
    }
    errors
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
        complete_sources(&mut spec, false);
        assert_eq!(spec.get("dataSourceRef").is_some(), is_supported);
        assert_eq!(spec.get("dataSource"), spec.get("dataSourceRef"));
        let mut spec = json!({"dataSourceRef": source});
        complete_sources(&mut spec, false);
        assert_eq!(spec, json!({"dataSource": source, "dataSourceRef": source}));
    }

    #[test]
    fn a_source_in_another_namespace_is_dropped() {
        let mut spec = json!({"dataSourceRef": {"kind": "Odd", "namespace": "a"}});
        complete_sources(&mut spec, false);
        assert_eq!(spec, json!({}));
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
        assert_eq!(modes(&claim(json!("1"))["spec"]["accessModes"]), "RWX");
    }

    #[rstest]
    #[case::larger("Bound", "/resources/requests/storage", json!("2Gi"), &[])]
    #[case::smaller("Bound", "/resources/requests/storage", json!("600Mi"), &[])]
    #[case::too_small("Bound", "/resources/requests/storage", json!("1Mi"),
                      &["spec.resources.requests.storage"])]
    #[case::not_bound("Pending", "/resources/requests/storage", json!("2Gi"), &["spec"])]
    #[case::limits("Bound", "/resources/limits", json!({"storage": "2Gi"}), &["spec"])]
    #[case::class("Bound", "/storageClassName", json!("a"), &[])]
    #[case::volume("Bound", "/volumeName", json!("other"), &["spec"])]
    #[case::mode("Bound", "/volumeMode", json!("Block"), &["spec", "volumeMode"])]
    #[case::attributes("Bound", "/volumeAttributesClassName", json!("fast"), &[])]
    fn a_claim_changes_little(
        #[case] phase: &str,
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let old = json!({
            "spec": {
                "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": phase, "capacity": {"storage": "512Mi"}},
        });
        let mut new = old.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        new["spec"].pointer_mut(parent).unwrap()[field] = value;
        assert_eq!(fields(validate_claim_update(&new, &old)), expected);
    }

    #[rstest]
    #[case("b", &["spec"])]
    #[case("a", &[])]
    fn both_sources_are_the_same(#[case] name: &str, #[case] expected: &[&str]) {
        let source = |name: &str| json!({"kind": "PersistentVolumeClaim", "name": name});
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": source("a"), "dataSourceRef": source(name),
        });
        assert_eq!(fields(validate_claim(&json!({ "spec": spec }))), expected);
    }
}
