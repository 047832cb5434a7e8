//! New objects need a namespace that exists and is not being deleted.

use std::sync::Arc;

use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_storage::{Key, Stored};
use serde_json::Value;

use super::{Attributes, Decision, Operation, Plugin, decided};
use crate::config::disabled::DisabledCapabilities;
use crate::registry::ResourceType;

/// The table of namespaces.
pub(crate) const NAMESPACES: &str = "namespaces";

/// Rejects new objects in namespaces that are missing or being deleted.
pub(super) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create && request.info.subresource.is_empty()
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        let Attributes { ty, info, context, .. } = request;
        let found = context.store.get(NAMESPACES, &Key::new("", info.namespace.as_str()));
        let name = request.name(object);
        decided(check((ty, info), found.as_ref(), name, context.disabled_capabilities))
    }
}

/// Checks the namespace of a new object; `found` is the stored namespace.
pub(crate) fn check(
    (ty, info): (&ResourceType, &ResourceInfo),
    found: Option<&Arc<Stored>>,
    name: &str,
    disabled: DisabledCapabilities,
) -> Result<(), ApiError> {
    let namespace = info.namespace.as_str();
    if !ty.namespaced {
        return Ok(());
    }
    match found {
        None if !disabled.namespaces_exist() => Ok(()),
        None => Err(ApiError::not_found(Subject { group: "", word: NAMESPACES }, namespace)),
        Some(found) if found.facts.deleting => {
            Err(ApiError::namespace_terminating(ty.resource(), name, namespace))
        }
        Some(_) => Ok(()),
    }
}
