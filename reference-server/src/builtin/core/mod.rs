//! The core group, `v1`.

mod configmap;
mod namespace;
mod secret;

use super::BuiltinType;

/// The types of the core group.
pub(super) fn types() -> Vec<BuiltinType> {
    vec![configmap::configmaps(), namespace::namespaces(), secret::secrets()]
}
