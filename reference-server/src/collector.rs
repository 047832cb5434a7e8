//! The garbage collector: what nobody owns any more goes, and an owner that waits for what it owns is let go in the end.
//!
//! It works in the background and is told by the store which owners to look at. It never waits: what it leaves undone is done when
//! the next write about the same owner comes, and whatever keeps an object from going (a finalizer, a grace period) ends in one.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::api::Api;
use crate::encode;
use crate::handlers;
use crate::lifecycle::{self, DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::object::Object as _;
use crate::registry::{Lookup, ResourceType};
use crate::store::{Key, Place, Stored};
use crate::{Fault, Faults};

/// What clusters name the one who runs their controllers, and where they leave word of it.
const LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

/// Collects until the server stops.
pub(crate) fn start(api: &Arc<Api>) {
    announce(api);
    let collector = api.clone();
    api.spawn(async move {
        loop {
            for owner in collector.store.owners_to_look_at().await {
                look(&collector, &owner).await;
            }
        }
    });
}

/// Leaves the lease by which clients see that controllers are at work.
fn announce(api: &Api) {
    let Lookup::Found(leases) = api.registry.current().find("coordination.k8s.io", "v1", "leases") else {
        return;
    };
    let now = jiff::Timestamp::now();
    let mut lease = json!({
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": LEASE.1, "namespace": LEASE.0},
        "spec": {
            "holderIdentity": "kubeproof", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}"),
        },
    });
    lease.set_meta("uid", crate::object::uuid());
    lease.set_meta("creationTimestamp", crate::object::timestamp(0));
    let draft = encode::draft(&leases, &lease);
    api.store.write(|write| write.put(&leases.table, draft));
}

async fn look(api: &Arc<Api>, owner: &str) {
    match api.store.waiting_owner(owner) {
        Some(place) => attend(api, owner, &place).await,
        None if api.faults.on(Fault::GarbageStays) => {}
        None => {
            for dependent in api.store.dependents(owner) {
                judge(api, &dependent);
                // Thousands of them are not to keep a request waiting.
                yield_now().await;
            }
        }
    }
}

/// Does what the deletion of an owner waits for.
async fn attend(api: &Arc<Api>, uid: &str, place: &Place) {
    let Some(owner) = Item::load(api, place) else { return };
    let finalizers = owner.object.meta_list("finalizers");
    let dependents = api.store.dependents(uid);
    if finalizers.iter().any(|name| name == ORPHAN) {
        for dependent in &dependents {
            if api.faults.on(Fault::OrphansDeleted) {
                judge(api, dependent);
            } else if let Some(item) = Item::load(api, dependent) {
                item.disown(api, |reference| reference["uid"] == uid);
            }
            yield_now().await;
        }
        return owner.release(api, ORPHAN);
    }
    for dependent in &dependents {
        judge(api, dependent);
        yield_now().await;
    }
    let blocks = |place: &Place| {
        Item::load(api, place).is_some_and(|item| {
            item.owners().any(|reference| reference["uid"] == uid && reference["blockOwnerDeletion"] == true)
        })
    };
    if api.faults.on(Fault::ForegroundDoesNotWait) || !api.store.dependents(uid).iter().any(blocks) {
        owner.release(api, FOREGROUND);
    }
}

/// What is known of an owner that an object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It is there, or nobody can tell.
    Solid,
    /// It is there, and its deletion waits for what it owns.
    Waiting,
    Absent,
}

