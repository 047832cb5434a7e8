//! `namespaces`: they start Active, and are removed when they have no more finalizers.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, NameRule, Subresource, restore};
use crate::registry::strategy::Strategy;
use kubeproof_apimachinery::table::column::{Cell, age, column};

/// The label with the name of the namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn namespaces() -> BuiltinType {
    BuiltinType {
        subresources: &[Subresource {
            name: "finalize",
            verbs: &["update"],
            group: "",
            version: "v1",
            kind: "Namespace",
            part: None,
        }],
        name_rule: NameRule::DnsLabel,
        field_labels: &[FieldLabel { label: "status.phase", pointer: "/status/phase", absent: "" }],
        columns: vec![column("Status", "string", Cell::Pointer("/status/phase")), age()],
        strategy: || Arc::new(NamespaceStrategy),
        hooks: Hooks {
            default: carry_name_label,
            prepare_create,
            prepare_update,
            is_new_generation: |_, _| false,
            ..Hooks::NONE
        },
        has_generation: false,
        ..resource("", "v1", "namespaces")
    }
}

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
    fn an_update_cannot_finalize() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let mut new = json!({"spec": {}});
        prepare_update(&mut new, &old);
        assert_eq!(new, old);
    }
}
