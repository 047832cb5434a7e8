//! Validates updates of pods. Images, the deadline, additional tolerations and fewer scheduling
//! gates are valid. The choice of nodes of a gated pod may become stricter.

use serde_json::{Value, json};

use crate::registry::builtin::restore;
use kubeproof_apimachinery::schema::{FieldError, Path};

const WHY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Returns the errors of an update.
pub(super) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (new, old) = (&new["spec"], &old["spec"]);
    let length = |spec: &Value, list: &str| spec[list].as_array().map_or(0, Vec::len);
    for list in ["containers", "initContainers"] {
        if length(new, list) != length(old, list) {
            let why = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(format!("spec.{list}"), why));
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    match (new["activeDeadlineSeconds"].as_i64(), old["activeDeadlineSeconds"].as_i64()) {
        (None, Some(_)) => {
            errors.push(FieldError::invalid(
                "spec.activeDeadlineSeconds",
                &Value::Null,
                "must not update from a positive integer to nil value",
            ));
        }
        (Some(new), Some(old)) if new > old => {
            let why = "must be less than or equal to previous value";
            errors.push(FieldError::invalid("spec.activeDeadlineSeconds", &json!(new), why));
        }
        _ => {}
    }
    if !keeps_tolerations(new, old) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", why));
    }
    errors.extend(added_gates(new, old));
    let mut masked = masked(new, old);
    if !items(old, "schedulingGates").is_empty() {
        errors.extend(mask_node_choice(&mut masked, old));
    }
    if masked != *old {
        errors.push(FieldError::forbidden("spec", WHY));
    }
    errors
}

/// Reports whether each stored toleration is still there. Its seconds may change.
fn keeps_tolerations(new: &Value, old: &Value) -> bool {
    let without_seconds = |toleration: &Value| {
        let mut fields = toleration.as_object().cloned().unwrap_or_default();
        fields.remove("tolerationSeconds");
        fields
    };
    let given: Vec<_> = items(new, "tolerations").iter().map(without_seconds).collect();
    items(old, "tolerations").iter().all(|toleration| given.contains(&without_seconds(toleration)))
}

/// Returns an error for each scheduling gate that the stored pod does not have.
fn added_gates(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("spec");
    let path = path.field("schedulingGates");
    let known: Vec<_> = items(old, "schedulingGates").iter().map(|gate| &gate["name"]).collect();
    let gates = items(new, "schedulingGates").iter().enumerate();
    let error = |(index, gate): (usize, &Value)| {
        let name = gate["name"].as_str().unwrap_or_default();
        let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        FieldError::forbidden(path.index(index).field("name"), &why)
    };
    gates.filter(|(_, gate)| !known.contains(&&gate["name"])).map(error).collect()
}

/// Returns the new spec with the old value of every mutable field.
fn masked(new: &Value, old: &Value) -> Value {
    let mut masked = new.clone();
    for list in ["containers", "initContainers"] {
        let containers = masked.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (index, container) in containers.enumerate() {
            container["image"] = old[list][index]["image"].clone();
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut masked, old, field);
    }
    masked
}

/// Masks the node selector and the node affinity of a gated pod, which may become stricter.
/// Returns the errors in the changes.
fn mask_node_choice(new: &mut Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let wanted = old["nodeSelector"].as_object().into_iter().flatten();
    if wanted.into_iter().any(|(key, value)| new["nodeSelector"].get(key) != Some(value)) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid("spec.nodeSelector", &new["nodeSelector"], why));
    }
    restore(new, old, "nodeSelector");
    let (now, before) = (&new["affinity"]["nodeAffinity"], &old["affinity"]["nodeAffinity"]);
    if now == before {
        return errors;
    }
    errors.extend(changed_terms(now, before));
    let is_alone = new["affinity"]
        .as_object()
        .is_none_or(|affinity| affinity.keys().all(|name| name == "nodeAffinity"));
    if is_alone && old["affinity"].is_null() {
        restore(new, old, "affinity");
    } else {
        restore(&mut new["affinity"], &old["affinity"], "nodeAffinity");
    }
    errors
}

