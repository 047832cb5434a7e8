//! The documents that describe the API. They are cached until the catalogue changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Resource, Subresource};
use crate::registry::builtin::ALL_VERBS;
use crate::registry::{Catalogue, Registry, ResourceType};

#[derive(Debug, Default)]
pub(crate) struct Documents {
    current: Mutex<Option<Described>>,
}

#[derive(Debug)]
struct Described {
    of: Arc<Catalogue>,
    /// In the order of the catalogue.
    resources: Arc<Vec<Arc<Resource>>>,
}

impl Documents {
    /// Returns the resources of the catalogue as input for documents. The resource of an unchanged
    /// type stays the same one.
    pub(crate) fn resources(&self, registry: &Registry) -> Arc<Vec<Arc<Resource>>> {
        let catalogue = registry.current();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(described) = &*current
            && Arc::ptr_eq(&described.of, &catalogue)
        {
            return described.resources.clone();
        }
        let described = current.as_ref().map(Described::by_type).unwrap_or_default();
        let resource_of = |ty: &Arc<ResourceType>| {
            let known = described.get(&Arc::as_ptr(ty));
            known.map_or_else(|| Arc::new(resource(ty)), |known| Arc::clone(known))
        };
        let resources = Arc::new(catalogue.types().iter().map(resource_of).collect::<Vec<_>>());
        *current = Some(Described { of: catalogue, resources: resources.clone() });
        resources
    }
}

impl Described {
    fn by_type(&self) -> HashMap<*const ResourceType, &Arc<Resource>> {
        self.of.types().iter().map(Arc::as_ptr).zip(self.resources.iter()).collect()
    }
}

fn resource(ty: &ResourceType) -> Resource {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let own = |name: &str, verbs: &[&str]| Subresource {
        name: name.to_owned(),
        group: ty.group.clone(),
        version: ty.version.clone(),
        kind: ty.kind.clone(),
        verbs: words(verbs),
    };
    let changeable: &[&str] =
        if ty.allows("patch") { &["get", "patch", "update"] } else { &["get", "update"] };
    let mut subresources = Vec::new();
    if ty.has_status {
        subresources.push(own("status", changeable));
    }
    if ty.scale.is_some() {
        subresources.push(Subresource {
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            ..own("scale", changeable)
        });
    }
    subresources.extend(ty.subresources.iter().map(|sub| Subresource {
        name: sub.name.to_owned(),
        group: sub.group.to_owned(),
        version: sub.version.to_owned(),
        kind: sub.kind.to_owned(),
        verbs: words(sub.verbs),
    }));
    let mut verbs = ty.verbs.clone();
    verbs.sort_by_key(|verb| ALL_VERBS.iter().position(|known| known == verb));
    Resource {
        group: ty.group.clone(),
        version: ty.version.clone(),
        kind: ty.kind.clone(),
        list_kind: ty.list_kind.clone(),
        plural: ty.plural.clone(),
        singular: ty.singular.clone(),
        namespaced: ty.namespaced,
        verbs,
        short_names: ty.short_names.clone(),
        categories: ty.categories.clone(),
        subresources,
        schema: ty.schema.clone(),
        table: ty.table.clone(),
        custom: ty.custom,
        deletion_returns_object: ty.deletion_returns_object(),
        selectable_fields: ty.custom_selectable_fields(),
        body_types: ty.body_types.clone(),
        patch_types: ty.patch_types.clone(),
    }
}
