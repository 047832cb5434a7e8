//! The group `flowcontrol.apiserver.k8s.io/v1`: priority levels and the flows in them.

use serde_json::{Value, json};

use super::checks::statuses::flow_conditions;
use super::data::resource;
use super::{BuiltinType, Hooks, restore};
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::table::column::{Cell, age, column};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![flow_schemas(), priority_levels()]
}

fn flow_schemas() -> BuiltinType {
    BuiltinType {
        columns: vec![
            column(
                "PriorityLevel",
                "string",
                Cell::Pointer("/spec/priorityLevelConfiguration/name"),
            ),
            column(
                "MatchingPrecedence",
                "string",
                Cell::Computed(|schema| number(&schema["spec"]["matchingPrecedence"], "<none>")),
            ),
            column(
                "DistinguisherMethod",
                "string",
                Cell::Pointer("/spec/distinguisherMethod/type"),
            ),
            age(),
            column("MissingPL", "string", Cell::Computed(missing_level)),
        ],
        hooks: Hooks {
            validate: |schema| {
                let precedence = &schema["spec"]["matchingPrecedence"];
                if precedence != 1 || schema["metadata"]["name"] == "exempt" {
                    return Vec::new();
                }
                let why = "only the schema named 'exempt' may have matchingPrecedence 1";
                vec![FieldError::invalid("spec.matchingPrecedence", precedence, why)]
            },
            prepare_update: |new, old| restore(new, old, "status"),
            validate_status: flow_conditions,
            ..Hooks::NONE
        },
        ..resource(GROUP, "v1", "flowschemas")
    }
}

fn priority_levels() -> BuiltinType {
    let limited = |name, field: fn(&Value) -> Value| column(name, "string", Cell::Computed(field));
    BuiltinType {
        columns: vec![
            column("Type", "string", Cell::Pointer("/spec/type")),
            limited("NominalConcurrencyShares", |level| {
                let shares = |part: &str| &level["spec"][part]["nominalConcurrencyShares"];
                let exempt = shares("exempt");
                number(if exempt.is_null() { shares("limited") } else { exempt }, "<none>")
            }),
            limited("Queues", |level| queuing(level, "queues")),
            limited("HandSize", |level| queuing(level, "handSize")),
            limited("QueueLengthLimit", |level| queuing(level, "queueLengthLimit")),
            age(),
        ],
        hooks: Hooks {
            validate: validate_level,
            validate_status: flow_conditions,
            prepare_update: |new, old| restore(new, old, "status"),
            ..Hooks::NONE
        },
        ..resource(GROUP, "v1", "prioritylevelconfigurations")
    }
}

fn validate_level(level: &Value) -> Vec<FieldError> {
    let spec = &level["spec"];
    let mut errors = Vec::new();
    if (spec["type"] == "Exempt") != (level["metadata"]["name"] == "exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid("spec.type", &spec["type"], why));
    }
    let is_limited = spec["type"] == "Limited";
    if is_limited && spec["limited"].is_null() {
        let why = "must not be empty when type is Limited";
        errors.push(FieldError::required("spec.limited", why));
    }
    if spec["type"] == "Exempt" && !spec["limited"].is_null() {
        let why = "must be nil if the type is not Limited";
        errors.push(FieldError::forbidden("spec.limited", why));
    }
    if is_limited && !spec["exempt"].is_null() {
        let why = "must be nil if the type is not Exempt";
        errors.push(FieldError::forbidden("spec.exempt", why));
    }
    let response = &spec["limited"]["limitResponse"];
    let place = "spec.limited.limitResponse.queuing";
    if response["type"] == "Queue" && response["queuing"].is_null() {
        let why = "must not be empty if and only if type is Queue";
        errors.push(FieldError::required(place, why));
    }
    if response["type"] == "Reject" && !response["queuing"].is_null() {
        let why = "must be nil if limited.limitResponse.type is not Limited";
        errors.push(FieldError::forbidden(place, why));
    }
    errors
}

fn queuing(level: &Value, field: &str) -> Value {
    number(&level["spec"]["limited"]["limitResponse"]["queuing"][field], "<none>")
}

fn missing_level(schema: &Value) -> Value {
    let conditions = schema["status"]["conditions"].as_array().into_iter().flatten();
    let dangling = conditions.into_iter().find(|condition| condition["type"] == "Dangling");
    json!(dangling.map_or("?", |condition| condition["status"].as_str().unwrap_or("?")))
}

fn number(value: &Value, absent: &str) -> Value {
    if value.is_i64() { value.clone() } else { json!(absent) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}), &[])]
    #[case(json!({"type": "Limited"}), &["spec.limited"])]
    #[case(json!({"type": "Exempt", "limited": {}}), &["spec.limited"])]
    #[case(
        json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}),
        &["spec.limited.limitResponse.queuing"]
    )]
    fn levels_are_unions(#[case] spec: Value, #[case] expected: &[&str]) {
        let name = if spec["type"] == "Exempt" { "exempt" } else { "a" };
        let errors = validate_level(&json!({"metadata": {"name": name}, "spec": spec}));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_level_is_filled_in() {
        let ty = priority_levels();
        let queue = json!({"type": "Queue", "queuing": {"queues": 0}});
        let mut level = json!({"spec": {"type": "Limited", "limited": {"limitResponse": queue}}});
        ty.schema().prune(&mut level);
        ty.schema().apply_defaults(&mut level);
        assert_eq!(level["spec"]["limited"]["nominalConcurrencyShares"], 30);
        assert_eq!(queuing(&level, "queues"), 64);
    }
}