/// Deletes an object that nobody owns any more; one that has an owner left is let go by the others.
fn judge(api: &Arc<Api>, place: &Place) {
    let Some(item) = Item::load(api, place) else { return };
    if item.object.is_deleting() {
        return;
    }
    let state = |reference: &Value| item.owner(api, reference);
    if item.owners().any(|reference| state(reference) == Owner::Solid) && !api.faults.on(Fault::OneOwnerIsAll)
    {
        return item.disown(api, |reference| state(reference) != Owner::Solid);
    }
    let uid = item.object.meta("uid");
    let waited_for = item.owners().any(|reference| state(reference) == Owner::Waiting);
    let owns = !api.store.dependents(uid).is_empty();
    let propagation = if waited_for && owns { Propagation::Foreground } else { Propagation::Background };
    let options = DeleteOptions {
        uid: Some(uid.to_owned()),
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    // A refusal means that it is gone already, or another one.
    let _ = lifecycle::delete(api, &item.ty, &item.stored.key, &options);
}

/// An object that owns or is owned.
struct Item {
    ty: Arc<ResourceType>,
    stored: Arc<Stored>,
    object: Value,
}

impl Item {
    fn load(api: &Api, (table, key): &Place) -> Option<Self> {
        let catalogue = api.registry.current();
        let ty = catalogue.types().iter().find(|ty| ty.table == *table)?.clone();
        let stored = api.store.get(table, key)?;
        let object = ty.load(&stored, Faults::none());
        Some(Self { ty, stored, object })
    }

    fn owners(&self) -> impl Iterator<Item = &Value> {
        self.object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
    }

    fn owner(&self, api: &Api, reference: &Value) -> Owner {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let catalogue = api.registry.current();
        let ty = catalogue
            .types()
            .iter()
            .find(|ty| ty.api_version() == text("apiVersion") && ty.kind == text("kind"));
        // Of a kind that nobody serves nobody can tell, and across namespaces nobody owns.
        let Some(ty) = ty.filter(|ty| !ty.namespaced || self.ty.namespaced) else { return Owner::Solid };
        let namespace = if ty.namespaced { self.stored.key.namespace.as_str() } else { "" };
        match api.store.get(&ty.table, &Key::new(namespace, text("name"))) {
            Some(owner) if owner.facts.uid != text("uid") => Owner::Absent,
            Some(owner) if owner.facts.awaits_dependents => {
                let owner = ty.load(&owner, Faults::none());
                let foreground = owner.meta_list("finalizers").iter().any(|name| name == FOREGROUND);
                if foreground || api.faults.on(Fault::OrphansDeleted) { Owner::Waiting } else { Owner::Solid }
            }
            Some(_) => Owner::Solid,
            None => Owner::Absent,
        }
    }

    /// Removes references to owners.
    fn disown(&self, api: &Api, which: impl Fn(&Value) -> bool) {
        self.change(api, |object| {
            let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            let kept: Vec<Value> = references.into_iter().filter(|reference| !which(reference)).collect();
            if kept.is_empty() {
                object.unset_meta("ownerReferences");
            } else {
                object.set_meta("ownerReferences", json!(kept));
            }
        });
    }

    /// Takes a finalizer off an object, which may be its end.
    fn release(&self, api: &Api, finalizer: &str) {
        self.change(api, |object| {
            let mut finalizers = object.meta_list("finalizers");
            finalizers.retain(|name| name != finalizer);
            if finalizers.is_empty() {
                object.unset_meta("finalizers");
            } else {
                object.set_meta("finalizers", json!(finalizers));
            }
        });
    }

    /// Writes the object with a change, as long as it is the same one.
    fn change(&self, api: &Api, change: impl Fn(&mut Value)) {
        let mut stored = self.stored.clone();
        loop {
            let mut new = self.ty.load(&stored, Faults::none());
            let old = new.clone();
            change(&mut new);
            if new == old {
                return;
            }
            let finished = handlers::is_finished(&new);
            let draft = encode::draft(&self.ty, &new);
            let (table, key) = (&self.ty.table, &stored.key);
            let written = api.store.write(|write| match write.get(table, key).cloned() {
                Some(current) if current.revision == stored.revision => {
                    if finished {
                        write.delete(table, key);
                    } else {
                        write.put(table, draft);
                    }
                    Ok(())
                }
                current => Err(current),
            });
            match written {
                Ok(()) if finished => return handlers::object_gone(api, &self.ty, &new),
                // Somebody else was faster.
                Err(Some(newer)) if newer.facts.uid == self.stored.facts.uid => stored = newer,
                Ok(()) | Err(_) => return,
            }
        }
    }
}
