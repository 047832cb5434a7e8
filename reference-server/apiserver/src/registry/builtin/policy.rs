//! The group `policy/v1`: disruption budgets, which limit evictions.

use serde_json::Value;

use super::apps::wrong_amount;
use super::checks::conditions;
use super::data::resource;
use super::{BuiltinType, Hooks, NameRule, restore};
use kubeproof_apimachinery::table::column::{Cell, age, column};

use kubeproof_apimachinery::schema::{FieldError, Path};

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
    let root = Path::Root;
    let status = root.field("status");
    let list = budget["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions(list, status.field("conditions"))
}

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