/// Returns the errors in the required terms of a node affinity. Stored terms may only get more
/// requirements.
fn changed_terms(new: &Value, old: &Value) -> Vec<FieldError> {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let place = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
    let (now, before) =
        (items(&new[REQUIRED], "nodeSelectorTerms"), items(&old[REQUIRED], "nodeSelectorTerms"));
    if !before.is_empty() && now.len() != before.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return vec![FieldError::invalid(place, &json!(now), why)];
    }
    let is_empty = |term: &Value| {
        ["matchExpressions", "matchFields"].iter().all(|it| items(term, it).is_empty())
    };
    let grows = |now: &Value, before: &Value| {
        (!is_empty(before) || is_empty(now))
            && ["matchExpressions", "matchFields"]
                .iter()
                .all(|list| items(now, list).starts_with(items(before, list)))
    };
    let pairs = now.iter().zip(before).enumerate();
    let error = |(index, (now, _)): (usize, (&Value, &Value))| {
        let why = "only additions are allowed (no mutations or deletions)";
        FieldError::invalid(format!("{place}[{index}]"), now, why)
    };
    pairs.filter(|(_, (now, before))| !grows(now, before)).map(error).collect()
}

fn items<'v>(object: &'v Value, field: &str) -> &'v [Value] {
    object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/spec/containers/0/image", json!("img:2"), &[])]
    #[case("/spec/tolerations", json!([{"key": "a"}, {"key": "b"}]), &[])]
    #[case("/spec/tolerations", json!([]), &["spec.tolerations"])]
    #[case("/spec/tolerations", json!([{"key": "a", "tolerationSeconds": 5}]), &[])]
    #[case("/spec/tolerations", json!([{"key": "a", "value": "b"}]), &["spec.tolerations"])]
    #[case("/spec/nodeSelector", json!({"a": "b", "c": "d"}), &["spec"])]
    #[case("/spec/activeDeadlineSeconds", json!(50), &[])]
    #[case("/spec/activeDeadlineSeconds", json!(200), &["spec.activeDeadlineSeconds"])]
    #[case("/spec/containers/0/name", json!("other"), &["spec"])]
    #[case("/spec/nodeName", json!("node-2"), &["spec"])]
    #[case("/spec/containers", json!([]), &["spec.containers"])]
    fn only_a_few_fields_may_change(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let old = json!({"spec": {
            "activeDeadlineSeconds": 100,
            "containers": [{"name": "c", "image": "img:1"}],
            "nodeName": "node-1",
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "a"}],
        }});
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let fields: Vec<_> = validate_update(&new, &old).into_iter().map(|e| e.field).collect();
        assert_eq!(fields, expected);
    }
    #[rstest]
    #[case("/spec/schedulingGates", json!([]), &[])]
    #[case("/spec/schedulingGates", json!([{"name": "b"}]), &["spec.schedulingGates[0].name"])]
    #[case("/spec/nodeSelector", json!({"a": "b", "c": "d"}), &[])]
    #[case("/spec/nodeSelector", json!({"c": "d"}), &["spec.nodeSelector"])]
    #[case("/spec/affinity", json!({"nodeAffinity": affinity(&json!([{"key": "a"}, {}]))}), &[])]
    #[case("/spec/affinity", json!({"nodeAffinity": affinity(&json!([{"key": "b"}]))}), TERM)]
    #[case("/spec/affinity", json!({"podAffinity": {}}), &[TERMS, "spec"])]
    fn the_nodes_of_a_gated_pod_may_become_fewer(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let old = json!({"spec": {
            "affinity": {"nodeAffinity": affinity(&json!([{"key": "a"}]))},
            "nodeSelector": {"a": "b"},
            "schedulingGates": [{"name": "a"}],
        }});
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let fields: Vec<_> = validate_update(&new, &old).into_iter().map(|e| e.field).collect();
        assert_eq!(fields, expected);
    }

    const TERMS: &str = "spec.affinity.nodeAffinity.\
        requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    const TERM: &[&str] = &["spec.affinity.nodeAffinity.\
        requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"];

    fn affinity(expressions: &Value) -> Value {
        let terms = json!([{ "matchExpressions": expressions }]);
        json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}})
    }
}
