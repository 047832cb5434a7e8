//! The built-in types: their schemas, and the rules that a schema cannot express.
//!
//! A type is data: names, verbs, a schema, columns, and functions for what its kind needs in
//! addition. Hooks receive objects that are already decoded, pruned and defaulted by the schema.

mod admissionregistration;
mod apiextensions;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
pub(crate) mod certificates;
mod checks;
pub(crate) mod cluster;
mod coordination;
pub(crate) mod core;
mod data;
mod discovery;
mod events;
pub(crate) mod expressions;
mod flowcontrol;
mod networking;
mod policy;
pub(crate) mod rbac;
mod resource;
mod storage;
mod warnings;
mod workload;

pub(crate) use self::data::{body_schema, schema};

use std::sync::Arc;

use crate::registry::strategy::Strategy;

use serde_json::Value;

pub(crate) use kubeproof_apimachinery::object::validation::names::NameRule;
pub(crate) use kubeproof_apimachinery::object::validation::{metadata as meta, names};
pub(crate) use kubeproof_apimachinery::table::{Cell, Column};

use kubeproof_apimachinery::schema::FieldError;

/// A built-in resource. The data of the version has its verbs, short names and categories.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a resource")]
pub(crate) struct BuiltinType {
    /// The API group. It is empty for the core group.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The kind of an object.
    pub kind: &'static str,
    /// The kind of a list. It is empty if the resource cannot be listed.
    pub list_kind: String,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// The singular name.
    pub singular: String,
    /// Objects belong to namespaces.
    pub namespaced: bool,
    /// The resource has a `/status` subresource.
    pub has_status: bool,
    /// The `/scale` subresource, if the resource has one.
    pub scale: Option<Scale>,
    /// Subresources besides `/status` and `/scale`.
    pub subresources: &'static [Subresource],
    /// The rule for object names.
    pub name_rule: NameRule,
    /// Objects carry `metadata.generation`.
    pub has_generation: bool,
    /// PUT of a name that does not exist creates an object.
    pub allows_create_on_update: bool,
    /// PUT without a resourceVersion is accepted.
    pub allows_unconditional_update: bool,
    /// The fields that field selectors support besides `metadata.name` and `metadata.namespace`.
    pub field_labels: &'static [FieldLabel],
    /// The table columns without `Name`.
    pub columns: Vec<Column>,
    /// The functions of the kind in addition to the schema.
    pub hooks: Hooks,
    /// Creates the strategy of the type for one server.
    pub strategy: fn() -> Arc<dyn Strategy>,
    /// The type of the stored objects, if it is another one.
    pub storage: Option<Storage>,
    /// The warning in each response.
    pub deprecation: Option<&'static str>,
}

/// The conversion between the types that share stored objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storage {
    /// The other type. The JSON pointers of field labels distinguish the field labels of both
    /// types.
    pub ty: fn() -> BuiltinType,
    /// Converts an object to the other type, except for kind and version.
    pub encode: fn(&mut Value),
    /// Converts an object of the other type to this type.
    pub decode: fn(&mut Value),
}

impl BuiltinType {
    /// Returns the schema in the newest version.
    #[cfg(test)]
    pub(crate) fn schema(&self) -> crate::registry::LazySchema {
        schema(kubeproof_api::Version::default(), self).expect("the data has each kind")
    }

    /// Returns the type of a review, which is not stored.
    fn review(group: &str, plural: &str) -> Self {
        Self {
            list_kind: String::new(),
            has_generation: false,
            hooks: Hooks::NONE,
            ..data::resource(group, "v1", plural)
        }
    }
}

/// The verbs of a usual resource.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs of a subresource that writes a part of the object.
pub(crate) const PART_VERBS: &[&str] = &["get", "patch", "update"];
/// The verbs of a request that is not stored.
pub(crate) const CREATE_ONLY: &[&str] = &["create"];

/// A subresource besides `/status` and `/scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subresource {
    /// The last part of the URL.
    pub name: &'static str,
    /// The supported verbs.
    pub verbs: &'static [&'static str],
    /// The API group of the body, if it differs from that of the resource.
    pub group: &'static str,
    /// The API version of the body.
    pub version: &'static str,
    /// The kind of the body.
    pub kind: &'static str,
    /// The rules for GET, PUT and PATCH of a part of the object, if the body is the object.
    pub part: Option<&'static PartHooks>,
}

/// The functions of a subresource that writes a part of an object.
#[derive(Debug)]
pub(crate) struct PartHooks {
    /// Copies everything but the part from the stored object.
    pub prepare: fn(&mut Value, &Value),
    /// Returns the errors of an update. The arguments are the new and the stored object.
    pub validate: fn(&Value, &Value) -> Vec<FieldError>,
    /// The paths of the fields that a manager of the subresource can own. The step `*` stands for
    /// every item of a list.
    pub fields: &'static [&'static [&'static str]],
}

/// The JSON pointers of a `/scale` to numbers in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The desired number.
    pub spec_replicas: String,
    /// The observed number.
    pub status_replicas: String,
    /// The label selector as a string or an object, if there is one.
    pub selector: Option<String>,
}

/// A field that field selectors support.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldLabel {
    /// The name in the selector.
    pub label: &'static str,
    /// The JSON pointer to the value.
    pub pointer: &'static str,
    /// The value of an object without the field.
    pub absent: &'static str,
}

