//! The named schemas of a document, and how others refer to them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{bends, common, words};
use crate::discovery::Resource;
use crate::faults::{Fault, Faults};
use crate::schema::Schema;

/// The version of OpenAPI in which schemas are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

/// Says what belongs to the place where a schema is used, not to the schema.
const OF_THE_USE: [&str; 3] = ["default", "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"];

impl Dialect {
    /// The address of a definition.
    pub(super) fn pointer(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// Every schema that the resources and their operations need, by name.
pub(super) fn definitions(resources: &[&Resource], dialect: Dialect, faults: Faults) -> Map<String, Value> {
    let mut named: BTreeMap<String, &Schema> = BTreeMap::new();
    for (schema, _) in common::schemas() {
        collect(schema, &mut named);
    }
    for resource in resources {
        collect(&resource.schema, &mut named);
        named.entry(definition_name(resource)).or_insert(&resource.schema);
    }
    let mut written: Map<String, Value> =
        named.iter().map(|(name, schema)| (name.clone(), Value::Object(define(schema, dialect)))).collect();
    for resource in resources.iter().filter(|resource| !resource.list_kind.is_empty()) {
        let list = list_of(&definition_name(resource), dialect);
        written.insert(list_definition_name(resource), list);
    }
    bends::bend(&mut written, dialect, faults);
    if faults.on(Fault::OpenApiWithoutKinds) {
        return written;
    }

    let common =
        common::schemas().iter().filter_map(|(schema, kind)| Some((schema.name?.to_owned(), (*kind)?)));
    let own = resources.iter().flat_map(|resource| {
        let kind = |kind| [&*resource.group, &*resource.version, kind];
        let list = (list_definition_name(resource), kind(&resource.list_kind));
        [(definition_name(resource), kind(&resource.kind)), list]
    });
    for (name, [group, version, kind]) in common.chain(own) {
        if let Some(Value::Object(definition)) = written.get_mut(&name) {
            let kinds = definition.entry(KINDS).or_insert_with(|| json!([]));
            if let Some(kinds) = kinds.as_array_mut() {
                kinds.push(json!({"group": group, "version": version, "kind": kind}));
            }
        }
    }
    written
}

/// The schema of a list of the objects which `item` defines.
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

/// A schema under its own name, without what belongs to the places where it is used.
fn define(schema: &Schema, dialect: Dialect) -> Map<String, Value> {
    let mut written = write(schema, dialect);
    written.retain(|keyword, _| !OF_THE_USE.contains(&keyword.as_str()));
    if let Some(name) = schema.name {
        words::describe(name, &mut written, dialect);
    }
    written
}

/// The extension that says which group, version and kind a schema or an operation is of.
pub(super) const KINDS: &str = "x-kubernetes-group-version-kind";

/// The name under which the schema of a resource's objects is published.
pub(super) fn definition_name(resource: &Resource) -> String {
    if let Some(name) = resource.schema.name {
        return name.to_owned();
    }
    let mut labels: Vec<_> = resource.group.rsplit('.').collect();
    labels.extend([&*resource.version, &resource.kind]);
    labels.join(".")
}

/// The name under which the schema of their lists is published.
pub(super) fn list_definition_name(resource: &Resource) -> String {
    let name = definition_name(resource);
    let parent = name.rsplit_once('.').map_or("", |(parent, _)| parent);
    format!("{parent}.{}", resource.list_kind)
}

/// Gathers the named schemas in and below this one.
fn collect<'s>(schema: &'s Schema, named: &mut BTreeMap<String, &'s Schema>) {
    if let Some(name) = schema.name
        && named.insert(name.to_owned(), schema).is_some()
    {
        return;
    }
    let children = schema.properties.values().chain(&schema.additional_properties).chain(&schema.items);
    for child in children {
        collect(child, named);
    }
}

/// A schema where it is used: a reference if it has a name.
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

/// The keywords of a schema itself.
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
        // Clients that validate by v2 know nothing of these extensions, and would refuse fields that are welcome.
        let is_open = schema.preserve_unknown || schema.embedded_resource;
        written.retain(|keyword, _| {
            !(V3_ONLY.contains(&keyword.as_str()) || is_open && CLOSING.contains(&keyword.as_str()))
        });
    }
    written
}

/// Keywords that v2 does not have, or that its readers cannot follow.
const V3_ONLY: [&str; 5] = ["nullable", "anyOf", "oneOf", "not", "allOf"];

/// Keywords by which a schema says which values it takes.
const CLOSING: [&str; 5] = ["type", "properties", "required", "items", "additionalProperties"];
