//! The labels of a new pod that its affinities and spread constraints name by their keys.

use serde_json::{Value, json};

/// Adds the values of the labels to the selectors. Other label keys stay without effect.
pub(super) fn select(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let spec = &mut pod["spec"];
    for constraint in list(spec, "topologySpreadConstraints") {
        add(constraint, "matchLabelKeys", "In", &labels);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get_mut("affinity").and_then(|all| all.get_mut(kind)) else {
            continue;
        };
        for term in list(affinity, "requiredDuringSchedulingIgnoredDuringExecution") {
            add_both(term, &labels);
        }
        for weighted in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                add_both(term, &labels);
            }
        }
    }
}

fn list<'v>(object: &'v mut Value, field: &str) -> impl Iterator<Item = &'v mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

fn add_both(term: &mut Value, labels: &Value) {
    add(term, "matchLabelKeys", "In", labels);
    add(term, "mismatchLabelKeys", "NotIn", labels);
}

fn add(term: &mut Value, field: &str, operator: &str, labels: &Value) {
    let keys = term[field].as_array().cloned().unwrap_or_default();
    let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else {
        return;
    };
    let label = |key: &Value| Some((key.clone(), labels.get(key.as_str()?)?.clone()));
    let new: Vec<Value> = keys
        .iter()
        .filter_map(label)
        .map(|(key, value)| json!({"key": key, "operator": operator, "values": [value]}))
        .collect();
    if new.is_empty() {
        return;
    }
    let all = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    all.as_array_mut().into_iter().for_each(|all| all.extend(new.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_pod_become_requirements() {
        let term = json!({
            "labelSelector": {}, "matchLabelKeys": ["a", "absent"], "mismatchLabelKeys": ["b"],
        });
        let mut pod = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}},
            "spec": {
                "topologySpreadConstraints": [{"labelSelector": {}, "matchLabelKeys": ["a"]}],
                "affinity": {
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
                    "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                        {"podAffinityTerm": term},
                    ]},
                },
            },
        });
        select(&mut pod);
        let same = json!({"key": "a", "operator": "In", "values": ["1"]});
        let other = json!({"key": "b", "operator": "NotIn", "values": ["2"]});
        let of = |pointer: &str| pod.pointer(pointer).unwrap()["labelSelector"].clone();
        let spread = of("/spec/topologySpreadConstraints/0");
        assert_eq!(spread, json!({"matchExpressions": [same]}));
        let both = json!({"matchExpressions": [same, other]});
        let affinity =
            "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
        assert_eq!(of(affinity), both);
        let anti = "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution";
        assert_eq!(of(&format!("{anti}/0/podAffinityTerm")), both);
    }

    #[test]
    fn a_term_without_a_selector_stays() {
        let spread = json!([{"matchLabelKeys": ["a"]}]);
        let mut pod = json!({
            "metadata": {"labels": {"a": "1"}}, "spec": {"topologySpreadConstraints": spread},
        });
        let before = pod.clone();
        select(&mut pod);
        assert_eq!(pod, before);
    }
}
