//! The sources of volumes.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Checks, has, items, text};
use crate::registry::builtin::meta;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", azure_disk),
    ("io.k8s.api.core.v1.CSIPersistentVolumeSource", driver_secrets),
    ("io.k8s.api.core.v1.CSIVolumeSource", driver),
    ("io.k8s.api.core.v1.CinderPersistentVolumeSource", secret),
    ("io.k8s.api.core.v1.CinderVolumeSource", local_secret),
    ("io.k8s.api.core.v1.ConfigMapVolumeSource", config_map),
    ("io.k8s.api.core.v1.EmptyDirVolumeSource", empty_directory),
    ("io.k8s.api.core.v1.FCVolumeSource", fibre_channel),
    ("io.k8s.api.core.v1.FlockerVolumeSource", flocker),
    ("io.k8s.api.core.v1.ISCSIPersistentVolumeSource", iscsi),
    ("io.k8s.api.core.v1.ISCSIVolumeSource", iscsi),
    ("io.k8s.api.core.v1.PersistentVolumeClaimTemplate", claim_template),
    ("io.k8s.api.core.v1.PersistentVolumeSpec", persistent),
    ("io.k8s.api.core.v1.ProjectedVolumeSource", projected),
    ("io.k8s.api.core.v1.QuobyteVolumeSource", quobyte),
    ("io.k8s.api.core.v1.StorageOSPersistentVolumeSource", secret),
    ("io.k8s.api.core.v1.StorageOSVolumeSource", local_secret),
];

fn fibre_channel(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let (names, ids) = (items(source, "targetWWNs"), items(source, "wwids"));
    let place = path.field("targetWWNs");
    let mut errors = Vec::new();
    if names.is_empty() && ids.is_empty() {
        let why = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(place, why));
    }
    if !names.is_empty() && !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(place, &json!(names), why));
    }
    if !names.is_empty() {
        let place = path.field("lun");
        match source["lun"].as_i64() {
            None => {
                let why = "lun is required if targetWWNs is specified";
                errors.push(FieldError::required(place, why));
            }
            Some(lun) if !(0..=255).contains(&lun) => {
                let why = "must be between 0 and 255, inclusive";
                errors.push(FieldError::invalid(place, &json!(lun), why));
            }
            Some(_) => {}
        }
    }
    errors
}

fn flocker(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let is_set = |field: &str| !text(source, field).is_empty();
    match (is_set("datasetName"), is_set("datasetUUID")) {
        (false, false) => {
            vec![FieldError::required(path, "one of datasetName and datasetUUID is required")]
        }
        (true, true) => {
            let why = "datasetName and datasetUUID can not be specified simultaneously";
            vec![FieldError::invalid(path, &json!("resource"), why)]
        }
        (true, false) => {
            let name = text(source, "datasetName");
            let why = "must not contain '/'";
            let error = || FieldError::invalid(path.field("datasetName"), &json!(name), why);
            name.contains('/').then(error).into_iter().collect()
        }
        (false, true) => Vec::new(),
    }
}

fn iscsi(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, place) in [("iqn", "iqn"), ("initiatorName", "initiatorname")] {
        let name = text(source, field);
        let is_known = ["iqn", "eui", "naa"].iter().any(|kind| name.starts_with(kind));
        if !is_known && (!name.is_empty() || has(source, "initiatorName") && field != "iqn") {
            let why = "must be valid format starting with iqn, eui, or naa";
            errors.push(FieldError::invalid(path.field(place), &json!(name), why));
        }
    }
    let authenticates = source["chapAuthDiscovery"] == true || source["chapAuthSession"] == true;
    if authenticates && !has(source, "secretRef") {
        errors.push(FieldError::required(path.field("secretRef"), ""));
    }
    errors
}

