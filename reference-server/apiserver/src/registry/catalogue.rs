//! All served types, by their place in the API.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::{OTHER_VERSION, ResourceType, builtin};
use crate::config::KubernetesVersion;
use crate::config::disabled::DisabledCapabilities;

/// The current catalogue, which is replaced as a whole.
pub(crate) struct Registry {
    /// The disabled capabilities.
    disabled_capabilities: DisabledCapabilities,
    current: RwLock<Arc<Catalogue>>,
    next_schema: AtomicU64,
    on_removal: OnceLock<OnRemoval>,
}

/// Gets the catalogue after the removal of a resource.
pub(crate) type OnRemoval = Box<dyn Fn(&Catalogue) + Send + Sync>;

/// The resources at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    /// The types in the order of discovery.
    types: Vec<Arc<ResourceType>>,
    /// The types by group, version and plural.
    index: HashMap<String, HashMap<String, HashMap<String, Arc<ResourceType>>>>,
}

/// The result of the look-up of a path.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// The type.
    Found(Arc<ResourceType>),
    /// The group is served, but it has no such resource.
    NoResource,
    /// The group is not served, or a CRD defines it.
    NoGroup,
}

impl Registry {
    /// Creates a registry with the built-in resources.
    pub(crate) fn new(version: KubernetesVersion, disabled: DisabledCapabilities) -> Self {
        let mut catalogue = Catalogue::default();
        let types = builtin::types().into_iter();
        let types = types.filter_map(|ty| ResourceType::built_in(ty, version));
        for ty in types.filter_map(|ty| disabled.trim(ty)) {
            catalogue.add(Arc::new(ty));
        }
        Self {
            disabled_capabilities: disabled,
            current: RwLock::new(Arc::new(catalogue)),
            next_schema: AtomicU64::new(OTHER_VERSION + 1),
            on_removal: OnceLock::new(),
        }
    }

    /// Returns the types at this moment.
    pub(crate) fn current(&self) -> Arc<Catalogue> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `observer` after each removal of a resource. Only the first observer is called.
    pub(crate) fn observe_removals(&self, observer: OnRemoval) {
        // A second observer would replace nothing.
        let _ = self.on_removal.set(observer);
    }

    /// Replaces every version of a resource. An empty list removes the resource.
    pub(crate) fn replace(&self, group: &str, plural: &str, types: Vec<ResourceType>) {
        let is_removed = types.is_empty();
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Catalogue::clone(&current);
        next.remove(group, plural);
        for ty in types.into_iter().filter_map(|ty| self.disabled_capabilities.trim(ty)) {
            next.add(Arc::new(ty));
        }
        let next = Arc::new(next);
        current.clone_from(&next);
        // Still under the lock: the observer must not miss a resource that is added meanwhile.
        if let Some(observer) = self.on_removal.get().filter(|_| is_removed) {
            observer(&next);
        }
    }

    /// Returns an identifier for the schema of a new type.
    pub(crate) fn new_schema_id(&self) -> u64 {
        self.next_schema.fetch_add(1, Ordering::Relaxed)
    }
}

impl Catalogue {
    /// Returns all types in the order of discovery.
    pub(crate) fn types(&self) -> &[Arc<ResourceType>] {
        &self.types
    }

    /// Finds the type of a group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Lookup {
        let Some(versions) = self.index.get(group) else { return Lookup::NoGroup };
        if let Some(ty) = versions.get(version).and_then(|types| types.get(plural)) {
            return Lookup::Found(ty.clone());
        }
        let builtin = self.types.iter().any(|ty| ty.group == group && !ty.custom);
        if builtin { Lookup::NoResource } else { Lookup::NoGroup }
    }

    /// Returns whether any version has the resource.
    pub(crate) fn has(&self, group: &str, plural: &str) -> bool {
        let versions = self.index.get(group);
        versions.is_some_and(|it| it.values().any(|types| types.contains_key(plural)))
    }

    pub(super) fn add(&mut self, ty: Arc<ResourceType>) {
        let versions = self.index.entry(ty.group.clone()).or_default();
        versions.entry(ty.version.clone()).or_default().insert(ty.plural.clone(), ty.clone());
        self.types.push(ty);
    }

    pub(super) fn remove(&mut self, group: &str, plural: &str) {
        let types = std::mem::take(self).types;
        for ty in types {
            if ty.group != group || ty.plural != plural {
                self.add(ty);
            }
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("current", &self.current).finish_non_exhaustive()
    }
}
