//! The status of claims for devices: the scheduler allocates devices, and drivers report on them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Attributes, Decision, Operation, Plugin, decided};
use crate::authorization::denied;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::ApiError;

/// The extra attribute of a service account with the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Rejects a status from a user without permission for its part. In kube-apiserver, the registry
/// of claims does this.
pub(super) struct ClaimStatusPermission;

impl Plugin for ClaimStatusPermission {
    fn name(&self) -> &'static str {
        "ClaimStatusPermission"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Update
            && request.ty.group == "resource.k8s.io"
            && request.ty.plural == "resourceclaims"
            && request.info.subresource == "status"
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        let errors = check(request, &object["status"]);
        decided(if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(request.ty.subject(), object.meta("name"), &errors))
        })
    }
}

fn check(request: Attributes<'_>, new: &Value) -> Vec<FieldError> {
    let old = request.old.map_or(&Value::Null, |old| &old["status"]);
    let same = |field: &str| old[field] == new[field];
    let verb = if request.is_patch { "patch" } else { "update" };
    let mut errors = Vec::new();
    if !same("allocation") || !same("reservedFor") {
        let part = part(request, "binding", "", "");
        if !request.rights.may_access(request.user, verb, &part) {
            let why = format!(
                "changing status.allocation or status.reservedFor requires \
                 resource=\"resourceclaims/binding\", verb=\"{verb}\" permission: {}",
                denied(request.user, verb, &part).message
            );
            errors.push(FieldError::forbidden("status.allocation", &why));
        }
    }
    if new["allocation"].is_null() || same("devices") {
        return errors;
    }
    let mut verbs = vec![format!("arbitrary-node:{verb}")];
    if is_on_node(request, node_of(&new["allocation"])) {
        verbs.insert(0, format!("associated-node:{verb}"));
    }
    for driver in changed_drivers(&new["devices"], &old["devices"]) {
        let part = part(request, "driver", &request.info.namespace, driver);
        let may = |verb: &String| request.rights.may_access(request.user, verb, &part);
        if !verbs.iter().any(may) {
            let why = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", \
                 verb=\"[{}]\" permission: {}",
                verbs.join(" "),
                denied(request.user, &verbs[0], &part).message
            );
            errors.push(FieldError::forbidden("status.devices", &why));
        }
    }
    errors
}

/// Returns a part of claims that only permissions know.
fn part(request: Attributes<'_>, name: &str, namespace: &str, object: &str) -> ResourceInfo {
    ResourceInfo {
        subresource: name.to_owned(),
        namespace: namespace.to_owned(),
        name: object.to_owned(),
        ..request.info.clone()
    }
}

/// Returns the drivers of the reports that differ.
fn changed_drivers<'v>(new: &'v Value, old: &'v Value) -> BTreeSet<&'v str> {
    let list = |value: &'v Value| value.as_array().map(Vec::as_slice).unwrap_or_default();
    let (new, old) = (list(new), list(old));
    let added = new.iter().filter(|device| !old.contains(device));
    let removed = old.iter().filter(|device| !new.contains(device));
    added.chain(removed).filter_map(|device| device["driver"].as_str()).collect()
}

/// Returns the node of an allocation that is for one node.
fn node_of(allocation: &Value) -> Option<&str> {
    let one = |list: &Value, length: usize| list.as_array().map_or(0, Vec::len) == length;
    let terms = &allocation["nodeSelector"]["nodeSelectorTerms"];
    let field = &terms[0]["matchFields"][0];
    let is_for_one = one(terms, 1)
        && one(&terms[0]["matchExpressions"], 0)
        && one(&terms[0]["matchFields"], 1)
        && field["key"] == "metadata.name"
        && field["operator"] == "In"
        && one(&field["values"], 1);
    field["values"][0].as_str().filter(|_| is_for_one)
}

/// Reports whether the user is a service account of a pod on the node.
fn is_on_node(request: Attributes<'_>, node: Option<&str>) -> bool {
    let nodes = request.user.extra.get(NODE_NAME).map(Vec::as_slice).unwrap_or_default();
    request.user.name.starts_with("system:serviceaccount:")
        && matches!(nodes, [own] if Some(own.as_str()) == node)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_allocation_can_be_for_one_node() {
        let selector = |fields: Value| json!({"nodeSelector": {"nodeSelectorTerms": [fields]}});
        let field = json!({"key": "metadata.name", "operator": "In", "values": ["n"]});
        let one = selector(json!({"matchFields": [field]}));
        assert_eq!(node_of(&one), Some("n"));
        let label = json!({"key": "a", "operator": "Exists"});
        let other = selector(json!({"matchFields": [field], "matchExpressions": [label]}));
        assert_eq!((node_of(&other), node_of(&json!({}))), (None, None));
    }

    #[test]
    fn drivers_with_another_report_are_found() {
        let report = |driver: &str, data: i64| json!({"driver": driver, "data": {"a": data}});
        let old = json!([report("a", 1), report("b", 1), report("c", 1)]);
        let new = json!([report("a", 1), report("b", 2), report("d", 1)]);
        let changed: Vec<_> = changed_drivers(&new, &old).into_iter().collect();
        assert_eq!(changed, ["b", "c", "d"]);
        assert!(changed_drivers(&old, &old).is_empty());
    }
}
