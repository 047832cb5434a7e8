//! The scopes of a quota: the pods that it counts.

use serde_json::Value;

use super::usage::Evaluator;
use crate::admission::resources::{self, Side};

/// Returns whether an object is in all scopes of a quota. Only pods have scopes.
pub(super) fn matches(quota: &Value, evaluator: Evaluator<'_>, object: &Value) -> bool {
    let spec = &quota["spec"];
    let scopes = spec["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let selectors = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    let is_pod = evaluator == Evaluator::Pods;
    let mut selected = selectors.map(|selector| is_pod && selects(selector, object));
    let mut in_scopes = scopes.map(|scope| is_pod && has_scope(scope, object));
    in_scopes.all(|matched| matched) && selected.all(|matched| matched)
}

fn has_scope(scope: &str, pod: &Value) -> bool {
    let is_terminating =
        || pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    match scope {
        "Terminating" => is_terminating(),
        "NotTerminating" => !is_terminating(),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => !priority_class(pod).is_empty(),
        "CrossNamespacePodAffinity" => uses_other_namespaces(pod),
        _ => false,
    }
}

fn selects(selector: &Value, pod: &Value) -> bool {
    let scope = selector["scopeName"].as_str().unwrap_or_default();
    if scope != "PriorityClass" {
        return has_scope(scope, pod);
    }
    let class = priority_class(pod);
    let values = selector["values"].as_array().into_iter().flatten();
    let is_listed = values.filter_map(Value::as_str).any(|value| value == class);
    match selector["operator"].as_str() {
        Some("In") => !class.is_empty() && is_listed,
        Some("NotIn") => class.is_empty() || !is_listed,
        Some("DoesNotExist") => class.is_empty(),
        _ => !class.is_empty(),
    }
}

fn priority_class(pod: &Value) -> &str {
    pod["spec"]["priorityClassName"].as_str().unwrap_or_default()
}

/// Returns whether no container has a request or a limit of CPU or memory.
fn is_best_effort(pod: &Value) -> bool {
    let spec = &pod["spec"];
    let lists = ["containers", "initContainers"].into_iter();
    let containers = lists.flat_map(|list| spec[list].as_array().into_iter().flatten());
    let mut parts = containers.chain([spec]);
    parts.all(|part| {
        [Side::Requests, Side::Limits].into_iter().all(|side| {
            let amounts = resources::of_container(part, side);
            let mut relevant = ["cpu", "memory"].into_iter().filter_map(|name| amounts.get(name));
            relevant.all(|amount| amount.nanos() == 0)
        })
    })
}

fn uses_other_namespaces(pod: &Value) -> bool {
    let affinity = &pod["spec"]["affinity"];
    let names_namespace = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|names| !names.is_empty())
            || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let terms = |list: &str| affinity[kind][list].as_array().into_iter().flatten();
        let required = terms("requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = terms("preferredDuringSchedulingIgnoredDuringExecution");
        required.chain(preferred.map(|term| &term["podAffinityTerm"])).any(names_namespace)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({}), json!({}), true)]
    #[case(json!({"scopes": ["BestEffort"]}), json!({}), true)]
    #[case(json!({"scopes": ["NotBestEffort"]}), json!({}), false)]
    #[case(json!({"scopes": ["Terminating"]}), json!({"activeDeadlineSeconds": 5}), true)]
    #[case(
        json!({"scopes": ["BestEffort", "Terminating"]}),
        json!({
            "containers": [{"resources": {"limits": {"cpu": "1"}}}],
            "activeDeadlineSeconds": 5,
        }),
        false
    )]
    #[case(json!({"scopes": ["PriorityClass"]}), json!({"priorityClassName": "high"}), true)]
    fn scopes_select_pods(#[case] spec: Value, #[case] pod: Value, #[case] expected: bool) {
        let quota = json!({"spec": spec});
        assert_eq!(matches(&quota, Evaluator::Pods, &json!({"spec": pod})), expected);
    }

    #[rstest]
    #[case("In", &["high"], "high", true)]
    #[case("In", &["high"], "low", false)]
    #[case("In", &["high"], "", false)]
    #[case("NotIn", &["high"], "low", true)]
    #[case("NotIn", &["high"], "high", false)]
    #[case("Exists", &[], "low", true)]
    #[case("DoesNotExist", &[], "low", false)]
    fn selectors_name_priority_classes(
        #[case] operator: &str,
        #[case] values: &[&str],
        #[case] class: &str,
        #[case] expected: bool,
    ) {
        let selector =
            json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        let quota = json!({"spec": {"scopeSelector": {"matchExpressions": [selector]}}});
        let pod = json!({"spec": {"priorityClassName": class}});
        assert_eq!(matches(&quota, Evaluator::Pods, &pod), expected);
    }

    #[test]
    fn a_quota_with_scopes_counts_only_pods() {
        let quota = json!({"spec": {"scopes": ["NotTerminating"]}});
        assert!(!matches(&quota, Evaluator::Services, &json!({})));
        let term = json!({"namespaces": ["other"]});
        let affinity = json!({"podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term}],
        }});
        let quota = json!({"spec": {"scopes": ["CrossNamespacePodAffinity"]}});
        assert!(matches(&quota, Evaluator::Pods, &json!({"spec": {"affinity": affinity}})));
    }
}
