//! Custom resources: from the manifest of a CRD to a type that the server can serve.

mod manifest;

use std::sync::Arc;

use serde_json::Value;

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
