//! The structure of `metadata`, which every object has, custom ones too.

use std::sync::{Arc, LazyLock};

use super::Schema;
use super::build::{anything, boolean, int64, list, map, object, string, time};

/// `ObjectMeta`, shared by every type.
pub fn object_meta() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(build_object_meta()));
    Arc::clone(&SCHEMA)
}

/// The fields that every object has: `apiVersion`, `kind` and `metadata`.
pub fn with_type_meta(schema: Schema) -> Schema {
    schema.field("apiVersion", string()).field("kind", string()).field("metadata", object_meta())
}

fn build_object_meta() -> Schema {
    let owner = object("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference")
        .need("apiVersion", string().written_when_empty())
        .need("kind", string().written_when_empty())
        .need("name", string().written_when_empty())
        .need("uid", string().written_when_empty())
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
        .field("generation", int64())
        .field("creationTimestamp", time())
        .field("deletionTimestamp", time())
        .field("deletionGracePeriodSeconds", int64())
        .field("labels", map(string()))
        .field("annotations", map(string()))
        .field("ownerReferences", list(owner).merge_by("uid"))
        .field("finalizers", list(string()).merged())
        .field("managedFields", list(managed_fields))
}

fn fields_v1() -> Schema {
    let mut schema = anything();
    schema.name = Some("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1");
    schema.kind = Some(super::Kind::Object);
    schema
}
