//! Discovery: the documents that list the served resources.
//!
//! Every function here is a pure function from a list of [`Resource`] to a document. The documents
//! follow the strict text of the API conventions where kube-apiserver does not: each has `kind` and
//! `apiVersion`.

mod aggregated;
mod documents;
mod legacy;
mod priority;
mod remote;

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha512};

use crate::registry::LazySchema;

pub(crate) use aggregated::aggregated;
pub(crate) use documents::Documents;
pub(crate) use legacy::{group, groups, resources, versions};
pub(crate) use priority::by_priority;
pub(crate) use remote::{RemoteVersion, add_to_aggregated, add_to_groups, from_legacy, group_with};

/// One version of one resource, as input for documents.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// The API group. It is empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The kind of an object.
    pub kind: String,
    /// The kind of a list. It is empty if the resource cannot be listed.
    pub list_kind: String,
    /// The plural name in URLs.
    pub plural: String,
    /// The singular name.
    pub singular: String,
    /// Objects belong to namespaces.
    pub namespaced: bool,
    /// The supported verbs.
    pub verbs: Vec<String>,
    /// The short names, such as `cm`.
    pub short_names: Vec<String>,
    /// The groups of resources that clients list together, such as `all`.
    pub categories: Vec<String>,
    /// The subresources, including status and scale.
    pub subresources: Vec<Subresource>,
    /// The schema of an object.
    pub schema: LazySchema,
    /// The table of the stored objects, which all versions share.
    pub table: String,
    /// A CRD defines the resource.
    pub custom: bool,
    /// A deletion that removes an object returns it.
    pub deletion_returns_object: bool,
    /// The fields of a custom resource that field selectors support, beside those of metadata.
    pub selectable_fields: Vec<String>,
    /// The media types of bodies of POST and PUT.
    pub body_types: Vec<&'static str>,
    /// The media types of bodies of PATCH.
    pub patch_types: Vec<&'static str>,
}

/// A subresource.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    /// The last part of the URL.
    pub name: String,
    /// The API group of the body.
    pub group: String,
    /// The API version of the body.
    pub version: String,
    /// The kind of the body.
    pub kind: String,
    /// The supported verbs.
    pub verbs: Vec<String>,
}

impl Resource {
    /// Returns `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// Returns whether the server stores the objects. Reviews are not stored.
    pub(crate) fn is_persisted(&self) -> bool {
        self.verbs.iter().any(|verb| verb == "get")
    }
}

/// Returns the strong `ETag` of a document.
pub(crate) fn etag(document: &[u8]) -> String {
    format!("\"{}\"", hash(document))
}

/// Returns SHA-512 in upper-case hexadecimal digits, the format of Kubernetes for hashes of
/// documents.
pub(crate) fn hash(document: &[u8]) -> String {
    Sha512::digest(document).iter().fold(String::with_capacity(128), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns the versions of each group, the preferred version first. The order of the groups is that
/// of their first resource.
fn versions_by_group(resources: &[Arc<Resource>]) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for resource in resources {
        let group = match groups.iter_mut().find(|(name, _)| *name == resource.group) {
            Some(known) => known,
            None => groups.push_mut((&resource.group, Vec::new())),
        };
        if !group.1.contains(&resource.version.as_str()) {
            group.1.push(&resource.version);
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by(|a, b| by_priority(a, b));
    }
    groups
}

/// Returns the resources of a group and version in alphabetical order.
fn sorted<'r>(resources: &'r [Arc<Resource>], group: &str, version: &str) -> Vec<&'r Resource> {
    let resources = resources.iter().map(AsRef::as_ref);
    let mut found: Vec<&Resource> =
        resources.filter(|r| r.group == group && r.version == version).collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

#[cfg(test)]
mod tests;
