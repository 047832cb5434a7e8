//! The controller of cluster roles that collect the rules of other roles.

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::selector::LabelSelector;
use kubeproof_apiserver::loopback::{Client, Resource};
use serde_json::{Map, Value};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Collects the rules, and starts the controller, which runs until the server stops.
pub(crate) async fn start(client: &Client) {
    let Some(roles) = client.resource(GROUP, "v1", "clusterroles") else { return };
    let mut changes = client.subscribe(&roles);
    changes.reset();
    // A role can collect a role that collects others.
    while aggregate(client, &roles).await {}
    let looped = client.clone();
    client.spawn(async move {
        loop {
            changes.changed().await;
            changes.reset();
            aggregate(&looped, &roles).await;
        }
    });
}

/// Updates each role that collects others. Returns whether a role has changed.
async fn aggregate(client: &Client, resource: &Resource) -> bool {
    let objects = client.list(resource, None).items;
    let roles: Vec<Value> =
        objects.iter().map(kubeproof_apiserver::loopback::Object::value).collect();
    let mut has_changed = false;
    for (object, role) in objects.iter().zip(&roles) {
        let Some(selectors) = role.pointer("/aggregationRule/clusterRoleSelectors") else {
            continue;
        };
        let collected = collect(selectors, role.meta("name"), &roles);
        if collected.as_slice() != role["rules"].as_array().map_or(&[][..], Vec::as_slice) {
            let change = |role: &mut Value| role["rules"] = collected.clone().into();
            client.modify(object, None, change).await;
            has_changed = true;
        }
    }
    has_changed
}

/// Returns the rules of all roles that one of the selectors selects, by name and without
/// duplicates.
fn collect(selectors: &Value, own: &str, roles: &[Value]) -> Vec<Value> {
    let selectors = selectors.as_array().into_iter().flatten();
    let selectors: Vec<_> =
        selectors.filter_map(|one| LabelSelector::from_object(one).ok()).collect();
    let none = Map::new();
    let mut collected = Vec::new();
    for role in roles.iter().filter(|role| role.meta("name") != own) {
        let labels = role.pointer("/metadata/labels").and_then(Value::as_object).unwrap_or(&none);
        if !selectors.iter().any(|selector| selector.matches(labels)) {
            continue;
        }
        for rule in role["rules"].as_array().into_iter().flatten() {
            if !collected.contains(rule) {
                collected.push(rule.clone());
            }
        }
    }
    collected
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_of_selected_roles_are_collected_once() {
        let role = |name: &str, label: &str, rules: Value| {
            let metadata = json!({"name": name, "labels": {"to": label}});
            json!({"metadata": metadata, "rules": rules})
        };
        let roles = [
            role("a", "x", json!([{"verbs": ["get"]}])),
            role("b", "y", json!([{"verbs": ["list"]}])),
            role("c", "x", json!([{"verbs": ["get"]}, {"verbs": ["watch"]}])),
            role("own", "x", json!([{"verbs": ["delete"]}])),
        ];
        let selectors = json!([{"matchLabels": {"to": "x"}}]);
        let expected = vec![json!({"verbs": ["get"]}), json!({"verbs": ["watch"]})];
        assert_eq!(collect(&selectors, "own", &roles), expected);
        assert_eq!(collect(&json!([]), "own", &roles), Vec::<Value>::new());
    }
}
