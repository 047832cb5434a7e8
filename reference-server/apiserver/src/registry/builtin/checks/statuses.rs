//! The statuses that controllers write.

use std::collections::HashSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::resources::{quantity_of, quota_resource};
use super::{conditions, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

/// The states of the expansion of a volume.
const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Returns the error of a count of collisions that decreases.
pub(in crate::registry::builtin) fn collisions(new: &Value, old: &Value) -> Option<FieldError> {
    let count = |object: &Value| object["status"]["collisionCount"].as_i64();
    let before = count(old)?;
    let now = count(new);
    let error = || {
        let value = json!(now.unwrap_or_default());
        FieldError::invalid("status.collisionCount", &value, "cannot be decremented")
    };
    now.is_none_or(|now| now < before).then(error)
}

/// Returns the errors in the load balancer of a service.
pub(in crate::registry::builtin) fn service_balancer(new: &Value, _: &Value) -> Vec<FieldError> {
    let list = items(&new["status"]["loadBalancer"], "ingress");
    let path = Path::Root.field("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    if new["spec"]["type"] != "LoadBalancer" {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        return (!list.is_empty()).then(|| FieldError::forbidden(path, why)).into_iter().collect();
    }
    let mut errors = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let at = path.index(index);
        let (mode, place) = (&entry["ipMode"], at.field("ipMode"));
        errors.extend(address(entry, at));
        if text(entry, "ip").is_empty() {
            let why = "may not be specified when `ip` is not set";
            errors.extend((!mode.is_null()).then(|| FieldError::forbidden(place, why)));
        } else if mode.is_null() {
            errors.push(FieldError::required(place, "must be specified when `ip` is set"));
        } else if mode != "Proxy" && mode != "VIP" {
            errors.push(FieldError::not_supported(place, mode, &[json!("Proxy"), json!("VIP")]));
        }
        errors.extend(host(entry, at));
    }
    errors
}

/// Returns the errors in the load balancer of an ingress.
pub(in crate::registry::builtin) fn ingress_balancer(new: &Value, _: &Value) -> Vec<FieldError> {
    let list = items(&new["status"]["loadBalancer"], "ingress");
    let place = |index: usize| format!("status.loadBalancer.ingress[{index}]");
    let mut errors = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let place = place(index);
        let at = Path::Root.field(&place);
        errors.extend(address(entry, at));
        errors.extend(host(entry, at));
    }
    errors
}

fn address(entry: &Value, path: Path<'_>) -> Vec<FieldError> {
    match text(entry, "ip") {
        "" => Vec::new(),
        ip => Syntax::Ip.errors(ip, path.field("ip")),
    }
}

fn host(entry: &Value, path: Path<'_>) -> Vec<FieldError> {
    let (name, place) = (text(entry, "hostname"), path.field("hostname"));
    if name.is_empty() {
        return Vec::new();
    }
    let mut errors = Syntax::DnsSubdomain.errors(name, place);
    if name.parse::<IpAddr>().is_ok() {
        let why = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid(place, &json!(name), why));
    }
    errors
}

/// Returns the errors in the conditions of a flow schema or a priority level.
pub(in crate::registry::builtin) fn flow_conditions(new: &Value, _: &Value) -> Vec<FieldError> {
    let mut known = HashSet::new();
    let mut errors = Vec::new();
    for (index, condition) in items(&new["status"], "conditions").iter().enumerate() {
        let (kind, place) = (text(condition, "type"), format!("status.conditions[{index}].type"));
        if !known.insert(kind) {
            errors.push(FieldError::duplicate(&place, &json!(kind)));
        }
        errors.extend(kind.is_empty().then(|| FieldError::required(&place, "")));
    }
    errors
}

/// Returns the errors in the conditions of an API service.
pub(in crate::registry::builtin) fn service_conditions(new: &Value, _: &Value) -> Vec<FieldError> {
    let supported = ["True", "False", "Unknown"];
    let list = items(&new["status"], "conditions").iter().enumerate();
    let wrong = list.filter(|(_, condition)| !supported.contains(&text(condition, "status")));
    let error = |(index, condition): (usize, &Value)| {
        let place = format!("status.conditions[{index}].status");
        let value = json!(text(condition, "status"));
        FieldError::not_supported(place, &value, &supported.map(Value::from))
    };
    wrong.map(error).collect()
}

/// Returns the errors in the amounts of a quota.
pub(in crate::registry::builtin) fn quota_amounts(new: &Value, _: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("status");
    let mut errors = Vec::new();
    for list in ["hard", "used"] {
        let path = path.field(list);
        for (name, amount) in new["status"][list].as_object().into_iter().flatten() {
            errors.extend(quota_resource(name, path.key(name)));
            let amount = amount.as_str().unwrap_or_default();
            errors.extend(quantity_of(name, amount, path.key(name)));
        }
    }
    errors
}

/// Returns the errors in the amounts of a claim for a volume.
pub(in crate::registry::builtin) fn claim_amounts(new: &Value, _: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("status");
    let status = &new["status"];
    let mut errors = Vec::new();
    let place = path.field("capacity");
    for (name, amount) in status["capacity"].as_object().into_iter().flatten() {
        errors.extend(positive(amount, place.key(name)));
    }
    let place = path.field("allocatedResourceStatuses");
    for (name, state) in status["allocatedResourceStatuses"].as_object().into_iter().flatten() {
        errors.extend(claim_resource(name, place));
        if !state.as_str().is_some_and(|state| RESIZES.contains(&state)) {
            errors.push(FieldError::not_supported(place, &json!(name), &RESIZES.map(Value::from)));
        }
    }
    let place = path.field("allocatedResources");
    for (name, amount) in status["allocatedResources"].as_object().into_iter().flatten() {
        let wrong = claim_resource(name, place);
        if wrong.is_empty() {
            errors.extend(positive(amount, place.key(name)));
        }
        errors.extend(wrong);
    }
    errors
}

