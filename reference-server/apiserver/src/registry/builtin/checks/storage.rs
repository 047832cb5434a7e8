//! Drivers, capacities and classes of volumes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};

use super::resources::not_negative;
use super::{Checks, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.storage.v1.CSIDriverSpec", driver),
    ("io.k8s.api.storage.v1.CSINodeDriver", node_driver),
    ("io.k8s.api.storage.v1.CSIStorageCapacity", capacity),
    ("io.k8s.api.storage.v1.StorageClass", topologies),
];

fn driver(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = path.field("tokenRequests");
    let mut known = HashSet::new();
    for (index, request) in items(spec, "tokenRequests").iter().enumerate() {
        if !known.insert(text(request, "audience")) {
            let place = list.index(index);
            let audience = json!(text(request, "audience"));
            errors.push(FieldError::duplicate(place.field("audience"), &audience));
        }
    }
    let given = &spec["serviceAccountTokenInSecrets"];
    if *given == true && known.is_empty() {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(FieldError::invalid(path.field("serviceAccountTokenInSecrets"), given, why));
    }
    errors
}

/// Returns the errors of the topology. As in kube-apiserver, they are at the driver.
fn node_driver(driver: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = HashSet::new();
    for key in items(driver, "topologyKeys") {
        let name = key.as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        if !known.insert(name) {
            errors.push(FieldError::duplicate(path, key));
        }
        errors.extend(Syntax::LabelKey.errors(name, path));
    }
    errors
}

fn capacity(object: &Value, path: Path<'_>) -> Vec<FieldError> {
    not_negative(text(object, "capacity"), path.field("capacity"))
}

/// Returns the errors of the topologies of a class: no two are the same, and none has a key twice.
/// As in kube-apiserver, a topology without keys is a duplicate.
fn topologies(class: &Value, path: Path<'_>) -> Vec<FieldError> {
    let path = path.field("allowedTopologies");
    let mut errors = Vec::new();
    let mut known = vec![BTreeMap::new()];
    for (index, term) in items(class, "allowedTopologies").iter().enumerate() {
        let place = path.index(index);
        let place = place.field("matchLabelExpressions");
        let mut keys = BTreeMap::new();
        for (index, expression) in items(term, "matchLabelExpressions").iter().enumerate() {
            let values: BTreeSet<_> =
                items(expression, "values").iter().filter_map(Value::as_str).collect();
            if keys.insert(text(expression, "key"), values).is_some() {
                let place = place.index(index);
                errors.push(FieldError::duplicate(place.field("key"), &expression["key"]));
            }
        }
        if known.contains(&keys) {
            errors.push(FieldError::duplicate(place, &json!("")));
        }
        known.push(keys);
    }
    errors
}

/// Returns the errors of an update of drivers. Only the number of their volumes changes.
pub(in crate::registry::builtin) fn changed_drivers(new: &Value, old: &Value) -> Vec<FieldError> {
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        driver["allocatable"] = Value::Null;
        driver
    };
    let mut errors = Vec::new();
    for before in items(&old["spec"], "drivers") {
        let now = items(&new["spec"], "drivers").iter().find(|now| now["name"] == before["name"]);
        if let Some(now) = now.filter(|now| fixed(now) != fixed(before)) {
            errors.push(FieldError::invalid("spec.drivers", &json!(now), "field is immutable"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("CSIDriverSpec", json!({"serviceAccountTokenInSecrets": true}),
           &["x.serviceAccountTokenInSecrets"])]
    #[case("CSIDriverSpec",
           json!({"serviceAccountTokenInSecrets": true, "tokenRequests": [{"audience": ""}]}), &[])]
    #[case("CSIDriverSpec", json!({"tokenRequests": [{"audience": "a"}, {}, {"audience": ""}]}),
           &["x.tokenRequests[2].audience"])]
    #[case("CSINodeDriver", json!({"topologyKeys": ["a", "a"]}), &["x"])]
    #[case("CSINodeDriver", json!({"topologyKeys": ["a b"]}), &["x"])]
    #[case("CSIStorageCapacity", json!({"capacity": "-1", "maximumVolumeSize": "1"}),
           &["x.capacity"])]
    #[case("CSINodeDriver", json!({"name": "A", "nodeID": "n"}), &[])]
    #[case("StorageClass", json!({"provisioner": "p", "allowedTopologies": [{}]}),
           &["x.allowedTopologies[0].matchLabelExpressions"])]
    #[case("StorageClass", topologies_of(&["a", "b"]), &[])]
    #[case("StorageClass", topologies_of(&["a", "a"]),
           &["x.allowedTopologies[1].matchLabelExpressions"])]
    fn drivers_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }

    /// Returns a class with one topology for each zone.
    fn topologies_of(zones: &[&str]) -> Value {
        let term =
            |zone: &&str| json!({"matchLabelExpressions": [{"key": "zone", "values": [zone]}]});
        let terms: Vec<_> = zones.iter().map(term).collect();
        json!({"provisioner": "p", "allowedTopologies": terms})
    }

    #[test]
    fn a_driver_of_a_node_changes_its_number_of_volumes() {
        let node = |id: &str, count: i64| {
            let driver = json!({"name": "a", "nodeID": id, "allocatable": {"count": count}});
            json!({"spec": {"drivers": [driver]}})
        };
        assert_eq!(changed_drivers(&node("n", 2), &node("n", 1)), []);
        assert_eq!(changed_drivers(&node("m", 1), &node("n", 1)).len(), 1);
    }
}
