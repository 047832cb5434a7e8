//! The built-in types: their schemas, and the rules which a schema cannot say.
//!
//! A type is data: names, verbs, a schema, columns, and plain functions for what its kind does on top. A hook of a type
//! sees objects that were decoded, pruned and defaulted by the schema already.

mod apiextensions;
mod apps;
mod authentication;
mod authorization;
pub mod bodies;
mod columns;
mod coordination;
mod core;
mod events;
pub mod meta;
pub mod names;
mod policy;
pub(crate) mod rbac;
mod workload;

use std::sync::Arc;

use serde_json::Value;

pub use self::columns::{Cell, Column};
pub use self::core::service::{ClusterIps, drop_address};
pub use self::names::NameRule;
use crate::faults::Faults;
use crate::schema::{FieldError, Schema};

/// A resource that the server has without anybody defining it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a resource")]
pub struct BuiltinType {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version within the group.
    pub version: &'static str,
    /// Kind of one object.
    pub kind: &'static str,
    /// Kind of a list; empty where the resource cannot be listed.
    pub list_kind: String,
    /// The name in URLs.
    pub plural: &'static str,
    /// The name of one, for clients.
    pub singular: String,
    /// Abbreviations that clients offer.
    pub short_names: &'static [&'static str],
    /// Groups of resources that clients list together, such as `all`.
    pub categories: &'static [&'static str],
    /// Objects live in namespaces.
    pub namespaced: bool,
    /// What can be done, in the order of discovery.
    pub verbs: &'static [&'static str],
    /// Has a `/status` subresource.
    pub has_status: bool,
    /// Has a `/scale` subresource.
    pub scale: Option<Scale>,
    /// Subresources besides `/status` and `/scale`.
    pub subresources: &'static [Subresource],
    /// Structure of an object.
    pub schema: Arc<Schema>,
    /// What its names look like.
    pub name_rule: NameRule,
    /// Objects carry `metadata.generation`.
    pub has_generation: bool,
    /// PUT of a name that does not exist creates it.
    pub allows_create_on_update: bool,
    /// PUT without a resourceVersion is accepted.
    pub allows_unconditional_update: bool,
    /// What field selectors may name besides `metadata.name` and `metadata.namespace`.
    pub field_labels: &'static [FieldLabel],
    /// Columns of its table, `Name` not included.
    pub columns: Vec<Column>,
    /// What its kind does on top of the schema.
    pub hooks: Hooks,
    /// The type that its objects are stored as, if it is another one.
    pub storage: Option<Storage>,
}

/// How one type shares the objects of another.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// The other type. Its field labels and those of the one that shares are told together by their pointers.
    pub ty: fn() -> BuiltinType,
    /// Makes an object one of the other type, but for kind and version.
    pub encode: fn(&mut Value),
    /// Makes an object of the other type one of this.
    pub decode: fn(&mut Value),
}

impl BuiltinType {
    /// An ordinary namespaced type, to be varied: every verb, no subresource, unconditional updates.
    fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        schema: Arc<Schema>,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            list_kind: format!("{kind}List"),
            plural,
            singular: kind.to_lowercase(),
            short_names: &[],
            categories: &[],
            namespaced: true,
            verbs: ALL_VERBS,
            has_status: false,
            scale: None,
            subresources: &[],
            schema,
            name_rule: NameRule::DnsSubdomain,
            has_generation: false,
            allows_create_on_update: false,
            allows_unconditional_update: true,
            field_labels: &[],
            columns: vec![columns::age()],
            hooks: Hooks::NONE,
            storage: None,
        }
    }

    /// A question that is answered and not stored.
    fn review(group: &'static str, kind: &'static str, plural: &'static str, schema: Arc<Schema>) -> Self {
        Self {
            list_kind: String::new(),
            namespaced: false,
            verbs: CREATE_ONLY,
            ..Self::namespaced(group, "v1", kind, plural, schema)
        }
    }
}

/// Verbs of an ordinary resource.
pub const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Verbs of a request that is answered and not stored.
pub const CREATE_ONLY: &[&str] = &["create"];

/// A subresource besides `/status` and `/scale`.
#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    /// Last part of the URL.
    pub name: &'static str,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
    /// API group of its body, where it is another than that of the resource.
    pub group: &'static str,
    /// API version of its body.
    pub version: &'static str,
    /// Kind of its body.
    pub kind: &'static str,
}

/// Where the numbers of a `/scale` stand in the object, as JSON pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The wanted number.
    pub spec_replicas: String,
    /// The observed number.
    pub status_replicas: String,
    /// The label selector as a string or an object; none if there is none.
    pub selector: Option<String>,
}

/// What a field selector may name.
#[derive(Clone, Copy, Debug)]
pub struct FieldLabel {
    /// The name in the selector.
    pub label: &'static str,
    /// JSON pointer to the value; an absent value counts as `absent`.
    pub pointer: &'static str,
    /// What an object without the field is taken to have.
    pub absent: &'static str,
}

impl FieldLabel {
    /// The value that the selector compares with.
    pub fn value(&self, object: &Value) -> String {
        match object.pointer(self.pointer) {
            None | Some(Value::Null) => self.absent.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// What a kind does on top of its schema.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Fills in what depends on other fields.
    pub default: fn(&mut Value),
    /// Mistakes that a schema cannot find; `metadata` is checked by [`meta::validate`].
    pub validate: fn(&Value, Faults) -> Vec<FieldError>,
    /// Mistakes of an update: the new object, then the stored one.
    pub validate_update: fn(&Value, &Value, Faults) -> Vec<FieldError>,
    /// Mistakes of a new status: the new object, then the stored one.
    pub validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// Makes a new object what the server starts with: no status of the client's, the phase it begins in.
    pub prepare_create: fn(&mut Value, Faults),
    /// Takes over from the stored object what an update may not touch or need not repeat.
    pub prepare_update: fn(&mut Value, &Value),
    /// The same for an update of the status.
    pub prepare_status_update: fn(&mut Value, &Value),
    /// Whether an update counts as a new generation: the new object, then the stored one.
    pub is_new_generation: fn(&Value, &Value) -> bool,
}

impl Hooks {
    /// A kind with nothing but its schema: a status is the server's, a new spec is a new generation.
    pub const NONE: Self = Self {
        default: |_| {},
        validate: |_, _| Vec::new(),
        validate_update: |_, _, _| Vec::new(),
        validate_status: |_, _| Vec::new(),
        prepare_create: |_, _| {},
        prepare_update: |_, _| {},
        prepare_status_update: keep_all_but_status,
        is_new_generation: |new, old| new.get("spec") != old.get("spec"),
    };
}

/// Every built-in type, in the order of discovery.
pub fn types() -> Vec<BuiltinType> {
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
    ]
    .concat()
}

/// Takes `field` of the stored object, or none if that has none.
pub(crate) fn restore(new: &mut Value, old: &Value, field: &str) {
    let Some(fields) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// A status update changes the status, and of the metadata only what the server itself manages.
fn keep_all_but_status(new: &mut Value, old: &Value) {
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
