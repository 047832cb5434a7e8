//! Definitions of other groups than the core group, and the core objects without containers.

use serde_json::{Value, json};

use super::resources::{container_resource, requirements};
use super::{Checks, containers, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.EndpointSubset", endpoints),
    ("io.k8s.api.networking.v1.IngressClassParametersReference", class_parameters),
    ("io.k8s.api.networking.v1.NetworkPolicyPort", policy_port),
    ("io.k8s.api.node.v1.Overhead", overhead),
];

fn endpoints(subset: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if items(subset, "addresses").is_empty() && items(subset, "notReadyAddresses").is_empty() {
        let why = "must specify `addresses` or `notReadyAddresses`";
        errors.push(FieldError::required(path, why));
    }
    let ports = items(subset, "ports");
    let list = path.field("ports");
    for (index, port) in ports.iter().enumerate().filter(|_| ports.len() > 1) {
        if text(port, "name").is_empty() {
            let place = list.index(index);
            errors.push(FieldError::required(place.field("name"), ""));
        }
    }
    errors
}

/// Parameters of one namespace name it.
fn class_parameters(reference: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("namespace");
    match (text(reference, "scope"), reference["namespace"].as_str()) {
        ("Namespace", None) => {
            vec![FieldError::required(place, "`parameters.scope` is set to 'Namespace'")]
        }
        ("Namespace", Some(name)) => Syntax::DnsLabel.errors(name, place),
        ("Cluster", Some(_)) => {
            vec![FieldError::forbidden(place, "`parameters.scope` is set to 'Cluster'")]
        }
        _ => Vec::new(),
    }
}

fn policy_port(port: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has(port, "port") {
        errors.extend(containers::port_number_or_name(&port["port"], path.field("port")));
    }
    let Some(end) = port["endPort"].as_i64() else { return errors };
    let place = path.field("endPort");
    match port.get("port") {
        None => {
            let why = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(place, &json!(end), why));
        }
        Some(Value::String(_)) => {
            let why = "may not be specified when `port` is non-numeric";
            errors.push(FieldError::invalid(place, &json!(end), why));
        }
        Some(start) => {
            if start.as_i64().is_some_and(|start| end < start) {
                let why = "must be greater than or equal to `port`";
                errors.push(FieldError::invalid(place, start, why));
            }
            errors.extend(containers::port_number_or_name(&json!(end), place));
        }
    }
    errors
}

/// kube-apiserver validates an overhead as limits.
fn overhead(overhead: &Value, path: Path<'_>) -> Vec<FieldError> {
    requirements(&json!({"limits": overhead["podFixed"]}), container_resource, path)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("EndpointSubset", json!({"ports": [{"name": "a"}, {}]}), &["x", "x.ports[1].name"])]
    #[case("IngressClassParametersReference", json!({"scope": "Namespace"}), &["x.namespace"])]
    #[case("IngressClassParametersReference", json!({"scope": "Namespace", "namespace": ""}),
           &["x.namespace"])]
    #[case("IngressClassParametersReference", json!({"scope": "Cluster", "namespace": "a"}),
           &["x.namespace"])]
    #[case("NetworkPolicyPort", json!({"endPort": 1}), &["x.endPort"])]
    #[case("NetworkPolicyPort", json!({"port": 2, "endPort": 1}), &["x.endPort"])]
    #[case("NetworkPolicyPort", json!({"port": "Http"}), &["x.port"])]
    #[case("Overhead", json!({"podFixed": {"storage": "1"}}), &["x.limits[storage]"])]
    fn objects_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
