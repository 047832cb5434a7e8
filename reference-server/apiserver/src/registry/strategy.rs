//! The behaviour of a type that needs more than its schema: the registry, the store, or its own
//! state.
//!
//! Endpoints treat all types the same way and call these hooks. Each server creates its own
//! strategies, so their state belongs to one server.

use std::fmt::Debug;
use std::sync::Arc;

use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Store;
use serde_json::Value;

use super::{Lookup, Registry, ResourceType};
use crate::authentication::User;
use crate::config::disabled::DisabledCapabilities;

/// The parts of a server that a strategy may use.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The objects.
    pub store: &'a Store,
    /// The served types.
    pub registry: &'a Registry,
    /// The disabled capabilities.
    pub disabled_capabilities: DisabledCapabilities,
}

impl Context<'_> {
    /// Returns a built-in resource of the core group, if the server has it.
    pub(crate) fn core(&self, plural: &str) -> Option<Arc<ResourceType>> {
        self.find("", plural)
    }

    /// Returns the objects of a built-in resource, of one namespace or of all.
    pub(crate) fn objects(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Value> {
        let Some(ty) = self.find(group, plural) else { return Vec::new() };
        let (objects, _) = self.store.snapshot(&ty.table, namespace);
        objects.iter().map(|object| ty.load(object)).collect()
    }

    fn find(&self, group: &str, plural: &str) -> Option<Arc<ResourceType>> {
        match self.registry.current().find(group, "v1", plural) {
            Lookup::Found(ty) => Some(ty),
            Lookup::NoResource | Lookup::NoGroup => None,
        }
    }
}

/// Hooks of a type around writes. The default of each hook does nothing.
pub(crate) trait Strategy: Debug + Send + Sync {
    /// Records the user who creates an object.
    fn set_user(&self, _new: &mut Value, _user: &User) {}

    /// Completes a new object that is valid, and allocates what it needs outside the store.
    fn begin_create(
        &self,
        _context: Context<'_>,
        _new: &mut Value,
        _dry_run: bool,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Returns what only one object can hold, and the servers that share a storage check.
    fn claims(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Records an object that the store had before this server.
    fn adopt(&self, _context: Context<'_>, _object: &Value) {}

    /// Releases what [`Self::begin_create`] allocated for an object that was not stored.
    fn cancel_create(&self, _new: &Value) {}

    /// Acts on a stored object.
    fn after_create(&self, _context: Context<'_>, _new: &Value) {}

    /// Completes a changed object that is valid, and allocates what it needs outside the store.
    fn begin_update(&self, _context: Context<'_>, _update: Update<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    /// Releases what [`Self::begin_update`] allocated for an object that was not stored.
    fn cancel_update(&self, _new: &Value, _old: &Value) {}

    /// Acts on a stored change.
    fn after_update(&self, _context: Context<'_>, _new: &Value, _old: &Value) {}

    /// Rejects the deletion of an object that the server needs.
    fn check_delete(&self, _name: &str) -> Result<(), &'static str> {
        Ok(())
    }

    /// Returns the finalizer that the first deletion of an object adds.
    fn deletion_finalizer(&self) -> Option<&'static str> {
        None
    }

    /// Returns the seconds until an object may be removed; `asked` is the `gracePeriodSeconds` of
    /// the deletion.
    fn grace_period(&self, _object: &Value, _asked: Option<i64>) -> i64 {
        0
    }

    /// Returns whether an object waits for more than its finalizers and its grace period.
    fn holds_deletion(&self, _object: &Value) -> bool {
        false
    }

    /// Marks an object whose deletion has begun.
    fn mark_deleting(&self, _object: &mut Value) {}

    /// Releases what a removed object held outside the store.
    fn after_delete(&self, _context: Context<'_>, _object: &Value) {}

    /// Returns the question of a type whose objects are reviews.
    fn review(&self) -> Option<Review> {
        None
    }

    /// Returns the destination of the subresource `proxy`.
    fn proxy_target(&self) -> Option<ProxyTarget> {
        None
    }
}

/// The question of a review, which the server returns with a status and does not store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Review {
    /// The user of a token.
    Token,
    /// The user of the request.
    SelfSubject,
    /// The access of the user of the request.
    SelfSubjectAccess,
    /// The access of another user.
    SubjectAccess,
    /// The permissions of the user of the request.
    SelfSubjectRules,
}

/// The destination of the subresource `proxy`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProxyTarget {
    /// A port of the pod.
    Pod,
    /// A port of a ready pod of the service.
    Service,
    /// The kubelet of the node.
    Node,
}

/// A change that is about to be stored.
#[derive(Debug)]
pub(crate) struct Update<'a> {
    /// The changed object.
    pub new: &'a mut Value,
    /// The stored object.
    pub old: &'a Value,
    /// The change concerns the main resource, not a subresource.
    pub whole: bool,
    /// A dry run stores nothing.
    pub dry_run: bool,
}

/// The strategy of a type without special behaviour.
#[derive(Debug)]
pub(crate) struct Plain;

impl Strategy for Plain {}

/// The strategy of a review.
#[derive(Debug)]
pub(crate) struct ReviewStrategy(pub(crate) Review);

impl Strategy for ReviewStrategy {
    fn review(&self) -> Option<Review> {
        Some(self.0)
    }
}
