//! Wrong discovery documents: `/api`, `/apis`, and those of groups and versions.

use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::exchange::Request;
use crate::middleware::{Middleware, documents, only};

type Edit = fn(&mut Value);

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit = whole_document(fault)
        .or_else(|| group(fault))
        .or_else(|| resource_list(fault))
        .or_else(|| resource(fault))?;
    Some(only(is_discovery, documents(move |_, document| edit(document))))
}

pub(super) fn is_discovery(request: &Request) -> bool {
    let mut segments = request.path.split('/').skip(1);
    matches!(segments.next(), Some("api" | "apis")) && !request.target().is_resource()
}

/// Faults of a whole document.
fn whole_document(fault: Fault) -> Option<Edit> {
    Some(match fault {
        Fault::DiscoveryWithoutKind => |document| {
            remove(document, &["kind"]);
        },
        Fault::CoreVersionsMissing => |document| {
            if document["kind"] == "APIVersions" {
                document["versions"] = json!([]);
            }
        },
        Fault::DiscoveryOddGroup => |document| {
            if document["kind"] == "APIGroupList" {
                let version = json!({ "groupVersion": "Odd_Group/V1", "version": "V1" });
                let group = json!({
                    "name": "Odd_Group", "versions": [version], "preferredVersion": version,
                });
                push(document, "groups", group);
            }
        },
        _ => return aggregated(fault),
    })
}

/// Faults of the aggregated document.
fn aggregated(fault: Fault) -> Option<Edit> {
    Some(match fault {
        Fault::AggregatedVersionsReversed => |document| {
            for group in aggregated_groups(document) {
                if let Some(versions) = group["versions"].as_array_mut() {
                    versions.reverse();
                }
            }
        },
        Fault::AggregatedGroupsWithoutNames => |document| {
            for group in aggregated_groups(document) {
                remove(&mut group["metadata"], &["name"]);
            }
        },
        Fault::AggregatedVersionsStale => |document| {
            for version in aggregated_versions(document) {
                version["freshness"] = "Stale".into();
            }
        },
        Fault::AggregatedVerbsDiffer => |document| {
            for resource in aggregated_resources(document) {
                if let Some(verbs) = resource["verbs"].as_array_mut() {
                    verbs.retain(|verb| verb != "deletecollection");
                }
            }
        },
        Fault::AggregatedNamesMissing => |document| {
            for resource in aggregated_resources(document) {
                remove(resource, &["shortNames", "categories"]);
            }
        },
        Fault::AggregatedScaleHasParentKind => |document| {
            for resource in aggregated_resources(document) {
                let kind = resource["responseKind"].clone();
                for part in members(resource, "subresources") {
                    part["responseKind"] = kind.clone();
                }
            }
        },
        Fault::StorageHashOfEachVersion => |document| {
            let version = document["groupVersion"].as_str().unwrap_or_default().to_owned();
            for entry in entries(document) {
                if let Some(hash) = entry["storageVersionHash"].as_str() {
                    entry["storageVersionHash"] = format!("{version}{hash}").into();
                }
            }
        },
        Fault::AggregatedHidesResources => |document| {
            for version in aggregated_versions(document) {
                if let Some(resources) = version["resources"].as_array_mut()
                    && resources.len() > 1
                {
                    resources.pop();
                }
            }
        },
        _ => return None,
    })
}

/// Faults of the description of a group, alone and in the list of groups.
fn group(fault: Fault) -> Option<Edit> {
    Some(match fault {
        Fault::DiscoveryGroupWithoutVersions => |document| {
            if document["kind"] == "APIGroup" {
                document["versions"] = json!([]);
            }
        },
        Fault::DiscoveryPrefersUnknownVersion => |document| {
            for group in groups(document) {
                group["preferredVersion"] = version_of(group, "v0");
            }
        },
        Fault::DiscoveryListsUnservedVersion => |document| {
            for group in groups(document).into_iter().filter(|group| group["name"] == "apps") {
                let version = version_of(group, "v2");
                push(group, "versions", version);
            }
        },
        Fault::VersionsSortedAsText => |document| {
            // The aggregated document is another one, and must agree for built-in groups.
            let is_custom = |group: &&mut Value| {
                group["name"].as_str().is_some_and(|name| name.contains("kubeproof"))
            };
            for group in groups(document).into_iter().filter(is_custom) {
                if let Some(versions) = group["versions"].as_array_mut() {
                    versions.sort_by_key(|version| version["version"].to_string());
                    group["preferredVersion"] = versions.first().cloned().unwrap_or_default();
                }
            }
        },
        _ => return None,
    })
}

