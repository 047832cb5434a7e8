//! Bodies of subresources, which are not objects of a resource.

use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::object;
use kubeproof_apimachinery::schema::meta::with_type_meta;

/// `v1` Binding, the body of `pods/binding`.
pub(crate) fn binding() -> Schema {
    with_type_meta(object("io.k8s.api.core.v1.Binding"))
        .need("target", super::core::object_reference())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_names_its_target_by_an_object() {
        assert!(binding().check_types(&json!({"target": {"name": "node"}})).is_ok());
        assert!(binding().check_types(&json!({"target": "node"})).is_err());
    }
}
