//! The schema of `metadata`, which built-in and custom objects share.

use std::sync::{Arc, LazyLock};

use super::build::{anything, boolean, int64, list, map, object, string, time};
use super::{Kind, Schema};

/// Returns the schema of `ObjectMeta`.
pub fn object_meta() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(build_object_meta()));
    Arc::clone(&SCHEMA)
}

/// Adds the fields of every object: `apiVersion`, `kind` and `metadata`. Limits that the schema
/// declares for `metadata` stay.
pub fn with_type_meta(mut schema: Schema) -> Schema {
    schema.metadata_limits = schema.properties.get("metadata").cloned();
    schema.field("apiVersion", string()).field("kind", string()).field("metadata", object_meta())
}

fn build_object_meta() -> Schema {
    let owner = object("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference")
        .always("apiVersion", string())
        .always("kind", string())
        .always("name", string())
        .always("uid", string())
        .field("controller", boolean())
        .field("blockOwnerDeletion", boolean());
    let managed_fields = object("io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry")
        .field("manager", string())
        .field("operation", string())
        .field("apiVersion", string())
        .field("time", time())
        .field("fieldsType", string())
        .field("fieldsV1", fields_v1())
        .field("subresource", string());
    object("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        .field("name", string())
        .field("generateName", string())
        .field("namespace", string())
        .field("selfLink", string())
        .field("uid", string())
        .field("resourceVersion", string())
        .field("generation", Schema { omit_zero: true, ..int64() })
        .field("creationTimestamp", time())
        .field("deletionTimestamp", time())
        .field("deletionGracePeriodSeconds", int64())
        .field("labels", map(string()))
        .field("annotations", map(string()))
        .field("ownerReferences", list(owner).merge_by("uid"))
        .field("finalizers", list(string()).merged())
        .field("managedFields", list(managed_fields).written_when_empty())
}

fn fields_v1() -> Schema {
    Schema {
        name: Some("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"),
        kind: Some(Kind::Object),
        ..anything()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_of_zero_is_not_written() {
        let mut metadata = serde_json::json!({"generation": 0, "deletionGracePeriodSeconds": 0});
        object_meta().prune(&mut metadata);
        assert_eq!(metadata, serde_json::json!({"deletionGracePeriodSeconds": 0}));
    }

    #[test]
    fn limits_of_names_are_validated_and_not_published() {
        let name = serde_json::json!({"type": "string", "maxLength": 3});
        let metadata = serde_json::json!({"type": "object", "properties": {"name": name}});
        let document = serde_json::json!({"type": "object", "properties": {"metadata": metadata}});
        let schema = with_type_meta(Schema::from_openapi(&document).unwrap());
        let object = |name: &str| serde_json::json!({"metadata": {"name": name, "uid": "u"}});
        let errors = schema.validate(&object("abcd"), None);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), ["metadata.name"]);
        assert!(schema.validate(&object("abc"), None).is_empty());
        assert!(!schema.to_openapi().to_string().contains("maxLength"));
    }

    #[test]
    fn fields_v1_is_a_named_object() {
        let fields = fields_v1();
        assert_eq!(fields.name, Some("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"));
        assert_eq!((fields.kind, fields.preserve_unknown), (Some(Kind::Object), true));
    }
}
