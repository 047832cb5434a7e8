//! The environment of containers: variables, and the fields and keys that they read.

use serde_json::{Value, json};

use super::{Checks, has, items, syntax, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path, quantity};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.ConfigMapKeySelector", key_selector),
    ("io.k8s.api.core.v1.DownwardAPIProjection", downward_files),
    ("io.k8s.api.core.v1.DownwardAPIVolumeSource", downward_files),
    ("io.k8s.api.core.v1.EnvVar", variable),
    ("io.k8s.api.core.v1.SecretKeySelector", key_selector),
];

/// The fields of a pod that a variable can have.
const VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The fields of a pod that a file can have.
const FILES: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// The fields that exist, but that only files have.
const OTHERS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

fn variable(variable: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(from) = variable.get("valueFrom") else { return errors };
    let path = path.field("valueFrom");
    if has(from, "fieldRef") {
        errors.extend(field(&from["fieldRef"], &VARIABLES, path.field("fieldRef")));
    }
    if has(from, "resourceFieldRef") {
        let path = path.field("resourceFieldRef");
        errors.extend(resource(&from["resourceFieldRef"], false, path));
    }
    let given = from.as_object().map_or(0, serde_json::Map::len);
    if given == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                   `secretKeyRef` or `fileKeyRef`";
        errors.push(FieldError::invalid(path, &json!(""), why));
    } else if !text(variable, "value").is_empty() {
        let why = "may not be specified when `value` is not empty";
        errors.push(FieldError::invalid(path, &json!(""), why));
    } else if given > 1 {
        let why = "may not have more than one field specified at a time";
        errors.push(FieldError::invalid(path, &json!(""), why));
    }
    errors
}

/// Checks `envFrom`. kube-apiserver reports a wrong number of sources at the list.
pub(super) fn from(container: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, source) in items(container, "envFrom").iter().enumerate() {
        let item = path.index(index);
        let given: Vec<_> = ["configMapRef", "secretRef"]
            .into_iter()
            .filter(|source_type| has(source, source_type))
            .collect();
        for field in &given {
            let place = item.field(field);
            let name = text(&source[field], "name");
            if name.is_empty() {
                errors.push(FieldError::required(place.field("name"), ""));
            } else {
                let prefix = name.strip_suffix('-').unwrap_or(name);
                errors.extend(Syntax::DnsSubdomain.errors(prefix, place.field("name")));
            }
        }
        let why = match given.len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(path, &json!(""), why));
    }
    errors
}

fn key_selector(selector: &Value, path: Path<'_>) -> Vec<FieldError> {
    syntax(selector, "name", Syntax::DnsSubdomain, path)
}

/// Checks files with fields of the pod. kube-apiserver reports their mistakes at the volume.
fn downward_files(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    items(source, "items").iter().flat_map(|file| downward_file(file, path)).collect()
}

fn downward_file(file: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(file, "path").is_empty() {
        errors.push(FieldError::required(path.field("path"), ""));
    }
    errors.extend(syntax(file, "path", Syntax::LocalPath, path));
    match (has(file, "fieldRef"), has(file, "resourceFieldRef")) {
        (true, both) => {
            errors.extend(field(&file["fieldRef"], &FILES, path.field("fieldRef")));
            if both {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, &json!("resource"), why));
            }
        }
        (false, true) => {
            let path = path.field("resourceFieldRef");
            errors.extend(resource(&file["resourceFieldRef"], true, path));
        }
        (false, false) => {
            let why = "one of fieldRef and resourceFieldRef is required";
            errors.push(FieldError::required(path, why));
        }
    }
    if file["mode"].as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(path.field("mode"), &file["mode"], why));
    }
    errors
}

