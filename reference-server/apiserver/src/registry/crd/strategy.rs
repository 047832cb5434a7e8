//! The strategy of CRDs: a stored definition adds types to the registry.

use std::sync::{Arc, OnceLock};

use kubeproof_apimachinery::object::{Object, timestamp};
use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_storage::Change;
use serde_json::Value;

use super::{CustomType, Version};
use crate::registry::builtin::{ALL_VERBS, Hooks, NameRule, take_status};
use crate::registry::strategy::{Context, Plain, Strategy, Update};
use crate::registry::{
    BODY_TYPES, Conversion, PATCH_TYPES, Registry, ResourceType, Selectable, table_name,
};

const GROUP: &str = "apiextensions.k8s.io";
/// The table of CRDs.
pub(crate) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// The finalizer of a CRD until its objects are deleted.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Adds the types of definitions to the registry.
#[derive(Debug)]
pub(crate) struct DefinitionStrategy;

impl Strategy for DefinitionStrategy {
    fn begin_create(
        &self,
        context: Context<'_>,
        new: &mut Value,
        _dry_run: bool,
    ) -> Result<(), ApiError> {
        accept(context, new)
    }

    fn adopt(&self, context: Context<'_>, object: &Value) {
        apply(context, object, Change::Added);
    }

    fn after_create(&self, context: Context<'_>, new: &Value) {
        apply(context, new, Change::Added);
    }

    fn begin_update(&self, context: Context<'_>, update: Update<'_>) -> Result<(), ApiError> {
        if update.whole { accept(context, update.new) } else { Ok(()) }
    }

    fn after_update(&self, context: Context<'_>, new: &Value, _old: &Value) {
        apply(context, new, Change::Modified);
    }

    fn deletion_finalizer(&self) -> Option<&'static str> {
        Some(CLEANUP_FINALIZER)
    }

    fn after_delete(&self, context: Context<'_>, object: &Value) {
        apply(context, object, Change::Deleted);
    }
}

/// Applies a write of this server. A shared storage calls [`follow`] for the writes of all servers
/// in their order.
fn apply(context: Context<'_>, object: &Value, change: Change) {
    if !context.store.is_shared() {
        follow(context.registry, object, change);
    }
}

/// Serves what a stored definition defines. `object` is its state after the change.
pub(crate) fn follow(registry: &Registry, object: &Value, change: Change) {
    let is_kept = || object.meta_list("finalizers").iter().any(|it| it == CLEANUP_FINALIZER);
    // When the objects of a definition are deleted, no new ones may be created.
    if change == Change::Deleted || (object.is_deleting() && !is_kept()) {
        withdraw(registry, object);
    } else {
        serve(registry, object);
    }
}

/// Checks a CRD before it is stored, and sets its status.
fn accept(context: Context<'_>, object: &mut Value) -> Result<(), ApiError> {
    context.disabled_capabilities.trim_definition(object);
    let subject = Subject { group: GROUP, word: "CustomResourceDefinition" };
    CustomType::from_manifest(object)
        .map_err(|errors| ApiError::invalid(subject, object.meta("name"), &errors))?;
    let (others, _) = context.store.snapshot(TABLE, None);
    // This server wrote the stored definitions, so they are valid.
    let others: Vec<Value> =
        others.iter().filter_map(|other| serde_json::from_slice(other.object()).ok()).collect();
    object["status"] = super::status(object, &others, &timestamp(0));
    Ok(())
}

/// Serves the types of a stored CRD if its names were accepted.
pub(crate) fn serve(registry: &Registry, object: &Value) {
    // The CRD was checked before it was stored.
    let Ok(custom) = CustomType::from_manifest(object) else { return };
    if super::is_established(object) {
        let types = custom.versions.iter().map(|version| {
            let id = registry.new_schema_id();
            ResourceType { schema_id: id, ..resource_type(&custom, version) }
        });
        let types: Vec<_> = types.collect();
        let conversion = conversion(&custom, &types);
        let types = custom.versions.iter().zip(types).filter(|(version, _)| version.served);
        let types =
            types.map(|(_, ty)| ResourceType { conversion: conversion.clone(), ..ty }).collect();
        registry.replace(&custom.group, &custom.names.plural, types);
    }
}

/// Returns the conversion of a resource if it has a webhook.
fn conversion(custom: &CustomType, types: &[ResourceType]) -> Option<Arc<Conversion>> {
    let webhook = custom.webhook.clone()?;
    let versions: Vec<Arc<ResourceType>> = types.iter().cloned().map(Arc::new).collect();
    let stored = custom.versions.iter().position(|version| version.stored)?;
    let storage = Arc::clone(&versions[stored]);
    Some(Arc::new(Conversion { webhook, client: OnceLock::new(), versions, storage }))
}

/// Removes the types of a CRD from the registry.
fn withdraw(registry: &Registry, object: &Value) {
    if let Some((plural, group)) = object.meta("name").split_once('.') {
        registry.replace(group, plural, Vec::new());
    }
}

fn resource_type(custom: &CustomType, version: &Version) -> ResourceType {
    let names = &custom.names;
    let mut ty = ResourceType {
        group: custom.group.clone(),
        version: version.name.clone(),
        kind: names.kind.clone(),
        list_kind: names.list_kind.clone(),
        plural: names.plural.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: custom.namespaced,
        verbs: ALL_VERBS.iter().map(|verb| (*verb).to_owned()).collect(),
        has_status: version.has_status,
        scale: version.scale.clone(),
        subresources: Vec::new(),
        schema: version.schema.clone().into(),
        custom: true,
        deprecation: version.deprecation_warning.clone(),
        name_rule: NameRule::DnsSubdomain,
        has_generation: true,
        allows_create_on_update: false,
        allows_unconditional_update: false,
        body_types: BODY_TYPES[..2].to_vec(),
        patch_types: PATCH_TYPES
            .into_iter()
            .filter(|media_type| *media_type != "application/strategic-merge-patch+json")
            .collect(),
        selects_by_name: true,
        selectable: version
            .selectable_fields
            .iter()
            .map(|(label, pointer)| Selectable::new(label, pointer))
            .collect(),
        columns: version.columns.clone(),
        hooks: Hooks { prepare_status_update: take_status, ..Hooks::NONE },
        strategy: Arc::new(Plain),
        table: table_name(&custom.group, &names.plural),
        head: String::new(),
        schema_id: 0,
        storage: None,
        conversion: None,
    };
    ty.head = format!(r#"{{"apiVersion":"{}","kind":"{}","#, ty.api_version(), ty.kind);
    ty
}
