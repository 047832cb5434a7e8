//! Aggregated discovery: all groups in one document.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::legacy::verbs;
use super::{Resource, Subresource, sorted, versions_by_group};

/// Returns the `APIGroupDiscoveryList` of `/api` (the core group) or of `/apis` (all others).
pub(crate) fn aggregated(resources: &[Arc<Resource>], core: bool) -> Value {
    let groups =
        versions_by_group(resources).into_iter().filter(|(group, _)| group.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|(group, versions)| {
            let versions = versions.into_iter().map(|version| {
                let resources = sorted(resources, group, version);
                let resources: Vec<_> = resources.into_iter().map(describe).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            });
            let metadata = if core { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn describe(resource: &Resource) -> Value {
    let mut entry = Map::new();
    entry.insert("resource".into(), json!(resource.plural));
    entry.insert("responseKind".into(), json!({"group": "", "version": "", "kind": resource.kind}));
    entry.insert("scope".into(), json!(if resource.namespaced { "Namespaced" } else { "Cluster" }));
    entry.insert("singularResource".into(), json!(resource.singular));
    entry.insert("verbs".into(), json!(verbs(resource)));
    if !resource.short_names.is_empty() {
        entry.insert("shortNames".into(), json!(resource.short_names));
    }
    if !resource.categories.is_empty() {
        entry.insert("categories".into(), json!(resource.categories));
    }
    if !resource.subresources.is_empty() {
        let subresources =
            resource.subresources.iter().map(|sub| describe_subresource(sub, resource));
        entry.insert("subresources".into(), subresources.collect());
    }
    Value::Object(entry)
}

/// Group and version are empty if they are those of the enclosing entry.
fn describe_subresource(subresource: &Subresource, resource: &Resource) -> Value {
    let own = (&subresource.group, &subresource.version) != (&resource.group, &resource.version);
    let (group, version) =
        if own { (&*subresource.group, &*subresource.version) } else { ("", "") };
    json!({
        "subresource": subresource.name,
        "responseKind": {"group": group, "version": version, "kind": subresource.kind},
        "verbs": subresource.verbs,
    })
}
