//! Tests with all differences between documents: scopes, subresources of other groups, two versions
//! of a group.

use kubeproof_apimachinery::schema::Schema;
use serde_json::{Value, json};

use super::*;

fn resource(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        namespaced,
        verbs: ["create", "get", "list", "watch"].map(str::to_owned).into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
        schema: Arc::<Schema>::default().into(),
        table: plural.into(),
        custom: false,
        deletion_returns_object: false,
        selectable_fields: Vec::new(),
        body_types: Vec::new(),
        patch_types: Vec::new(),
    }
}

fn subresource(name: &str, group: &str, version: &str, kind: &str) -> Subresource {
    let verbs = ["get", "patch", "update"].map(str::to_owned).into();
    Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs,
    }
}

fn catalogue() -> Vec<Arc<Resource>> {
    let mut deployments = resource("apps", "v1", "deployments", "Deployment", true);
    deployments.short_names = vec!["deploy".into()];
    deployments.categories = vec!["all".into()];
    deployments.subresources = vec![
        subresource("scale", "autoscaling", "v1", "Scale"),
        subresource("status", "apps", "v1", "Deployment"),
    ];
    let mut bindings = resource("", "v1", "bindings", "Binding", true);
    bindings.verbs = vec!["create".into()];
    let all = [
        resource("", "v1", "namespaces", "Namespace", false),
        bindings,
        deployments,
        resource("example.com", "v1beta1", "widgets", "Widget", true),
        resource("example.com", "v1", "widgets", "Widget", true),
    ];
    all.map(Arc::new).into()
}

#[test]
fn the_core_group_lists_its_versions() {
    let document = versions(&catalogue(), "127.0.0.1:6443");
    assert_eq!(document["kind"], "APIVersions");
    assert_eq!(document["versions"], json!(["v1"]));
    assert_eq!(document["serverAddressByClientCIDRs"][0]["serverAddress"], "127.0.0.1:6443");
}

#[test]
fn groups_prefer_their_most_stable_version() {
    let document = groups(&catalogue());
    let names: Vec<_> =
        document["groups"].as_array().unwrap().iter().map(|group| &group["name"]).collect();
    assert_eq!(names, ["apps", "example.com"]);
    let expected = json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": "example.com",
        "versions": [
            {"groupVersion": "example.com/v1", "version": "v1"},
            {"groupVersion": "example.com/v1beta1", "version": "v1beta1"},
        ],
        "preferredVersion": {"groupVersion": "example.com/v1", "version": "v1"},
    });
    assert_eq!(group(&catalogue(), "example.com"), Some(expected));
    assert_eq!(group(&catalogue(), "nope"), None);
}

#[test]
fn a_version_lists_its_resources_with_their_subresources() {
    let document = resources(&catalogue(), "apps", "v1").unwrap();
    assert_eq!(document["groupVersion"], "apps/v1");
    let mut entries = document["resources"].as_array().unwrap().clone();
    assert!(entries[0].as_object_mut().unwrap().remove("storageVersionHash").unwrap().is_string());
    let verbs = json!(["get", "patch", "update"]);
    let expected = json!([
        {
            "name": "deployments", "singularName": "deployment", "namespaced": true,
            "kind": "Deployment", "verbs": ["create", "get", "list", "watch"],
            "shortNames": ["deploy"], "categories": ["all"],
        },
        {
            "name": "deployments/scale", "singularName": "", "namespaced": true, "kind": "Scale",
            "verbs": verbs, "group": "autoscaling", "version": "v1",
        },
        {
            "name": "deployments/status", "singularName": "", "namespaced": true,
            "kind": "Deployment", "verbs": verbs,
        },
    ]);
    assert_eq!(Value::Array(entries), expected);
    assert_eq!(resources(&catalogue(), "apps", "v9"), None);
}

#[test]
fn all_versions_have_one_storage_version() {
    let hash = |version| {
        resources(&catalogue(), "example.com", version).unwrap()["resources"][0]
            ["storageVersionHash"]
            .clone()
    };
    assert!(hash("v1").is_string());
    assert_eq!(hash("v1"), hash("v1beta1"));
}

#[test]
fn only_what_is_stored_has_a_storage_version() {
    let document = resources(&catalogue(), "", "v1").unwrap();
    let names: Vec<_> =
        document["resources"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["bindings", "namespaces"]);
    assert_eq!(document["resources"][0].get("storageVersionHash"), None);
    assert_eq!(document["resources"][1]["namespaced"], false);
}

#[test]
fn aggregated_discovery_says_the_same_in_one_document() {
    let core = aggregated(&catalogue(), true);
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(core["items"][0]["versions"][0]["resources"][1]["scope"], "Cluster");

    let groups = aggregated(&catalogue(), false);
    assert_eq!(groups["items"][0]["metadata"]["name"], "apps");
    assert_eq!(groups["items"][1]["versions"][0]["version"], "v1");
    let expected = json!({
        "resource": "deployments",
        "responseKind": {"group": "", "version": "", "kind": "Deployment"},
        "scope": "Namespaced", "singularResource": "deployment",
        "verbs": ["create", "get", "list", "watch"],
        "shortNames": ["deploy"], "categories": ["all"],
        "subresources": [
            {
                "subresource": "scale",
                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "verbs": ["get", "patch", "update"],
            },
            {
                "subresource": "status",
                "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                "verbs": ["get", "patch", "update"],
            },
        ],
    });
    assert_eq!(groups["items"][0]["versions"][0]["resources"][0], expected);
}

#[test]
fn an_etag_is_quoted_and_follows_the_content() {
    assert_eq!(etag(b"a").len(), 130);
    assert!(etag(b"a").starts_with('"') && etag(b"a") != etag(b"b"));
}
