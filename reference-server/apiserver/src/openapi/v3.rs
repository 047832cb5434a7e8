//! OpenAPI v3: one document for each group and version.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::{Dialect, KINDS, definitions};
use super::info;
use super::operations::{self, Operation, Parameter, PathItem};
use crate::config::KubernetesVersion;
use crate::discovery::Resource;

/// Returns the document of one group and version.
pub(super) fn document(resources: &[Arc<Resource>], version: KubernetesVersion) -> Value {
    let items = resources.iter().flat_map(|resource| operations::paths(resource));
    let paths: Map<_, _> = items.map(|item| (item.path.clone(), path(&item))).collect();
    json!({
        "openapi": "3.0.0",
        "info": info(version),
        "paths": paths,
        "components": {
            "schemas": definitions(resources, version, Dialect::V3),
            "securitySchemes": {"BearerToken": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"BearerToken": []}],
    })
}

fn path(item: &PathItem) -> Value {
    let mut written = Map::new();
    for operation in &item.operations {
        written.insert(operation.method.to_owned(), write(operation));
    }
    if !item.parameters.is_empty() {
        written.insert("parameters".to_owned(), item.parameters.iter().map(parameter).collect());
    }
    Value::Object(written)
}

fn write(operation: &Operation) -> Value {
    let mut written = json!({
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
        "responses": responses(operation),
        "x-kubernetes-action": operation.action,
    });
    let [group, version, kind] = &operation.kind;
    written[KINDS] = json!({"group": group, "version": version, "kind": kind});
    if !operation.query.is_empty() {
        written["parameters"] = operation.query.iter().map(parameter).collect();
    }
    if let Some(body) = &operation.body {
        let content: Map<_, _> = body
            .media_types
            .iter()
            .map(|media_type| {
                ((*media_type).to_owned(), json!({"schema": schema(body.definition.as_deref())}))
            })
            .collect();
        written["requestBody"] = json!({"content": content, "required": body.required});
    }
    written
}

fn responses(operation: &Operation) -> Map<String, Value> {
    let response = |code: u16, definition: Option<&str>| {
        let description = super::v2::status_text(code);
        if code >= 400 {
            return json!({"description": description});
        }
        let content = operation
            .produces
            .iter()
            .map(|media_type| ((*media_type).to_owned(), json!({"schema": schema(definition)})));
        json!({"description": description, "content": content.collect::<Map<_, _>>()})
    };
    operation
        .responses
        .iter()
        .map(|(code, definition)| (code.to_string(), response(*code, definition.as_deref())))
        .collect()
}

fn schema(definition: Option<&str>) -> Value {
    match definition {
        Some(name) => json!({"$ref": Dialect::V3.pointer(name)}),
        None => json!({"type": "object"}),
    }
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.description,
        "schema": {"type": parameter.kind, "uniqueItems": true},
    })
}
