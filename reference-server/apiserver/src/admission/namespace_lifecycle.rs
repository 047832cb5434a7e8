//! New objects need a namespace that exists and is not being deleted.

use std::sync::Arc;

use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_storage::Stored;

use super::Attributes;
use crate::disabled::DisabledCapabilities;

/// The table of namespaces.
pub(crate) const NAMESPACES: &str = "namespaces";

/// Checks the namespace of a new object; `found` is the stored namespace.
pub(crate) fn check(
    request: Attributes<'_>,
    found: Option<&Arc<Stored>>,
    name: &str,
    disabled: DisabledCapabilities,
) -> Result<(), ApiError> {
    let namespace = request.info.namespace.as_str();
    if !request.ty.namespaced {
        return Ok(());
    }
    match found {
        None if !disabled.namespaces_exist() => Ok(()),
        None => Err(ApiError::not_found(Subject { group: "", word: NAMESPACES }, namespace)),
        Some(found) if found.facts.deleting => {
            Err(ApiError::namespace_terminating(request.ty.resource(), name, namespace))
        }
        Some(_) => Ok(()),
    }
}
