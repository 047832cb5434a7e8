//! Adds the groups of extension servers to the documents.

use serde_json::{Map, Value, json};

use super::group_version;

/// One version of a group that an extension server serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteVersion<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    /// The resources in the form of aggregated discovery, if they are known.
    pub(crate) resources: Option<&'a Value>,
    /// The server responded to the last request.
    pub(crate) is_fresh: bool,
}

/// Adds versions to an `APIGroupList`. Each group comes once.
pub(crate) fn add_to_groups(document: &mut Value, versions: &[RemoteVersion<'_>]) {
    let Some(groups) = document["groups"].as_array_mut() else { return };
    for version in versions {
        match groups.iter_mut().find(|group| group["name"] == version.group) {
            Some(group) => add_version(group, *version),
            None => groups.push(group(*version)),
        }
    }
}

/// Returns the `APIGroup` of `/apis/<group>` with the versions of extension servers, or `None` if
/// no server has the group.
pub(crate) fn group_with(
    document: Option<Value>,
    name: &str,
    versions: &[RemoteVersion<'_>],
) -> Option<Value> {
    let own = versions.iter().filter(|version| version.group == name);
    own.fold(document, |document, version| {
        let mut document = document.unwrap_or_else(|| {
            let mut document = group(*version);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            document
        });
        add_version(&mut document, *version);
        Some(document)
    })
}

/// Adds versions to an `APIGroupDiscoveryList`.
pub(crate) fn add_to_aggregated(document: &mut Value, versions: &[RemoteVersion<'_>]) {
    let Some(items) = document["items"].as_array_mut() else { return };
    for version in versions {
        let entry = json!({
            "version": version.version,
            "resources": version.resources.cloned().unwrap_or_else(|| json!([])),
            "freshness": if version.is_fresh { "Current" } else { "Stale" },
        });
        let known = items.iter_mut().find(|item| item["metadata"]["name"] == version.group);
        let item = match known {
            Some(item) => item,
            None => items.push_mut(json!({"metadata": {"name": version.group}, "versions": []})),
        };
        let Some(served) = item["versions"].as_array_mut() else { continue };
        served.retain(|known| known["version"] != version.version);
        served.push(entry);
    }
}

/// Converts an `APIResourceList` to the resources of aggregated discovery, for servers that have no
/// aggregated discovery.
pub(crate) fn from_legacy(document: &Value) -> Value {
    let entries = document["resources"].as_array().map_or(&[][..], Vec::as_slice);
    let (subresources, resources): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| name(entry).contains('/'));
    let resources = resources.into_iter().map(|entry| {
        let own = subresources.iter().filter_map(|sub| {
            Some((name(sub).strip_prefix(name(entry))?.strip_prefix('/')?, *sub))
        });
        let own: Vec<Value> = own.map(|(name, sub)| subresource(name, sub)).collect();
        resource(entry, own)
    });
    resources.collect()
}

fn group(version: RemoteVersion<'_>) -> Value {
    let entry = entry(version);
    json!({"name": version.group, "versions": [entry.clone()], "preferredVersion": entry})
}

fn add_version(group: &mut Value, version: RemoteVersion<'_>) {
    let Some(versions) = group["versions"].as_array_mut() else { return };
    if !versions.iter().any(|known| known["version"] == version.version) {
        versions.push(entry(version));
    }
}

fn entry(RemoteVersion { group, version, .. }: RemoteVersion<'_>) -> Value {
    json!({"groupVersion": group_version(group, version), "version": version})
}

fn name(entry: &Value) -> &str {
    entry["name"].as_str().unwrap_or_default()
}

fn resource(entry: &Value, subresources: Vec<Value>) -> Value {
    let scope = if entry["namespaced"] == true { "Namespaced" } else { "Cluster" };
    let mut resource = Map::from_iter([
        ("resource".to_owned(), entry["name"].clone()),
        ("responseKind".to_owned(), response_kind(entry)),
        ("scope".to_owned(), scope.into()),
        ("singularResource".to_owned(), entry["singularName"].clone()),
        ("verbs".to_owned(), entry["verbs"].clone()),
    ]);
    for words in ["shortNames", "categories"] {
        if entry[words].is_array() {
            resource.insert(words.to_owned(), entry[words].clone());
        }
    }
    if !subresources.is_empty() {
        resource.insert("subresources".to_owned(), subresources.into());
    }
    resource.into()
}

fn subresource(name: &str, entry: &Value) -> Value {
    json!({
        "subresource": name, "responseKind": response_kind(entry), "verbs": entry["verbs"],
    })
}

fn response_kind(entry: &Value) -> Value {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    json!({"group": text("group"), "version": text("version"), "kind": text("kind")})
}

#[cfg(test)]
mod tests {
    use super::*;

    const FARM: RemoteVersion<'static> =
        RemoteVersion { group: "farm.io", version: "v1", resources: None, is_fresh: false };

    #[test]
    fn versions_join_the_group_of_their_name() {
        let mut document = json!({"groups": [{"name": "apps", "versions": []}]});
        let later = RemoteVersion { version: "v2", ..FARM };
        add_to_groups(&mut document, &[FARM, later, FARM]);
        let entry = |version: &str| {
            let group_version = format!("farm.io/{version}");
            json!({"groupVersion": group_version, "version": version})
        };
        let farm = json!({
            "name": "farm.io", "versions": [entry("v1"), entry("v2")],
            "preferredVersion": entry("v1"),
        });
        assert_eq!(document["groups"][1], farm);
        let found = group_with(None, "farm.io", &[FARM, later]).expect("a group");
        assert_eq!(found["kind"], "APIGroup");
        assert_eq!(found["versions"], farm["versions"]);
        assert_eq!(group_with(None, "zoo.io", &[FARM]), None);
    }

    #[test]
    fn an_unknown_state_is_stale() {
        let mut document = json!({"items": []});
        add_to_aggregated(&mut document, &[FARM]);
        let version = json!({"version": "v1", "resources": [], "freshness": "Stale"});
        let expected = json!([{"metadata": {"name": "farm.io"}, "versions": [version]}]);
        assert_eq!(document["items"], expected);
    }

    #[test]
    fn a_legacy_document_becomes_aggregated() {
        let document = json!({"resources": [
            {"name": "barns", "singularName": "barn", "namespaced": true, "kind": "Barn",
             "verbs": ["get"], "shortNames": ["bn"]},
            {"name": "barns/scale", "singularName": "", "namespaced": true, "kind": "Scale",
             "group": "autoscaling", "version": "v1", "verbs": ["update"]},
        ]});
        let expected = json!([{
            "resource": "barns", "singularResource": "barn", "scope": "Namespaced",
            "responseKind": {"group": "", "version": "", "kind": "Barn"},
            "verbs": ["get"], "shortNames": ["bn"],
            "subresources": [{
                "subresource": "scale", "verbs": ["update"],
                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            }],
        }]);
        assert_eq!(from_legacy(&document), expected);
    }
}
