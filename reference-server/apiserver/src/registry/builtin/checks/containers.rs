//! Containers: ports, mounts, devices, probes and lifecycle handlers.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Checks, environment, has, items, one_of, text};
use crate::registry::builtin::meta;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.Container", container),
    ("io.k8s.api.core.v1.EphemeralContainerCommon", container),
    ("io.k8s.api.core.v1.ContainerRestartRule", restart_rule),
    ("io.k8s.api.core.v1.GRPCAction", port),
    ("io.k8s.api.core.v1.HTTPGetAction", http_get),
    ("io.k8s.api.core.v1.LifecycleHandler", handler),
    ("io.k8s.api.core.v1.PodTemplateSpec", template),
    ("io.k8s.api.core.v1.ProbeHandler", handler),
    ("io.k8s.api.core.v1.TCPSocketAction", port),
    ("io.k8s.api.core.v1.VolumeMount", mount),
];

fn container(container: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = environment::from(container, path.field("envFrom"));
    let mounts = path.field("volumeMounts");
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        errors.extend(mounted_device(container, mount, mounts.index(index)));
        let is_shared = text(mount, "mountPropagation") == "Bidirectional";
        if is_shared && container["securityContext"]["privileged"] != true {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(mounts.field("mountPropagation"), why));
        }
    }
    errors.extend(devices(container, path.field("volumeDevices")));
    let mut names = HashSet::new();
    let ports = path.field("ports");
    for (index, port) in items(container, "ports").iter().enumerate() {
        let name = text(port, "name");
        if !name.is_empty() && !names.insert(name) {
            let place = ports.index(index);
            errors.push(FieldError::duplicate(place.field("name"), &json!(name)));
        }
    }
    if !items(container, "restartPolicyRules").is_empty() && !has(container, "restartPolicy") {
        let why = "must specify restartPolicy when restart rules are used";
        errors.push(FieldError::required(path.field("restartPolicy"), why));
    }
    errors
}

/// Checks the labels of a template. kube-apiserver reports them without `metadata`.
fn template(template: &Value, path: Path<'_>) -> Vec<FieldError> {
    let part = |field: &str| template["metadata"].get(field);
    let mut errors = meta::validate_labels(part("labels"), path.field("labels"));
    errors.extend(meta::validate_annotations(part("annotations"), path.field("annotations")));
    errors
}

/// A volume is mounted or a device, not both.
fn mounted_device(container: &Value, mount: &Value, path: Path<'_>) -> Vec<FieldError> {
    let devices = items(container, "volumeDevices");
    let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
    let mut errors = Vec::new();
    if devices.iter().any(|device| text(device, "name") == name) {
        let why = "must not already exist in volumeDevices";
        errors.push(FieldError::invalid(path.field("name"), &json!(name), why));
    }
    if devices.iter().any(|device| text(device, "devicePath") == place) {
        let why = "must not already exist as a path in volumeDevices";
        errors.push(FieldError::invalid(path.field("mountPath"), &json!(place), why));
    }
    errors
}

