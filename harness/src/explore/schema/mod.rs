//! The published schema of a resource: from its custom resource definition, or from OpenAPI v3.

mod fit;
mod rules;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::capability::Requester;
use crate::plan::Subject;
use crate::transport::Client;

pub(super) use self::fit::escaped;

/// The extension with the kinds of a definition.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// The schema of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    root: Value,
    definitions: Map<String, Value>,
    /// Whether the schema has all rules of the server. It has for custom resources.
    pub(super) is_complete: bool,
    /// Whether the server publishes the query parameter `fieldValidation`.
    pub(super) has_field_validation: bool,
}

impl Schema {
    /// Reads the schema. Without a published one, the schema permits everything, and is incomplete.
    pub(crate) async fn load(client: &Client, subject: &Subject, deadline: Instant) -> Self {
        let requester = Requester { client, deadline };
        let document = format!("/openapi/v3{}", subject.root());
        let document = requester.get(&document, "application/json").await;
        let document = document.json().unwrap_or(&Value::Null);
        let mut schema = Self::of_document(document, subject);
        if !subject.served.group.is_empty() {
            let definition = format!(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{}",
                subject.served.resource, subject.served.group
            );
            let definition = requester.get(&definition, "application/json").await;
            if let Some(root) = definition.json().and_then(|body| version_of(body, subject)) {
                schema.root = root.clone();
                schema.is_complete = true;
            }
        }
        schema
    }

    fn of_document(document: &Value, subject: &Subject) -> Self {
        let definitions = document.pointer("/components/schemas").and_then(Value::as_object);
        let served = &subject.served;
        let is_of_subject = |schema: &&Value| {
            let kinds = schema[KINDS].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| {
                kind["group"] == served.group.as_str()
                    && kind["version"] == served.version.as_str()
                    && kind["kind"] == subject.kind.as_str()
            })
        };
        let root = definitions.and_then(|all| all.values().find(is_of_subject));
        let root = root.cloned().unwrap_or(Value::Null);
        let definitions =
            definitions.map(|definitions| reachable(&root, definitions)).unwrap_or_default();
        let has_field_validation = document["paths"].to_string().contains("\"fieldValidation\"");
        Self { root, definitions, is_complete: false, has_field_validation }
    }

    /// Creates the schema of a custom resource.
    #[cfg(test)]
    pub(super) fn complete(root: Value) -> Self {
        Self { root, definitions: Map::new(), is_complete: true, has_field_validation: true }
    }

    /// Returns the schema of whole objects.
    pub(super) fn root(&self) -> &Value {
        self.resolve(&self.root)
    }

    /// Follows references.
    pub(super) fn resolve<'a>(&'a self, node: &'a Value) -> &'a Value {
        let mut node = node;
        // References may form a circle.
        for _ in 0..8 {
            let alone = node["$ref"].as_str();
            let beside = || match node["allOf"].as_array()?.as_slice() {
                [one] => one["$ref"].as_str(),
                _ => None,
            };
            let name = alone.or_else(beside).and_then(|name| name.rsplit('/').next());
            match name.and_then(|name| self.definitions.get(name)) {
                Some(target) => node = target,
                None => return node,
            }
        }
        node
    }

    /// Returns the schema of a member of an object.
    pub(super) fn member<'a>(&'a self, node: &'a Value, name: &str) -> Option<&'a Value> {
        let node = self.resolve(node);
        let declared = node["properties"].get(name);
        let values = || Some(&node["additionalProperties"]).filter(|schema| schema.is_object());
        declared.or_else(values).map(|schema| self.resolve(schema))
    }

    /// Returns the schema of the place of a JSON Pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&Value> {
        let mut node = self.root();
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            node = if node["items"].is_object() {
                self.resolve(&node["items"])
            } else {
                self.member(node, &segment)?
            };
        }
        Some(node)
    }

    /// Reports whether a string of a place is the key of a map, which servers keep even if empty.
    pub(super) fn is_map(&self, node: &Value) -> bool {
        let node = self.resolve(node);
        node["additionalProperties"].is_object() && !node["properties"].is_object()
    }
}

fn version_of<'a>(definition: &'a Value, subject: &Subject) -> Option<&'a Value> {
    let versions = definition["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|one| one["name"] == subject.served.version.as_str())?;
    version.pointer("/schema/openAPIV3Schema")
}

/// Returns the names of the required members.
pub(super) fn required(node: &Value) -> Vec<&str> {
    node["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Reports whether an object keeps members that the schema does not declare.
pub(super) fn preserves(node: &Value) -> bool {
    node["x-kubernetes-preserve-unknown-fields"] == true
}

/// Reports whether a value is a number or a text.
pub(super) fn is_int_or_string(node: &Value) -> bool {
    node["x-kubernetes-int-or-string"] == true || node["format"] == "int-or-string"
}

/// Reports whether a value is an object of its own, with a kind.
pub(super) fn is_embedded(node: &Value) -> bool {
    node["x-kubernetes-embedded-resource"] == true
}

/// Reports whether a value may be null.
pub(super) fn is_nullable(node: &Value) -> bool {
    node["nullable"] == true
}

/// Returns the keys of a list map. Empty for other lists.
pub(super) fn map_keys(node: &Value) -> Vec<&str> {
    if node["x-kubernetes-list-type"] != "map" {
        return Vec::new();
    }
    let keys = node["x-kubernetes-list-map-keys"].as_array();
    keys.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Reports whether a list is a set.
pub(super) fn is_set(node: &Value) -> bool {
    node["x-kubernetes-list-type"] == "set"
}
/// Returns the definitions that a schema refers to, directly or not.
fn reachable(root: &Value, definitions: &Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        match node {
            Value::Object(members) => {
                let name = node["$ref"].as_str().and_then(|text| text.rsplit('/').next());
                if let Some((name, target)) = name.and_then(|name| definitions.get_key_value(name))
                    && !found.contains_key(name)
                {
                    found.insert(name.clone(), target.clone());
                    open.push(target);
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}
