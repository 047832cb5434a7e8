//! A loop over the objects of one resource whose deletion has begun.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kubeproof_apiserver::loopback::{Client, Object, Resource};
use tokio::time::sleep;

/// The time after which the controller tries again what no write of the server announces.
const RETRY: Duration = Duration::from_millis(500);

/// The progress of the deletion of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The work of the controller is complete.
    Complete,
    /// The work continues after a write.
    Waits,
    /// The work continues after some time, too.
    Retry,
}

/// Finishes the deletion of an object.
pub(crate) type Finalize = for<'a> fn(&'a Client, &'a Object) -> BoxFuture<'a, Progress>;

/// Calls `finalize` for each object of `resource` whose deletion has started, and again after each
/// write. It stops for an object when `finalize` is complete.
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
            let mut retries = false;
            for object in &deleting {
                if done.contains(object.uid()) {
                    continue;
                }
                match finalize(&client, object).await {
                    Progress::Complete => {
                        done.insert(object.uid().to_owned());
                    }
                    Progress::Waits => {}
                    Progress::Retry => retries = true,
                }
            }
            if done.len() < deleting.len() {
                tokio::select! {
                    () = any.changed() => {}
                    () = sleep(RETRY), if retries => {}
                }
            } else {
                own.changed().await;
            }
        }
    });
}
