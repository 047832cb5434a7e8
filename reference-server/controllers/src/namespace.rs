//! The controller that deletes the content of a namespace that is being deleted, and then the
//! namespace.

use kubeproof_apiserver::loopback::{Client, DeleteOptions, Object, Propagation};
use serde_json::Value;

use crate::terminating;

/// The finalizer in the spec of a namespace until its content is deleted.
const FINALIZER: &str = "kubernetes";

/// Starts the controller, which runs until the server stops.
pub(crate) fn start(client: &Client) {
    if let Some(namespaces) = client.resource("", "v1", "namespaces") {
        terminating::run(client, namespaces, |client, namespace| {
            Box::pin(async {
                empty(client, namespace.name()).await;
                finalize(client, namespace).await
            })
        });
    }
}

async fn empty(client: &Client, namespace: &str) {
    let options = DeleteOptions {
        grace: Some(0),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    for resource in client.resources() {
        if !resource.is_namespaced() {
            continue;
        }
        for object in client.list(&resource, Some(namespace)).items {
            // An error means that the object is already deleted, or waits for a finalizer.
            let _ = client.delete(&object, &options).await;
        }
    }
}

/// Deletes the namespace when it is empty. Returns whether the work is complete: the remaining
/// finalizers belong to clients, whose update completes the deletion.
async fn finalize(client: &Client, namespace: &Object) -> bool {
    let change = |object: &mut Value| {
        let finalizers = object.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut);
        if let Some(finalizers) = finalizers {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
    };
    client.finalize_namespace(namespace, change).await
}
