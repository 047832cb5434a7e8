//! The default storage class of claims that name none.

use std::cmp::Reverse;

use kubeproof_apimachinery::object::Object as _;
use serde_json::Value;

use super::{Attributes, Decision, Operation, Plugin, decided};

/// The annotations of the default class. The second one is that of old clusters.
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The annotation of old claims with the name of their class.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Completes claims with the default class.
pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create && request.is_core("persistentvolumeclaims")
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        let classes = request.context.objects("storage.k8s.io", "storageclasses", None);
        complete_claim(object, &classes);
        decided(Ok(()))
    }
}

/// Sets the class of a new claim that names none. The newest default class counts.
fn complete_claim(claim: &mut Value, classes: &[Value]) {
    let names_class =
        !claim["spec"]["storageClassName"].is_null() || !annotation(claim, CLASS).is_null();
    let is_default = |class: &&Value| IS_DEFAULT.iter().any(|key| annotation(class, key) == "true");
    let age = |class: &&Value| {
        (Reverse(class.meta("creationTimestamp").to_owned()), class.meta("name").to_owned())
    };
    let default = classes.iter().filter(is_default).min_by_key(age);
    if let Some(class) = default.filter(|_| !names_class) {
        claim["spec"]["storageClassName"] = class.meta("name").into();
    }
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a Value {
    &object["metadata"]["annotations"][key]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"spec": {}}), Some("c"))]
    #[case(json!({"spec": {"storageClassName": ""}}), Some(""))]
    #[case(json!({"spec": {"storageClassName": "a"}}), Some("a"))]
    #[case(json!({"metadata": {"annotations": {CLASS: "x"}}, "spec": {}}), None)]
    fn the_newest_default_completes_claims(
        #[case] mut claim: Value,
        #[case] expected: Option<&str>,
    ) {
        let class = |name: &str, time: &str, key: &str, value: &str| {
            json!({"metadata": {
                "name": name, "creationTimestamp": time, "annotations": {key: value},
            }})
        };
        let classes = [
            class("d", "2026-01-02T00:00:00Z", IS_DEFAULT[1], "true"),
            class("c", "2026-01-02T00:00:00Z", IS_DEFAULT[0], "true"),
            class("a", "2026-01-01T00:00:00Z", IS_DEFAULT[0], "true"),
            class("b", "2026-01-03T00:00:00Z", IS_DEFAULT[0], "false"),
        ];
        complete_claim(&mut claim, &classes);
        assert_eq!(claim["spec"]["storageClassName"].as_str(), expected);
        let mut other = json!({"spec": {}});
        complete_claim(&mut other, &classes[3..]);
        assert_eq!(other, json!({"spec": {}}), "there is no default");
    }
}
