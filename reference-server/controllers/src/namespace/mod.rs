//! The controller that deletes the content of a namespace that is being deleted, and then the
//! namespace.

mod conditions;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apiserver::loopback::{Client, DeleteOptions, Object, Propagation, Resource};
use serde_json::Value;

use self::conditions::Remaining;
use crate::terminating::{self, Progress};

/// The finalizer in the spec of a namespace until its content is deleted.
const FINALIZER: &str = "kubernetes";

/// Starts the controller, which runs until the server stops.
pub(crate) fn start(client: &Client) {
    if let Some(namespaces) = client.resource("", "v1", "namespaces") {
        terminating::run(client, namespaces, |client, namespace| {
            Box::pin(delete(client, namespace))
        });
    }
}

/// Deletes the content of a namespace, and removes the finalizer of the controller if none is left.
async fn delete(client: &Client, namespace: &Object) -> Progress {
    let name = namespace.name();
    empty(client, name).await;
    let content = client.delete_remote_content(name).await;
    let has_remote = !content.is_empty();
    if !has_remote && finalize(client, namespace).await {
        return Progress::Complete;
    }
    let mut remaining = remaining(client, name);
    remaining.add_remote(content);
    client.modify(namespace, None, |object| remaining.report(object)).await;
    // The content of extension servers changes without a write in this server.
    if has_remote { Progress::Retry } else { Progress::Waits }
}

async fn empty(client: &Client, namespace: &str) {
    let options = DeleteOptions {
        grace: Some(0),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    for resource in namespaced(client) {
        for object in client.list(&resource, Some(namespace)).items {
            // An error means that the object is already deleted, or waits for a finalizer.
            let _ = client.delete(&object, &options).await;
        }
    }
}

/// Removes the finalizer of the controller if the namespace is empty. Returns whether the work is
/// complete: the remaining finalizers belong to clients, whose update completes the deletion.
async fn finalize(client: &Client, namespace: &Object) -> bool {
    let change = |object: &mut Value| {
        let finalizers = object.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut);
        if let Some(finalizers) = finalizers {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
    };
    client.finalize_namespace(namespace, change).await
}

/// Counts what remains in a namespace.
fn remaining(client: &Client, namespace: &str) -> Remaining {
    let mut remaining = Remaining::default();
    for resource in namespaced(client) {
        let objects = client.list(&resource, Some(namespace)).items;
        if objects.is_empty() {
            continue;
        }
        let name = format!("{}.{}", resource.plural(), resource.group());
        remaining.resources.insert(name, objects.len());
        for finalizer in objects.iter().flat_map(|object| object.value().meta_list("finalizers")) {
            *remaining.finalizers.entry(finalizer).or_default() += 1;
        }
    }
    remaining
}

fn namespaced(client: &Client) -> impl Iterator<Item = Resource> {
    client.resources().into_iter().filter(Resource::is_namespaced)
}
