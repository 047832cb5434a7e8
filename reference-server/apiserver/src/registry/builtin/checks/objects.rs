//! Definitions of other groups than the core group, and the core objects without containers.

use serde_json::{Value, json};

use super::resources::{
    container_resource, not_negative, quota_resource, requirements, resource_name,
};
use super::{Checks, containers, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.admissionregistration.v1.ParamRef", parameter),
    ("io.k8s.api.core.v1.EndpointSubset", endpoints),
    ("io.k8s.api.core.v1.LimitRangeItem", limit),
    ("io.k8s.api.core.v1.ResourceQuotaSpec", quota),
    ("io.k8s.api.flowcontrol.v1.PolicyRulesWithSubjects", flow_rules),
    ("io.k8s.api.flowcontrol.v1.Subject", flow_subject),
    ("io.k8s.api.networking.v1.NetworkPolicyPort", policy_port),
    ("io.k8s.api.node.v1.Overhead", overhead),
];

fn parameter(reference: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (!text(reference, "name").is_empty(), has(reference, "selector")) {
        (false, false) => {
            let why = "one of name or selector must be specified";
            errors.push(FieldError::required(path, why));
        }
        (true, true) => {
            let name = json!(text(reference, "name"));
            let why = "name and selector are mutually exclusive";
            errors.push(FieldError::invalid(path.field("name"), &name, why));
        }
        _ => {}
    }
    if text(reference, "parameterNotFoundAction").is_empty() {
        errors.push(FieldError::required(path.field("parameterNotFoundAction"), ""));
    }
    errors
}

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

fn limit(item: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(item, "type");
    if !kind.is_empty() {
        let place = path.field("type");
        errors.extend(Syntax::LabelKey.errors(kind, place));
        let is_standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
        if errors.is_empty() && !kind.contains('/') && !is_standard {
            let why = "must be a standard limit type or fully qualified";
            errors.push(FieldError::invalid(place, &json!(kind), why));
        }
    }
    let check_name = match kind {
        "Pod" | "Container" => container_resource,
        _ => resource_name,
    };
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let place = path.field(field);
        for (name, _) in item[field].as_object().into_iter().flatten() {
            errors.extend(check_name(name, place.key(name)));
        }
    }
    errors
}

fn quota(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let hard = path.field("hard");
    for (name, amount) in spec["hard"].as_object().into_iter().flatten() {
        errors.extend(quota_resource(name, hard.key(name)));
        errors.extend(not_negative(amount.as_str().unwrap_or_default(), hard.key(name)));
    }
    errors
}

fn flow_rules(rules: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let resources = items(rules, "resourceRules");
    if resources.is_empty() && items(rules, "nonResourceRules").is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, why));
    }
    let list = path.field("resourceRules");
    for (index, rule) in resources.iter().enumerate() {
        if items(rule, "namespaces").is_empty() && rule["clusterScope"] != true {
            let why = "resource rules that are not cluster scoped must supply at least one \
                       namespace";
            let place = list.index(index);
            errors.push(FieldError::required(place.field("namespaces"), why));
        }
    }
    errors
}

fn flow_subject(subject: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(subject, "kind");
    for (field, own) in [("user", "User"), ("group", "Group"), ("serviceAccount", "ServiceAccount")]
    {
        let place = path.field(field);
        if kind == own && !has(subject, field) {
            let why = format!("{field} is required when subject kind is '{own}'");
            errors.push(FieldError::required(place, &why));
        } else if kind != own && has(subject, field) {
            let why = format!("{field} is forbidden when subject kind is not '{own}'");
            errors.push(FieldError::forbidden(place, &why));
        }
    }
    errors
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
    #[case("ParamRef", json!({}), &["x", "x.parameterNotFoundAction"])]
    #[case("EndpointSubset", json!({"ports": [{"name": "a"}, {}]}), &["x", "x.ports[1].name"])]
    #[case("LimitRangeItem", json!({"type": "Pod", "max": {"storage": "1"}}), &["x.max[storage]"])]
    #[case("LimitRangeItem", json!({"type": "odd"}), &["x.type"])]
    #[case("LimitRangeItem",
        json!({"type": "PersistentVolumeClaim", "max": {"storage": "1"}}), &[])]
    #[case("ResourceQuotaSpec", json!({"hard": {"pods": "-1", "odd": "1"}}),
           &["x.hard[odd]", "x.hard[odd]", "x.hard[pods]"])]
    #[case("PolicyRulesWithSubjects", json!({"resourceRules": [{}]}),
           &["x.resourceRules[0].namespaces"])]
    #[case("PolicyRulesWithSubjects", json!({}), &["x"])]
    #[case("NetworkPolicyPort", json!({"endPort": 1}), &["x.endPort"])]
    #[case("NetworkPolicyPort", json!({"port": 2, "endPort": 1}), &["x.endPort"])]
    #[case("NetworkPolicyPort", json!({"port": "Http"}), &["x.port"])]
    #[case("Overhead", json!({"podFixed": {"storage": "1"}}), &["x.limits[storage]"])]
    fn objects_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }

    #[test]
    fn the_subject_of_a_flow_has_the_member_of_its_kind() {
        let errors = flow_subject(&json!({"kind": "User", "group": {}}), Path::Root.field("x"));
        let fields: Vec<_> = errors.iter().map(|error| &*error.field).collect();
        assert_eq!(fields, ["x.user", "x.group"]);
    }
}
