//! A loop over the objects of one resource whose deletion has begun.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use kubeproof_apiserver::loopback::{Client, Object, Resource};

/// Finishes the deletion of an object. Returns whether the work is complete.
pub(crate) type Finalize = for<'a> fn(&'a Client, &'a Object) -> BoxFuture<'a, bool>;

/// Calls `finalize` for each object of `resource` whose deletion has started, and again after each
/// write. It stops for an object when `finalize` returns true.
pub(crate) fn run(client: &Client, resource: Resource, finalize: Finalize) {
    let looped = client.clone();
    client.spawn(async move {
        let client = looped;
        let mut own = client.subscribe(&resource);
        let mut any = client.subscribe_all();
        // Objects that wait only for the finalizers of clients. The client that removes a finalizer
        // completes the deletion.
        let mut done = BTreeSet::new();
        loop {
            own.reset();
            any.reset();
            let objects = client.list(&resource, None).items;
            let deleting: Vec<&Object> = objects.iter().filter(|one| one.is_deleting()).collect();
            // By UID, because another object can have the same name in the next round.
            done.retain(|uid: &String| deleting.iter().any(|object| object.uid() == uid));
            for object in &deleting {
                if !done.contains(object.uid()) && finalize(&client, object).await {
                    done.insert(object.uid().to_owned());
                }
            }
            if done.len() < deleting.len() {
                any.changed().await;
            } else {
                own.changed().await;
            }
        }
    });
}
