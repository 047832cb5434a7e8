//! Validates updates of pods. Images, the deadline, additional tolerations and fewer scheduling
//! gates are valid.

use serde_json::{Value, json};

use kubeproof_apimachinery::schema::FieldError;

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
    let kept = |spec: &Value| spec["tolerations"].as_array().cloned().unwrap_or_default();
    if !kept(old).iter().all(|toleration| kept(new).contains(toleration)) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", why));
    }
    if masked(new, old) != *old {
        errors.push(FieldError::forbidden("spec", WHY));
    }
    errors
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
    let Some(fields) = masked.as_object_mut() else { return masked };
    for field in ["activeDeadlineSeconds", "tolerations"] {
        match old.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
    }
    let gates = |spec: &Value| spec["schedulingGates"].as_array().cloned().unwrap_or_default();
    if gates(new).iter().all(|gate| gates(old).contains(gate))
        && let Some(old) = old.get("schedulingGates")
    {
        fields.insert("schedulingGates".to_owned(), old.clone());
    }
    masked
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/spec/containers/0/image", json!("img:2"), &[])]
    #[case("/spec/tolerations", json!([{"key": "a"}, {"key": "b"}]), &[])]
    #[case("/spec/tolerations", json!([]), &["spec.tolerations"])]
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
            "tolerations": [{"key": "a"}],
        }});
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let fields: Vec<_> = validate_update(&new, &old).into_iter().map(|e| e.field).collect();
        assert_eq!(fields, expected);
    }
}