fn devices(container: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mounts = items(container, "volumeMounts");
    let (mut names, mut places) = (HashSet::new(), HashSet::new());
    for (index, device) in items(container, "volumeDevices").iter().enumerate() {
        let path = path.index(index);
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        let mut complain = |field: &str, value: &str, why: &str| {
            errors.push(FieldError::invalid(path.field(field), &json!(value), why));
        };
        if !name.is_empty() && !names.insert(name) {
            complain("name", name, "must be unique");
        }
        if !Syntax::PathWithoutParents.check(place).is_empty() {
            complain("devicePath", place, "can not contain backsteps ('..')");
        } else if !places.insert(place) {
            complain("devicePath", place, "must be unique");
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            complain("name", name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == place) {
            complain("devicePath", place, "must not already exist as a path in volumeMounts");
        }
    }
    errors
}

fn mount(mount: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // kube-apiserver reports these mistakes at the list.
    let list = match path {
        Path::Index(list, _) => *list,
        other => other,
    };
    for field in ["subPath", "subPathExpr"] {
        let sub = text(mount, field);
        let place = list.field(field);
        if sub.starts_with('/') {
            errors.push(FieldError::invalid(place, &json!(sub), "must be a relative path"));
        }
        errors.extend(Syntax::PathWithoutParents.errors(sub, place));
    }
    let expression = text(mount, "subPathExpr");
    if !expression.is_empty() && !text(mount, "subPath").is_empty() {
        let why = "subPathExpr and subPath are mutually exclusive";
        errors.push(FieldError::invalid(path.field("subPathExpr"), &json!(expression), why));
    }
    if matches!(text(mount, "recursiveReadOnly"), "Enabled" | "IfPossible") {
        let place = list.field("recursiveReadOnly");
        if mount["readOnly"] != true {
            let why = "may only be specified when readOnly is true";
            errors.push(FieldError::forbidden(place, why));
        }
        if !matches!(text(mount, "mountPropagation"), "" | "None") {
            let why = "may only be specified when mountPropagation is None or not specified";
            errors.push(FieldError::forbidden(place, why));
        }
    }
    errors
}

fn restart_rule(rule: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("exitCodes");
    if has(rule, "exitCodes") {
        let operator = &rule["exitCodes"]["operator"];
        let known = ["In", "NotIn"].map(Value::from);
        let error = || FieldError::not_supported(place.field("operator"), &json!(""), &known);
        return operator.as_str().unwrap_or_default().is_empty().then(error).into_iter().collect();
    }
    vec![FieldError::required(path.field("exitCodes"), "must be specified")]
}

fn handler(handler: &Value, path: Path<'_>) -> Vec<FieldError> {
    one_of(handler, &["exec", "httpGet", "tcpSocket", "grpc", "sleep"], "handler", path)
}

fn http_get(action: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = port(action, path);
    for header in items(action, "httpHeaders") {
        let place = path.field("httpHeaders");
        errors.extend(Syntax::HeaderName.errors(text(header, "name"), place));
    }
    errors
}

/// The port of an action is a number or the name of a port.
fn port(action: &Value, path: Path<'_>) -> Vec<FieldError> {
    port_number_or_name(&action["port"], path.field("port"))
}

/// Returns the errors in the number or the name of a port.
pub(in crate::registry::builtin) fn port_number_or_name(
    port: &Value,
    path: Path<'_>,
) -> Vec<FieldError> {
    if let Some(name) = port.as_str() {
        return Syntax::PortName.errors(name, path);
    }
    let number = port.as_i64().unwrap_or(0);
    if (1..=65535).contains(&number) {
        return Vec::new();
    }
    vec![FieldError::invalid(path, &json!(number), "must be between 1 and 65535, inclusive")]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("Container", json!({"envFrom": [{}]}), &["x.envFrom"])]
    #[case("Container", json!({"restartPolicyRules": [{}]}), &["x.restartPolicy"])]
    #[case(
        "Container",
        json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}],
            "volumeDevices": [
                {"name": "v", "devicePath": "/b"}, {"name": "w", "devicePath": "/b"}]}),
        &["x.volumeMounts[0].name", "x.volumeDevices[0].name", "x.volumeDevices[1].devicePath"]
    )]
    #[case(
        "Container",
        json!({"volumeMounts": [{"mountPropagation": "Bidirectional"}]}),
        &["x.volumeMounts.mountPropagation"]
    )]
    #[case("VolumeMount", json!({"subPath": "/a", "subPathExpr": "b"}),
           &["x.subPath", "x.subPathExpr"])]
    #[case("VolumeMount", json!({"recursiveReadOnly": "Enabled"}), &["x.recursiveReadOnly"])]
    #[case("LifecycleHandler", json!({}), &["x"])]
    #[case("ProbeHandler", json!({"exec": {}, "tcpSocket": {"port": 1}}), &["x.tcpSocket"])]
    #[case("HTTPGetAction", json!({"port": "http", "httpHeaders": [{"name": "A B"}]}),
           &["x.httpHeaders"])]
    #[case("TCPSocketAction", json!({"port": 70000}), &["x.port"])]
    #[case("TCPSocketAction", json!({"port": "80"}), &["x.port"])]
    #[case("ContainerRestartRule", json!({}), &["x.exitCodes"])]
    fn containers_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
