//! Custom resources: converts the manifest of a CRD to a type that the server can serve.
//!
//! The server calls these functions in order. [`complete`] sets defaults, [`validate`] checks the
//! manifest, and [`status`] checks that its names are free. When the CRD [`is_established`],
//! [`CustomType::from_manifest`] creates the type.

mod formats;
mod manifest;
mod status;
pub(crate) mod strategy;
pub(crate) mod v1beta1;
mod validation;
pub(crate) mod webhook;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::formats::warnings;
pub(crate) use self::status::{is_established, status};
pub(crate) use self::validation::{validate, validate_update};

use self::webhook::Webhook;
use crate::registry::builtin::{Column, Scale};
use kubeproof_apimachinery::schema::{FieldError, Schema, keywords};

/// A resource that a `CustomResourceDefinition` defines.
#[derive(Clone, Debug)]
pub(crate) struct CustomType {
    /// The API group.
    pub group: String,
    /// The names.
    pub names: Names,
    /// Objects belong to namespaces.
    pub namespaced: bool,
    /// The versions in the order of the manifest.
    pub versions: Vec<Version>,
    /// The webhook that converts objects, if there is one.
    pub webhook: Option<Webhook>,
}

/// The names of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names are those of `spec.names`")]
pub(crate) struct Names {
    /// The plural name in URLs.
    pub plural: String,
    /// The singular name.
    pub singular: String,
    /// The kind of an object.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// The short names.
    pub short_names: Vec<String>,
    /// The groups of resources that clients list together.
    pub categories: Vec<String>,
}

/// One version of a custom resource.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// `v1`, `v1beta1`, ...
    pub name: String,
    /// The API serves this version.
    pub served: bool,
    /// Objects are stored in this version, if a webhook converts them.
    pub stored: bool,
    /// The warning in every response, if the version is deprecated.
    pub deprecation_warning: Option<String>,
    /// The schema of an object, including `apiVersion`, `kind` and `metadata`.
    pub schema: Arc<Schema>,
    /// The version has a `/status` subresource.
    pub has_status: bool,
    /// The `/scale` subresource, if the version has one.
    pub scale: Option<Scale>,
    /// The table columns without `Name`.
    pub columns: Vec<Column>,
    /// The fields that field selectors support besides name and namespace: `spec.color`, with its
    /// JSON pointer.
    pub selectable_fields: Vec<(String, String)>,
}

impl CustomType {
    /// Parses a manifest with defaults. Returns its errors if it is invalid.
    pub(crate) fn from_manifest(manifest: &Value) -> Result<Self, Vec<FieldError>> {
        manifest::read(manifest)
    }
}

/// Sets the defaults of a manifest: the singular and list names, and no conversion between
/// versions. Removes unknown keywords of schemas.
pub(crate) fn complete(definition: &mut Value) {
    let spec = &mut definition["spec"];
    let kind = text(&spec["names"], "kind").to_owned();
    for (field, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if text(&spec["names"], field).is_empty() && !kind.is_empty() {
            spec["names"][field] = json!(value);
        }
    }
    if spec.get("conversion").is_none() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(document) = version.pointer_mut("/schema/openAPIV3Schema") {
            keywords::normalize(document);
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a manifest with most features.
    pub(super) fn manifest() -> Value {
        json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {
                    "plural": "widgets", "kind": "Widget", "shortNames": ["wd"],
                    "categories": ["all"],
                },
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 100},
                                    "color": {
                                        "type": "string", "enum": ["red", "green"],
                                        "default": "red",
                                    },
                                    "replicas": {"type": "integer", "default": 1},
                                },
                            },
                            "status": {
                                "type": "object", "properties": {"replicas": {"type": "integer"}},
                            },
                        },
                    }},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                        },
                    },
                    "additionalPrinterColumns": [{
                        "name": "Size", "type": "integer", "jsonPath": ".spec.size",
                    }],
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                }],
            },
        })
    }

    #[test]
    fn a_manifest_becomes_a_type() {
        let custom = CustomType::from_manifest(&manifest()).unwrap();
        assert_eq!(
            (custom.names.singular.as_str(), custom.names.list_kind.as_str()),
            ("widget", "WidgetList")
        );
        let version = &custom.versions[0];
        assert!(custom.namespaced && version.served && version.has_status);
        assert_eq!(version.scale.as_ref().unwrap().spec_replicas, "/spec/replicas");
        assert_eq!(
            version.selectable_fields,
            [("spec.color".to_owned(), "/spec/color".to_owned())]
        );
        assert_eq!(version.columns.len(), 1);
        assert_eq!(version.deprecation_warning, None);
    }

    #[test]
    fn its_objects_are_pruned_defaulted_and_checked() {
        let custom = CustomType::from_manifest(&manifest()).unwrap();
        let schema = &custom.versions[0].schema;
        let mut object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "bogus": 1, "labels": {"a": "b"}},
            "spec": {"size": 0, "bogus": true},
        });
        assert_eq!(schema.unknown_fields(&object), ["metadata.bogus", "spec.bogus"]);
        schema.prune(&mut object);
        schema.apply_defaults(&mut object);
        assert_eq!(object["spec"], json!({"size": 0, "color": "red", "replicas": 1}));
        assert_eq!(object["metadata"], json!({"name": "w", "labels": {"a": "b"}}));
        let errors = schema.validate(&object, None);
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].field, "spec.size");
        object["metadata"]["labels"]["a"] = json!(1);
        assert_eq!(schema.check_types(&object).unwrap_err().field, "metadata.labels.a");
    }

    #[test]
    fn without_columns_a_resource_shows_its_age() {
        let mut manifest = manifest();
        manifest["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
        let custom = CustomType::from_manifest(&manifest).unwrap();
        assert_eq!(custom.versions[0].columns[0].name, "Age");
    }
}
