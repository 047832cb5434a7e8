//! The controller that deletes the custom resources of a definition that is being deleted.

use kubeproof_apiserver::loopback::{CLEANUP_FINALIZER, Client, DeleteOptions, Object};

use serde_json::Value;

use crate::finalizer;
use crate::terminating::{self, Progress};

/// Starts the controller, which runs until the server stops.
pub(crate) fn start(client: &Client) {
    let definitions = client.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    if let Some(definitions) = definitions {
        terminating::run(client, definitions, |client, definition| {
            Box::pin(finalize(client, definition))
        });
    }
}

/// Deletes the objects of a definition, and then removes its finalizer.
async fn finalize(client: &Client, definition: &Object) -> Progress {
    if !definition.has_finalizer(CLEANUP_FINALIZER) {
        return Progress::Complete;
    }
    if let Some(custom) = client.custom_resource(definition.name()) {
        for instance in client.list(&custom, None).items {
            // An error means that the object is already deleted, or waits for a finalizer.
            let _ = client.delete(&instance, &DeleteOptions::default()).await;
        }
        if !client.list(&custom, None).items.is_empty() {
            return Progress::Waits;
        }
    }
    let release = |object: &mut Value| finalizer::remove(object, CLEANUP_FINALIZER);
    client.modify(definition, None, release).await;
    Progress::Complete
}
