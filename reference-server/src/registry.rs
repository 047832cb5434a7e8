//! The resources that are served: built-in ones from the start, custom ones as they are defined.
//!
//! Handlers see one type for both. What differs between them is data here or a question put to a [`ResourceType`], so no
//! handler asks what kind of type it has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::builtin::{self, BuiltinType, Column, FieldLabel, Hooks, NameRule, Scale};
use crate::object::Object;
use crate::schema::{CauseReason, FieldError, Schema};
use crate::status::Subject;
use crate::store::Stored;
use crate::{Cuts, Fault, Faults, json};

/// One version of one resource, as the handlers see it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a resource")]
pub(crate) struct ResourceType {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
    /// Subresources besides status and scale.
    pub(crate) subresources: Vec<builtin::Subresource>,
    pub(crate) schema: Arc<Schema>,
    /// Defined by a client.
    pub(crate) custom: bool,
    /// Why a client should use something else.
    pub(crate) deprecation: Option<String>,
    pub(crate) name_rule: NameRule,
    pub(crate) has_generation: bool,
    pub(crate) allows_create_on_update: bool,
    pub(crate) allows_unconditional_update: bool,
    /// Media types of the bodies of POST and PUT.
    pub(crate) body_types: Vec<&'static str>,
    /// Media types of the bodies of PATCH.
    pub(crate) patch_types: Vec<&'static str>,
    /// Field selectors may name `metadata.name` and `metadata.namespace`.
    pub(crate) selects_by_name: bool,
    pub(crate) selectable: Vec<Selectable>,
    pub(crate) columns: Vec<Column>,
    pub(crate) hooks: Hooks,
    /// The table of the store that its objects live in.
    pub(crate) table: String,
    /// What the text of an object begins with, up to `metadata`.
    pub(crate) head: String,
    /// Tells the schemas of one table apart.
    pub(crate) schema_id: u64,
    /// The type that its objects are stored as, if it is another one.
    pub(crate) storage: Option<Arc<StoredAs>>,
}

/// The type that objects of another one are stored as.
#[derive(Debug)]
pub(crate) struct StoredAs {
    pub(crate) ty: ResourceType,
    pub(crate) encode: fn(&mut Value),
    decode: fn(&mut Value),
}

/// Media types of the bodies of POST and PUT.
pub(crate) const BODY_TYPES: [&str; 2] = ["application/json", "application/yaml"];

/// Media types of the bodies of PATCH. Custom resources lack the third.
pub(crate) const PATCH_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// A field that field selectors may name.
#[derive(Clone, Debug)]
pub(crate) struct Selectable {
    pub(crate) label: String,
    pub(crate) pointer: String,
    pub(crate) absent: String,
}

impl From<&FieldLabel> for Selectable {
    fn from(field: &FieldLabel) -> Self {
        Self {
            label: field.label.to_owned(),
            pointer: field.pointer.to_owned(),
            absent: field.absent.to_owned(),
        }
    }
}

impl Selectable {
    /// A field of a custom resource; absent counts as empty.
    pub(crate) fn new(label: &str, pointer: &str) -> Self {
        Self { label: label.to_owned(), pointer: pointer.to_owned(), absent: String::new() }
    }

