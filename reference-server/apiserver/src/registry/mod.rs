//! The served resources: built-in types from the start, and custom types when they are defined.
//!
//! Endpoints use one [`ResourceType`] for both. Differences are data of the type,
//! [`builtin::Hooks`] for what depends on the object alone, and a [`Strategy`] for what needs the
//! rest of the server.

pub(crate) mod backends;
pub(crate) mod builtin;
mod capabilities;
mod catalogue;
mod client_config;
mod conversion;
pub(crate) mod crd;
pub(crate) mod encode;
pub(crate) mod follower;
pub(crate) mod remote;
mod schema;
mod selectable;
pub(crate) mod services;
pub(crate) mod strategy;
mod validation;

use std::sync::Arc;

use serde_json::Value;

use self::builtin::{BuiltinType, Column, Hooks, NameRule, Scale};
pub(crate) use self::catalogue::{Catalogue, Lookup, Registry};
pub(crate) use self::conversion::Conversion;
pub(crate) use self::schema::LazySchema;
pub(crate) use self::selectable::Selectable;
use self::strategy::Strategy;
use crate::config::KubernetesVersion;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::metadata::MetaRules;
use kubeproof_apimachinery::serializer::json;
use kubeproof_apimachinery::serializer::protobuf;
use kubeproof_apimachinery::status::Subject;
use kubeproof_storage::Stored;

/// The groups that kube-apiserver checks finalizers of as those of custom resources.
const LENIENT_GROUPS: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "policy",
];

/// One version of one resource.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a resource")]
pub(crate) struct ResourceType {
    /// The API group. It is empty for the core group.
    pub group: String,
    pub(crate) version: String,
    /// The kind.
    pub kind: String,
    pub(crate) list_kind: String,
    /// The plural name in URLs.
    pub plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// Objects belong to namespaces.
    pub namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<Scale>,
    /// Subresources besides status and scale.
    pub(crate) subresources: Vec<builtin::Subresource>,
    /// The schema of an object.
    pub schema: LazySchema,
    /// A CRD defines the type.
    pub(crate) custom: bool,
    /// The deprecation warning.
    pub(crate) deprecation: Option<String>,
    pub(crate) name_rule: NameRule,
    pub(crate) has_generation: bool,
    pub(crate) allows_create_on_update: bool,
    pub(crate) allows_unconditional_update: bool,
    /// The media types of bodies of POST and PUT.
    pub(crate) body_types: Vec<&'static str>,
    /// The media types of bodies of PATCH.
    pub(crate) patch_types: Vec<&'static str>,
    /// Field selectors may name `metadata.name` and `metadata.namespace`.
    pub(crate) selects_by_name: bool,
    pub(crate) selectable: Vec<Selectable>,
    pub(crate) columns: Vec<Column>,
    pub(crate) hooks: Hooks,
    /// The behaviour of the type around writes.
    pub strategy: Arc<dyn Strategy>,
    /// The table of its objects in the store.
    pub table: String,
    /// The beginning of the text of an object, up to `metadata`.
    pub(crate) head: String,
    /// Distinguishes the schemas of one table.
    pub(crate) schema_id: u64,
    /// The type of the stored objects, if it is another one.
    pub(crate) storage: Option<Arc<StoredAs>>,
    /// The webhook that converts the objects, if there is one.
    pub(crate) conversion: Option<Arc<Conversion>>,
}

/// The type of the stored objects of another type.
#[derive(Debug)]
pub(crate) struct StoredAs {
    pub(crate) ty: ResourceType,
    pub(crate) encode: fn(&mut Value),
    decode: fn(&mut Value),
}

/// The media types of bodies of POST and PUT. Custom resources lack the third.
pub(crate) const BODY_TYPES: [&str; 3] =
    ["application/json", "application/yaml", protobuf::MEDIA_TYPE];

/// The media types of bodies of PATCH. Custom resources lack the third.
pub(crate) const PATCH_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The types of the core group whose deletion returns the object instead of a Status.
const DELETION_RETURNS_OBJECT: [&str; 8] = [
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
];