fn quobyte(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let registry = text(source, "registry");
    let is_pair = |pair: &str| {
        pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'))
    };
    if registry.is_empty() || registry.split(',').all(is_pair) {
        return Vec::new();
    }
    let why = "must be a host:port pair or multiple pairs separated by commas";
    vec![FieldError::invalid(path.field("registry"), &json!(registry), why)]
}

fn projected(volume: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = HashSet::new();
    let list = path.field("sources");
    for (index, source) in items(volume, "sources").iter().enumerate() {
        let place = list.index(index);
        for (kind, body) in source.as_object().into_iter().flatten() {
            let needs_name = matches!(kind.as_str(), "secret" | "configMap");
            if needs_name && text(body, "name").is_empty() {
                let place = place.field(kind);
                errors.push(FieldError::required(place.field("name"), ""));
            }
            if kind == "serviceAccountToken" {
                errors.extend(Syntax::LocalPath.errors(text(body, "path"), path.field("path")));
            }
            for item in items(body, "items") {
                let target = text(item, "path");
                if !target.is_empty() && !known.insert(target) {
                    let shown = if needs_name { text(body, "name") } else { target };
                    let why = "conflicting duplicate paths";
                    errors.push(FieldError::invalid(path, &json!(shown), why));
                }
            }
        }
        if source.as_object().is_some_and(|kinds| kinds.len() > 1) {
            let why = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(place, why));
        }
    }
    errors
}

/// The place of a disk follows from its kind.
fn azure_disk(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = text(source, "diskURI");
    let (prefix, form) = if text(source, "kind") == "Managed" {
        ("/subscriptions", MANAGED_DISK)
    } else {
        ("https://", DISK)
    };
    if place.starts_with(prefix) {
        return Vec::new();
    }
    vec![FieldError::not_supported(path.field("diskURI"), &json!(place), &[json!(form)])]
}

const DISK: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
const MANAGED_DISK: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
                            microsoft.compute/disks/{disk-id}";

/// As in kube-apiserver, an invalid name of the secret is an error beside it.
fn driver(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = local_secret(source, path);
    let name = text(&source["nodePublishSecretRef"], "name");
    if !name.is_empty() {
        errors.extend(Syntax::DnsSubdomain.errors(name, path.field("name")));
    }
    errors
}

/// The drivers of CSI get these secrets by their names.
fn driver_secrets(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = secret(source, path);
    for field in DRIVER_SECRETS.iter().filter(|field| has(source, field)) {
        let place = path.field(field);
        for (part, syntax) in [("name", Syntax::DnsSubdomain), ("namespace", Syntax::DnsLabel)] {
            let name = text(&source[field], part);
            if !name.is_empty() {
                errors.extend(syntax.errors(name, place.field(part)));
            }
        }
    }
    errors
}

const DRIVER_SECRETS: [&str; 4] = [
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
];

fn local_secret(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    secrets(source, &["secretRef", "nodePublishSecretRef"], &["name"], path)
}

/// The secrets of a persistent volume are in a namespace.
fn secret(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let references = [
        "controllerExpandSecretRef",
        "controllerPublishSecretRef",
        "nodeExpandSecretRef",
        "nodePublishSecretRef",
        "secretRef",
    ];
    secrets(source, &references, &["name", "namespace"], path)
}

fn secrets(source: &Value, fields: &[&str], parts: &[&str], path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in fields.iter().filter(|field| has(source, field)) {
        let place = path.field(field);
        for part in parts.iter().filter(|part| text(&source[field], part).is_empty()) {
            errors.push(FieldError::required(place.field(part), ""));
        }
    }
    errors
}

fn config_map(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let error = || FieldError::required(path.field("name"), "");
    text(source, "name").is_empty().then(error).into_iter().collect()
}

fn empty_directory(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let why = "SizeLimit field must be a valid resource quantity";
    let error = || FieldError::forbidden(path.field("sizeLimit"), why);
    text(source, "sizeLimit").starts_with('-').then(error).into_iter().collect()
}

