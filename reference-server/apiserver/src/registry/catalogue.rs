//! All served types at one moment, by their place in the API.

use std::collections::HashMap;
use std::sync::Arc;

use super::ResourceType;

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
