//! Resource quotas and their scopes.

use serde_json::{Value, json};

use super::resources::{quantity_of, quota_resource};
use super::{Checks, items, text};
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[("io.k8s.api.core.v1.ResourceQuotaSpec", quota)];

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];
/// The resources of pods that quotas limit.
const COMPUTED: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

fn quota(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let hard = path.field("hard");
    for (name, amount) in spec["hard"].as_object().into_iter().flatten() {
        errors.extend(quota_resource(name, hard.key(name)));
        let amount = amount.as_str().unwrap_or_default();
        // The count of the objects of a resource is whole, too.
        let counted = if name.starts_with("count/") { "pods" } else { name };
        errors.extend(quantity_of(counted, amount, hard.key(name)));
    }
    errors.extend(scopes(spec, path.field("scopes")));
    let selector = path.field("scopeSelector");
    for requirement in items(&spec["scopeSelector"], "matchExpressions") {
        errors.extend(scope_requirement(spec, requirement, selector.field("matchExpressions")));
    }
    errors
}

/// Returns the errors of the scopes. As in kube-apiserver, all are at the list.
fn scopes(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let all = items(spec, "scopes");
    let given: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    let invalid = |why| FieldError::invalid(path, &json!(all), why);
    let mut errors = Vec::new();
    for scope in &given {
        errors.extend((!SCOPES.contains(scope)).then(|| invalid("unsupported scope")));
        let wrong = limited(spec).filter(|name| !covers(scope, name));
        errors.extend(wrong.map(|_| invalid("unsupported scope applied to resource")));
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        let is_in = |scope: &&str| given.contains(scope);
        errors.extend(pair.iter().all(is_in).then(|| invalid("conflicting scopes")));
    }
    errors
}

/// Returns the errors of a requirement. As in kube-apiserver, they do not have its index.
fn scope_requirement(spec: &Value, requirement: &Value, path: Path<'_>) -> Vec<FieldError> {
    let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
    let mut errors = Vec::new();
    if !SCOPES.contains(&scope) {
        errors.push(FieldError::invalid(
            path.field("scopeName"),
            &json!(scope),
            "unsupported scope",
        ));
    }
    let wrong = limited(spec).filter(|name| !covers(scope, name));
    let why = "unsupported scope applied to resource";
    errors.extend(wrong.map(|_| FieldError::invalid(path, &spec["scopeSelector"], why)));
    let has_values = matches!(scope, "PriorityClass" | "VolumeAttributesClass");
    let place = path.field("operator");
    if SCOPES.contains(&scope) && !has_values && operator != "Exists" {
        let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                   ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                   ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.push(FieldError::invalid(place, &json!(operator), why));
    }
    let values = items(requirement, "values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope \
                       selector";
            errors.push(FieldError::required(path.field("values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope \
                       selector";
            errors.push(FieldError::invalid(path.field("values"), &json!(values), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => {
            let why = "not a valid selector operator";
            errors.push(FieldError::invalid(place, &json!(operator), why));
        }
    }
    errors
}

/// Returns the standard resources that a quota limits.
fn limited(spec: &Value) -> impl Iterator<Item = &String> {
    let names = spec["hard"].as_object().into_iter().flat_map(|hard| hard.keys());
    names.filter(|name| !name.contains('/') && quota_resource(name, Path::Root).is_empty())
}

/// Reports whether the objects of a scope use a resource.
fn covers(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ if SCOPES.contains(&scope) => resource == "pods" || COMPUTED.contains(&resource),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case(json!({"pods": "-1", "odd": "1"}), &["x.hard[odd]", "x.hard[odd]", "x.hard[pods]"])]
    #[case(json!({"pods": "1500m", "count/configmaps": "1500m", "cpu": "1500m"}),
           &["x.hard[count/configmaps]", "x.hard[pods]"])]
    fn limits_are_amounts(#[case] hard: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes("ResourceQuotaSpec", &json!({"hard": hard})), expected);
    }

    #[rstest]
    #[case(&["NotBestEffort", "Terminating"], &[])]
    #[case(&["BestEffort"], &["x.scopes"])]
    #[case(&["Odd"], &["x.scopes"])]
    #[case(&["Terminating", "NotTerminating"], &["x.scopes"])]
    fn scopes_fit_to_the_resources(#[case] scopes: &[&str], #[case] expected: &[&str]) {
        let quota = json!({"hard": {"pods": "1", "cpu": "1"}, "scopes": scopes});
        assert_eq!(mistakes("ResourceQuotaSpec", &quota), expected);
    }

    #[rstest]
    #[case(json!({"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}), &[])]
    #[case(json!({"scopeName": "PriorityClass", "operator": "In"}), &["values"])]
    #[case(json!({"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}),
           &["values"])]
    #[case(json!({"scopeName": "Terminating", "operator": "DoesNotExist"}), &["operator"])]
    #[case(json!({}), &["scopeName", "operator"])]
    fn a_selector_selects_scopes(#[case] requirement: Value, #[case] expected: &[&str]) {
        let quota = json!({"scopeSelector": {"matchExpressions": [requirement]}});
        let place = |field: &&str| format!("x.scopeSelector.matchExpressions.{field}");
        let expected: Vec<String> = expected.iter().map(place).collect();
        assert_eq!(mistakes("ResourceQuotaSpec", &quota), expected);
    }
}
