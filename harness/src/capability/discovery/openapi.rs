//! Finds resources in the OpenAPI documents, where discovery has gaps.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::Value;

use super::documents::{group_version, named};
use super::{AT_ONCE, Resources};
use crate::capability::{Discovered, Requester};

const INDEX: &str = "/openapi/v3";

/// Returns the paths of the group versions in the index of OpenAPI v3.
pub(super) async fn roots(requester: &Requester<'_>) -> BTreeSet<String> {
    let index = requester.get(INDEX, "application/json").await;
    let paths = index.json().and_then(|index| index["paths"].as_object());
    let roots = paths.into_iter().flatten().map(|(path, _)| format!("/{path}"));
    roots.filter(|root| group_version(root).is_some_and(|(_, v)| !v.contains('/'))).collect()
}

/// Returns the resources of group versions. Reads OpenAPI v3, and v2 if a server has no other
/// document.
pub(super) async fn resources(requester: &Requester<'_>, roots: &BTreeSet<String>) -> Resources {
    let all: Vec<&String> = roots.iter().collect();
    let mut found = Resources::new();
    let mut has_v3 = false;
    for some in all.chunks(AT_ONCE) {
        let documents = join_all(some.iter().map(|root| document_of(requester, root))).await;
        for (root, document) in some.iter().zip(documents) {
            has_v3 |= document.is_some();
            found.extend(document.map(|document| published(&document, root)).unwrap_or_default());
        }
    }
    if !has_v3 {
        let document = requester.get("/openapi/v2", "application/json").await;
        if let Some(document) = document.json() {
            found.extend(roots.iter().flat_map(|root| published(document, root)));
        }
    }
    found
}

async fn document_of(requester: &Requester<'_>, root: &str) -> Option<Value> {
    let exchange = requester.get(&format!("{INDEX}{root}"), "application/json").await;
    exchange.json().filter(|document| document["paths"].is_object()).cloned()
}

/// Returns the resources that the paths of a document describe.
fn published(document: &Value, root: &str) -> Resources {
    let Some((group, version)) = group_version(root) else { return Resources::new() };
    let mut resources: BTreeMap<&str, Discovered> = BTreeMap::new();
    let mut subresources = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let Some(rest) = path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let (namespaced, rest) = match rest.strip_prefix("namespaces/{namespace}/") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        match rest.split('/').collect::<Vec<_>>()[..] {
            [plural] | [plural, "{name}"] if !plural.is_empty() => {
                let found = resources.entry(plural).or_default();
                found.namespaced |= namespaced;
                found.verbs.extend(verbs(item, rest.ends_with("/{name}")));
                if found.kind.is_empty() {
                    kind(item).unwrap_or_default().clone_into(&mut found.kind);
                }
            }
            [plural, "{name}", subresource] => {
                subresources.push((plural, subresource.to_owned(), verbs(item, true).collect()));
            }
            _ => {}
        }
    }
    for (plural, subresource, verbs) in subresources {
        if let Some(parent) = resources.get_mut(plural) {
            parent.subresources.insert(subresource, verbs);
        }
    }
    let complete = resources.into_iter().filter(|(_, found)| !found.kind.is_empty());
    complete.map(|(plural, found)| (named(plural, group, version), found)).collect()
}

/// Returns the verbs of the operations of a path.
fn verbs(item: &Value, of_element: bool) -> impl Iterator<Item = String> {
    let has = |method: &str| item[method].is_object();
    let verbs = if of_element {
        [("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete")]
    } else {
        [("get", "list"), ("post", "create"), ("delete", "deletecollection"), ("get", "watch")]
    };
    let watches = item["get"]["parameters"].as_array().is_none_or(|parameters| {
        // Documents may refer to parameters, so only a list of plain ones is complete.
        let names = || parameters.iter().map(|parameter| parameter["name"].as_str());
        names().any(|name| name.is_none_or(|name| name == "watch"))
    });
    let found: Vec<String> = verbs
        .into_iter()
        .filter(|(method, verb)| has(method) && (*verb != "watch" || watches))
        .map(|(_, verb)| verb.to_owned())
        .collect();
    found.into_iter()
}

/// Returns the kind of the objects of a path.
fn kind(item: &Value) -> Option<&str> {
    let operations = ["get", "post", "put"].iter().map(|method| &item[*method]);
    let kinds = operations
        .filter_map(|operation| operation["x-kubernetes-group-version-kind"]["kind"].as_str());
    kinds.filter(|kind| !kind.is_empty()).min_by_key(|kind| kind.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_describe_resources() {
        let of = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
        let operation = json!({"x-kubernetes-group-version-kind": of, "parameters": []});
        let watched = json!({
            "x-kubernetes-group-version-kind": of,
            "parameters": [{"name": "limit"}, {"name": "watch"}],
        });
        let document = json!({"paths": {
            "/apis/apps/v1/deployments": {"get": watched},
            "/apis/apps/v1/namespaces/{namespace}/deployments":
                {"get": watched, "post": operation, "parameters": []},
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}":
                {"get": operation, "put": operation},
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale": {"get": operation},
            "/apis/apps/v1/watch/deployments": {"get": operation},
            "/apis/apps/v1/": {"get": {}},
            "/apis/apps/v2/other": {"get": operation},
        }});
        let resources = published(&document, "/apis/apps/v1");
        let names: Vec<String> = resources.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["deployments.v1.apps"]);
        let found = &resources[&named("deployments", "apps", "v1")];
        assert_eq!((found.kind.as_str(), found.namespaced), ("Deployment", true));
        let verbs: Vec<&str> = found.verbs.iter().map(String::as_str).collect();
        assert_eq!(verbs, ["create", "get", "list", "update", "watch"]);
        assert!(found.subresources["scale"].contains("get"));
    }

    #[test]
    fn other_documents_describe_nothing() {
        for document in [json!({}), json!({"paths": []}), json!({"paths": {"/api/v1/x": 1}})] {
            assert_eq!(published(&document, "/api/v1"), Resources::new());
        }
    }
}
