//! The resources and objects that the client reads.

use std::sync::Arc;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_storage::{Place, Stored};
use serde_json::Value;
use tokio::sync::watch;

use crate::registry::ResourceType;

/// One version of a served resource.
#[derive(Clone, Debug)]
pub struct Resource(pub(super) Arc<ResourceType>);

impl Resource {
    /// Returns the API group. It is empty for the core group.
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// Returns the plural name in URLs.
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Returns whether the objects belong to namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.0.namespaced
    }
}

/// An object at one version. It shares its text with the store.
#[derive(Clone, Debug)]
pub struct Object {
    pub(super) resource: Resource,
    pub(super) stored: Arc<Stored>,
}

impl Object {
    pub(super) fn new(resource: &Resource, stored: Arc<Stored>) -> Self {
        let resource = Resource(Arc::clone(resource.0.as_stored(&stored)));
        Self { resource, stored }
    }

    /// Returns the resource of the object.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the namespace. It is empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        &self.stored.key.namespace
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.stored.key.name
    }

    /// Returns the UID.
    pub fn uid(&self) -> &str {
        &self.stored.facts.uid
    }

    /// Returns whether the deletion of the object has begun.
    pub fn is_deleting(&self) -> bool {
        self.stored.facts.deleting
    }

    /// Returns whether the deletion waits until the dependents are deleted or orphaned.
    pub fn awaits_dependents(&self) -> bool {
        self.stored.facts.awaits_dependents
    }

    /// Returns whether the object has this finalizer.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.value().meta_list("finalizers").iter().any(|finalizer| finalizer == name)
    }

    /// Parses the object.
    pub fn value(&self) -> Value {
        self.resource.0.load(&self.stored)
    }
}

/// The place of an object that may not exist any more.
#[derive(Clone, Debug)]
pub struct ObjectRef(pub(super) Place);

/// The objects of a resource at one moment.
#[derive(Clone, Debug)]
pub struct ObjectList {
    /// The objects, by namespace and name.
    pub items: Vec<Object>,
    /// The version of the list, after which a watch can start.
    pub revision: u64,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Event {
    /// The object after the change, or its last state.
    pub object: Object,
    /// The object was removed.
    pub is_removal: bool,
}

/// The events after a version are no longer available. The client must list again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {revision} is too old")]
pub struct Expired {
    /// The version.
    pub revision: u64,
}

/// Receives that something changed.
#[derive(Debug)]
pub struct Changes(pub(super) watch::Receiver<u64>);

impl Changes {
    /// Forgets the changes so far. Call it before a read that will see them.
    pub fn reset(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits for a change after the last reset or wait.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The server stops, and stops its controllers.
            std::future::pending::<()>().await;
        }
    }
}
