//! The controller that registers the groups which the server itself serves.
//!
//! As in kube-apiserver, each group and version has an `APIService` without a service. The server
//! creates those of built-in groups when it starts, and keeps those of definitions up to date.

mod priorities;

use std::collections::BTreeSet;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::object::timestamp;
use kubeproof_apiserver::loopback::{Client, DeleteOptions, Resource};
use serde_json::{Value, json};

use self::priorities::{Priority, of_built_in, of_definition};
use crate::followed::Followed;

/// The label of objects that the server manages.
const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The value of objects that are restored when the server starts.
const ON_START: &str = "onstart";
/// The value of objects that are restored at once.
const ALWAYS: &str = "true";

/// A group and a version.
type GroupVersion = (String, String);

/// Creates the objects of the built-in groups, and starts the controller for definitions, which
/// runs until the server stops.
pub(crate) async fn start(client: &Client) {
    let resource = |group, plural| client.resource(group, "v1", plural);
    let Some(services) = resource("apiregistration.k8s.io", "apiservices") else { return };
    for (group, version) in client.built_in_versions() {
        if let Some(priority) = of_built_in(&group, &version) {
            restore(client, &services, object(&group, &version, priority, ON_START)).await;
        }
    }
    let Some(definitions) = resource("apiextensions.k8s.io", "customresourcedefinitions") else {
        return;
    };
    let mut controller = Controller {
        client: client.clone(),
        services: Followed::new(services, managed),
        definitions: Followed::new(definitions, served),
    };
    client.spawn(async move {
        let mut services = controller.client.subscribe(controller.services.resource());
        let mut definitions = controller.client.subscribe(controller.definitions.resource());
        loop {
            services.reset();
            definitions.reset();
            controller.reconcile().await;
            tokio::select! {
                () = services.changed() => {}
                () = definitions.changed() => {}
            }
        }
    });
}

/// The controller of the groups of definitions.
struct Controller {
    client: Client,
    /// The value of the label, and the spec.
    services: Followed<(String, Value)>,
    definitions: Followed<Vec<GroupVersion>>,
}

impl Controller {
    async fn reconcile(&mut self) {
        // In this order: each managed object that is known belongs to a definition that is known,
        // unless the definition is deleted.
        self.services.catch_up(&self.client);
        self.definitions.catch_up(&self.client);
        let wanted: BTreeSet<&GroupVersion> = self.definitions.values().flatten().collect();
        let resource = self.services.resource();
        for (group, version) in &wanted {
            let name = format!("{version}.{group}");
            let object = object(group, version, of_definition(), ALWAYS);
            let is_right = self
                .services
                .get(&name)
                .is_some_and(|(label, spec)| label != ALWAYS || *spec == object["spec"]);
            if !is_right {
                restore(&self.client, resource, object).await;
            }
        }
        for (name, (label, spec)) in self.services.entries() {
            let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
            if label == ALWAYS && !wanted.contains(&(text("group"), text("version"))) {
                remove(&self.client, resource, name).await;
            }
        }
    }
}

/// Creates an object, or restores the spec of an object with the label of the server.
async fn restore(client: &Client, resource: &Resource, object: Value) {
    let name = object.meta("name").to_owned();
    let Some(existing) = client.get(resource, "", &name) else {
        return client.create(resource, object).await;
    };
    let change = |existing: &mut Value| {
        if !managed(existing).0.is_empty() && existing["spec"] != object["spec"] {
            existing["spec"] = object["spec"].clone();
        }
    };
    client.modify(&existing, None, change).await;
}

async fn remove(client: &Client, resource: &Resource, name: &str) {
    if let Some(object) = client.get(resource, "", name) {
        let options =
            DeleteOptions { uid: Some(object.uid().to_owned()), ..DeleteOptions::default() };
        // An error means that the object is already deleted.
        let _ = client.delete(&object, &options).await;
    }
}

/// Returns an `APIService` of a local group, which is always available.
fn object(group: &str, version: &str, priority: Priority, label: &str) -> Value {
    let mut spec = json!({
        "version": version, "groupPriorityMinimum": priority.group,
        "versionPriority": priority.version,
    });
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    let condition = json!({
        "type": "Available", "status": "True", "lastTransitionTime": timestamp(0),
        "reason": "Local", "message": "Local APIServices are always available",
    });
    json!({
        "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": format!("{version}.{group}"), "labels": {LABEL: label}},
        "spec": spec, "status": {"conditions": [condition]},
    })
}

/// Returns the label of the server, which is empty for objects of users, and the spec.
fn managed(service: &Value) -> (String, Value) {
    let label = service["metadata"]["labels"][LABEL].as_str().unwrap_or_default();
    (label.to_owned(), service["spec"].clone())
}

/// Returns the served versions of a definition.
fn served(definition: &Value) -> Vec<GroupVersion> {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    let names = served.filter_map(|version| version["name"].as_str());
    names.map(|name| (group.to_owned(), name.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_served_versions_have_a_service() {
        let versions = json!([
            {"name": "v1", "served": true}, {"name": "v2", "served": false},
            {"name": "v3", "served": true},
        ]);
        let definition = json!({"spec": {"group": "farm.io", "versions": versions}});
        let pair = |version: &str| ("farm.io".to_owned(), version.to_owned());
        assert_eq!(served(&definition), [pair("v1"), pair("v3")]);
    }

    #[test]
    fn the_core_group_has_no_group_in_its_spec() {
        let priority = of_built_in("", "v1").expect("a priority");
        let object = object("", "v1", priority, ON_START);
        assert_eq!(object["metadata"]["name"], "v1.");
        let expected =
            json!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1});
        assert_eq!(managed(&object), (ON_START.to_owned(), expected));
    }
}
