//! `namespaces`: they start Active, and are removed when they have no more finalizers.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{
    BuiltinType, FieldLabel, Hooks, NameRule, PartHooks, Subresource, restore,
};
use crate::registry::strategy::Strategy;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::object::validation::metadata::finalizer_name;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::table::column::{Cell, age, column};

/// The label with the name of the namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn namespaces() -> BuiltinType {
    BuiltinType {
        subresources: SUBRESOURCES,
        name_rule: NameRule::DnsLabel,
        field_labels: &[FieldLabel { label: "status.phase", pointer: "/status/phase", absent: "" }],
        columns: vec![column("Status", "string", Cell::Pointer("/status/phase")), age()],
        strategy: || Arc::new(NamespaceStrategy),
        hooks: Hooks {
            checks_prefix: true,
            default: |namespace| {
                carry_name_label(namespace);
                if namespace["status"]["phase"].as_str().is_none_or(str::is_empty) {
                    namespace["status"]["phase"] = json!("Active");
                }
            },
            validate: |namespace| finalizer_names(namespace, |_| "spec.finalizers".to_owned()),
            validate_status,
            prepare_create,
            prepare_update,
            is_new_generation: |_, _| false,
            ..Hooks::NONE
        },
        has_generation: false,
        ..resource("", "v1", "namespaces")
    }
}

static SUBRESOURCES: &[Subresource] = &[Subresource {
    name: "finalize",
    verbs: &["update"],
    group: "",
    version: "v1",
    kind: "Namespace",
    part: Some(&FINALIZE),
}];

/// The subresource `finalize`: everything but the status.
static FINALIZE: PartHooks = PartHooks {
    prepare: |new, old| restore(new, old, "status"),
    validate: |new, _| finalizer_names(new, |index| format!("spec.finalizers[{index}]")),
    fields: &[&["metadata"], &["spec"]],
};

/// The namespaces that cannot be deleted.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

#[derive(Debug)]
struct NamespaceStrategy;

impl Strategy for NamespaceStrategy {
    fn check_delete(&self, name: &str) -> Result<(), &'static str> {
        if PROTECTED.contains(&name) { Err("this namespace may not be deleted") } else { Ok(()) }
    }

    fn holds_deletion(&self, namespace: &Value) -> bool {
        namespace
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    }

    fn mark_deleting(&self, namespace: &mut Value) {
        namespace["status"]["phase"] = "Terminating".into();
    }
}

fn carry_name_label(namespace: &mut Value) {
    let name = namespace.pointer("/metadata/name").cloned().unwrap_or_default();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        namespace["metadata"]["labels"][NAME_LABEL] = name;
    }
}

fn prepare_create(namespace: &mut Value) {
    let finalizers = namespace
        .pointer("/spec/finalizers")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if !finalizers.contains(&json!("kubernetes")) {
        namespace["spec"]["finalizers"] =
            finalizers.into_iter().chain([json!("kubernetes")]).collect::<Vec<_>>().into();
    }
    namespace["status"] = json!({"phase": "Active"});
}

/// Returns the errors in the finalizers of the namespace itself.
fn finalizer_names(namespace: &Value, place: impl Fn(usize) -> String) -> Vec<FieldError> {
    let finalizers = namespace["spec"]["finalizers"].as_array().into_iter().flatten();
    let of_one = |(index, name): (usize, &Value)| {
        let whys = finalizer_name(name.as_str().unwrap_or_default());
        whys.into_iter().map(move |why| (index, name.clone(), why)).collect::<Vec<_>>()
    };
    let mistakes = finalizers.enumerate().flat_map(of_one);
    mistakes.map(|(index, name, why)| FieldError::invalid(place(index), &name, &why)).collect()
}

fn validate_status(new: &Value, _: &Value) -> Vec<FieldError> {
    let (phase, when) =
        if new.is_deleting() { ("Terminating", "not empty") } else { ("Active", "empty") };
    if new["status"]["phase"] == phase {
        return Vec::new();
    }
    let why = format!("may only be '{phase}' if `deletionTimestamp` is {when}");
    // kube-apiserver writes the field with a capital letter.
    vec![FieldError::invalid("status.Phase", &new["status"]["phase"], &why)]
}

/// Only `/finalize` can remove a finalizer, and only the server deletes a namespace.
fn prepare_update(new: &mut Value, old: &Value) {
    restore(new, old, "spec");
    restore(new, old, "status");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_begins_active_with_its_finalizer_and_label() {
        let mut namespace = json!({"metadata": {"name": "a"}, "status": {"phase": "Terminating"}});
        carry_name_label(&mut namespace);
        prepare_create(&mut namespace);
        assert_eq!(
            namespace,
            json!({
                "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            })
        );
    }

    #[test]
    fn finalizing_changes_all_but_the_status() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let metadata = json!({"annotations": {"a": "b"}});
        let mut new = json!({"metadata": metadata, "spec": {}, "status": {"phase": "Odd"}});
        (FINALIZE.prepare)(&mut new, &old);
        let expected = json!({"metadata": metadata, "spec": {}, "status": {"phase": "Active"}});
        assert_eq!(new, expected);
    }

    #[test]
    fn finalizers_have_qualified_names() {
        let namespace = json!({"spec": {"finalizers": ["kubernetes", "a.b/c", "odd"]}});
        let errors = (FINALIZE.validate)(&namespace, &namespace);
        assert_eq!(
            errors.iter().map(|error| &*error.field).collect::<Vec<_>>(),
            ["spec.finalizers[2]"]
        );
    }

    #[test]
    fn the_phase_follows_the_deletion() {
        let namespace = |phase: &str| json!({"metadata": {}, "status": {"phase": phase}});
        assert_eq!(validate_status(&namespace("Active"), &Value::Null), []);
        assert_eq!(validate_status(&namespace("Terminating"), &Value::Null).len(), 1);
        let mut deleting = namespace("Active");
        deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(validate_status(&deleting, &Value::Null).len(), 1);
    }

    #[test]
    fn an_update_cannot_finalize() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let mut new = json!({"spec": {}});
        prepare_update(&mut new, &old);
        assert_eq!(new, old);
    }
}
