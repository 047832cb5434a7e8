//! Custom resources: from the manifest of a CRD to a type that the server can serve.
//!
//! The server asks in this order: [`complete`] fills a manifest in, [`validate`] checks it, [`status`] says whether its
//! names are free, and once it [`is_established`], [`CustomType::from_manifest`] makes the type.

mod keywords;
mod manifest;
mod rules;
mod status;
mod structural;
mod validate;

use std::sync::Arc;

use serde_json::{Value, json};

pub use self::status::{is_established, status};
pub use self::validate::{validate, validate_update};

use crate::builtin::{Column, Scale};
use crate::schema::{FieldError, Schema};

/// A resource that a `CustomResourceDefinition` defines.
#[derive(Clone, Debug)]
pub struct CustomType {
    /// API group.
    pub group: String,
    /// What it is called.
    pub names: Names,
    /// Objects live in namespaces.
    pub namespaced: bool,
    /// Its versions, in the order of the manifest.
    pub versions: Vec<Version>,
}

/// What a resource is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The name in URLs.
    pub plural: String,
    /// The name of one, for clients.
    pub singular: String,
    /// Kind of one object.
    pub kind: String,
    /// Kind of a list.
    pub list_kind: String,
    /// Abbreviations that clients offer.
    pub short_names: Vec<String>,
    /// Groups of resources that clients list together.
    pub categories: Vec<String>,
}

/// One version of a custom resource.
#[derive(Clone, Debug)]
pub struct Version {
    /// `v1`, `v1beta1`, ...
    pub name: String,
    /// The API offers it.
    pub served: bool,
    /// Objects are stored in it; true for exactly one.
    pub storage: bool,
    /// The warning that every use of it carries; none if it is not deprecated.
    pub deprecation_warning: Option<String>,
    /// Structure of an object, `apiVersion`, `kind` and `metadata` included.
    pub schema: Arc<Schema>,
    /// Has a `/status` subresource.
    pub has_status: bool,
    /// Has a `/scale` subresource.
    pub scale: Option<Scale>,
    /// Columns of its table, `Name` not included.
    pub columns: Vec<Column>,
    /// What field selectors may name besides name and namespace: `spec.color`, with the JSON pointer to it.
    pub selectable_fields: Vec<(String, String)>,
}

impl CustomType {
    /// Reads a manifest that has been defaulted, or says what is wrong with it.
    pub fn from_manifest(manifest: &Value) -> Result<Self, Vec<FieldError>> {
        manifest::read(manifest)
    }

    /// The version in which objects are stored.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }
}

/// Fills in what a manifest need not say: the singular and the list kind, and that versions differ in name only. What
/// its schemas say in words that nobody knows is dropped.
pub fn complete(definition: &mut Value) {
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
            keywords::drop_unknown(document);
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Faults;

    /// A manifest with a bit of everything.
    pub(super) fn manifest() -> Value {
        json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
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
                                    "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                                    "replicas": {"type": "integer", "default": 1},
                                },
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
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
        let version = custom.storage_version().unwrap();
        assert!(custom.namespaced && version.served && version.has_status);
        assert_eq!(version.scale.as_ref().unwrap().spec_replicas, "/spec/replicas");
        assert_eq!(version.selectable_fields, [("spec.color".to_owned(), "/spec/color".to_owned())]);
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
        schema.prune(&mut object, Faults::none());
        schema.apply_defaults(&mut object, Faults::none());
        assert_eq!(object["spec"], json!({"size": 0, "color": "red", "replicas": 1}));
        assert_eq!(object["metadata"], json!({"name": "w", "labels": {"a": "b"}}));
        let errors = schema.validate(&object, None, Faults::none());
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
