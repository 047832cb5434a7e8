//! A client in the process of the server, as Kubernetes has one for its own controllers.
//!
//! The client has all permissions and needs no HTTP. Reads share the objects of the store and parse
//! them on demand. A write starts again if another client changed the object in the meantime.

mod object;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::sync::watch;

use crate::admission::{resource_quota, type_checking};
use crate::authentication::User;
use crate::endpoints::commit::{Commit, commit, update_latest};
use crate::endpoints::{aggregation, bootstrap, lifecycle};
use crate::registry::{Lookup, ResourceType, crd};
use crate::server::ApiServer;
use kubeproof_apimachinery::object::timestamp;
use kubeproof_apimachinery::patch::apply::{Operation, Owner, Reach, Write};
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::{Change, Key};

pub use self::object::{Changes, Event, Expired, Object, ObjectList, ObjectRef, Resource};
pub use crate::endpoints::aggregation::RemoteContent;
pub use crate::endpoints::lifecycle::{DeleteOptions, Propagation};
pub use crate::registry::crd::strategy::CLEANUP_FINALIZER;
pub use crate::registry::encode::{FOREGROUND, ORPHAN};

/// A client of the server in the same process.
#[derive(Clone)]
pub struct Client {
    api: Arc<ApiServer>,
}

/// A client that does not keep the server in memory.
#[derive(Clone)]
pub struct WeakClient(Weak<ApiServer>);

impl WeakClient {
    /// Returns the client if the server still exists.
    pub fn upgrade(&self) -> Option<Client> {
        self.0.upgrade().map(|api| Client { api })
    }
}

/// The field manager of a change.
#[derive(Clone, Copy, Debug)]
pub struct FieldManager {
    /// The name of the manager.
    pub name: &'static str,
    /// The subresource that the change goes to. It is empty for the object itself.
    pub subresource: &'static str,
}

/// A user of the server.
#[derive(Clone, Debug)]
pub struct UserInfo {
    /// The name of the user.
    pub name: String,
    /// The groups of the user.
    pub groups: Vec<String>,
}

/// An access to a resource.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The verb, such as `create`.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The subresource. It is empty for the resource itself.
    pub subresource: &'a str,
}

impl Client {
    /// Creates a client of a server.
    pub fn new(api: &Arc<ApiServer>) -> Self {
        Self { api: api.clone() }
    }

    /// Returns a client that does not keep the server in memory.
    pub fn downgrade(&self) -> WeakClient {
        WeakClient(Arc::downgrade(&self.api))
    }

