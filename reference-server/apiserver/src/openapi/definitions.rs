//! The named schemas of a document, and references to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::published::Published;
use super::{common, descriptions};
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
/// follow from the data of the version.
pub(super) fn definitions(
    resources: &[Arc<Resource>],
    version: KubernetesVersion,
    dialect: Dialect,
) -> Map<String, Value> {
    let mut published = Published::new(version.definitions(), dialect);
    for name in [common::STATUS, common::DELETE_OPTIONS, common::SCALE, common::LIST_META] {
        published.add(name);
    }
    let mut named: BTreeMap<String, &Schema> = BTreeMap::new();
    let mut own = Vec::new();
    for resource in resources {
        let mut add = |kind: &str| published.add_kind(&resource.group, &resource.version, kind);
        if add(&resource.kind) {
            add(&resource.list_kind);
            continue;
        }
        collect(&resource.schema, &mut named);
        named.entry(definition_name(resource)).or_insert(&resource.schema);
        own.push(resource.as_ref());
    }
    named.retain(|name, _| !published.add(name));
    let mut written = published.finish();
    written.insert(common::PATCH.to_owned(), json!({"type": "object"}));
    if let Some(options) = written.get_mut(common::DELETE_OPTIONS) {
        options[KINDS] = kinds_of_delete_options(resources);
    }
    for (name, definition) in &mut written {
        if let Some(definition) = definition.as_object_mut() {
            descriptions::describe(name, definition, dialect);
        }
    }
    let custom =
        named.iter().map(|(name, schema)| (name.clone(), Value::Object(define(schema, dialect))));
    written.extend(custom);
    for resource in own.iter().filter(|resource| !resource.list_kind.is_empty()) {
        let list = list_of(&definition_name(resource), dialect);
        written.insert(list_definition_name(resource), list);
    }
    let own = own.into_iter().flat_map(|resource| {
        let kind = |kind| [&*resource.group, &*resource.version, kind];
        let list = (list_definition_name(resource), kind(&resource.list_kind));
        [(definition_name(resource), kind(&resource.kind)), list]
    });
    for (name, [group, version, kind]) in own {
        if let Some(Value::Object(definition)) = written.get_mut(&name) {
            let kinds = definition.entry(KINDS).or_insert_with(|| json!([]));
            if let Some(kinds) = kinds.as_array_mut() {
                kinds.push(json!({"group": group, "version": version, "kind": kind}));
            }
        }
    }
    written
}

/// Returns the kinds of `DeleteOptions`, which is a member of each group.
fn kinds_of_delete_options(resources: &[Arc<Resource>]) -> Value {
    let mut groups = BTreeSet::from([("", "v1")]);
    groups.extend(resources.iter().map(|resource| (&*resource.group, &*resource.version)));
    let kind = |(group, version)| json!({"group": group, "version": version, "kind": OPTIONS});
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

const OPTIONS: &str = "DeleteOptions";

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
    if schema.int_or_string {
        written.insert("format".to_owned(), json!("int-or-string"));
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        match dialect {
            Dialect::V2 => drop(written.insert("type".to_owned(), json!("string"))),
            Dialect::V3 => drop(written.entry("oneOf").or_insert(types)),
        }
    }
    if dialect == Dialect::V2 {
        // Clients that validate with v2 ignore these extensions and would reject valid fields.
        let is_open = schema.preserve_unknown || schema.embedded_resource;
        written.retain(|keyword, _| {
            !(V3_ONLY.contains(&keyword.as_str()) || is_open && CLOSING.contains(&keyword.as_str()))
        });
    }
    written
}

/// Keywords that v2 lacks or that its clients cannot process.
const V3_ONLY: [&str; 5] = ["nullable", "anyOf", "oneOf", "not", "allOf"];

/// Keywords that restrict the values of a schema.
const CLOSING: [&str; 5] = ["type", "properties", "required", "items", "additionalProperties"];