/// The functions of a kind in addition to its schema.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of a kind")]
pub(crate) struct Hooks {
    /// Sets defaults that depend on other fields.
    pub default: fn(&mut Value),
    /// Returns errors that a schema cannot find. [`meta::validate`] checks `metadata`.
    pub validate: fn(&Value) -> Vec<FieldError>,
    /// Returns errors of a new object besides those of `validate`.
    pub validate_create: fn(&Value) -> Vec<FieldError>,
    /// Returns the errors of an update. The arguments are the new and the stored object.
    pub validate_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// Returns the errors of a new status. The arguments are the new and the stored object.
    pub validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// Prepares a new object: removes the status of the client and sets the initial phase.
    pub prepare_create: fn(&mut Value),
    /// Copies fields from the stored object that an update must not change or may omit.
    pub prepare_update: fn(&mut Value, &Value),
    /// Copies such fields for an update of the status.
    pub prepare_status_update: fn(&mut Value, &Value),
    /// Returns warnings about a valid object. The arguments are the new and, on an update, the
    /// stored object.
    pub warn: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Returns warnings about a new status.
    pub warn_status: fn(&Value) -> Vec<String>,
    /// Keeps the status that a client sends on a create.
    pub keeps_status: bool,
    /// An update of the status never changes the metadata.
    pub status_only: bool,
    /// Validates the whole object on each update, not only by `validate_update`.
    pub checks_updates: bool,
    /// Validates `generateName` on each update, too.
    pub checks_prefix: bool,
    /// The only fields that managers own, besides those of subresources. Empty for all fields.
    pub owned: &'static [&'static [&'static str]],
    /// Returns whether an update is a new generation. The arguments are the new and the stored
    /// object.
    pub is_new_generation: fn(&Value, &Value) -> bool,
}

impl Hooks {
    /// The hooks of a kind with nothing but its schema. Only the server sets the status, and a new
    /// spec is a new generation.
    pub(crate) const NONE: Self = Self {
        default: |_| {},
        validate: |_| Vec::new(),
        validate_create: |_| Vec::new(),
        validate_update: |_, _| Vec::new(),
        validate_status: |_, _| Vec::new(),
        prepare_create: |_| {},
        prepare_update: |_, _| {},
        prepare_status_update: take_status_and_metadata,
        warn: |_, _| Vec::new(),
        warn_status: |_| Vec::new(),
        keeps_status: false,
        status_only: false,
        checks_updates: true,
        checks_prefix: false,
        owned: &[],
        is_new_generation: |new, old| new.get("spec") != old.get("spec"),
    };
}

/// Returns every built-in type, in the order of discovery.
pub(crate) fn types() -> Vec<BuiltinType> {
    [
        core::types(),
        apiextensions::types(),
        apps::types(),
        authentication::types(),
        authorization::types(),
        coordination::types(),
        events::types(),
        policy::types(),
        rbac::types(),
        admissionregistration::types(),
        autoscaling::types(),
        batch::types(),
        certificates::types(),
        cluster::types(),
        resource::types(),
        discovery::types(),
        flowcontrol::types(),
        networking::types(),
        storage::types(),
    ]
    .concat()
}

/// Returns an error for each of these fields that changed, such as `spec.pool.name`.
pub(crate) fn immutable(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    fn at<'v>(object: &'v Value, field: &str) -> &'v Value {
        field.split('.').fold(object, |value, name| &value[name])
    }
    let changed = fields.iter().filter(|field| at(new, field) != at(old, field));
    changed.map(|field| FieldError::invalid(*field, at(new, field), "field is immutable")).collect()
}

/// Copies the stored object into the new one, except for these fields of its members.
pub(crate) fn restore_all_but(new: &mut Value, old: &Value, kept: &[(&str, &str, Value)]) {
    new.clone_from(old);
    for (member, field, value) in kept {
        if value.is_null() {
            if let Some(fields) = new.get_mut(member).and_then(Value::as_object_mut) {
                fields.remove(*field);
            }
        } else {
            new[member][field] = value.clone();
        }
    }
}

/// Copies `field` of the stored object, or removes the field if that has none.
pub(crate) fn restore(new: &mut Value, old: &Value, field: &str) {
    let Some(fields) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// A status update of a built-in type changes the status and the metadata.
pub(crate) fn take_status_and_metadata(new: &mut Value, old: &Value) {
    let status = new.get("status").cloned();
    let metadata = new["metadata"].take();
    new.clone_from(old);
    new["metadata"] = metadata;
    if let Some(fields) = new.as_object_mut() {
        match status {
            Some(status) => fields.insert("status".to_owned(), status),
            None => fields.remove("status"),
        };
    }
}

/// A status update of a custom resource changes the status, and the part of the metadata that the
/// server manages.
pub(crate) fn take_status(new: &mut Value, old: &Value) {
    let status = new.get("status").cloned();
    let managed = new.pointer("/metadata/managedFields").cloned();
    let version = new.pointer("/metadata/resourceVersion").cloned();
    let mut result = old.clone();
    if let Some(fields) = result.as_object_mut() {
        match status {
            Some(status) => fields.insert("status".to_owned(), status),
            None => fields.remove("status"),
        };
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for (name, value) in [("managedFields", managed), ("resourceVersion", version)] {
                if let Some(value) = value {
                    metadata.insert(name.to_owned(), value);
                }
            }
        }
    }
    *new = result;
}