fn positive(amount: &Value, path: Path<'_>) -> Option<FieldError> {
    let is_negative = amount.as_str().is_some_and(|amount| amount.starts_with('-'));
    is_negative.then(|| FieldError::invalid(path, amount, "must be a valid resource quantity"))
}

fn claim_resource(name: &str, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Syntax::LabelKey.errors(name, path);
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if errors.is_empty() && is_native && name != "storage" {
        errors.push(FieldError::not_supported(path, &json!(name), &[json!("storage")]));
    }
    errors
}

/// Returns the errors in the status of an attached volume.
pub(in crate::registry::builtin) fn attachment(new: &Value, _: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["attachError", "detachError"] {
        let code = &new["status"][field]["errorCode"];
        if code.as_i64().is_some_and(|code| code < 0) {
            let why = "must be between 0 and 2147483647, inclusive";
            errors.push(FieldError::invalid(format!("status.{field}.errorCode"), code, why));
        }
    }
    errors
}

/// Returns the errors in the status of an admission policy.
pub(in crate::registry::builtin) fn policy(new: &Value, _: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("status");
    let mut errors = Vec::new();
    let warnings = items(&new["status"]["typeChecking"], "expressionWarnings");
    for (index, warning) in warnings.iter().enumerate() {
        for field in ["warning", "fieldRef"] {
            let place = format!("status.typeChecking.expressionWarnings[{index}].{field}");
            let is_absent = text(warning, field).is_empty();
            errors.extend(is_absent.then(|| FieldError::required(place, "")));
        }
    }
    errors.extend(conditions(items(&new["status"], "conditions"), path.field("conditions")));
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    type Check = fn(&Value, &Value) -> Vec<FieldError>;

    #[rstest]
    #[case(
        service_balancer,
        json!({"loadBalancer": {"ingress": [
            {"ip": "1.2.3.4", "ipMode": "VIP"}, {"ip": "x"},
            {"hostname": "1.2.3.4", "ipMode": "VIP"},
            {"ip": "::1", "ipMode": "X"}, {"hostname": "a.b"},
        ]}}),
        &["loadBalancer.ingress[1].ip", "loadBalancer.ingress[1].ipMode",
          "loadBalancer.ingress[2].ipMode", "loadBalancer.ingress[2].hostname",
          "loadBalancer.ingress[3].ipMode"]
    )]
    #[case(
        ingress_balancer,
        json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"ip": "x", "hostname": "A"}]}}),
        &["loadBalancer.ingress[1].ip", "loadBalancer.ingress[1].hostname"]
    )]
    #[case(
        flow_conditions,
        json!({"conditions": [{"type": "A"}, {"type": "A"}, {}]}),
        &["conditions[1].type", "conditions[2].type"]
    )]
    #[case(
        service_conditions,
        json!({"conditions": [{"status": "True"}, {"status": "X"}]}),
        &["conditions[1].status"]
    )]
    #[case(
        quota_amounts,
        json!({"hard": {"cpu": "1", "pods": "-1"}, "used": {"a/b/c": "1"}}),
        &["hard[pods]", "used[a/b/c]"]
    )]
    #[case(
        claim_amounts,
        json!({"capacity": {"storage": "-1"}, "allocatedResources": {"cpu": "1", "a.b/c": "1"},
               "allocatedResourceStatuses": {"storage": "X"}}),
        &["capacity[storage]", "allocatedResourceStatuses", "allocatedResources"]
    )]
    #[case(attachment, json!({"attachError": {"errorCode": -1}}), &["attachError.errorCode"])]
    #[case(
        policy,
        json!({"typeChecking": {"expressionWarnings": [{"warning": "w"}]}}),
        &["typeChecking.expressionWarnings[0].fieldRef"]
    )]
    fn mistakes_name_their_field(
        #[case] check: Check,
        #[case] status: Value,
        #[case] expected: &[&str],
    ) {
        let new = json!({"spec": {"type": "LoadBalancer"}, "status": status});
        let fields = check(&new, &Value::Null).into_iter().map(|error| error.field);
        let expected: Vec<_> = expected.iter().map(|field| format!("status.{field}")).collect();
        assert_eq!(
            fields.collect::<std::collections::BTreeSet<_>>(),
            expected.into_iter().collect()
        );
    }

    #[test]
    fn only_a_load_balancer_has_an_address() {
        let status = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});
        let errors = service_balancer(&json!({ "status": status }), &Value::Null);
        assert_eq!(errors[0].field, "status.loadBalancer.ingress");
    }

    #[rstest]
    #[case(json!(1), json!(2), true)]
    #[case(json!(2), json!(1), false)]
    #[case(json!(1), Value::Null, false)]
    #[case(Value::Null, json!(1), true)]
    fn collisions_never_decrease(#[case] old: Value, #[case] new: Value, #[case] is_valid: bool) {
        let object = |count: Value| json!({"status": {"collisionCount": count}});
        assert_eq!(collisions(&object(new), &object(old)).is_none(), is_valid);
    }
}
