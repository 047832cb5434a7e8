//! CRDs: the objects whose creation makes the server serve more.

use std::sync::Arc;

use serde_json::{Value, json};

use super::patch::STRATEGIC;
use crate::api::Api;
use crate::builtin::{Hooks, NameRule};
use crate::crd::{self, CustomType, Version};
use crate::encode;
use crate::lifecycle::{self, CRD_CLEANUP, DeleteOptions};
use crate::object::{Object, timestamp};
use crate::registry::{
    BODY_TYPES, Lookup, PATCH_TYPES, ResourceType, Selectable, next_schema_id, table_name,
};
use crate::status::{ApiError, Subject};
use crate::store::Key;
use crate::{Fault, Faults};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";
/// The table that CRDs live in.
pub(crate) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Checks a CRD that is about to be stored, and says in its status what the server makes of it.
pub(super) fn accept(api: &Api, object: &mut Value) -> Result<(), ApiError> {
    api.cuts.trim_definition(object);
    let subject = Subject { group: GROUP, word: "CustomResourceDefinition" };
    CustomType::from_manifest(object)
        .map_err(|errors| ApiError::invalid(subject, object.meta("name"), &errors))?;
    let (others, _) = api.store.snapshot(TABLE, None);
    // The store holds what this server wrote.
    let others: Vec<Value> =
        others.iter().filter_map(|other| serde_json::from_slice(other.object()).ok()).collect();
    let is_update = object["status"]["conditions"].is_array();
    object["status"] = crd::status(object, &others, &timestamp(0));
    let ahead = object.generation().max(1) + 1;
    bend_conditions(&mut object["status"]["conditions"], is_update, api.faults);
    if api.faults.on(Fault::ConditionsObserveAhead) {
        for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["observedGeneration"] = ahead.into();
        }
    }
    if !is_update
        && api.faults.on(Fault::ConditionsComeLate)
        && let Some(status) = object["status"].as_object_mut()
    {
        status.remove("conditions");
    }
    Ok(())
}

/// What the faults make of conditions.
fn bend_conditions(conditions: &mut Value, is_update: bool, faults: Faults) {
    if faults.on(Fault::ConditionStatusIsBoolean) {
        conditions[0]["status"] = true.into();
    }
    if faults.on(Fault::ConditionTypesLowerCase) {
        conditions[0]["type"] = "names_accepted".into();
    }
    if is_update && faults.on(Fault::TransitionTimeMoves) {
        // A second on, so that it shows in an update that follows at once.
        for condition in conditions.as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = timestamp(1).into();
        }
    }
}

/// Serves what a stored CRD defines, if its names were accepted.
pub(super) fn serve(api: &Api, object: &Value) {
    // It was checked before it was stored.
    let Ok(custom) = CustomType::from_manifest(object) else { return };
    if crd::is_established(object) {
        let types = custom.versions.iter().filter(|version| version.served);
        let mut types: Vec<_> = types.map(|version| resource_type(&custom, version)).collect();
        if let (true, Some(first)) = (api.faults.on(Fault::DefaultsOfOneVersion), custom.versions.first()) {
            for ty in &mut types {
                ty.schema = first.schema.clone();
            }
        }
        if api.faults.on(Fault::CustomColumnsIgnored) {
            for ty in &mut types {
                ty.columns.retain(|column| column.name == "Age");
            }
        }
        api.registry.replace(&custom.group, &custom.names.plural, types);
    }
}

/// Stops serving what a CRD defined.
pub(super) fn withdraw(api: &Api, object: &Value) {
    if let Some((plural, group)) = object.meta("name").split_once('.') {
        api.registry.replace(group, plural, Vec::new());
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
        verbs: crate::builtin::ALL_VERBS.iter().map(|verb| (*verb).to_owned()).collect(),
        has_status: version.has_status,
        scale: version.scale.clone(),
        subresources: Vec::new(),
        schema: version.schema.clone(),
        custom: true,
        deprecation: version.deprecation_warning.clone(),
        name_rule: NameRule::DnsSubdomain,
        has_generation: true,
        allows_create_on_update: false,
        allows_unconditional_update: false,
        body_types: BODY_TYPES.to_vec(),
        patch_types: PATCH_TYPES.into_iter().filter(|media_type| *media_type != STRATEGIC).collect(),
        selects_by_name: true,
        selectable: version
            .selectable_fields
            .iter()
            .map(|(label, pointer)| Selectable::new(label, pointer))
            .collect(),
        columns: version.columns.clone(),
        hooks: Hooks::NONE,
        table: table_name(&custom.group, &names.plural),
        head: String::new(),
        schema_id: next_schema_id(),
        storage: None,
    };
    ty.head = format!(r#"{{"apiVersion":"{}","kind":"{}","#, ty.api_version(), ty.kind);
    ty
}

/// Removes the objects of a CRD that is being deleted, and then the CRD.
pub(super) async fn remove(api: Arc<Api>, name: String) {
    let mut changes = api.store.subscribe_all();
    loop {
        changes.mark_unchanged();
        if step(&api, &name) || changes.changed().await.is_err() {
            return;
        }
    }
}

/// One try; true when there is nothing more to do.
fn step(api: &Arc<Api>, name: &str) -> bool {
    let catalogue = api.registry.current();
    let Lookup::Found(ty) = catalogue.find(GROUP, "v1", PLURAL) else { return true };
    let key = Key::new("", name);
    let Some(stored) = api.store.get(TABLE, &key) else { return true };
    let mut object = ty.load(&stored, Faults::none());
    let mut finalizers = object.meta_list("finalizers");
    if !finalizers.iter().any(|finalizer| finalizer == CRD_CLEANUP) {
        return true;
    }
    let Some((plural, group)) = name.split_once('.') else { return true };
    if let Some(custom) = catalogue.types().iter().find(|ty| ty.group == group && ty.plural == plural) {
        for instance in api.store.snapshot(&custom.table, None).0 {
            // A refusal means that it is gone already, or that it waits.
            let _ = lifecycle::delete(api, custom, &instance.key, &DeleteOptions::default());
        }
        if !api.store.snapshot(&custom.table, None).0.is_empty() {
            return false;
        }
    }
    finalizers.retain(|finalizer| finalizer != CRD_CLEANUP);
    let last = finalizers.is_empty();
    object.set_meta("finalizers", json!(finalizers));
    let draft = encode::draft(&ty, &object);
    let done = api.store.write(|write| {
        if write.get(TABLE, &key).is_none_or(|current| current.revision != stored.revision) {
            return false;
        }
        if last {
            write.delete(TABLE, &key);
        } else {
            write.put(TABLE, draft);
        }
        true
    });
    if done {
        withdraw(api, &object);
    }
    done
}
