//! The roles and bindings of a new cluster, as kube-apiserver creates them.
//!
//! The rules are data. Roles such as `admin` collect the rules of other roles, which a controller
//! does.

use std::sync::LazyLock;

use futures_util::future::try_join_all;
use kubeproof_storage::WriteError;
use serde_json::{Map, Value, json};

use super::bootstrap;
use crate::registry::Lookup;
use crate::registry::builtin::rbac::GROUP;
use crate::server::ApiServer;

/// The roles and bindings of Kubernetes 1.36. All servers of a process share them.
static DATA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/bootstrap-roles.json")).unwrap_or_default()
});

/// The parts of the data, with the resource and the kind of their objects.
const PARTS: [(&str, &str, &str); 4] = [
    ("clusterRoles", "clusterroles", "ClusterRole"),
    ("clusterRoleBindings", "clusterrolebindings", "ClusterRoleBinding"),
    ("roles", "roles", "Role"),
    ("roleBindings", "rolebindings", "RoleBinding"),
];

/// Creates the roles and bindings, if the server serves their types.
pub(crate) async fn create(api: &ApiServer) -> Result<(), WriteError> {
    for (part, plural, kind) in PARTS {
        let Lookup::Found(ty) = api.registry.current().find(GROUP, "v1", plural) else { continue };
        let entries = DATA[part].as_array().into_iter().flatten();
        let writes = entries.map(|entry| bootstrap::create(api, &ty, object(kind, entry)));
        // Concurrent writes share a transaction of the storage.
        try_join_all(writes).await?;
    }
    Ok(())
}

/// Returns the object of an entry.
fn object(kind: &str, entry: &Value) -> Value {
    let mut labels = entry["labels"].as_object().cloned().unwrap_or_default();
    labels.insert("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".into());
    let mut metadata = json!({
        "name": entry["name"], "labels": labels,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if let Some(namespace) = entry.get("namespace") {
        metadata["namespace"] = namespace.clone();
    }
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata,
    });
    if let Some(role) = entry.get("role") {
        object["roleRef"] = json!({"apiGroup": GROUP, "kind": entry["roleKind"], "name": role});
        object["subjects"] = entry["subjects"].clone();
        return object;
    }
    object["rules"] = entry["rules"].clone();
    if let Some(label) = entry["aggregates"].as_str() {
        let labels = Map::from_iter([(label.to_owned(), "true".into())]);
        let selector = json!({"matchLabels": labels});
        object["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_entries_with_names_and_roles() {
        let mut roles = Vec::new();
        for (part, _, kind) in PARTS {
            let entries = DATA[part].as_array().expect("a part of the data");
            assert!(!entries.is_empty(), "{part}");
            let objects = entries.iter().map(|entry| object(kind, entry));
            for object in objects {
                assert!(object["metadata"]["name"].is_string(), "{object}");
                if kind.ends_with("Binding") {
                    let name = object["roleRef"]["name"].as_str().expect("a role").to_owned();
                    assert!(roles.contains(&name), "{object}");
                } else {
                    roles.push(object["metadata"]["name"].as_str().expect("a name").to_owned());
                    let has_rules = object["rules"].as_array().is_some_and(|all| !all.is_empty());
                    assert!(has_rules || object.get("aggregationRule").is_some(), "{object}");
                }
            }
        }
    }
}
