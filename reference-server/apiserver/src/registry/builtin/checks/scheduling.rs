//! Where pods run: tolerations, affinities and spreading.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::selectors::{key_and_operator, label_values, wrong_operator};
use super::{Checks, has, items, text};
use kubeproof_apimachinery::object::validation::names::label_value;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.NodeAffinity", node_affinity),
    ("io.k8s.api.core.v1.PodAffinityTerm", pod_affinity_term),
    ("io.k8s.api.core.v1.PodSpec", spread),
    ("io.k8s.api.core.v1.PreferredSchedulingTerm", weight),
    ("io.k8s.api.core.v1.Toleration", toleration),
    ("io.k8s.api.core.v1.TopologySpreadConstraint", constraint),
    ("io.k8s.api.core.v1.VolumeNodeAffinity", volume_affinity),
    ("io.k8s.api.core.v1.WeightedPodAffinityTerm", weight),
];

fn toleration(toleration: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (key, value) = (text(toleration, "key"), text(toleration, "value"));
    let operator = text(toleration, "operator");
    let place = path.field("operator");
    if key.is_empty() && operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values \
                   and all keys\"";
        errors.push(FieldError::invalid(place, &json!(operator), why));
    }
    let effect = text(toleration, "effect");
    if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(path.field("effect"), &json!(effect), why));
    }
    match operator {
        "" | "Equal" => {
            let wrong = label_value(value);
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(place, &json!(value), &wrong.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(place, &json!(value), why));
        }
        _ => {}
    }
    errors
}

fn node_affinity(affinity: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if has(affinity, required) {
        errors.extend(node_selector(&affinity[required], path.field(required)));
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let list = path.field(preferred);
    for (index, term) in items(affinity, preferred).iter().enumerate() {
        let place = list.index(index);
        errors.extend(node_selector_term(&term["preference"], true, place.field("preference")));
    }
    errors
}

fn volume_affinity(affinity: &Value, path: Path<'_>) -> Vec<FieldError> {
    if has(affinity, "required") {
        node_selector(&affinity["required"], path.field("required"))
    } else {
        let why = "must specify required node constraints";
        vec![FieldError::required(path.field("required"), why)]
    }
}

/// Returns the errors in the terms of a selector of nodes.
pub(in crate::registry::builtin) fn node_selector(
    selector: &Value,
    path: Path<'_>,
) -> Vec<FieldError> {
    let list = path.field("nodeSelectorTerms");
    let terms = items(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        return vec![FieldError::required(list, "must have at least one node selector term")];
    }
    let errors = terms
        .iter()
        .enumerate()
        .flat_map(|(index, term)| node_selector_term(term, false, list.index(index)));
    errors.collect()
}

/// Preferences may have any values.
fn node_selector_term(term: &Value, is_preference: bool, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = path.field("matchExpressions");
    for (index, requirement) in items(term, "matchExpressions").iter().enumerate() {
        errors.extend(node_requirement(requirement, is_preference, list.index(index)));
    }
    let list = path.field("matchFields");
    for (index, requirement) in items(term, "matchFields").iter().enumerate() {
        errors.extend(field_requirement(requirement, list.index(index)));
    }
    errors
}

fn node_requirement(requirement: &Value, is_preference: bool, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = key_and_operator(requirement, path, |at| comparison(requirement, at));
    if !is_preference {
        errors.extend(label_values(requirement, path));
    }
    errors
}

fn comparison(requirement: &Value, path: Path<'_>) -> Option<FieldError> {
    match text(requirement, "operator") {
        "Gt" | "Lt" if items(requirement, "values").len() == 1 => None,
        "Gt" | "Lt" => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            Some(FieldError::required(path.field("values"), why))
        }
        _ => Some(wrong_operator(requirement, path)),
    }
}

fn field_requirement(requirement: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let values = items(requirement, "values");
    let place = path.field("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.len() != 1 => {
            let why =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(place, why));
        }
        "In" | "NotIn" => {}
        _ => errors.push(wrong_operator(requirement, path)),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        let why = "not a valid field selector key";
        errors.push(FieldError::invalid(path.field("key"), &json!(key), why));
        return errors;
    }
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(Syntax::DnsSubdomain.errors(value, place.index(index)));
    }
    errors
}

fn pod_affinity_term(term: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in items(term, "namespaces") {
        let name = name.as_str().unwrap_or_default();
        errors.extend(Syntax::DnsLabel.errors(name, path.field("namespace")));
    }
    errors.extend(label_keys(term, &["matchLabelKeys", "mismatchLabelKeys"], path));
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
    }
    errors.extend(Syntax::LabelKey.errors(key, path.field("topologyKey")));
    errors
}

/// Checks keys of labels, which need a selector.
fn label_keys(term: &Value, fields: &[&str], path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in fields {
        let list = path.field(field);
        let keys = items(term, field);
        if !keys.is_empty() && !has(term, "labelSelector") {
            let why = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(list, why));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            let key = key.as_str().unwrap_or_default();
            errors.extend(Syntax::LabelKey.errors(key, list.index(index)));
        }
    }
    errors.extend(repeated_keys(term, path));
    let (others, list) = (items(term, "mismatchLabelKeys"), path.field("matchLabelKeys"));
    for (index, key) in items(term, "matchLabelKeys").iter().enumerate() {
        if others.contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(list.index(index), key, why));
        }
    }
    errors
}

