//! Reads the published discovery documents: the resources and their subresources.

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

use super::source::{Source, is_stable};

/// A version of a group.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) resources: Vec<Resource>,
}

/// A resource of aggregated discovery.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    #[serde(rename = "resource")]
    pub(crate) plural: String,
    pub(crate) response_kind: Kind,
    pub(crate) scope: String,
    #[serde(default, rename = "singularResource")]
    pub(crate) singular: String,
    pub(crate) verbs: Vec<String>,
    #[serde(default)]
    pub(crate) short_names: Vec<String>,
    #[serde(default)]
    pub(crate) categories: Vec<String>,
    #[serde(default)]
    pub(crate) subresources: Vec<Subresource>,
}

/// A subresource of aggregated discovery.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subresource {
    #[serde(rename = "subresource")]
    pub(crate) name: String,
    pub(crate) response_kind: Kind,
    pub(crate) verbs: Vec<String>,
}

/// The kind of a body. An empty group and version are those of the resource.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Kind {
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(rename = "kind")]
    pub(crate) name: String,
}

/// Reads the resources of the stable versions, the core group first.
pub(crate) fn read(source: &Source) -> anyhow::Result<Vec<Version>> {
    let legacy: Value = serde_json::from_str(&source.read("api/discovery/api__v1.json")?)?;
    let mut versions = vec![Version {
        group: String::new(),
        name: "v1".to_owned(),
        resources: core(&legacy).context("api__v1.json has an unexpected form")?,
    }];
    let mut groups: Value =
        serde_json::from_str(&source.read("api/discovery/aggregated_v2.json")?)?;
    for group in groups["items"].as_array_mut().into_iter().flatten() {
        let name = group["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        for version in group["versions"].as_array_mut().into_iter().flatten() {
            let text = version["version"].as_str().unwrap_or_default().to_owned();
            if is_stable(&text) {
                versions.push(Version {
                    group: name.clone(),
                    name: text,
                    resources: serde_json::from_value(version["resources"].take())?,
                });
            }
        }
    }
    Ok(versions)
}

/// Converts the resources of an unaggregated document.
fn core(document: &Value) -> Option<Vec<Resource>> {
    let mut resources: Vec<Resource> = Vec::new();
    for entry in document["resources"].as_array()? {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let words = |field: &str| {
            let words = entry[field].as_array().into_iter().flatten();
            words.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let kind = Kind { group: text("group"), version: text("version"), name: text("kind") };
        let name = text("name");
        if let Some((parent, subresource)) = name.split_once('/') {
            let parent = resources.iter_mut().find(|resource| resource.plural == parent)?;
            parent.subresources.push(Subresource {
                name: subresource.to_owned(),
                response_kind: kind,
                verbs: words("verbs"),
            });
            continue;
        }
        let scope = if entry["namespaced"].as_bool()? { "Namespaced" } else { "Cluster" };
        resources.push(Resource {
            plural: name,
            response_kind: kind,
            scope: scope.to_owned(),
            singular: text("singularName"),
            verbs: words("verbs"),
            short_names: words("shortNames"),
            categories: words("categories"),
            subresources: Vec::new(),
        });
    }
    Some(resources)
}
