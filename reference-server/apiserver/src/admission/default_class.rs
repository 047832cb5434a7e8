//! The default storage class of claims, and the default class of ingresses, that name none.

use std::cmp::Reverse;

use kubeproof_apimachinery::object::Object as _;
use serde_json::Value;

use super::{Attributes, Decision, Operation, Plugin, decided};

/// The annotations of the default class. The second one is that of old clusters.
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The annotation of the default class of ingresses.
const IS_DEFAULT_INGRESS: &str = "ingressclass.kubernetes.io/is-default-class";
/// The annotation of old ingresses with the name of their class.
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
/// The annotation of old claims with the name of their class.
pub(super) const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

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

/// Completes ingresses with the default class.
pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create
            && request.ty.group == "networking.k8s.io"
            && request.ty.plural == "ingresses"
            && request.info.subresource.is_empty()
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        let classes = request.context.objects("networking.k8s.io", "ingressclasses", None);
        complete_ingress(object, &classes);
        decided(Ok(()))
    }
}

/// Sets the class of a new claim that names none.
fn complete_claim(claim: &mut Value, classes: &[Value]) {
    let names_class =
        !claim["spec"]["storageClassName"].is_null() || !annotation(claim, CLASS).is_null();
    if let Some(class) = default_class(classes, &IS_DEFAULT).filter(|_| !names_class) {
        claim["spec"]["storageClassName"] = class.meta("name").into();
    }
}

/// Sets the class of a new ingress that names none.
fn complete_ingress(ingress: &mut Value, classes: &[Value]) {
    let names_class = !ingress["spec"]["ingressClassName"].is_null()
        || !annotation(ingress, INGRESS_CLASS).is_null();
    if let Some(class) = default_class(classes, &[IS_DEFAULT_INGRESS]).filter(|_| !names_class) {
        ingress["spec"]["ingressClassName"] = class.meta("name").into();
    }
}

/// Returns the newest class with one of the annotations.
fn default_class<'a>(classes: &'a [Value], keys: &[&str]) -> Option<&'a Value> {
    let is_default = |class: &&Value| keys.iter().any(|key| annotation(class, key) == "true");
    let age = |class: &&Value| {
        (Reverse(class.meta("creationTimestamp").to_owned()), class.meta("name").to_owned())
    };
    classes.iter().filter(is_default).min_by_key(age)
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

    #[rstest]
    #[case(json!({"spec": {}}), Some("c"))]
    #[case(json!({"spec": {"ingressClassName": "a"}}), Some("a"))]
    #[case(json!({"metadata": {"annotations": {INGRESS_CLASS: "x"}}, "spec": {}}), None)]
    fn the_default_completes_ingresses(#[case] mut ingress: Value, #[case] expected: Option<&str>) {
        let annotations = json!({IS_DEFAULT_INGRESS: "true"});
        let class = json!({"metadata": {"name": "c", "annotations": annotations}});
        complete_ingress(&mut ingress, &[class]);
        assert_eq!(ingress["spec"]["ingressClassName"].as_str(), expected);
    }
}
