//! Finalizers of objects.

use kubeproof_apimachinery::object::Object as _;
use serde_json::{Value, json};

/// Removes a finalizer from an object.
pub(crate) fn remove(object: &mut Value, finalizer: &str) {
    let mut finalizers = object.meta_list("finalizers");
    finalizers.retain(|name| name != finalizer);
    if finalizers.is_empty() {
        object.unset_meta("finalizers");
    } else {
        object.set_meta("finalizers", json!(finalizers));
    }
}
