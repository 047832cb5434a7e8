//! The rules of the status and its conditions.

use kubeproof_cases::rule::{Rule, SchemaSet};
use rstest::rstest;
use serde_json::{Value, json};

use super::{breaking, published};

#[rstest]
#[case(json!(["type", "status", "lastTransitionTime", "reason", "message"]), 0)]
#[case(json!(["type"]), 4)]
#[case(json!([]), 4)]
fn conditions_require_their_members(#[case] required: Value, #[case] broken: usize) {
    let conditions = json!({"type": "array", "items": {"type": "object", "required": required,
        "properties": {"reason": {"type": "string", "minLength": 1}}}});
    let published = published(&json!({}), &json!({"conditions": conditions}));
    let rules = [
        Rule::ConditionsRequireTypeAndStatus,
        Rule::ConditionsRequireTransitionTime,
        Rule::ConditionsRequireReason,
        Rule::ConditionsRequireMessage,
    ];
    let found =
        rules.iter().flat_map(|rule| published.view(SchemaSet::Crds).findings(*rule)).count();
    assert_eq!(found, broken);
}

#[rstest]
#[case(
    Rule::ConditionsAreLists,
    json!({"conditions": {"type": "array", "items": {"type": "string"}}}),
    &["conditions"]
)]
#[case(
    Rule::ConditionsAreLists,
    json!({"conditions": {"type": "array", "items": {"type": "object"}}}),
    &[]
)]
#[case(
    Rule::ConditionsAreLists,
    json!({"conditions": {"type": "object", "items": {"type": "object"}}}),
    &["conditions"]
)]
#[case(Rule::ConditionsAreLists, json!({"others": {"type": "string"}}), &[])]
#[case(
    Rule::ConditionsAtTop,
    json!({"conditions": {}, "inner": {"properties": {"conditions": {}, "other": {}}}}),
    &["inner.conditions"]
)]
#[case(
    Rule::ConditionsAtTop,
    json!({"parts": {"type": "array", "items": {"properties": {"conditions": {}}}}}),
    &[]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    }),
    &[]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({"conditions": {"x-kubernetes-patch-merge-key": "type"}}),
    &[]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {"x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["type"]},
    }),
    &["conditions"]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    }),
    &["conditions"]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type", "name"],
        },
    }),
    &["conditions"]
)]
#[case(Rule::ConditionsMapByType, json!({"others": {}}), &[])]
#[case(
    Rule::NoPhase,
    json!({"phase": {}, "other": {}, "inner": {"properties": {"phase": {}}}}),
    &["phase"]
)]
#[case(
    Rule::StatusHoldsNoObjects,
    json!({"a": {"properties": {"metadata": {"type": "object"}, "spec": {}}}}),
    &["a"]
)]
#[case(
    Rule::StatusHoldsNoObjects,
    json!({"a": {"properties": {"metadata": {"type": "string"}, "spec": {}}}}),
    &[]
)]
#[case(
    Rule::StatusHoldsNoObjects,
    json!({"a": {"properties": {"metadata": {"type": "object"}}}}),
    &[]
)]
fn a_rule_of_the_status_ignores_the_spec(
    #[case] rule: Rule,
    #[case] status: Value,
    #[case] bad: &[&str],
) {
    assert_eq!(breaking(rule, &json!({}), &status), bad);
    assert_eq!(breaking(rule, &status, &json!({})), [""; 0], "the spec is the user's");
}

#[rstest]
#[case::good(json!({"minLength": 1}), json!({}), 0)]
#[case::a_message_of_any_length(json!({"minLength": 1}), json!({"minLength": 0}), 0)]
#[case::one_of_some(json!({"enum": ["Ready"]}), json!({}), 0)]
#[case::of_a_form(json!({"pattern": "^[A-Z]"}), json!({}), 0)]
#[case::an_empty_reason(json!({"minLength": 0}), json!({}), 1)]
#[case::no_empty_message(json!({"minLength": 1}), json!({"minLength": 1}), 1)]
#[case::both(json!({}), json!({"minLength": 1}), 2)]
fn conditions_need_a_reason_and_allow_an_empty_message(
    #[case] reason: Value,
    #[case] message: Value,
    #[case] broken: usize,
) {
    let condition = json!({
        "type": "object", "required": ["reason", "message"],
        "properties": {"reason": reason, "message": message},
    });
    let status = json!({"conditions": {"type": "array", "items": condition}});
    let rules = [Rule::ConditionsRequireReason, Rule::ConditionsRequireMessage];
    assert_eq!(rules.iter().flat_map(|rule| breaking(*rule, &json!({}), &status)).count(), broken);
}

#[rstest]
#[case("type", json!({"type": "string"}), false)]
#[case("type", json!({"type": "integer"}), true)]
#[case("message", json!({"type": "object"}), true)]
fn the_members_of_conditions_are_strings(
    #[case] member: &str,
    #[case] schema: Value,
    #[case] bad: bool,
) {
    let text = json!({"type": "string"});
    let mut members = json!({
        "type": text, "status": text, "lastTransitionTime": text, "reason": text, "message": text,
    });
    members[member] = schema;
    let status = json!({
        "conditions": {"type": "array", "items": {"type": "object", "properties": members}},
    });
    assert_eq!(breaking(Rule::ConditionsAreStandard, &json!({}), &status).len(), usize::from(bad));
    members.as_object_mut().expect("an object").remove(member);
    let status = json!({
        "conditions": {"type": "array", "items": {"type": "object", "properties": members}},
    });
    assert_eq!(
        breaking(Rule::ConditionsAreStandard, &json!({}), &status).len(),
        1,
        "without {member}"
    );
}
