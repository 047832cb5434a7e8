//! The group `policy/v1`: budgets of how many pods may be evicted at once.

use std::sync::Arc;

use serde_json::Value;

use super::columns::{Cell, age, column};
use super::{BuiltinType, Hooks, restore};
use crate::faults::Faults;
use crate::schema::build::{definitions, int_or_string, int32, int64, list, map, object, string, time};
use crate::schema::meta::{label_selector, with_type_meta};
use crate::schema::{FieldError, Schema};

definitions! {
    "io.k8s.api.policy.v1"

    pod_disruption_budget_spec PodDisruptionBudgetSpec {
        maxUnavailable: int_or_string(), minAvailable: int_or_string(), selector: label_selector(),
        unhealthyPodEvictionPolicy: string(),
    }
    pod_disruption_budget_status PodDisruptionBudgetStatus {
        conditions: list(condition()).merge_by("type"), always currentHealthy: int32(),
        always desiredHealthy: int32(), disruptedPods: map(time()), always disruptionsAllowed: int32(),
        always expectedPods: int32(), observedGeneration: int64(),
    }
    condition PodDisruptionBudgetCondition {
        need lastTransitionTime: time(), need message: string(), observedGeneration: int64(),
        need reason: string(), need status: string(), need type: string(),
    }
}

/// The types of the group.
pub(super) fn types() -> Vec<BuiltinType> {
    let schema = with_type_meta(object("io.k8s.api.policy.v1.PodDisruptionBudget"))
        .field("spec", pod_disruption_budget_spec().or_empty())
        .field("status", pod_disruption_budget_status().or_empty());
    vec![BuiltinType {
        short_names: &["pdb"],
        has_status: true,
        has_generation: true,
        columns: vec![
            column("Min Available", "string", Cell::Pointer("/spec/minAvailable")),
            column("Max Unavailable", "string", Cell::Pointer("/spec/maxUnavailable")),
            column("Allowed Disruptions", "integer", Cell::Pointer("/status/disruptionsAllowed")),
            age(),
        ],
        hooks: Hooks {
            validate,
            prepare_create: |budget, _| restore(budget, &Value::Null, "status"),
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

fn validate(budget: &Value, _: Faults) -> Vec<FieldError> {
    let spec = &budget["spec"];
    if spec["minAvailable"].is_null() || spec["maxUnavailable"].is_null() {
        return Vec::new();
    }
    let why = "minAvailable and maxUnavailable cannot be both set";
    vec![FieldError::invalid("spec", spec, why)]
}
