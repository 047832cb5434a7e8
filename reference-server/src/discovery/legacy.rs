//! The documents that clients read one by one: `/api`, `/apis`, `/apis/<group>`, `/apis/<group>/<version>`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Resource, group_version, sorted, versions_by_group};
use crate::faults::{Fault, Faults};

/// `/api`: the versions of the core group.
pub fn versions(resources: &[Resource], server_address: &str, faults: Faults) -> Value {
    let groups = versions_by_group(resources);
    let core = groups.into_iter().find(|(group, _)| group.is_empty());
    let core = core.filter(|_| !faults.on(Fault::CoreVersionsMissing));
    json!({
        "kind": "APIVersions",
        "apiVersion": "v1",
        "versions": core.map(|(_, versions)| versions).unwrap_or_default(),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    })
}

/// `/apis`: every group but the core group.
pub fn groups(resources: &[Resource], faults: Faults) -> Value {
    let groups = versions_by_group(resources).into_iter().filter(|(group, _)| !group.is_empty());
    let mut groups: Vec<_> = groups.map(|(name, versions)| describe(name, &versions, faults)).collect();
    if faults.on(Fault::DiscoveryOddGroup) {
        groups.push(describe("Odd_Group", &["V1"], faults));
    }
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`; none if there is no such group.
pub fn group(resources: &[Resource], name: &str, faults: Faults) -> Option<Value> {
    let (name, versions) = versions_by_group(resources).into_iter().find(|(group, _)| *group == name)?;
    let mut document = describe(name, &versions, faults);
    if faults.on(Fault::DiscoveryGroupWithoutVersions) {
        document["versions"] = json!([]);
    }
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Some(document)
}

fn describe(name: &str, versions: &[&str], faults: Faults) -> Value {
    let entry = |version: &str| json!({"groupVersion": group_version(name, version), "version": version});
    let mut known = versions.to_vec();
    if name == "apps" && faults.on(Fault::DiscoveryListsUnservedVersion) {
        known.push("v2");
    }
    let preferred = if faults.on(Fault::DiscoveryPrefersUnknownVersion) { "v0" } else { versions[0] };
    json!({
        "name": name,
        "versions": known.iter().map(|version| entry(version)).collect::<Vec<_>>(),
        "preferredVersion": entry(preferred),
    })
}

/// `/api/v1` and `/apis/<group>/<version>`; none if the group has no such version.
pub fn resources(resources: &[Resource], group: &str, version: &str, faults: Faults) -> Option<Value> {
    let found = sorted(resources, group, version);
    if found.is_empty() {
        return None;
    }
    let mut entries: Vec<Value> = found.into_iter().flat_map(|resource| entries(resource, faults)).collect();
    if faults.on(Fault::DiscoveryListsTwice) {
        entries.extend(entries.first().cloned());
    }
    if faults.on(Fault::DiscoveryListsStatuses) {
        entries.push(json!({
            "name": "statuses", "singularName": "status", "namespaced": true, "kind": "Status", "verbs": ["get"],
        }));
    }
    if faults.on(Fault::DiscoveryListsUnserved) {
        entries.push(json!({
            "name": "phantoms", "singularName": "phantom", "namespaced": true, "kind": "Phantom", "verbs": ["get", "list"],
        }));
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version(group, version),
        "resources": entries,
    }))
}

/// The entry of a resource, and those of its subresources after it.
fn entries(resource: &Resource, faults: Faults) -> Vec<Value> {
    let mut entry = Map::new();
    let namespaced = resource.namespaced || faults.on(Fault::DiscoveryAllNamespaced);
    let singular =
        if faults.on(Fault::DiscoverySingularIsPlural) { &resource.plural } else { &resource.singular };
    let odd = resource.plural == "serviceaccounts" && faults.on(Fault::DiscoveryPluralsInCapitals);
    entry.insert("name".into(), json!(if odd { "serviceAccounts" } else { &resource.plural }));
    entry.insert("singularName".into(), json!(singular));
    entry.insert("namespaced".into(), json!(namespaced));
    entry.insert("kind".into(), json!(resource.kind));
    entry.insert("verbs".into(), json!(verbs(resource, faults)));
    let named = !faults.on(Fault::DiscoveryWithoutShortNames);
    if !resource.short_names.is_empty() && named {
        entry.insert("shortNames".into(), json!(resource.short_names));
    }
    if !resource.categories.is_empty() && named {
        entry.insert("categories".into(), json!(resource.categories));
    }
    if resource.is_persisted() {
        entry.insert("storageVersionHash".into(), json!(storage_version_hash(resource)));
    }
    let mut entries = vec![Value::Object(entry)];
    if faults.on(Fault::DiscoveryHidesSubresources) {
        return entries;
    }
    for subresource in &resource.subresources {
        let mut entry = Map::new();
        entry.insert("name".into(), json!(format!("{}/{}", resource.plural, subresource.name)));
        entry.insert("singularName".into(), json!(""));
        let namespaced = namespaced && !faults.on(Fault::DiscoverySubresourcesUnscoped);
        entry.insert("namespaced".into(), json!(namespaced));
        let parents = subresource.name == "scale" && faults.on(Fault::DiscoveryScaleHasParentKind);
        entry.insert("kind".into(), json!(if parents { &resource.kind } else { &subresource.kind }));
        entry.insert("verbs".into(), json!(subresource.verbs));
        if !parents && (&subresource.group, &subresource.version) != (&resource.group, &resource.version) {
            entry.insert("group".into(), json!(subresource.group));
            entry.insert("version".into(), json!(subresource.version));
        }
        entries.push(Value::Object(entry));
    }
    entries
}

/// The verbs as discovery tells them.
pub(super) fn verbs(resource: &Resource, faults: Faults) -> Vec<&str> {
    let mut verbs: Vec<_> = resource.verbs.iter().map(String::as_str).collect();
    if faults.on(Fault::DiscoveryListsMissingVerb) && !verbs.contains(&"deletecollection") {
        verbs.push("deletecollection");
    }
    if faults.on(Fault::DiscoveryHidesList) && resource.plural == "secrets" {
        verbs.retain(|verb| *verb != "list");
    }
    verbs
}

/// An opaque name of what an object is stored as.
fn storage_version_hash(resource: &Resource) -> String {
    let name = format!("{}/{}", resource.api_version(), resource.kind);
    STANDARD.encode(&Sha256::digest(name)[..8])
}
