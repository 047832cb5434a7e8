//! The garbage collector: it deletes objects without owners, and completes the deletion of owners
//! that wait for their dependents.
//!
//! It runs in the background. The store returns the owners to process. The collector never waits
//! for an object. A finalizer or a grace period ends with a write, and that write makes the store
//! return the owner again.

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apiserver::loopback::{
    Client, DeleteOptions, FOREGROUND, ORPHAN, Object, ObjectRef, Propagation,
};
use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::finalizer;

/// The namespace and name of the lease of the controller manager in a cluster.
const LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

/// Starts the collector, which runs until the server stops.
pub(crate) async fn start(client: &Client) {
    announce(client).await;
    let collector = client.clone();
    client.spawn(async move {
        loop {
            for owner in collector.pending_owners().await {
                process(&collector, &owner).await;
            }
        }
    });
}

/// Creates the lease, so that clients detect running controllers.
async fn announce(client: &Client) {
    let Some(leases) = client.resource("coordination.k8s.io", "v1", "leases") else { return };
    let now = jiff::Timestamp::now();
    let lease = json!({
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": LEASE.1, "namespace": LEASE.0},
        "spec": {
            "holderIdentity": "kubeproof", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}"),
        },
    });
    client.create(&leases, lease).await;
}

async fn process(client: &Client, owner: &str) {
    match client.waiting_owner(owner) {
        Some(place) => finish_deletion(client, owner, &place).await,
        None => {
            for dependent in client.dependents(owner) {
                collect(client, &dependent).await;
                // Yields, so that thousands of dependents do not delay requests.
                yield_now().await;
            }
        }
    }
}

/// Processes the dependents of an owner, and removes its finalizer when none of them blocks the
/// deletion.
async fn finish_deletion(client: &Client, uid: &str, place: &ObjectRef) {
    let Some(owner) = client.resolve(place) else { return };
    let dependents = client.dependents(uid);
    if owner.has_finalizer(ORPHAN) {
        for dependent in &dependents {
            if let Some(item) = Item::load(client, dependent) {
                item.remove_references(client, |reference| reference["uid"] == uid).await;
            }
            yield_now().await;
        }
        let change = |object: &mut Value| finalizer::remove(object, ORPHAN);
        return client.modify(&owner, None, change).await;
    }
    for dependent in &dependents {
        collect(client, dependent).await;
        yield_now().await;
    }
    let blocks = |place: &ObjectRef| {
        Item::load(client, place).is_some_and(|item| {
            item.owners()
                .any(|reference| reference["uid"] == uid && reference["blockOwnerDeletion"] == true)
        })
    };
    if !client.dependents(uid).iter().any(blocks) {
        let change = |object: &mut Value| finalizer::remove(object, FOREGROUND);
        client.modify(&owner, None, change).await;
    }
}

/// The state of an owner that an object references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The owner exists, or its existence is unknown.
    Present,
    /// The owner exists, and its deletion waits for its dependents.
    Waiting,
    Absent,
}

/// Deletes an object without owners. An object with a remaining owner only loses its references to
/// the others.
async fn collect(client: &Client, place: &ObjectRef) {
    let Some(item) = Item::load(client, place) else { return };
    if item.object.is_deleting() {
        return;
    }
    // Each state is read once. Otherwise an owner that is deleted in between would count as present
    // here and as absent there, and its dependent would stay without owners.
    let states: Vec<(&Value, Owner)> =
        item.owners().map(|reference| (reference, item.owner(client, reference))).collect();
    let is_any = |wanted: Owner| states.iter().any(|(_, state)| *state == wanted);
    if is_any(Owner::Present) {
        let is_gone = |reference: &Value| {
            states.iter().any(|(known, state)| *known == reference && *state != Owner::Present)
        };
        return item.remove_references(client, is_gone).await;
    }
    let uid = item.object.uid();
    let waited_for = is_any(Owner::Waiting);
    let dependents = client.dependents(uid);
    let owns = !dependents.is_empty();
    let waits = |place: &ObjectRef| client.resolve(place).is_some_and(|object| is_waiting(&object));
    if waited_for && dependents.iter().any(waits) {
        // In a cycle, each object would wait for another one.
        item.unblock_owners(client).await;
    }
    let propagation =
        if waited_for && owns { Propagation::Foreground } else { Propagation::Background };
    let options = DeleteOptions {
        uid: Some(uid.to_owned()),
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    // An error means that the object is already deleted, or that another object has its name.
    let _ = client.delete(&item.object, &options).await;
}

/// Reports whether the deletion of an object waits for its dependents.
fn is_waiting(object: &Object) -> bool {
    object.awaits_dependents() && object.has_finalizer(FOREGROUND)
}

/// A dependent.
struct Item {
    object: Object,
    value: Value,
}

impl Item {
    fn load(client: &Client, place: &ObjectRef) -> Option<Self> {
        let object = client.resolve(place)?;
        let value = object.value();
        Some(Self { object, value })
    }

    fn owners(&self) -> impl Iterator<Item = &Value> {
        self.value["metadata"]["ownerReferences"].as_array().into_iter().flatten()
    }

    fn owner(&self, client: &Client, reference: &Value) -> Owner {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let resource = client.resource_of_kind(text("apiVersion"), text("kind"));
        let is_namespaced = self.object.resource().is_namespaced();
        // The state of an owner of an unserved kind is unknown. A reference from a cluster-scoped
        // object to a namespaced owner is invalid.
        let Some(resource) = resource.filter(|owner| !owner.is_namespaced() || is_namespaced)
        else {
            return Owner::Present;
        };
        let namespace = if resource.is_namespaced() { self.object.namespace() } else { "" };
        match client.get(&resource, namespace, text("name")) {
            Some(owner) if owner.uid() != text("uid") => Owner::Absent,
            Some(owner) if is_waiting(&owner) => Owner::Waiting,
            Some(_) => Owner::Present,
            None => Owner::Absent,
        }
    }

    /// Lets the owners end their deletion before this object.
    async fn unblock_owners(&self, client: &Client) {
        let unblock = |object: &mut Value| {
            let references = object["metadata"]["ownerReferences"].as_array_mut();
            for reference in references.into_iter().flatten() {
                if reference["blockOwnerDeletion"] == true {
                    reference["blockOwnerDeletion"] = false.into();
                }
            }
        };
        client.modify(&self.object, None, unblock).await;
    }

    async fn remove_references(
        &self,
        client: &Client,
        which: impl Fn(&Value) -> bool + Send + Sync,
    ) {
        let remove = |object: &mut Value| {
            let references =
                object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            let kept: Vec<Value> =
                references.into_iter().filter(|reference| !which(reference)).collect();
            if kept.is_empty() {
                object.unset_meta("ownerReferences");
            } else {
                object.set_meta("ownerReferences", json!(kept));
            }
        };
        client.modify(&self.object, None, remove).await;
    }
}