    /// Runs work in the background until it is done or the server stops.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.api.spawn(work);
    }

    /// Returns a served resource.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Resource> {
        match self.api.registry.current().find(group, version, plural) {
            Lookup::Found(ty) => Some(Resource(ty)),
            Lookup::NoResource | Lookup::NoGroup => None,
        }
    }

    /// Returns the served resource of a kind.
    pub fn resource_of_kind(&self, api_version: &str, kind: &str) -> Option<Resource> {
        self.find_type(|ty| ty.kind == kind && ty.api_version() == api_version)
    }

    /// Returns the custom resource that a definition with this name defines.
    pub fn custom_resource(&self, definition: &str) -> Option<Resource> {
        let (plural, group) = definition.split_once('.')?;
        self.find_type(|ty| ty.group == group && ty.plural == plural)
    }

    /// Returns all served resources, each in one version.
    pub fn resources(&self) -> Vec<Resource> {
        let catalogue = self.api.registry.current();
        let mut tables = BTreeSet::new();
        let first_versions = catalogue.types().iter().filter(|ty| tables.insert(&ty.table));
        first_versions.map(|ty| Resource(ty.clone())).collect()
    }

    /// Returns the groups and versions of the built-in resources.
    pub fn built_in_versions(&self) -> BTreeSet<(String, String)> {
        let catalogue = self.api.registry.current();
        let built_in = catalogue.types().iter().filter(|ty| !ty.custom);
        built_in.map(|ty| (ty.group.clone(), ty.version.clone())).collect()
    }

    /// Returns an object. The namespace of a cluster-scoped object is empty.
    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Object> {
        self.read(resource, &Key::new(namespace, name))
    }

    /// Returns the object that a reference names.
    pub fn resolve(&self, ObjectRef((table, key)): &ObjectRef) -> Option<Object> {
        self.read(&self.find_type(|ty| ty.table == *table)?, key)
    }

    /// Returns the objects of a namespace, or of all namespaces.
    pub fn list(&self, resource: &Resource, namespace: Option<&str>) -> ObjectList {
        let (items, revision) = self.api.store.snapshot(&resource.0.table, namespace);
        let items = items.into_iter().map(|stored| Object::new(resource, stored)).collect();
        ObjectList { items, revision }
    }

    /// Returns a receiver of the changes of a resource.
    pub fn subscribe(&self, resource: &Resource) -> Changes {
        Changes(self.api.store.subscribe(&resource.0.table))
    }

    /// Returns a receiver of the removals of all resources.
    pub fn subscribe_removals(&self) -> Changes {
        Changes(self.api.store.subscribe_removals())
    }

    /// Returns a receiver of all changes.
    pub fn subscribe_all(&self) -> Changes {
        Changes(self.api.store.subscribe_all())
    }

    /// Returns up to `max` events of a resource after a revision, and the revision up to which they
    /// are complete.
    pub fn events_after(
        &self,
        resource: &Resource,
        revision: u64,
        max: usize,
    ) -> Result<(Vec<Event>, u64), Expired> {
        let news = self
            .api
            .store
            .news(&resource.0.table, revision, max)
            .map_err(|_| Expired { revision })?;
        let events = news.events.iter().map(|event| Event {
            object: Object::new(resource, event.object.clone()),
            is_removal: event.change == Change::Deleted,
        });
        Ok((events.collect(), news.revision))
    }

    /// Returns whether a user may do a verb on a resource of the whole cluster.
    pub fn may_access(&self, user: UserInfo, access: Access<'_>) -> bool {
        let UserInfo { name, groups } = user;
        let user = User { name, groups, ..User::default() };
        let info = ResourceInfo {
            group: access.group.to_owned(),
            version: "*".to_owned(),
            resource: access.resource.to_owned(),
            subresource: access.subresource.to_owned(),
            ..ResourceInfo::default()
        };
        self.api.rights().may_access(&user, access.verb, &info)
    }

    /// Creates an object unless one has its name. The client sets its status, too. Creation sets
    /// the UID, the creation time and the defaults.
    pub async fn create(&self, resource: &Resource, object: Value) {
        // A storage that failed rejects every write, and the requests of clients report it.
        let _ = bootstrap::create(&self.api, &resource.0, object).await;
    }

    /// Changes an object unless it was replaced by another one with its name. An object whose
    /// deletion can complete is removed.
    pub async fn modify(
        &self,
        object: &Object,
        manager: Option<FieldManager>,
        change: impl Fn(&mut Value) + Send,
    ) {
        let ty = &object.resource.0;
        let owner = manager.map(|manager| ownership(ty, manager));
        update_latest(&self.api, ty, object.stored.clone(), owner.as_ref(), change).await;
    }

    /// Changes a namespace if it contains no object and this is still its newest version. Returns
    /// false otherwise. A namespace whose deletion can complete is removed.
    pub async fn finalize_namespace(
        &self,
        namespace: &Object,
        change: impl Fn(&mut Value) + Send,
    ) -> bool {
        let old = namespace.value();
        let mut new = old.clone();
        change(&mut new);
        let is_empty =
            |store: &kubeproof_storage::Write<'_>| !store.has_namespace(namespace.name());
        let (ty, stored) = (&namespace.resource.0, &namespace.stored);
        let committed = commit(&self.api, ty, (stored, &old), &new, is_empty).await;
        matches!(committed, Ok(Commit::Stored(_) | Commit::Removed(_)))
    }

    /// Deletes the objects of a namespace from all extension servers, and returns what remains.
    pub async fn delete_remote_content(&self, namespace: &str) -> RemoteContent {
        aggregation::delete_content(&self.api, namespace).await
    }

    /// Deletes an object, or begins its deletion. If the options have no UID, another object with
    /// its name is deleted, too.
    pub async fn delete(&self, object: &Object, options: &DeleteOptions) -> Result<(), ApiError> {
        let key = &object.stored.key;
        lifecycle::delete(&self.api, &object.resource.0, key, options).await.map(drop)
    }

    /// Updates the status of a resource quota from the objects of its namespace. Returns false if
    /// a request is about to change them.
    pub async fn recalculate_quota(&self, quota: &Object) -> bool {
        let key = &quota.stored.key;
        resource_quota::recalculate(self.api.context(), key, &self.api.quotas).await
    }

    /// Returns what the status of a validating admission policy shows about its expressions.
    pub fn type_checking(&self, policy: &Value) -> Value {
        type_checking(&policy["spec"], &self.api.registry.current())
    }

    /// Returns the status of a custom resource definition among all definitions.
    pub fn definition_status(&self, definition: &Value, all: &[Value]) -> Value {
        crd::status(definition, all, &timestamp(0))
    }

    /// Returns a receiver that wakes when a request that uses a quota has finished.
    pub fn subscribe_finished_requests(&self) -> watch::Receiver<()> {
        self.api.quotas.subscribe()
    }

    /// Waits for owners that were deleted, started to be deleted, or gained or lost a dependent.
    /// Returns their UIDs.
    pub async fn pending_owners(&self) -> BTreeSet<String> {
        self.api.store.pending_owners().await
    }

    /// Returns the object with this UID if its deletion waits for its dependents.
    pub fn waiting_owner(&self, uid: &str) -> Option<ObjectRef> {
        self.api.store.waiting_owner(uid).map(ObjectRef)
    }

    /// Returns the dependents of the object with this UID, even if it does not exist.
    pub fn dependents(&self, uid: &str) -> Vec<ObjectRef> {
        self.api.store.dependents(uid).into_iter().map(ObjectRef).collect()
    }

    fn find_type(&self, is_wanted: impl Fn(&ResourceType) -> bool) -> Option<Resource> {
        let catalogue = self.api.registry.current();
        catalogue.types().iter().find(|ty| is_wanted(ty)).cloned().map(Resource)
    }

    fn read(&self, resource: &Resource, key: &Key) -> Option<Object> {
        let stored = self.api.store.get(&resource.0.table, key)?;
        Some(Object::new(resource, stored))
    }
}

fn ownership(ty: &ResourceType, manager: FieldManager) -> Write<'_> {
    let owner = Owner {
        manager: manager.name.to_owned(),
        operation: Operation::Update,
        api_version: ty.api_version(),
        subresource: manager.subresource.to_owned(),
    };
    let reach = if manager.subresource == "status" { Reach::Status } else { Reach::Whole };
    Write { owner, reach, schema: &ty.schema }
}
