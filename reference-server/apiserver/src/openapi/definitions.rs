//! The named schemas of a document, and references to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::published::Published;
use super::{common, descriptions, other_paths};
use crate::config::KubernetesVersion;
use crate::discovery::Resource;

use kubeproof_apimachinery::schema::Schema;

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

/// The keywords that belong to the use of a schema, not to its definition.
const OF_THE_USE: [&str; 3] =
    ["default", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"];

impl Dialect {
    /// Returns the reference to a definition.
    pub(super) fn pointer(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// Returns every schema of the resources and their operations by name. Those of built-in types
/// follow from the data of the version. `needed` has the names in the operations.
pub(super) fn definitions<'n>(
    resources: &[Arc<Resource>],
    needed: impl Iterator<Item = &'n str>,
    version: KubernetesVersion,
    dialect: Dialect,
) -> Map<String, Value> {
    let mut published = Published::new(version, dialect);
    let mut named: BTreeMap<String, &Schema> = BTreeMap::new();
    let mut own = Vec::new();
    for resource in resources {
        let mut add = |kind: &str| published.add_kind(&resource.group, &resource.version, kind);
        if add(&resource.kind) {
            continue;
        }
        collect(&resource.schema, &mut named);
        named.entry(definition_name(resource)).or_insert(&resource.schema);
        own.push(resource.as_ref());
    }
    named.retain(|name, _| !published.add(name));
    if !own.is_empty() {
        published.add(common::LIST_META);
    }
    let needs_version = needed.fold(false, |known, name| {
        published.add(name);
        known || name == common::VERSION_INFO
    });
    let mut written = published.finish();
    if needs_version {
        written.insert(common::VERSION_INFO.to_owned(), other_paths::version_info(dialect));
    }
    for name in [common::DELETE_OPTIONS, common::WATCH_EVENT] {
        if let Some(schema) = written.get_mut(name) {
            schema[KINDS] = kinds_in_each_group(name, resources);
        }
    }
    for (name, definition) in &mut written {
        if let Some(definition) = definition.as_object_mut() {
            descriptions::describe(name, definition, dialect);
        }
    }
    for (name, schema) in &named {
        let entry = written.entry(name.clone());
        entry.or_insert_with(|| Value::Object(define(schema, dialect)));
    }
    add_custom(&own, &mut written, dialect);
    written
}

/// Adds the lists of custom resources, and the keywords of their kinds.
fn add_custom(own: &[&Resource], written: &mut Map<String, Value>, dialect: Dialect) {
    for resource in own {
        let [name, list] = [definition_name(resource), list_definition_name(resource)];
        if !resource.list_kind.is_empty() {
            let schema = list_of(&name, dialect);
            written.insert(list.clone(), schema);
        }
        for (name, kind) in [(name, &resource.kind), (list, &resource.list_kind)] {
            let Some(Value::Object(definition)) = written.get_mut(&name) else { continue };
            let kinds = definition.entry(KINDS).or_insert_with(|| json!([]));
            if let Some(kinds) = kinds.as_array_mut() {
                let Resource { group, version, .. } = resource;
                kinds.push(json!({"group": group, "version": version, "kind": kind}));
            }
            if resource.custom && !resource.selectable_fields.is_empty() {
                let fields = resource.selectable_fields.iter();
                let fields = fields.map(|field| json!({ "fieldPath": field }));
                definition.insert("x-kubernetes-selectable-fields".to_owned(), fields.collect());
            }
            if dialect == Dialect::V3 {
                wrap_references(definition);
            }
        }
    }
}

/// Writes the references of properties as `allOf`, as in Kubernetes. A property with `allOf` can
/// also have a description.
fn wrap_references(schema: &mut Map<String, Value>) {
    for (keyword, child) in schema {
        match child {
            Value::Object(properties) if keyword == "properties" => {
                for property in properties.values_mut().filter_map(Value::as_object_mut) {
                    if let Some(reference) = property.remove("$ref") {
                        property.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
                    }
                    wrap_references(property);
                }
            }
            Value::Object(child) if ["items", "additionalProperties"].contains(&&**keyword) => {
                wrap_references(child);
            }
            _ => {}
        }
    }
}

/// Returns the kinds of a definition such as `DeleteOptions`, which is a member of each group.
fn kinds_in_each_group(name: &str, resources: &[Arc<Resource>]) -> Value {
    let name = name.rsplit('.').next().unwrap_or_default();
    let mut groups = BTreeSet::from([("", "v1")]);
    groups.extend(resources.iter().map(|resource| (&*resource.group, &*resource.version)));
    let kind = |(group, version)| json!({"group": group, "version": version, "kind": name});
    groups.into_iter().map(kind).collect()
}

/// Returns the schema of a list of the objects that `item` defines.
fn list_of(item: &str, dialect: Dialect) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": dialect.pointer(common::LIST_META)},
            "items": {"type": "array", "items": {"$ref": dialect.pointer(item)}},
        },
    })
}

