//! The runtime class of a pod sets its overhead and where it may run.

use kubeproof_apimachinery::object::Object as _;
use serde_json::Value;

use super::resources::parse;
use super::tolerations::merged;
use super::{Attributes, Decision, Operation, Plugin, decided};

/// Completes pods with the values of their runtime class.
pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create && request.is_core("pods")
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        let class = find(&request, object);
        let completed = class.and_then(|class| match class {
            Some(class) => complete(object, &class),
            None => Ok(()),
        });
        decided(completed.map_err(|why| request.forbidden(object, &why)))
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        let checked = find(&request, object).and_then(|class| check(object, class.as_ref()));
        decided(checked.map_err(|why| request.forbidden(object, &why)))
    }
}

/// Returns the class of a pod, or none if it names none.
fn find(request: &Attributes<'_>, pod: &Value) -> Result<Option<Value>, String> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let classes = request.context.objects("node.k8s.io", "runtimeclasses", None);
    let found = classes.into_iter().find(|class| class.meta("name") == name);
    found.map(Some).ok_or_else(|| format!("pod rejected: RuntimeClass {name:?} not found"))
}

/// Sets the overhead, the node selector and the tolerations of a pod.
fn complete(pod: &mut Value, class: &Value) -> Result<(), String> {
    let fixed = &class["overhead"]["podFixed"];
    if fixed.is_object() {
        if has_overhead(pod) && !is_same(&pod["spec"]["overhead"], fixed) {
            return Err(WRONG_OVERHEAD.to_owned());
        }
        pod["spec"]["overhead"] = fixed.clone();
    }
    let scheduling = &class["scheduling"];
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let given = &pod["spec"]["nodeSelector"][key];
        if !given.is_null() && given != value {
            let (given, value) = (given.as_str(), value.as_str());
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; \
                 pod.spec.nodeSelector[{key}] = {}",
                value.unwrap_or_default(),
                given.unwrap_or_default()
            ));
        }
        pod["spec"]["nodeSelector"][key] = value.clone();
    }
    if let Some(added) = scheduling["tolerations"].as_array() {
        let given = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        pod["spec"]["tolerations"] = merged(&given, added).into();
    }
    Ok(())
}

const WRONG_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Checks that the overhead of a pod is that of its class.
fn check(pod: &Value, class: Option<&Value>) -> Result<(), String> {
    let fixed = class.map_or(&Value::Null, |class| &class["overhead"]["podFixed"]);
    if fixed.is_object() {
        let is_right = is_same(&pod["spec"]["overhead"], fixed);
        return if is_right { Ok(()) } else { Err(WRONG_OVERHEAD.to_owned()) };
    }
    if pod["spec"]["overhead"].is_null() {
        return Ok(());
    }
    Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        .to_owned())
}

fn has_overhead(pod: &Value) -> bool {
    pod["spec"]["overhead"].as_object().is_some_and(|overhead| !overhead.is_empty())
}

/// Returns whether two lists have the same amounts, however they are written.
fn is_same(a: &Value, b: &Value) -> bool {
    let amounts = |list: &Value| {
        let amounts = parse(list).into_iter().map(|(name, amount)| (name, amount.nanos()));
        amounts.collect::<Vec<_>>()
    };
    amounts(a) == amounts(b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class() -> Value {
        json!({
            "overhead": {"podFixed": {"cpu": "100m"}},
            "scheduling": {
                "nodeSelector": {"runtime": "small"}, "tolerations": [{"key": "small"}],
            },
        })
    }

    #[test]
    fn a_class_completes_a_pod() {
        let mut pod = json!({"spec": {"nodeSelector": {"disk": "fast"}}});
        complete(&mut pod, &class()).expect("a valid pod");
        let expected = json!({
            "nodeSelector": {"disk": "fast", "runtime": "small"}, "overhead": {"cpu": "100m"},
            "tolerations": [{"key": "small"}],
        });
        assert_eq!(pod["spec"], expected);
        assert_eq!(check(&pod, Some(&class())), Ok(()));
        assert!(check(&pod, None).is_err());
    }

    #[test]
    fn a_pod_cannot_contradict_its_class() {
        let mut pod = json!({"spec": {"overhead": {"cpu": "0.1"}}});
        assert_eq!(complete(&mut pod, &class()), Ok(()));
        let mut pod = json!({"spec": {"overhead": {"cpu": "1"}}});
        assert_eq!(complete(&mut pod, &class()), Err(WRONG_OVERHEAD.to_owned()));
        let mut pod = json!({"spec": {"nodeSelector": {"runtime": "large"}}});
        let why = complete(&mut pod, &class()).unwrap_err();
        assert!(why.ends_with("pod.spec.nodeSelector[runtime] = large"), "{why}");
    }
}
