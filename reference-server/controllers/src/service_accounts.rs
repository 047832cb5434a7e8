//! The controllers that create the default service account of each namespace, and the config map
//! with the certificate authority of the server.

use kubeproof_apiserver::loopback::{Client, Resource};
use serde_json::{Value, json};

const ACCOUNT: &str = "default";
const AUTHORITY: &str = "kube-root-ca.crt";

/// Creates the objects of the existing namespaces, and starts the controller for new ones.
pub(crate) async fn start(client: &Client, ca_pem: Option<String>) {
    let resource = |plural| client.resource("", "v1", plural);
    let (Some(namespaces), Some(accounts)) = (resource("namespaces"), resource("serviceaccounts"))
    else {
        return;
    };
    let defaults = Defaults { namespaces, accounts, maps: resource("configmaps").zip(ca_pem) };
    let weak = client.downgrade();
    let mut changes = client.subscribe_all();
    changes.reset();
    defaults.complete(client).await;
    client.spawn(async move {
        loop {
            changes.changed().await;
            changes.reset();
            let Some(client) = weak.upgrade() else { return };
            defaults.complete(&client).await;
        }
    });
}

/// What each namespace gets.
struct Defaults {
    namespaces: Resource,
    accounts: Resource,
    /// Config maps, and the certificate authority in PEM.
    maps: Option<(Resource, String)>,
}

impl Defaults {
    /// Creates what is missing in the namespaces.
    async fn complete(&self, client: &Client) {
        for namespace in client.list(&self.namespaces, None).items {
            if namespace.is_deleting() {
                continue;
            }
            let name = namespace.name();
            let account = object("ServiceAccount", name, ACCOUNT);
            create(client, &self.accounts, name, account).await;
            if let Some((maps, ca_pem)) = &self.maps {
                let mut map = object("ConfigMap", name, AUTHORITY);
                map["data"] = json!({"ca.crt": ca_pem});
                create(client, maps, name, map).await;
            }
        }
    }
}

fn object(kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "kind": kind, "apiVersion": "v1", "metadata": {"namespace": namespace, "name": name},
    })
}

/// Creates an object unless it exists.
async fn create(client: &Client, resource: &Resource, namespace: &str, object: Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if client.get(resource, namespace, name).is_none() {
        client.create(resource, object).await;
    }
}