/// Faults of the list of resources of a version.
fn resource_list(fault: Fault) -> Option<Edit> {
    Some(match fault {
        Fault::DiscoveryListsTwice => |document| {
            if let Some(entry) = entries(document).first().map(|entry| (*entry).clone()) {
                push(document, "resources", entry);
            }
        },
        Fault::DiscoveryListsStatuses => |document| {
            if document["kind"] == "APIResourceList" {
                push(document, "resources", entry("statuses", "status", "Status", &["get"]));
            }
        },
        Fault::DiscoveryListsUnserved => |document| {
            if document["kind"] == "APIResourceList" {
                let phantoms = entry("phantoms", "phantom", "Phantom", &["get", "list"]);
                push(document, "resources", phantoms);
            }
        },
        Fault::DiscoveryHidesSubresources => |document| {
            if let Some(resources) = document["resources"].as_array_mut() {
                resources.retain(|entry| !is_subresource(entry));
            }
            for resource in aggregated_resources(document) {
                remove(resource, &["subresources"]);
            }
        },
        Fault::DiscoveryEvictionsOfTheCoreGroup => |document| {
            for entry in entries(document) {
                if matches!(entry["kind"].as_str(), Some("Eviction" | "TokenRequest")) {
                    remove(entry, &["group", "version"]);
                }
            }
        },
        Fault::DiscoveryScaleOfOtherVersion => |document| {
            let custom =
                document["groupVersion"].as_str().is_some_and(|name| name.contains("kubeproof"));
            for entry in entries(document) {
                if !custom && entry["kind"] == "Scale" {
                    entry["version"] = json!("v2");
                }
            }
        },
        Fault::DiscoveryScaleHasParentKind => |document| {
            let parents: Vec<_> = entries(document)
                .iter()
                .filter_map(|entry| {
                    Some((format!("{}/scale", entry["name"].as_str()?), entry["kind"].clone()))
                })
                .collect();
            for entry in entries(document) {
                if let Some((_, kind)) =
                    parents.iter().find(|(name, _)| entry["name"] == name.as_str())
                {
                    entry["kind"] = kind.clone();
                    remove(entry, &["group", "version"]);
                }
            }
        },
        _ => return None,
    })
}

/// Faults of the entry of a resource.
fn resource(fault: Fault) -> Option<Edit> {
    Some(match fault {
        Fault::DiscoverySubresourcesUnscoped => |document| {
            for entry in entries(document).into_iter().filter(|entry| is_subresource(entry)) {
                entry["namespaced"] = false.into();
            }
        },
        Fault::DiscoveryAllNamespaced => |document| {
            for entry in entries(document) {
                entry["namespaced"] = true.into();
            }
            for resource in aggregated_resources(document) {
                resource["scope"] = "Namespaced".into();
            }
        },
        Fault::DiscoverySingularIsPlural => |document| {
            for entry in entries(document).into_iter().filter(|entry| !is_subresource(entry)) {
                entry["singularName"] = entry["name"].clone();
            }
        },
        Fault::DiscoveryWithoutShortNames => |document| {
            for entry in entries(document) {
                remove(entry, &["shortNames", "categories"]);
            }
        },
        Fault::DiscoveryPluralsInCapitals => |document| {
            for entry in
                entries(document).into_iter().filter(|entry| entry["name"] == "serviceaccounts")
            {
                entry["name"] = "serviceAccounts".into();
            }
        },
        Fault::DiscoveryListsMissingVerb => |document| {
            let entries = entries(document).into_iter().filter(|entry| !is_subresource(entry));
            entries.for_each(add_deletecollection);
            aggregated_resources(document).into_iter().for_each(add_deletecollection);
        },
        Fault::VerbsNull => |document| {
            for entry in entries(document) {
                entry["verbs"] = Value::Null;
            }
            for resource in aggregated_resources(document) {
                resource["verbs"] = Value::Null;
            }
        },
        Fault::DiscoveryHidesList => |document| {
            let secrets = |name: &'static str| move |entry: &&mut Value| entry[name] == "secrets";
            let hide = |entry: &mut Value| {
                if let Some(verbs) = entry["verbs"].as_array_mut() {
                    verbs.retain(|verb| verb != "list");
                }
            };
            entries(document).into_iter().filter(secrets("name")).for_each(hide);
            aggregated_resources(document).into_iter().filter(secrets("resource")).for_each(hide);
        },
        _ => return None,
    })
}

