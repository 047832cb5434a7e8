//! Discovery: what the server serves, as documents.
//!
//! Everything here is a pure function from a list of [`Resource`] to a document. The documents follow the letter of the
//! API conventions where kube-apiserver does not: each of them has `kind` and `apiVersion`.

mod aggregated;
mod legacy;
mod priority;

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha512};

pub use aggregated::aggregated;
pub use legacy::{group, groups, resources, versions};
pub use priority::by_priority;

use crate::schema::Schema;

/// One version of one resource, as documents about it need it.
#[derive(Clone, Debug)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Version within the group.
    pub version: String,
    /// Kind of one object.
    pub kind: String,
    /// Kind of a list; empty where the resource cannot be listed.
    pub list_kind: String,
    /// The name in URLs.
    pub plural: String,
    /// The name of one, for clients.
    pub singular: String,
    /// Objects live in namespaces.
    pub namespaced: bool,
    /// What can be done.
    pub verbs: Vec<String>,
    /// Abbreviations that clients offer.
    pub short_names: Vec<String>,
    /// Groups of resources that clients list together, such as `all`.
    pub categories: Vec<String>,
    /// All its subresources, status and scale included.
    pub subresources: Vec<Subresource>,
    /// Structure of an object.
    pub schema: Arc<Schema>,
    /// It comes from a CRD.
    pub custom: bool,
    /// Media types that POST and PUT take.
    pub body_types: Vec<&'static str>,
    /// Media types that PATCH takes.
    pub patch_types: Vec<&'static str>,
}

/// A subresource.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Last part of the URL.
    pub name: String,
    /// API group of its body.
    pub group: String,
    /// API version of its body.
    pub version: String,
    /// Kind of its body.
    pub kind: String,
    /// What can be done.
    pub verbs: Vec<String>,
}

impl Resource {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// Whether objects of it are stored, rather than answered and forgotten.
    pub fn is_persisted(&self) -> bool {
        self.verbs.iter().any(|verb| verb == "get")
    }
}

/// The strong `ETag` of a document.
pub fn etag(document: &[u8]) -> String {
    format!("\"{}\"", hash(document))
}

/// SHA-512 in capital hexadecimal digits, as Kubernetes writes the hashes of documents.
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

/// The versions of each group, the preferred one first; groups in the order in which they first appear.
fn versions_by_group(resources: &[Resource]) -> Vec<(&str, Vec<&str>)> {
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

/// The resources of a group and version in alphabetical order.
fn sorted<'r>(resources: &'r [Resource], group: &str, version: &str) -> Vec<&'r Resource> {
    let mut found: Vec<_> = resources.iter().filter(|r| r.group == group && r.version == version).collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

#[cfg(test)]
mod tests;
