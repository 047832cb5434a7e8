//! The controller that accepts the names of definitions when another definition frees them.

use kubeproof_apiserver::loopback::{Client, Object, Resource};
use serde_json::Value;

/// Starts the controller, which runs until the server stops.
pub(crate) fn start(client: &Client) {
    let definitions = client.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Some(definitions) = definitions else { return };
    let looped = client.clone();
    client.spawn(async move {
        let mut changes = looped.subscribe(&definitions);
        loop {
            changes.reset();
            accept(&looped, &definitions).await;
            changes.changed().await;
        }
    });
}

/// Updates the status of each definition whose names are not accepted.
async fn accept(client: &Client, definitions: &Resource) {
    let items = client.list(definitions, None).items;
    let all: Vec<Value> = items.iter().map(Object::value).collect();
    for (definition, value) in items.iter().zip(&all) {
        if are_names_accepted(value) {
            continue;
        }
        let status = client.definition_status(value, &all);
        let change = |definition: &mut Value| {
            // A new spec has a status of its own.
            if definition["spec"] == value["spec"] {
                definition["status"] = status.clone();
            }
        };
        client.modify(definition, None, change).await;
    }
}

fn are_names_accepted(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == "NamesAccepted")
        .all(|condition| condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_definitions_with_a_conflict_are_checked_again() {
        let with = |status: &str| {
            let condition = json!({"type": "NamesAccepted", "status": status});
            json!({"status": {"conditions": [condition]}})
        };
        assert!(are_names_accepted(&with("True")));
        assert!(!are_names_accepted(&with("False")));
    }
}
