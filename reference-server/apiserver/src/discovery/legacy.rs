//! Legacy discovery: `/api`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Resource, group_version, sorted, versions_by_group};

/// Returns the document of `/api`: the versions of the core group.
pub(crate) fn versions(resources: &[Arc<Resource>], server_address: &str) -> Value {
    let groups = versions_by_group(resources);
    let core = groups.into_iter().find(|(group, _)| group.is_empty());
    json!({
        "kind": "APIVersions",
        "apiVersion": "v1",
        "versions": core.map(|(_, versions)| versions).unwrap_or_default(),
        "serverAddressByClientCIDRs": [{
            "clientCIDR": "0.0.0.0/0", "serverAddress": server_address,
        }],
    })
}

/// Returns the document of `/apis`: every group except the core group.
pub(crate) fn groups(resources: &[Arc<Resource>]) -> Value {
    let groups = versions_by_group(resources).into_iter().filter(|(group, _)| !group.is_empty());
    let groups: Vec<_> = groups.map(|(name, versions)| describe(name, &versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the document of `/apis/<group>`, or none if there is no such group.
pub(crate) fn group(resources: &[Arc<Resource>], name: &str) -> Option<Value> {
    let (name, versions) =
        versions_by_group(resources).into_iter().find(|(group, _)| *group == name)?;
    let mut document = describe(name, &versions);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Some(document)
}

fn describe(name: &str, versions: &[&str]) -> Value {
    let entry =
        |version: &str| json!({"groupVersion": group_version(name, version), "version": version});
    json!({
        "name": name,
        "versions": versions.iter().map(|version| entry(version)).collect::<Vec<_>>(),
        "preferredVersion": entry(versions[0]),
    })
}

/// Returns the document of `/api/v1` or `/apis/<group>/<version>`, or none if the group has no such
/// version.
pub(crate) fn resources(resources: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let found = sorted(resources, group, version);
    if found.is_empty() {
        return None;
    }
    let entries: Vec<Value> = found.into_iter().flat_map(entries).collect();
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version(group, version),
        "resources": entries,
    }))
}

/// Returns the entries of a resource and its subresources.
fn entries(resource: &Resource) -> Vec<Value> {
    let mut entry = Map::new();
    entry.insert("name".into(), json!(resource.plural));
    entry.insert("singularName".into(), json!(resource.singular));
    entry.insert("namespaced".into(), json!(resource.namespaced));
    entry.insert("kind".into(), json!(resource.kind));
    entry.insert("verbs".into(), json!(verbs(resource)));
    if !resource.short_names.is_empty() {
        entry.insert("shortNames".into(), json!(resource.short_names));
    }
    if !resource.categories.is_empty() {
        entry.insert("categories".into(), json!(resource.categories));
    }
    if resource.is_persisted() {
        entry.insert("storageVersionHash".into(), json!(storage_version_hash(resource)));
    }
    let mut entries = vec![Value::Object(entry)];
    for subresource in &resource.subresources {
        let mut entry = Map::new();
        entry.insert("name".into(), json!(format!("{}/{}", resource.plural, subresource.name)));
        entry.insert("singularName".into(), json!(""));
        entry.insert("namespaced".into(), json!(resource.namespaced));
        entry.insert("kind".into(), json!(subresource.kind));
        entry.insert("verbs".into(), json!(subresource.verbs));
        if (&subresource.group, &subresource.version) != (&resource.group, &resource.version) {
            entry.insert("group".into(), json!(subresource.group));
            entry.insert("version".into(), json!(subresource.version));
        }
        entries.push(Value::Object(entry));
    }
    entries
}

/// Returns the verbs in the order of discovery.
pub(super) fn verbs(resource: &Resource) -> Vec<&str> {
    resource.verbs.iter().map(String::as_str).collect()
}

/// Returns an opaque hash, which is the same for all versions of the stored objects.
fn storage_version_hash(resource: &Resource) -> String {
    let name = format!("{}/{}", resource.table, resource.kind);
    STANDARD.encode(&Sha256::digest(name)[..8])
}