impl ResourceType {
    /// Returns the resource for messages.
    pub(crate) fn resource(&self) -> Subject<'_> {
        Subject { group: &self.group, word: &self.plural }
    }

    /// Returns the kind for messages about an invalid name.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: &self.group, word: &self.kind }
    }

    /// Returns `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }

    /// Returns whether this is a built-in resource of the core group.
    pub(crate) fn is_core(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }

    /// Returns whether a deletion that removes an object returns it.
    pub(crate) fn deletion_returns_object(&self) -> bool {
        match self.group.as_str() {
            "" => DELETION_RETURNS_OBJECT.contains(&self.plural.as_str()),
            "resource.k8s.io" => true,
            "storage.k8s.io" => self.plural != "csistoragecapacities",
            _ => false,
        }
    }

    /// Returns the labels of the fields that the definition of a custom resource selects.
    pub(crate) fn custom_selectable_fields(&self) -> Vec<String> {
        let labels = self.selectable.iter().map(|field| field.label.clone());
        if self.custom { labels.collect() } else { Vec::new() }
    }

    pub(crate) fn selectable_fields(&self, object: &Value) -> Vec<(String, String)> {
        self.selectable.iter().map(|field| (field.label.clone(), field.value(object))).collect()
    }

    /// Returns the name of a selectable field in the store.
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

    /// Returns whether the stored text is in this API version.
    pub(crate) fn serves_as_stored(&self, stored: &Stored) -> bool {
        stored.facts.schema == self.schema_id
    }

    /// Returns the webhook if it must convert a stored object to this version.
    pub(crate) fn conversion_of(&self, stored: &Stored) -> Option<&Arc<Conversion>> {
        let is_own_version = stored.object().starts_with(self.head.as_bytes());
        self.conversion.as_ref().filter(|_| !is_own_version)
    }

    /// Returns the type in the version of a stored object if a webhook converts this type. Changes
    /// of metadata alone need no conversion.
    pub(crate) fn as_stored<'a>(self: &'a Arc<Self>, stored: &Stored) -> &'a Arc<Self> {
        let conversion = self.conversion.as_ref();
        conversion.and_then(|conversion| conversion.version_of(stored)).unwrap_or(self)
    }

    /// Returns the object in this API version. If [`Self::conversion_of`] returns a webhook, that
    /// must convert the object instead.
    pub(crate) fn load(&self, stored: &Stored) -> Value {
        // This server wrote the stored text, so it is valid and its depth is limited.
        let mut object = json::parse(stored.object()).unwrap_or_default();
        if !self.serves_as_stored(stored) {
            object["apiVersion"] = self.api_version().into();
            if let Some(storage) = &self.storage {
                (storage.decode)(&mut object);
            }
            self.schema.prune(&mut object);
            self.schema.apply_defaults(&mut object);
        }
        object
    }

    /// Returns an object of this type in another version of the type.
    pub(crate) fn convert(&self, object: &Value, to: &Self) -> Value {
        let mut object = object.clone();
        if let Some(storage) = &self.storage {
            (storage.encode)(&mut object);
        }
        if let Some(storage) = &to.storage {
            (storage.decode)(&mut object);
        }
        object["apiVersion"] = to.api_version().into();
        object["kind"] = to.kind.as_str().into();
        to.schema.prune(&mut object);
        to.schema.apply_defaults(&mut object);
        object
    }

    /// Prepares a decoded body for its creation.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        if self.has_status
            && !self.hooks.keeps_status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        (self.hooks.prepare_create)(object);
        if self.has_generation {
            object.set_meta("generation", i64::from(true));
        }
    }

    /// Sets defaults: first those of the schema, then those of the kind.
    pub(crate) fn default(&self, object: &mut Value) {
        self.schema.apply_defaults(object);
        (self.hooks.default)(object);
    }

    /// Returns the rules for the metadata of the objects. The finalizers of some built-in types
    /// need no domain, as those of custom resources.
    pub(crate) fn meta_rules(&self) -> MetaRules {
        let is_lenient = LENIENT_GROUPS.contains(&self.group.as_str())
            || self.group.is_empty() && self.plural == "events";
        MetaRules { name: self.name_rule, qualified_finalizers: !self.custom && !is_lenient }
    }

    /// Returns whether an update is a new generation.
    pub(crate) fn is_new_generation(&self, new: &Value, old: &Value) -> bool {
        if self.custom {
            let same = |field: &str| new.get(field) == old.get(field);
            let fields =
                new.as_object().into_iter().chain(old.as_object()).flat_map(|fields| fields.keys());
            return fields
                .filter(|field| {
                    field.as_str() != "metadata" && !(self.has_status && field.as_str() == "status")
                })
                .any(|field| !same(field));
        }
        (self.hooks.is_new_generation)(new, old)
    }
}

impl ResourceType {
    /// Returns a built-in type of a version of Kubernetes, or `None` if the version lacks it.
    pub(crate) fn built_in(ty: BuiltinType, version: KubernetesVersion) -> Option<Self> {
        let data = version.resource(ty.group, ty.version, ty.plural)?;
        let schema = builtin::schema(version, &ty)?;
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut built = Self {
            group: ty.group.to_owned(),
            version: ty.version.to_owned(),
            kind: ty.kind.to_owned(),
            list_kind: ty.list_kind.clone(),
            plural: ty.plural.to_owned(),
            singular: ty.singular.clone(),
            short_names: owned(&data.short_names),
            categories: owned(&data.categories),
            namespaced: ty.namespaced,
            verbs: owned(&data.verbs),
            has_status: ty.has_status,
            scale: ty.scale,
            subresources: ty.subresources.to_vec(),
            schema,
            custom: false,
            deprecation: ty.deprecation.map(str::to_owned),
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
            strategy: (ty.strategy)(),
            table: table_name(ty.group, ty.plural),
            head: String::new(),
            schema_id: 0,
            storage: None,
            conversion: None,
        };
        if let Some(builtin::Storage { ty, encode, decode }) = ty.storage {
            let ty = Self::built_in(ty(), version)?;
            built.table.clone_from(&ty.table);
            built.schema_id = OTHER_VERSION;
            built.storage = Some(Arc::new(StoredAs { ty, encode, decode }));
        }
        built.head =
            format!(r#"{{"kind":"{}","apiVersion":"{}","#, built.kind, built.api_version());
        Some(built)
    }
}

/// Returns the table of a resource: `configmaps`, `deployments.apps`.
pub(crate) fn table_name(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// The schema of a built-in type that is stored as another type, which has schema 0.
const OTHER_VERSION: u64 = 1;
