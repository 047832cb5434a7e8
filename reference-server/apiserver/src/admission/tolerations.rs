//! Tolerations of pods: the default ones, and those of a class.

use serde_json::{Value, json};

use super::{Attributes, Decision, Operation, Plugin, decided};

/// The taints of nodes that a new pod tolerates for some time.
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
/// The seconds that a pod stays on a node with such a taint.
const SECONDS: u64 = 300;

/// Adds tolerations for nodes that fail.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update)
            && request.is_core("pods")
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, _request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        complete(object);
        decided(Ok(()))
    }
}

fn complete(pod: &mut Value) {
    let given = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let missing = TAINTS.into_iter().filter(|taint| !given.iter().any(|one| covers(one, taint)));
    let missing = missing.map(|taint| {
        json!({
            "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
        })
    });
    let missing: Vec<Value> = missing.collect();
    if !missing.is_empty() {
        pod["spec"]["tolerations"] = [given, missing].concat().into();
    }
}

/// Returns whether a toleration is for a taint that removes pods.
fn covers(toleration: &Value, taint: &str) -> bool {
    let text = |field: &str| toleration[field].as_str().unwrap_or_default();
    matches!(text("effect"), "" | "NoExecute") && (text("key").is_empty() || text("key") == taint)
}

/// Returns both lists without the tolerations that others include.
pub(super) fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let by_earlier = merged.iter().any(|other| includes(other, one));
        let by_later = all[index + 1..].iter().any(|other| other != one && includes(other, one));
        if !by_earlier && !by_later {
            merged.push((*one).clone());
        }
    }
    merged
}

/// Returns whether a toleration tolerates everything that another one does.
fn includes(large: &Value, small: &Value) -> bool {
    fn text<'a>(one: &'a Value, field: &str) -> &'a str {
        one[field].as_str().unwrap_or_default()
    }
    let exists = text(large, "operator") == "Exists";
    let has_key =
        text(large, "key") == text(small, "key") || (text(large, "key").is_empty() && exists);
    let effect = text(large, "effect");
    let has_effect = effect.is_empty() || effect == text(small, "effect");
    let has_time = match (large["tolerationSeconds"].as_i64(), small["tolerationSeconds"].as_i64())
    {
        (None, _) => true,
        (Some(large), Some(small)) => large >= small,
        (Some(_), None) => false,
    };
    let has_value = exists
        || (text(small, "operator") != "Exists" && text(large, "value") == text(small, "value"));
    large == small || (has_key && has_effect && has_time && has_value)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(json!([]), 2)]
    #[case::one(json!([{"key": TAINTS[0], "effect": "NoExecute"}]), 2)]
    #[case::another_effect(json!([{"key": TAINTS[0], "effect": "NoSchedule"}]), 3)]
    #[case::every_effect(json!([{"key": TAINTS[0], "operator": "Exists"}]), 2)]
    #[case::everything(json!([{"operator": "Exists"}]), 1)]
    fn a_pod_gets_the_tolerations_that_it_lacks(#[case] given: Value, #[case] count: usize) {
        let mut pod = json!({"spec": {"tolerations": given}});
        complete(&mut pod);
        let after = pod["spec"]["tolerations"].as_array().expect("tolerations");
        assert_eq!(after.len(), count, "{after:?}");
        let again = pod.clone();
        complete(&mut pod);
        assert_eq!(pod, again);
    }

    #[test]
    fn included_tolerations_are_left_out() {
        let small = json!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"});
        let large = json!({"key": "a", "operator": "Exists", "effect": "NoSchedule"});
        let other = json!({"key": "b", "operator": "Exists"});
        let both = merged(&[small.clone(), other.clone()], &[large.clone(), other.clone()]);
        assert_eq!(both, [other.clone(), large.clone()]);
        assert_eq!(merged(from_ref(&large), &[small]), [large]);
        let timed = json!({"key": "b", "operator": "Exists", "tolerationSeconds": 5});
        assert_eq!(merged(&[timed], from_ref(&other)), [other]);
    }
}
