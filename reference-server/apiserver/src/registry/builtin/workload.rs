//! Common parts of the kinds that create pods: selector, template, and number of replicas.

use serde_json::{Value, json};

use super::Scale;
use super::checks::statuses::collisions;
use super::core::pod::validate_spec;

use kubeproof_apimachinery::schema::{FieldError, Path};

/// Returns the usual scale. `selector` is the JSON pointer to the selector.
pub(super) fn scale(selector: &str) -> Scale {
    Scale {
        spec_replicas: "/spec/replicas".to_owned(),
        status_replicas: "/status/replicas".to_owned(),
        selector: Some(selector.to_owned()),
    }
}

/// A new object has no status.
pub(super) fn prepare_create(object: &mut Value) {
    object["status"] = json!({});
}

/// Returns a number of the status. Zero is not written.
pub(super) fn number(object: &Value, pointer: &str) -> Value {
    json!(object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0))
}

/// Returns the errors of the template: its labels must match the selector, and its pods must
/// restart always.
pub(super) fn validate_template(object: &Value, selector: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let template = &object["spec"]["template"];
    let root = Path::Root;
    let spec = root.field("spec");
    let path = spec.field("template");
    let metadata = path.field("metadata");
    let labels = template["metadata"].get("labels");
    if !is_empty(selector) && !selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(
            metadata.field("labels"),
            labels.unwrap_or(&Value::Null),
            why,
        ));
    }
    let pod = path.field("spec");
    errors.extend(validate_spec(&template["spec"], pod));
    if template["spec"].get("activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null()) {
        let kind = match object["kind"].as_str().unwrap_or_default() {
            "Deployment" => "ReplicaSet",
            other => other,
        };
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(pod.field("activeDeadlineSeconds"), &why));
    }
    let policy = &template["spec"]["restartPolicy"];
    if matches!(policy.as_str(), Some("Never" | "OnFailure")) {
        errors.push(FieldError::not_supported(
            pod.field("restartPolicy"),
            policy,
            &[json!("Always")],
        ));
    }
    errors
}

/// Returns the errors in the counts of a status. No part is larger than the whole.
pub(super) fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let status = &new["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let limits = [
        ("fullyLabeledReplicas", "replicas", "status.replicas"),
        ("updatedReplicas", "replicas", "status.replicas"),
        ("currentReplicas", "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ];
    let broken = limits.into_iter().filter(|(part, whole, _)| count(part) > count(whole).max(0));
    let error = |(part, _, name): (&str, &str, &str)| {
        let why = format!("cannot be greater than {name}");
        FieldError::invalid(format!("status.{part}"), &json!(count(part)), &why)
    };
    broken.map(error).chain(collisions(new, old)).collect()
}

/// Returns whether a selector selects everything.
pub(super) fn is_empty(selector: &Value) -> bool {
    let is_empty = |field: &str| match selector.get(field) {
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => true,
    };
    is_empty("matchLabels") && is_empty("matchExpressions")
}

/// Reports whether a selector selects these labels.
pub(super) fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key));
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    wanted.into_iter().all(|(key, value)| label(key) == Some(value))
        && expressions.into_iter().all(|expression| {
            let value = label(expression["key"].as_str().unwrap_or_default());
            let listed = || {
                let values = expression["values"].as_array().map(Vec::as_slice).unwrap_or_default();
                value.is_some_and(|value| values.contains(value))
            };
            match expression["operator"].as_str() {
                Some("In") => listed(),
                Some("NotIn") => !listed(),
                Some("Exists") => value.is_some(),
                Some("DoesNotExist") => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"matchLabels": {"app": "a"}}), true)]
    #[case(json!({"matchLabels": {"app": "b"}}), false)]
    #[case(
        json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}),
        true
    )]
    #[case(
        json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}),
        false
    )]
    #[case(json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}), true)]
    fn a_selector_finds_its_template(#[case] selector: Value, #[case] expected: bool) {
        assert_eq!(selects(&selector, Some(&json!({"app": "a"}))), expected);
    }

    #[test]
    fn the_counts_of_a_status_fit_together() {
        let status = json!({"status": {"replicas": 2, "readyReplicas": 3}});
        let fields: Vec<_> =
            validate_status(&status, &Value::Null).into_iter().map(|e| e.field).collect();
        assert_eq!(fields, ["status.readyReplicas"]);
        let status = json!({"status": {"replicas": 2, "availableReplicas": 1}});
        assert_eq!(validate_status(&status, &Value::Null)[0].field, "status.availableReplicas");
    }
}
