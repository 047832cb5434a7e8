//! The group `policy/v1`: disruption budgets, which limit evictions.

use std::sync::Arc;

use serde_json::Value;

use super::{BuiltinType, Hooks, restore};
use kubeproof_apimachinery::table::column::{Cell, age, column};

use kubeproof_apimachinery::schema::build::{
    definitions, int_or_string, int32, int64, list, map, object, string, time,
};
use kubeproof_apimachinery::schema::meta::{label_selector, with_type_meta};
use kubeproof_apimachinery::schema::{FieldError, Schema};

definitions! {
    "io.k8s.api.policy.v1"

    pod_disruption_budget_spec PodDisruptionBudgetSpec {
        maxUnavailable: int_or_string(), minAvailable: int_or_string(), selector: label_selector(),
        unhealthyPodEvictionPolicy: string(),
    }
    pod_disruption_budget_status PodDisruptionBudgetStatus {
        conditions: list(condition()).merge_by("type"), always currentHealthy: int32(),
        always desiredHealthy: int32(), disruptedPods: map(time()),
        always disruptionsAllowed: int32(),
        always expectedPods: int32(), observedGeneration: int64(),
    }
    condition PodDisruptionBudgetCondition {
        need lastTransitionTime: time(), need message: string(), observedGeneration: int64(),
        need reason: string(), need status: string(), need type: string(),
    }
}

pub(super) fn types() -> Vec<BuiltinType> {
    let schema = with_type_meta(object("io.k8s.api.policy.v1.PodDisruptionBudget"))
        .field("spec", pod_disruption_budget_spec().or_empty())
        .field("status", pod_disruption_budget_status().or_empty());
    vec![BuiltinType {
        has_status: true,
        has_generation: true,
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
        ..BuiltinType::namespaced(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            Arc::new(schema),
        )
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
