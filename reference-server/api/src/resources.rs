//! The resources of a version.
//!
//! ```text
//! apps/v1
//!   deployments Deployment namespaced singular=deployment verbs=* short=deploy categories=all
//!     scale autoscaling/v1/Scale verbs=get,patch,update
//! ```
//!
//! A line without indentation has a group and a version, with an empty group for the core group.
//! `verbs=*` means all verbs of a usual resource. A subresource has a kind of its resource's group
//! and version, or a kind with both.

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group. It is empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Objects belong to namespaces.
    pub namespaced: bool,
    /// The singular name.
    pub singular: &'static str,
    /// The supported verbs, in the order of discovery.
    pub verbs: Vec<&'static str>,
    /// The short names.
    pub short_names: Vec<&'static str>,
    /// The groups of resources that clients list together.
    pub categories: Vec<&'static str>,
    /// The subresources, in the order of discovery.
    pub subresources: Vec<Subresource>,
}

/// A subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The last part of the URL.
    pub name: &'static str,
    /// The group of the body.
    pub group: &'static str,
    /// The version of the body.
    pub version: &'static str,
    /// The kind of the body.
    pub kind: &'static str,
    /// The supported verbs.
    pub verbs: Vec<&'static str>,
}

const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

/// Parses the resources. The generator wrote the text, so lines without names do not occur.
pub(crate) fn parse(text: &'static str) -> Vec<Resource> {
    let mut resources: Vec<Resource> = Vec::new();
    let (mut group, mut version) = ("", "");
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        if !line.starts_with(' ') {
            (group, version) = name.split_once('/').unwrap_or_default();
            continue;
        }
        let kind = words.next().unwrap_or_default();
        if line.starts_with("    ") {
            let mut parts = kind.rsplit('/');
            let kind = parts.next().unwrap_or_default();
            let subresource = Subresource {
                name,
                kind,
                version: parts.next().unwrap_or(version),
                group: parts.next().unwrap_or(group),
                verbs: list(line, "verbs"),
            };
            if let Some(parent) = resources.last_mut() {
                parent.subresources.push(subresource);
            }
            continue;
        }
        resources.push(Resource {
            group,
            version,
            plural: name,
            kind,
            namespaced: words.next() == Some("namespaced"),
            singular: list(line, "singular").first().copied().unwrap_or_default(),
            verbs: list(line, "verbs"),
            short_names: list(line, "short"),
            categories: list(line, "categories"),
            subresources: Vec::new(),
        });
    }
    resources
}

/// Returns the values of an attribute.
fn list(line: &'static str, name: &str) -> Vec<&'static str> {
    let mut attributes = line.split_whitespace().filter_map(|word| word.split_once('='));
    let value = attributes.find(|(known, _)| *known == name).map(|(_, value)| value);
    let value = if value == Some("*") { Some(ALL_VERBS) } else { value };
    value.map(|value| value.split(',').collect()).unwrap_or_default()
}
