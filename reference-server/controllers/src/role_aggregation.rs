//! The controller of cluster roles that collect the rules of other roles.

use kubeproof_apimachinery::selector::LabelSelector;
use kubeproof_apiserver::loopback::Client;
use serde_json::{Map, Value};

use crate::followed::Followed;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Collects the rules, and starts the controller, which runs until the server stops.
pub(crate) async fn start(client: &Client) {
    let Some(resource) = client.resource(GROUP, "v1", "clusterroles") else { return };
    let mut changes = client.subscribe(&resource);
    changes.reset();
    let mut roles = Followed::new(resource, Role::of);
    // A role can collect a role that collects others.
    while aggregate(client, &mut roles).await {}
    let looped = client.clone();
    client.spawn(async move {
        loop {
            changes.changed().await;
            changes.reset();
            aggregate(&looped, &mut roles).await;
        }
    });
}

/// What the controller needs of a role.
struct Role {
    labels: Map<String, Value>,
    rules: Vec<Value>,
    /// Which other roles this one collects, if it collects any.
    selectors: Option<Vec<LabelSelector>>,
}

impl Role {
    fn of(role: &Value) -> Self {
        let selectors = role.pointer("/aggregationRule/clusterRoleSelectors");
        let parse = |list: &Value| {
            let list = list.as_array().into_iter().flatten();
            list.filter_map(|one| LabelSelector::from_object(one).ok()).collect()
        };
        let labels = role["metadata"]["labels"].as_object();
        Self {
            labels: labels.cloned().unwrap_or_default(),
            rules: role["rules"].as_array().cloned().unwrap_or_default(),
            selectors: selectors.map(parse),
        }
    }
}

/// Updates each role that collects others. Returns whether a role has changed.
async fn aggregate(client: &Client, roles: &mut Followed<Role>) -> bool {
    roles.catch_up(client);
    let mut has_changed = false;
    for (name, role) in roles.entries() {
        let Some(selectors) = &role.selectors else { continue };
        let collected = collect(selectors, name, roles.entries());
        if collected == role.rules {
            continue;
        }
        if let Some(object) = client.get(roles.resource(), "", name) {
            let change = |role: &mut Value| role["rules"] = collected.clone().into();
            client.modify(&object, None, change).await;
            has_changed = true;
        }
    }
    has_changed
}

/// Returns the rules of all roles that one of the selectors selects, by name and without
/// duplicates.
fn collect<'r>(
    selectors: &[LabelSelector],
    own: &str,
    roles: impl Iterator<Item = (&'r String, &'r Role)>,
) -> Vec<Value> {
    let mut collected = Vec::new();
    for (_, role) in roles.filter(|(name, _)| *name != own) {
        if !selectors.iter().any(|selector| selector.matches(&role.labels)) {
            continue;
        }
        for rule in &role.rules {
            if !collected.contains(rule) {
                collected.push(rule.clone());
            }
        }
    }
    collected
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn rules_of_selected_roles_are_collected_once() {
        let role = |name: &str, label: &str, rules: Value| {
            let role = json!({"metadata": {"labels": {"to": label}}, "rules": rules});
            (name.to_owned(), Role::of(&role))
        };
        let roles = BTreeMap::from([
            role("a", "x", json!([{"verbs": ["get"]}])),
            role("b", "y", json!([{"verbs": ["list"]}])),
            role("c", "x", json!([{"verbs": ["get"]}, {"verbs": ["watch"]}])),
            role("own", "x", json!([{"verbs": ["delete"]}])),
        ]);
        let selector = json!({"matchLabels": {"to": "x"}});
        let collecting = json!({"aggregationRule": {"clusterRoleSelectors": [selector]}});
        let selectors = Role::of(&collecting).selectors.unwrap();
        let expected = vec![json!({"verbs": ["get"]}), json!({"verbs": ["watch"]})];
        assert_eq!(collect(&selectors, "own", roles.iter()), expected);
        assert_eq!(collect(&[], "own", roles.iter()), Vec::<Value>::new());
    }
}