/// Checks a reference to a field of the pod.
fn field(reference: &Value, supported: &[&str], path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("fieldPath");
    let name = text(reference, "fieldPath");
    if name.is_empty() {
        // The schema reports it.
        return Vec::new();
    }
    if text(reference, "apiVersion") != "v1" {
        let version = text(reference, "apiVersion");
        let why = format!("error converting fieldPath: unsupported pod version: {version}");
        return vec![FieldError::invalid(place, &json!(name), &why)];
    }
    if let Some((list, key)) = name.strip_suffix("']").and_then(|name| name.split_once("['")) {
        return match list {
            "metadata.annotations" => Syntax::LabelKey.errors(&key.to_lowercase(), path),
            "metadata.labels" => Syntax::LabelKey.errors(key, path),
            _ => unconvertible("field label does not support subscript", name, place),
        };
    }
    if supported.contains(&name) {
        return Vec::new();
    }
    if VARIABLES.contains(&name) || OTHERS.contains(&name) {
        let supported: Vec<Value> = supported.iter().map(|name| json!(name)).collect();
        return vec![FieldError::not_supported(place, &json!(name), &supported)];
    }
    unconvertible("field label not supported", name, place)
}

fn unconvertible(reason: &str, name: &str, place: Path<'_>) -> Vec<FieldError> {
    let why = format!("error converting fieldPath: {reason}: {name}");
    vec![FieldError::invalid(place, &json!(name), &why)]
}

/// Checks a reference to a resource of a container.
fn resource(reference: &Value, in_volume: bool, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(reference, "resource");
    let is_huge = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if in_volume && text(reference, "containerName").is_empty() {
        errors.push(FieldError::required(path.field("containerName"), ""));
    } else if !name.is_empty() && !RESOURCES.contains(&name) && !is_huge {
        let supported = RESOURCES.map(|name| json!(name));
        errors.push(FieldError::not_supported(path.field("resource"), &json!(name), &supported));
    }
    let divisor = text(reference, "divisor");
    let is_unset =
        divisor.is_empty() || quantity::compare(divisor, "0") == Some(std::cmp::Ordering::Equal);
    if is_unset {
        return errors;
    }
    let (is_right, why) = if matches!(name, "limits.cpu" | "requests.cpu") {
        let why = "only divisor's values 1m and 1 are supported with the cpu resource";
        (matches!(divisor, "1" | "1m"), why.to_owned())
    } else if is_huge || RESOURCES.contains(&name) {
        let kind = match name.rsplit('.').next() {
            Some("memory") => "memory",
            Some("ephemeral-storage") => "local ephemeral storage",
            _ => "hugepages",
        };
        let values = DIVISORS.join(", ");
        let why = format!("only divisor's values {values} are supported with the {kind} resource");
        (DIVISORS.contains(&divisor), why)
    } else {
        (true, String::new())
    };
    if !is_right {
        errors.push(FieldError::invalid(path.field("divisor"), &json!(name), &why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case(json!({"value": "a"}), &[])]
    #[case(json!({"valueFrom": {}}), &["x.valueFrom"])]
    #[case(json!({"value": "a", "valueFrom": {"configMapKeyRef": {}}}), &["x.valueFrom"])]
    #[case(json!({"valueFrom": {"configMapKeyRef": {}, "secretKeyRef": {}}}), &["x.valueFrom"])]
    #[case(
        json!({"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}),
        &[]
    )]
    #[case(
        json!({"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.phase"}}}),
        &["x.valueFrom.fieldRef.fieldPath"]
    )]
    #[case(
        json!({"valueFrom": {"fieldRef": {"apiVersion": "v1",
            "fieldPath": "metadata.labels['a b']"}}}),
        &["x.valueFrom.fieldRef"]
    )]
    #[case(
        json!({"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}),
        &["x.valueFrom.resourceFieldRef.divisor"]
    )]
    #[case(
        json!({"valueFrom": {"resourceFieldRef": {"resource": "cpu"}}}),
        &["x.valueFrom.resourceFieldRef.resource"]
    )]
    fn variables_are_checked(#[case] variable: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes("EnvVar", &variable), expected);
    }

    #[rstest]
    #[case(
        json!({"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}),
        &[]
    )]
    #[case(json!({"path": "/a"}), &["x.path", "x"])]
    #[case(json!({"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}),
           &["x.resourceFieldRef.containerName"])]
    fn files_are_checked(#[case] file: Value, #[case] expected: &[&str]) {
        let volume = json!({"items": [file]});
        assert_eq!(mistakes("DownwardAPIVolumeSource", &volume), expected);
    }
}