/// Returns the definition of a schema without the keywords that belong to its uses.
fn define(schema: &Schema, dialect: Dialect) -> Map<String, Value> {
    let mut written = write(schema, dialect);
    written.retain(|keyword, _| !OF_THE_USE.contains(&keyword.as_str()));
    if let Some(name) = schema.name {
        descriptions::describe(name, &mut written, dialect);
    }
    written
}

/// The extension with the group, version and kind of a schema or an operation.
pub(super) const KINDS: &str = "x-kubernetes-group-version-kind";

/// Returns the name of the schema of a resource.
pub(super) fn definition_name(resource: &Resource) -> String {
    if let Some(name) = resource.schema.name {
        return name.to_owned();
    }
    let mut labels: Vec<_> = resource.group.rsplit('.').collect();
    labels.extend([&*resource.version, &resource.kind]);
    labels.join(".")
}

/// Returns the name of the schema of a list.
pub(super) fn list_definition_name(resource: &Resource) -> String {
    let name = definition_name(resource);
    let parent = name.rsplit_once('.').map_or("", |(parent, _)| parent);
    format!("{parent}.{}", resource.list_kind)
}

/// Collects the named schemas in this one.
fn collect<'s>(schema: &'s Schema, named: &mut BTreeMap<String, &'s Schema>) {
    if let Some(name) = schema.name
        && named.insert(name.to_owned(), schema).is_some()
    {
        return;
    }
    let children =
        schema.properties.values().chain(&schema.additional_properties).chain(&schema.items);
    for child in children {
        collect(child, named);
    }
}

/// Returns the use of a schema: a reference if it has a name.
fn used(schema: &Schema, dialect: Dialect) -> Value {
    let Some(name) = schema.name else { return Value::Object(write(schema, dialect)) };
    let of_the_use = Schema {
        default: schema.default.clone(),
        patch_strategy: schema.patch_strategy,
        patch_merge_key: schema.patch_merge_key,
        ..Schema::default()
    };
    let mut reference = of_the_use.write(&|_| Value::Null);
    let pointer = dialect.pointer(name);
    if dialect == Dialect::V2 || reference.is_empty() {
        reference.insert("$ref".to_owned(), json!(pointer));
    } else {
        // In v3, keywords beside a reference are ignored.
        reference.insert("allOf".to_owned(), json!([{"$ref": pointer}]));
    }
    Value::Object(reference)
}

/// Returns the keywords of a schema itself.
fn write(schema: &Schema, dialect: Dialect) -> Map<String, Value> {
    let mut written = schema.write(&|child| used(child, dialect));
    if schema.int_or_string && dialect == Dialect::V3 && schema.all_of.is_empty() {
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        written.entry("anyOf").or_insert(types);
    }
    if schema.embedded_resource {
        let required = written.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            let missing = ["kind", "apiVersion"].into_iter().map(Value::from);
            let missing: Vec<_> = missing.filter(|name| !required.contains(name)).collect();
            required.extend(missing);
        }
    }
    if dialect == Dialect::V2 {
        // Clients that validate with v2 ignore these extensions and would reject valid fields.
        let is_open = schema.preserve_unknown || schema.embedded_resource || schema.nullable;
        written.retain(|keyword, _| {
            !(V3_ONLY.contains(&keyword.as_str()) || is_open && CLOSING.contains(&keyword.as_str()))
        });
    }
    written
}

/// Keywords that v2 lacks or that its clients cannot process.
const V3_ONLY: [&str; 6] = ["default", "nullable", "anyOf", "oneOf", "not", "allOf"];

/// Keywords that restrict the values of a schema.
const CLOSING: [&str; 5] = ["type", "properties", "required", "items", "additionalProperties"];