fn persistent(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has(spec, "local") && !has(spec, "nodeAffinity") {
        let why = "Local volume requires node affinity";
        errors.push(FieldError::required(path.field("nodeAffinity"), why));
    }
    let amount = text(&spec["capacity"], "storage");
    if !amount.is_empty() && (amount == "0" || amount.starts_with('-')) {
        let place = path.field("capacity");
        let place = place.key("storage");
        errors.push(FieldError::invalid(place, &json!(amount), "must be greater than zero"));
    }
    errors
}

/// Checks the claim of an ephemeral volume.
fn claim_template(template: &Value, path: Path<'_>) -> Vec<FieldError> {
    let spec = path.field("spec");
    let mut errors = crate::registry::builtin::core::validate_claim_spec(&template["spec"], spec);
    let metadata = path.field("metadata");
    for (field, _) in template["metadata"].as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "labels" | "annotations") {
            errors.push(FieldError::forbidden(metadata.field(field), "cannot be set"));
        }
    }
    let part = |field: &str| template["metadata"].get(field);
    errors.extend(meta::validate_labels(part("labels"), metadata.field("labels")));
    errors.extend(meta::validate_annotations(part("annotations"), metadata.field("annotations")));
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("FCVolumeSource", json!({}), &["x.targetWWNs"])]
    #[case("FCVolumeSource", json!({"targetWWNs": ["a"], "lun": 256}), &["x.lun"])]
    #[case("FlockerVolumeSource", json!({"datasetName": "a", "datasetUUID": "b"}), &["x"])]
    #[case("ISCSIVolumeSource", json!({"iqn": "a", "chapAuthSession": true}),
           &["x.iqn", "x.secretRef"])]
    #[case("QuobyteVolumeSource", json!({"registry": "a:1,b"}), &["x.registry"])]
    #[case("ProjectedVolumeSource", json!({"sources": [{"secret": {}}]}),
           &["x.sources[0].secret.name"])]
    #[case(
        "ProjectedVolumeSource",
        json!({"sources": [
            {"secret": {"name": "a", "items": [{"path": "p"}]}},
            {"configMap": {"name": "a", "items": [{"path": "p"}]}, "downwardAPI": {}},
        ]}),
        &["x", "x.sources[1]"]
    )]
    #[case("CSIVolumeSource",
        json!({"nodePublishSecretRef": {}}), &["x.nodePublishSecretRef.name"])]
    #[case("CSIVolumeSource",
        json!({"driver": "a", "nodePublishSecretRef": {"name": "A!"}}), &["x.name"])]
    #[case("CSIPersistentVolumeSource", json!({"nodePublishSecretRef": {"name": "a"}}),
           &["x.nodePublishSecretRef.namespace"])]
    #[case("CSIPersistentVolumeSource",
           json!({"nodePublishSecretRef": {"name": "A", "namespace": "a.b"}}),
           &["x.nodePublishSecretRef.name", "x.nodePublishSecretRef.namespace"])]
    #[case("AzureDiskVolumeSource", json!({"diskURI": "https://a"}), &[])]
    #[case("AzureDiskVolumeSource", json!({"diskURI": "https://a", "kind": "Managed"}),
           &["x.diskURI"])]
    #[case("StorageOSVolumeSource", json!({"secretRef": {}}), &["x.secretRef.name"])]
    #[case("ConfigMapVolumeSource", json!({}), &["x.name"])]
    #[case("EmptyDirVolumeSource", json!({"sizeLimit": "-1"}), &["x.sizeLimit"])]
    #[case("PersistentVolumeSpec", json!({"local": {}, "capacity": {"storage": "0"}}),
           &["x.nodeAffinity", "x.capacity[storage]"])]
    #[case("PersistentVolumeClaimTemplate", json!({"metadata": {"name": "a"}, "spec": {}}),
           &["x.spec.accessModes", "x.spec.resources[storage]", "x.metadata.name"])]
    fn sources_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