    fn value(&self, object: &Value) -> String {
        match object.pointer(&self.pointer) {
            None | Some(Value::Null) => self.absent.clone(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// Kinds whose deletion answers with the object where others answer with a Status.
const DELETION_RETURNS_OBJECT: [&str; 4] = ["pods", "services", "serviceaccounts", "namespaces"];

impl ResourceType {
    /// The resource as messages name it.
    pub(crate) fn resource(&self) -> Subject<'_> {
        Subject { group: &self.group, word: &self.plural }
    }

    /// The kind as messages about an invalid object name it.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: &self.group, word: &self.kind }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }

    /// One of the built-in resources of the core group.
    pub(crate) fn is_core(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }

    /// Whether a deletion that removes an object answers with it.
    pub(crate) fn deletion_returns_object(&self) -> bool {
        self.group.is_empty() && DELETION_RETURNS_OBJECT.contains(&self.plural.as_str())
    }

    pub(crate) fn selectable_fields(&self, object: &Value) -> Vec<(String, String)> {
        self.selectable.iter().map(|field| (field.label.clone(), field.value(object))).collect()
    }

    /// The name under which the store knows a selectable field.
    pub(crate) fn stored_label<'a>(&'a self, label: &'a str) -> &'a str {
        let pointer = |ty: &ResourceType| {
            ty.selectable.iter().find(|own| own.label == label).map(|own| own.pointer.clone())
        };
        let stored = self.storage.as_ref().and_then(|storage| {
            let pointer = pointer(self)?;
            storage.ty.selectable.iter().find(|known| known.pointer == pointer)
        });
        stored.map_or(label, |known| &known.label)
    }

    /// Whether the text in the store is what this version of the API serves.
    pub(crate) fn serves_as_stored(&self, stored: &Stored) -> bool {
        stored.facts.schema == self.schema_id
    }

    /// The object as this version of the API serves it.
    pub(crate) fn load(&self, stored: &Stored, faults: Faults) -> Value {
        // The store holds what this server wrote, as deeply nested as its decoder allows.
        let mut object = json::parse(stored.object()).unwrap_or_default();
        if !self.serves_as_stored(stored) {
            if !faults.on(Fault::ConversionKeepsVersion) {
                object["apiVersion"] = self.api_version().into();
            }
            if let Some(storage) = &self.storage
                && !faults.on(Fault::EventFieldsUnconverted)
            {
                (storage.decode)(&mut object);
            }
            self.schema.prune(&mut object, faults);
            if !faults.on(Fault::OldObjectsNotDefaulted) {
                self.schema.apply_defaults(&mut object, faults);
            }
            if faults.on(Fault::ConversionDropsAnnotations) {
                object.unset_meta("annotations");
            }
        }
        object
    }

    /// Makes a decoded body what the server starts with.
    pub(crate) fn prepare_create(&self, object: &mut Value, faults: Faults) {
        if self.has_status
            && !faults.on(Fault::StatusKeptOnCreate)
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        (self.hooks.prepare_create)(object, faults);
        if self.has_generation {
            object.set_meta("generation", i64::from(!faults.on(Fault::GenerationStartsAtZero)));
        } else {
            object.unset_meta("generation");
        }
    }

    /// Fills in defaults. What a body may leave out comes from the schema, what depends on other fields from the kind.
    pub(crate) fn default(&self, object: &mut Value, faults: Faults) {
        self.schema.apply_defaults(object, faults);
        if !faults.on(Fault::DerivedDefaultsMissing) {
            (self.hooks.default)(object);
        }
    }

    pub(crate) fn validate(&self, object: &Value, faults: Faults) -> Vec<FieldError> {
        let mut errors = self.schema.validate(object, None, faults);
        errors.extend(self.judge(&errors, object, None, faults));
        errors.extend((self.hooks.validate)(object, faults));
        errors
    }

    pub(crate) fn validate_update(&self, new: &Value, old: &Value, faults: Faults) -> Vec<FieldError> {
        let unchecked = faults.on(Fault::PatchResultUnchecked) && !self.custom;
        let mut errors = if unchecked { Vec::new() } else { self.schema.validate(new, Some(old), faults) };
        errors.extend(self.judge(&errors, new, Some(old), faults));
        errors.extend((self.hooks.validate_update)(new, old, faults));
        errors.extend((self.hooks.validate)(new, faults));
        errors
    }

    /// The rules that an object breaks. On one whose structure is wrong they could not be evaluated.
    fn judge(
        &self,
        wrong: &[FieldError],
        new: &Value,
        old: Option<&Value>,
        faults: Faults,
    ) -> Vec<FieldError> {
        let structural = |error: &FieldError| error.reason != CauseReason::FieldValueInvalid;
        if wrong.iter().any(structural) { Vec::new() } else { self.schema.judge(new, old, faults) }
    }

    /// Whether an update counts as a new generation.
    pub(crate) fn is_new_generation(&self, new: &Value, old: &Value) -> bool {
        if self.custom {
            let same = |field: &str| new.get(field) == old.get(field);
            let fields = new.as_object().into_iter().chain(old.as_object()).flat_map(|fields| fields.keys());
            return fields
                .filter(|field| {
                    field.as_str() != "metadata" && !(self.has_status && field.as_str() == "status")
                })
                .any(|field| !same(field));
        }
        (self.hooks.is_new_generation)(new, old)
    }
}

impl From<BuiltinType> for ResourceType {
    fn from(ty: BuiltinType) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut built = Self {
            group: ty.group.to_owned(),
            version: ty.version.to_owned(),
            kind: ty.kind.to_owned(),
            list_kind: ty.list_kind.clone(),
            plural: ty.plural.to_owned(),
            singular: ty.singular.clone(),
            short_names: owned(ty.short_names),
            categories: owned(ty.categories),
            namespaced: ty.namespaced,
            verbs: owned(ty.verbs),
            has_status: ty.has_status,
            scale: ty.scale,
            subresources: ty.subresources.to_vec(),
            schema: ty.schema,
            custom: false,
            deprecation: None,
            name_rule: ty.name_rule,
            has_generation: ty.has_generation,
            allows_create_on_update: ty.allows_create_on_update,
            allows_unconditional_update: ty.allows_unconditional_update,
            body_types: BODY_TYPES.to_vec(),
            patch_types: PATCH_TYPES.to_vec(),
            selects_by_name: true,
            selectable: ty.field_labels.iter().map(Selectable::from).collect(),
            columns: ty.columns,
            hooks: ty.hooks,
            table: table_name(ty.group, ty.plural),
            head: String::new(),
            schema_id: 0,
            storage: None,
        };
        if let Some(builtin::Storage { ty, encode, decode }) = ty.storage {
            let ty = Self::from(ty());
            built.table.clone_from(&ty.table);
            built.schema_id = next_schema_id();
            built.storage = Some(Arc::new(StoredAs { ty, encode, decode }));
        }
        built.head = format!(r#"{{"kind":"{}","apiVersion":"{}","#, built.kind, built.api_version());
        built
    }
}

/// The table of a resource: `configmaps`, `deployments.apps`.
pub(crate) fn table_name(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// A number that no other schema of this process has.
pub(crate) fn next_schema_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The resources at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    /// In the order of discovery.
    types: Vec<Arc<ResourceType>>,
    /// Group, then version, then plural.
    index: HashMap<String, HashMap<String, HashMap<String, Arc<ResourceType>>>>,
}

/// What a path names, or what is missing.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    Found(Arc<ResourceType>),
    /// The group is served, but has no such resource.
    NoResource,
    /// Nothing of the group is served, or it is one that clients define.
    NoGroup,
}

impl Catalogue {
    pub(crate) fn types(&self) -> &[Arc<ResourceType>] {
        &self.types
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Lookup {
        let Some(versions) = self.index.get(group) else { return Lookup::NoGroup };
        if let Some(ty) = versions.get(version).and_then(|types| types.get(plural)) {
            return Lookup::Found(ty.clone());
        }
        let builtin = self.types.iter().any(|ty| ty.group == group && !ty.custom);
        if builtin { Lookup::NoResource } else { Lookup::NoGroup }
    }

    fn add(&mut self, ty: Arc<ResourceType>) {
        let versions = self.index.entry(ty.group.clone()).or_default();
        versions.entry(ty.version.clone()).or_default().insert(ty.plural.clone(), ty.clone());
        self.types.push(ty);
    }

    fn remove(&mut self, group: &str, plural: &str) {
        let types = std::mem::take(self).types;
        for ty in types {
            if ty.group != group || ty.plural != plural {
                self.add(ty);
            }
        }
    }
}

/// The catalogue, replaced as a whole whenever it changes.
#[derive(Debug)]
pub(crate) struct Registry {
    /// What every resource here is without.
    cuts: Cuts,
    current: RwLock<Arc<Catalogue>>,
}

impl Registry {
    /// The built-in resources, as far as they are served.
    pub(crate) fn new(cuts: Cuts) -> Self {
        let mut catalogue = Catalogue::default();
        for ty in builtin::types().into_iter().filter_map(|ty| cuts.trim(ty.into())) {
            catalogue.add(Arc::new(ty));
        }
        Self { cuts, current: RwLock::new(Arc::new(catalogue)) }
    }

    pub(crate) fn current(&self) -> Arc<Catalogue> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces every version of a resource by these; none takes it away.
    pub(crate) fn replace(&self, group: &str, plural: &str, types: Vec<ResourceType>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Catalogue::clone(&current);
        next.remove(group, plural);
        for ty in types.into_iter().filter_map(|ty| self.cuts.trim(ty)) {
            next.add(Arc::new(ty));
        }
        *current = Arc::new(next);
    }
}