fn entry(name: &str, singular: &str, kind: &str, verbs: &[&str]) -> Value {
    json!({
        "name": name, "singularName": singular, "namespaced": true, "kind": kind, "verbs": verbs,
    })
}

fn add_deletecollection(entry: &mut Value) {
    if let Some(verbs) = entry["verbs"].as_array_mut()
        && !verbs.iter().any(|verb| verb == "deletecollection")
    {
        verbs.push("deletecollection".into());
    }
}

fn version_of(group: &Value, version: &str) -> Value {
    let name = group["name"].as_str().unwrap_or_default();
    json!({ "groupVersion": format!("{name}/{version}"), "version": version })
}

/// The groups of an `APIGroupList`, or the one group of an `APIGroup`.
fn groups(document: &mut Value) -> Vec<&mut Value> {
    if document["kind"] == "APIGroup" { vec![document] } else { members(document, "groups") }
}

/// The entries of an `APIResourceList`, those of subresources included.
fn entries(document: &mut Value) -> Vec<&mut Value> {
    members(document, "resources")
}

fn aggregated_groups(document: &mut Value) -> Vec<&mut Value> {
    members(document, "items")
}

fn aggregated_versions(document: &mut Value) -> Vec<&mut Value> {
    aggregated_groups(document).into_iter().flat_map(|group| members(group, "versions")).collect()
}

fn aggregated_resources(document: &mut Value) -> Vec<&mut Value> {
    aggregated_versions(document)
        .into_iter()
        .flat_map(|version| members(version, "resources"))
        .collect()
}

fn members<'a>(document: &'a mut Value, list: &str) -> Vec<&'a mut Value> {
    document.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().collect()
}

fn is_subresource(entry: &Value) -> bool {
    entry["name"].as_str().is_some_and(|name| name.contains('/'))
}

fn push(document: &mut Value, list: &str, item: Value) {
    if let Some(items) = document.get_mut(list).and_then(Value::as_array_mut) {
        items.push(item);
    }
}

fn remove(document: &mut Value, names: &[&str]) {
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_subresource_gets_the_kind_of_its_parent() {
        let mut document = json!({ "kind": "APIResourceList", "resources": [
            { "name": "deployments", "kind": "Deployment" },
            {
                "name": "deployments/scale", "kind": "Scale", "group": "autoscaling",
                "version": "v1",
            },
        ] });
        let edit = resource_list(Fault::DiscoveryScaleHasParentKind).expect("a fault of this file");
        edit(&mut document);
        let expected = json!({ "name": "deployments/scale", "kind": "Deployment" });
        assert_eq!(document["resources"][1], expected);
    }

    #[test]
    fn verbs_are_edited_in_both_forms_of_discovery() {
        let edit = resource(Fault::DiscoveryListsMissingVerb).expect("a fault of this file");
        let mut legacy = json!({ "resources": [
            { "name": "pods", "verbs": [] }, { "name": "pods/log", "verbs": [] },
        ] });
        edit(&mut legacy);
        assert_eq!(legacy["resources"][0]["verbs"], json!(["deletecollection"]));
        assert_eq!(legacy["resources"][1]["verbs"], json!([]));
        let resources = json!([{ "resource": "pods", "verbs": [] }]);
        let mut aggregated = json!({ "items": [{ "versions": [{ "resources": resources }] }] });
        edit(&mut aggregated);
        let verbs = aggregated.pointer("/items/0/versions/0/resources/0/verbs");
        assert_eq!(verbs, Some(&json!(["deletecollection"])));
    }
}