/// Returns the errors of keys that the selector has, too. The labels of the pod are already in the
/// selector, so such a key occurs twice in it. As in kube-apiserver, the place lacks the list.
fn repeated_keys(term: &Value, path: Path<'_>) -> Vec<FieldError> {
    let keys = items(term, "matchLabelKeys");
    let selector = &term["labelSelector"];
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut known: HashSet<_> = labels.map(|(key, _)| key.as_str()).collect();
    let mut errors = Vec::new();
    for requirement in items(selector, "matchExpressions") {
        let key = text(requirement, "key");
        let last = keys.iter().rposition(|wanted| wanted == key);
        if let Some(index) = last.filter(|_| known.contains(key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(path.index(index), &json!(key), why));
        }
        known.insert(key);
    }
    errors
}

fn weight(term: &Value, path: Path<'_>) -> Vec<FieldError> {
    let weight = term["weight"].as_i64().unwrap_or(0);
    let why = "must be in the range 1-100";
    let error = || FieldError::invalid(path.field("weight"), &json!(weight), why);
    (!(1..=100).contains(&weight)).then(error).into_iter().collect()
}

/// Checks the fields of a constraint that must be positive or present.
fn constraint(constraint: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, absent) in [("maxSkew", 0), ("minDomains", 1)] {
        let number = constraint[field].as_i64().unwrap_or(absent);
        if number <= 0 {
            let why = "must be greater than zero";
            errors.push(FieldError::invalid(path.field(field), &json!(number), why));
        }
    }
    if text(constraint, "topologyKey").is_empty() {
        errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
    }
    errors
}

fn spread(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = path.field("topologySpreadConstraints");
    let constraints = items(spec, "topologySpreadConstraints");
    let pair =
        |it: &Value| (text(it, "topologyKey").to_owned(), text(it, "whenUnsatisfiable").to_owned());
    let mut later: Vec<_> = constraints.iter().map(pair).collect();
    later.reverse();
    for (index, constraint) in constraints.iter().enumerate() {
        let place = list.index(index);
        let (key, action) = later.pop().unwrap_or_default();
        if later.contains(&(key.clone(), action.clone())) {
            let place = place.field("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(place, &json!(format!("{{{key}, {action}}}"))));
        }
        if has(constraint, "minDomains") && action != "DoNotSchedule" {
            let why =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            let place = place.field("minDomains");
            errors.push(FieldError::invalid(place, &constraint["minDomains"], &why));
        }
        errors.extend(label_keys(constraint, &["matchLabelKeys"], place));
    }
    let gates = items(spec, "schedulingGates");
    if !gates.is_empty() && !text(spec, "nodeName").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(path.field("nodeName"), why));
    }
    let mut names = HashSet::new();
    let list = path.field("schedulingGates");
    for (index, gate) in gates.iter().enumerate() {
        let name = text(gate, "name");
        errors.extend(Syntax::LabelKey.errors(name, list.index(index)));
        if !names.insert(name) {
            errors.push(FieldError::duplicate(list.index(index), &json!(name)));
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
    #[case("Toleration", json!({"operator": "Equal"}), &["x.operator"])]
    #[case("Toleration", json!({"key": "a", "value": "b c"}), &["x.operator"])]
    #[case("Toleration", json!({"key": "a", "operator": "Exists", "value": "b"}), &["x.operator"])]
    #[case("Toleration", json!({"key": "a", "tolerationSeconds": 1}), &["x.effect"])]
    #[case(
        "VolumeNodeAffinity",
        json!({"required": {"nodeSelectorTerms": [{
            "matchExpressions": [{"key": "a", "operator": "Gt"}],
            "matchFields": [{"key": "a", "operator": "Exists"}],
        }]}}),
        &[
            "x.required.nodeSelectorTerms[0].matchExpressions[0].values",
            "x.required.nodeSelectorTerms[0].matchFields[0].operator",
            "x.required.nodeSelectorTerms[0].matchFields[0].key",
        ]
    )]
    #[case("VolumeNodeAffinity", json!({}), &["x.required"])]
    #[case(
        "NodeAffinity",
        json!({"requiredDuringSchedulingIgnoredDuringExecution": {}}),
        &["x.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"]
    )]
    #[case(
        "PodAffinityTerm",
        json!({"matchLabelKeys": ["a"], "topologyKey": "t", "namespaces": ["A"]}),
        &["x.namespace", "x.matchLabelKeys"]
    )]
    #[case(
        "PodAffinityTerm",
        json!({"matchLabelKeys": ["a", "b"], "topologyKey": "t", "labelSelector": {
            "matchLabels": {"b": "1"},
            "matchExpressions": [{"key": "a"}, {"key": "a"}, {"key": "b"}, {"key": "c"}],
        }}),
        &["x[0]", "x[1]"]
    )]
    #[case("PodAffinityTerm", json!({}), &["x.topologyKey", "x.topologyKey", "x.topologyKey"])]
    #[case(
        "PodSpec",
        json!({"schedulingGates": [{"name": "a"}, {"name": "a"}], "topologySpreadConstraints": [
            {"topologyKey": "t", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1},
            {"topologyKey": "t", "whenUnsatisfiable": "ScheduleAnyway"},
        ]}),
        &[
            "x.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}",
            "x.topologySpreadConstraints[0].minDomains",
            "x.schedulingGates[1]",
        ]
    )]
    #[case("WeightedPodAffinityTerm", json!({"weight": 101}), &["x.weight"])]
    #[case("PreferredSchedulingTerm", json!({"weight": 100}), &[])]
    #[case("TopologySpreadConstraint", json!({"maxSkew": 1, "topologyKey": "t"}), &[])]
    #[case("TopologySpreadConstraint", json!({"minDomains": 0}),
           &["x.maxSkew", "x.minDomains", "x.topologyKey"])]
    fn placement_is_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
