//! The group `policy/v1`: disruption budgets, which limit evictions.

use serde_json::Value;

use super::apps::wrong_amount;
use super::data::resource;
use super::names::qualified_name;
use super::{BuiltinType, Hooks, NameRule, restore};
use kubeproof_apimachinery::table::column::{Cell, age, column};

use kubeproof_apimachinery::schema::FieldError;

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
        // kube-apiserver does not check the names of budgets.
        name_rule: NameRule::PathSegment,
        allows_unconditional_update: false,
        columns: vec![
            column(
                "Min Available",
                "string",
                Cell::Computed(|budget| number(budget, "minAvailable")),
            ),
            column(
                "Max Unavailable",
                "string",
                Cell::Computed(|budget| number(budget, "maxUnavailable")),
            ),
            column("Allowed Disruptions", "integer", Cell::Pointer("/status/disruptionsAllowed")),
            age(),
        ],
        hooks: Hooks {
            validate,
            validate_status,
            prepare_create: |budget| restore(budget, &Value::Null, "status"),
            prepare_update: |new, old| restore(new, old, "status"),
            ..Hooks::NONE
        },
        ..resource("policy", "v1", "poddisruptionbudgets")
    }]
}

/// Returns a number or percentage of the spec as text.
fn number(budget: &Value, field: &str) -> Value {
    match &budget["spec"][field] {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        number => number.to_string().into(),
    }
}

fn validate(budget: &Value) -> Vec<FieldError> {
    let spec = &budget["spec"];
    let mut errors = Vec::new();
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid("spec", spec, why));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if let Some(why) = wrong_amount(&spec[field]) {
            errors.push(FieldError::invalid(format!("spec.{field}"), &spec[field], why));
        }
    }
    errors
}

/// Returns the errors in the conditions, which other controllers than that of the server write.
fn validate_status(budget: &Value, _: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    for (index, condition) in conditions.enumerate() {
        let at = |field: &str| format!("status.conditions[{index}].{field}");
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        for why in qualified_name(text("type")) {
            errors.push(FieldError::invalid(at("type"), &text("type").into(), &why));
        }
        if !STATUSES.contains(&text("status")) {
            let (value, supported) = (text("status").into(), STATUSES.map(Value::from));
            errors.push(FieldError::not_supported(at("status"), &value, &supported));
        }
        for field in ["lastTransitionTime", "reason"] {
            if text(field).is_empty() {
                errors.push(FieldError::required(at(field), ""));
            }
        }
    }
    errors
}

/// The statuses of a condition.
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_numbers_or_percentages() {
        let errors = |amount: Value| validate(&json!({"spec": {"minAvailable": amount}}));
        for amount in [json!(0), json!("50%")] {
            assert_eq!(errors(amount), []);
        }
        for amount in [json!(-1), json!("150%"), json!("some")] {
            assert_eq!(errors(amount)[0].field, "spec.minAvailable");
        }
    }

    #[test]
    fn conditions_are_complete() {
        let errors = |condition: Value| {
            let errors =
                validate_status(&json!({"status": {"conditions": [condition]}}), &json!({}));
            errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
        };
        let time = "2024-01-02T03:04:05Z";
        let full =
            json!({"type": "A", "status": "True", "reason": "R", "lastTransitionTime": time});
        assert!(errors(full).is_empty());
        let missing = ["status", "lastTransitionTime", "reason"];
        let missing = missing.map(|field| format!("status.conditions[0].{field}"));
        assert_eq!(errors(json!({"type": "A"})), missing);
    }
}
