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
    let mut namespaces = client.subscribe(&defaults.namespaces);
    let mut removals = client.subscribe_removals();
    let mut any = client.subscribe_all();
    namespaces.reset();
    removals.reset();
    any.reset();
    let mut is_complete = defaults.complete(client).await;
    client.spawn(async move {
        loop {
            // Only a new namespace or a removal makes objects missing.
            tokio::select! {
                () = namespaces.changed() => {}
                () = removals.changed() => {}
                () = any.changed(), if !is_complete => {}
            }
            namespaces.reset();
            removals.reset();
            any.reset();
            let Some(client) = weak.upgrade() else { return };
            is_complete = defaults.complete(&client).await;
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
    /// Creates what is missing in the namespaces. Returns whether all of it exists then.
    async fn complete(&self, client: &Client) -> bool {
        let mut is_complete = true;
        for namespace in client.list(&self.namespaces, None).items {
            if namespace.is_deleting() {
                continue;
            }
            let name = namespace.name();
            let account = object("ServiceAccount", name, ACCOUNT);
            is_complete &= create(client, &self.accounts, name, account).await;
            if let Some((maps, ca_pem)) = &self.maps {
                let mut map = object("ConfigMap", name, AUTHORITY);
                map["data"] = json!({"ca.crt": ca_pem});
                is_complete &= create(client, maps, name, map).await;
            }
        }
        is_complete
    }
}

fn object(kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "kind": kind, "apiVersion": "v1", "metadata": {"namespace": namespace, "name": name},
    })
}

/// Creates an object unless it exists. Returns whether it exists then.
async fn create(client: &Client, resource: &Resource, namespace: &str, object: Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let exists = || client.get(resource, namespace, &name).is_some();
    if exists() {
        return true;
    }
    client.create(resource, object).await;
    exists()
}
