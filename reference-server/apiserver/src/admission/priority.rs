//! Priorities: the class of a pod sets its priority and its preemption policy.

use kubeproof_apimachinery::object::Object as _;
use serde_json::{Value, json};

use super::{Attributes, Decision, Operation, Plugin, decided};
use crate::registry::builtin::cluster::SYSTEM_CLASSES;

const GROUP: &str = "scheduling.k8s.io";

/// The policy of a pod without a class.
const DEFAULT_POLICY: &str = "PreemptLowerPriority";

/// Sets the priorities of pods, and permits one default class.
pub(super) struct Priority;

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        let is_write = matches!(request.operation, Operation::Create | Operation::Update);
        is_write && (request.is_core("pods") || is_class(request))
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        match request.old {
            _ if is_class(&request) => decided(Ok(())),
            Some(old) => {
                keep(object, old);
                decided(Ok(()))
            }
            None => {
                let completed = complete_pod(object, &classes(&request));
                decided(completed.map_err(|why| request.forbidden(object, &why)))
            }
        }
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        if !is_class(&request) {
            return decided(Ok(()));
        }
        let why = check_class(object, request.old.is_none(), &classes(&request));
        decided(why.map_or(Ok(()), |why| Err(request.forbidden(object, &why))))
    }
}

fn is_class(request: &Attributes<'_>) -> bool {
    request.ty.group == GROUP && request.ty.plural == "priorityclasses"
}

fn classes(request: &Attributes<'_>) -> Vec<Value> {
    request.context.objects(GROUP, "priorityclasses", None)
}

/// Sets the priority of a new pod. Returns the reason if its class does not exist, or its fields
/// differ from those of its class.
fn complete_pod(pod: &mut Value, classes: &[Value]) -> Result<(), String> {
    let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if name.is_empty() {
        default_class(classes)
    } else {
        let class = classes.iter().find(|class| class.meta("name") == name);
        Some(class.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
    };
    let value = class.map_or(0, |class| class["value"].as_i64().unwrap_or_default());
    let policy = match class {
        None => json!(DEFAULT_POLICY),
        Some(class) => class["preemptionPolicy"].clone(),
    };
    let spec = &mut pod["spec"];
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != value) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {value} from the given PriorityClass name"
        ));
    }
    if let (Some(given), Some(policy)) = (spec["preemptionPolicy"].as_str(), policy.as_str())
        && given != policy
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    if let Some(class) = class {
        spec["priorityClassName"] = class.meta("name").into();
    }
    spec["priority"] = value.into();
    if !policy.is_null() {
        spec["preemptionPolicy"] = policy;
    }
    Ok(())
}

/// Copies the priority of a pod if an update omits it.
fn keep(new: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        let (now, before) = (&new["spec"][field], &old["spec"][field]);
        if now.is_null() && !before.is_null() {
            new["spec"][field] = before.clone();
        }
    }
}

/// Returns why a class cannot be the default one.
fn check_class(class: &Value, is_new: bool, classes: &[Value]) -> Option<String> {
    if class["globalDefault"] != true {
        return None;
    }
    let name = default_class(classes)?.meta("name");
    (is_new || name != class.meta("name")).then(|| {
        format!("PriorityClass {name} is already marked as default. Only one default can exist")
    })
}

/// Returns the default class. If there are several, the lowest one counts.
fn default_class(classes: &[Value]) -> Option<&Value> {
    let defaults = classes.iter().filter(|class| class["globalDefault"] == true);
    defaults.min_by_key(|class| class["value"].as_i64())
}

/// Returns the classes that each cluster has.
pub(crate) fn system_classes() -> [Value; 2] {
    let class = |name: &str, value: i64, description: &str| {
        json!({
            "kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1",
            "metadata": {"name": name}, "value": value, "description": description,
            "preemptionPolicy": DEFAULT_POLICY,
        })
    };
    [
        class(
            SYSTEM_CLASSES[0],
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            SYSTEM_CLASSES[1],
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to \
             another node if necessary.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, value: i64, is_default: bool) -> Value {
        json!({
            "metadata": {"name": name}, "value": value, "globalDefault": is_default,
            "preemptionPolicy": "Never",
        })
    }

    fn completed(spec: &Value, classes: &[Value]) -> Result<Value, String> {
        let mut pod = json!({"spec": spec});
        complete_pod(&mut pod, classes).map(|()| pod["spec"].take())
    }

    #[test]
    fn a_class_sets_the_priority() {
        let classes = [class("high", 1000, false), class("low", 10, false)];
        let spec = completed(&json!({"priorityClassName": "high"}), &classes);
        let expected =
            json!({"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"});
        assert_eq!(spec, Ok(expected));
        let error = completed(&json!({"priorityClassName": "other"}), &classes).unwrap_err();
        assert_eq!(error, "no PriorityClass with name other was found");
        let given = json!({"priorityClassName": "low", "priority": 5});
        let error = completed(&given, &classes).unwrap_err();
        assert!(error.starts_with("the integer value of priority (5) must not"), "{error}");
        let given = json!({"priorityClassName": "low", "preemptionPolicy": "PreemptLowerPriority"});
        let error = completed(&given, &classes).unwrap_err();
        assert!(error.contains("(PreemptLowerPriority)"), "{error}");
    }

    #[test]
    fn a_pod_without_a_class_gets_the_default_one() {
        let none = json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"});
        assert_eq!(completed(&json!({}), &[class("a", 5, false)]), Ok(none));
        let classes = [class("b", 7, true), class("a", 5, true)];
        let spec = completed(&json!({}), &classes).expect("a default");
        assert_eq!((&spec["priorityClassName"], &spec["priority"]), (&json!("a"), &json!(5)));
    }

    #[test]
    fn one_class_is_the_default() {
        let classes = [class("a", 5, true)];
        let error = check_class(&class("b", 1, true), true, &classes).expect("a second default");
        assert!(error.starts_with("PriorityClass a is already marked as default."), "{error}");
        assert_eq!(check_class(&classes[0], false, &classes), None, "the same class");
        assert_eq!(check_class(&class("b", 1, false), true, &classes), None);
    }

    #[test]
    fn updates_keep_the_priority() {
        let mut new = json!({"spec": {"preemptionPolicy": "Never"}});
        keep(&mut new, &json!({"spec": {"priority": 4, "preemptionPolicy": "Other"}}));
        assert_eq!(new["spec"], json!({"priority": 4, "preemptionPolicy": "Never"}));
    }
}
