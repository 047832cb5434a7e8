//! Parses discovery documents, aggregated or legacy.

use std::collections::{BTreeMap, BTreeSet};

use kubeproof_cases::case::ResourceName;
use serde_json::Value;

use super::Resources;
use crate::capability::Discovered;

/// Returns the paths of the group versions that a document of `/api` or `/apis` lists. `None` for
/// other documents.
pub(super) fn roots(document: &Value) -> Option<Vec<String>> {
    if let Some(versions) = document["versions"].as_array() {
        let versions = versions.iter().filter_map(Value::as_str);
        return Some(versions.map(|version| format!("/api/{version}")).collect());
    }
    let groups = document["groups"].as_array()?.iter();
    let versions = groups.flat_map(|group| items(&group["versions"]));
    let names = versions.filter_map(|version| version["groupVersion"].as_str());
    Some(names.map(|name| format!("/apis/{name}")).collect())
}

/// Returns the resources of the list of a group version. `None` for other documents.
pub(super) fn resource_list(list: &Value, root: &str) -> Option<Resources> {
    let (group, version) = group_version(root)?;
    list["resources"].is_array().then(|| resources_of(list, group, version))
}

fn resources_of(list: &Value, group: &str, version: &str) -> Resources {
    let mut resources = Resources::new();
    let mut subresources = Vec::new();
    for entry in items(&list["resources"]) {
        let (Some(name), Some(kind)) = (entry["name"].as_str(), entry["kind"].as_str()) else {
            continue;
        };
        if let Some((resource, subresource)) = name.split_once('/') {
            subresources.push((resource.to_owned(), subresource.to_owned(), verbs(entry)));
            continue;
        }
        let discovered = Discovered {
            kind: kind.to_owned(),
            namespaced: entry["namespaced"] == true,
            verbs: verbs(entry),
            subresources: BTreeMap::new(),
            singular: entry["singularName"].as_str().unwrap_or_default().to_owned(),
            short_names: strings(&entry["shortNames"]).map(str::to_owned).collect(),
        };
        resources.insert(named(name, group, version), discovered);
    }
    for (resource, subresource, verbs) in subresources {
        if let Some(parent) = resources.get_mut(&named(&resource, group, version)) {
            parent.subresources.insert(subresource, verbs);
        }
    }
    resources
}

pub(super) fn is_aggregated(document: &Value) -> bool {
    document["kind"] == "APIGroupDiscoveryList"
}

/// Reports whether the groups of an aggregated document have names. The core group has none.
pub(super) fn names_groups(document: &Value, path: &str) -> bool {
    let is_named =
        |group: &Value| group["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty());
    path == "/api" || items(&document["items"]).all(is_named)
}

pub(super) fn aggregated(document: &Value) -> Resources {
    let mut resources = Resources::new();
    for group in items(&document["items"]) {
        let group_name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in items(&group["versions"]) {
            let Some(version_name) = version["version"].as_str() else { continue };
            for entry in items(&version["resources"]) {
                let kind = entry["responseKind"]["kind"].as_str();
                let (Some(resource), Some(kind)) = (entry["resource"].as_str(), kind) else {
                    continue;
                };
                let subresources = items(&entry["subresources"])
                    .filter_map(|sub| Some((sub["subresource"].as_str()?.to_owned(), verbs(sub))));
                let discovered = Discovered {
                    kind: kind.to_owned(),
                    namespaced: entry["scope"] == "Namespaced",
                    verbs: verbs(entry),
                    subresources: subresources.collect(),
                    singular: entry["singularResource"].as_str().unwrap_or_default().to_owned(),
                    short_names: strings(&entry["shortNames"]).map(str::to_owned).collect(),
                };
                resources.insert(named(resource, group_name, version_name), discovered);
            }
        }
    }
    resources
}

pub(super) fn named(resource: &str, group: &str, version: &str) -> ResourceName {
    ResourceName {
        resource: resource.to_owned(),
        version: version.to_owned(),
        group: group.to_owned(),
    }
}

/// Splits a path such as `/api/v1` or `/apis/apps/v1` into group and version.
pub(super) fn group_version(root: &str) -> Option<(&str, &str)> {
    match root.strip_prefix("/apis/") {
        Some(rest) => rest.split_once('/'),
        None => root.strip_prefix("/api/").map(|version| ("", version)),
    }
}

fn verbs(entry: &Value) -> BTreeSet<String> {
    strings(&entry["verbs"]).map(str::to_owned).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only(resources: &Resources, name: &str) -> Discovered {
        resources
            .iter()
            .find(|(key, _)| key.to_string() == name)
            .map(|(_, found)| found.clone())
            .unwrap()
    }

    #[test]
    fn legacy_and_aggregated_documents_say_the_same() {
        let legacy = resources_of(
            &json!({"resources": [
                {"name": "deployments/scale", "kind": "Scale", "verbs": ["get"]},
                {
                    "name": "deployments", "kind": "Deployment", "namespaced": true,
                    "singularName": "deployment", "verbs": ["create", "get"],
                    "shortNames": ["deploy"],
                },
            ]}),
            "apps",
            "v1",
        );
        let aggregated = aggregated(&json!({"items": [{"metadata": {"name": "apps"}, "versions": [
            {"version": "v1", "resources": [
                {
                    "resource": "deployments", "responseKind": {"kind": "Deployment"},
                    "scope": "Namespaced", "singularResource": "deployment",
                    "verbs": ["get", "create"], "shortNames": ["deploy"],
                    "subresources": [{"subresource": "scale", "verbs": ["get"]}],
                },
            ]},
        ]}]}));
        let deployments = only(&legacy, "deployments.v1.apps");
        assert!(deployments.namespaced);
        assert!(deployments.subresources.contains_key("scale"));
        assert_eq!(deployments, only(&aggregated, "deployments.v1.apps"));
    }

    #[test]
    fn groups_need_names_unless_they_are_the_core() {
        let named = json!({"items": [{"metadata": {"name": "apps"}}]});
        let unnamed = json!({"items": [{"metadata": {"name": "apps"}}, {"metadata": {}}]});
        assert!(names_groups(&named, "/apis"));
        assert!(!names_groups(&unnamed, "/apis"));
        assert!(names_groups(&unnamed, "/api"));
    }

    #[test]
    fn garbage_lists_nothing() {
        for garbage in
            [json!({}), json!([]), json!({"resources": {}}), json!({"resources": [1, {"name": 2}]})]
        {
            assert_eq!(resources_of(&garbage, "", "v1"), Resources::new());
            assert_eq!(aggregated(&garbage), Resources::new());
        }
    }

    #[test]
    fn paths_name_group_and_version() {
        assert_eq!(group_version("/api/v1"), Some(("", "v1")));
        assert_eq!(group_version("/apis/apps/v1"), Some(("apps", "v1")));
        assert_eq!(group_version("/apis/apps"), None);
    }
}
