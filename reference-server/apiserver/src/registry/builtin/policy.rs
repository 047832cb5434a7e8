//! The group `policy/v1`: disruption budgets, which limit evictions.

use serde_json::Value;

use super::data::resource;
use super::{BuiltinType, Hooks, restore};
use kubeproof_apimachinery::table::column::{Cell, age, column};

use kubeproof_apimachinery::schema::FieldError;

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
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
    if spec["minAvailable"].is_null() || spec["maxUnavailable"].is_null() {
        return Vec::new();
    }
    let why = "minAvailable and maxUnavailable cannot be both set";
    vec![FieldError::invalid("spec", spec, why)]
}
