//! The group `apiextensions.k8s.io/v1`: the definitions of custom resources.

use std::sync::Arc;

use serde_json::json;

use super::data::resource;
use super::{BuiltinType, Hooks, restore};
use crate::registry::crd;
use crate::registry::crd::strategy::DefinitionStrategy;
use kubeproof_apimachinery::schema::build::anything;
use kubeproof_apimachinery::schema::{Kind, Schema};
use kubeproof_apimachinery::table::column::{Cell, column};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
        allows_unconditional_update: false,
        columns: vec![column("Created At", "date", Cell::Pointer("/metadata/creationTimestamp"))],
        strategy: || Arc::new(DefinitionStrategy),
        hooks: Hooks {
            default: crd::complete,
            warn: crd::warnings,
            validate: crd::validate,
            validate_update: crd::validate_update,
            prepare_create: |definition| {
                definition["status"] =
                    json!({"acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []});
            },
            prepare_update: |new, old| restore(new, old, "status"),
            ..Hooks::NONE
        },
        ..resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    }]
}

/// Returns the schema of a schema in the manifest. It is recursive, so [`crd::validate`] checks the
/// content.
pub(super) fn json_schema_props() -> Arc<Schema> {
    Arc::new(Schema {
        name: Some("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"),
        kind: Some(Kind::Object),
        is_json_schema: true,
        ..anything()
    })
}
