//! The rules of definitions.

use kubeproof_cases::rule::{Rule, SchemaSet};
use rstest::rstest;
use serde_json::{Value, json};

use super::{changed, version};

#[rstest]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "example"}}), true)]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "a.k8s.io"}}), true)]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "kubernetes.io"}}), true)]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "notk8s.io"}}), false)]
#[case(
    Rule::GroupsQualified,
    json!({
        "spec": {"group": "a.k8s.io"},
        "metadata": {"annotations": {"api-approved.kubernetes.io": "https://example.com"}},
    }),
    false
)]
#[case(Rule::KindsNotControllers, json!({"spec": {"names": {"kind": "WidgetController"}}}), true)]
#[case(Rule::KindsNotControllers, json!({"spec": {"names": {"kind": "ControllerWidget"}}}), false)]
#[case(
    Rule::NothingBesideSpecAndStatus,
    version(&json!({}), &json!({"spec": {}, "status": {}, "other": {}})),
    true
)]
#[case(
    Rule::NothingBesideSpecAndStatus,
    version(&json!({}), &json!({"spec": {}, "other": {}})),
    false
)]
#[case(
    Rule::NothingBesideSpecAndStatus,
    version(&json!({}), &json!({"status": {}, "other": {}})),
    false
)]
#[case(Rule::StatusIsSubresource, version(&json!({}), &json!({"status": {}})), true)]
#[case(Rule::StatusIsSubresource, version(&json!({"status": {}}), &json!({"spec": {}})), true)]
#[case(Rule::StatusIsSubresource, version(&json!({}), &json!({"spec": {}})), false)]
#[case(
    Rule::DesiredStateInSpec,
    version(&json!({}), &json!({"kind": {}, "status": {}, "other": {}})),
    true
)]
#[case(
    Rule::DesiredStateInSpec,
    version(&json!({}), &json!({"status": {}, "spec": {}, "other": {}})),
    false
)]
#[case(
    Rule::DesiredStateInSpec,
    version(&json!({}), &json!({"status": {}, "metadata": {}})),
    false
)]
#[case(Rule::DesiredStateInSpec, version(&json!({}), &json!({"other": {}})), false)]
fn definitions_that_break_a_rule_are_found(
    #[case] rule: Rule,
    #[case] change: Value,
    #[case] bad: bool,
) {
    assert_eq!(changed(&json!({})).view(SchemaSet::Crds).findings(rule), []);
    assert_eq!(changed(&change).view(SchemaSet::Crds).findings(rule).len(), usize::from(bad));
}
