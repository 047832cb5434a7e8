//! OpenAPI v3: one document for each group and version.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::{Dialect, definitions};
use super::info;
use super::operations::{Content, Operation, PathItem};
use super::parameters::Parameter;
use super::v2::status_text;
use crate::config::KubernetesVersion;
use crate::discovery::Resource;

/// Returns the document with this path below `/openapi/v3/`. It has the resources of one group and
/// version, or none.
pub(super) fn document(
    path: &str,
    resources: &[Arc<Resource>],
    version: KubernetesVersion,
) -> Value {
    let items = super::items(path, resources, version);
    let paths: Map<_, _> = items.iter().map(|item| (item.path.clone(), path_item(item))).collect();
    let needed = items.iter().flat_map(PathItem::definitions);
    let schemas = definitions(resources, needed, version, Dialect::V3);
    let mut document = json!({"openapi": "3.0.0", "info": info(version), "paths": paths});
    if !schemas.is_empty() {
        document["components"]["schemas"] = schemas.into();
    }
    document["components"]["securitySchemes"] = super::security_schemes();
    document
}

fn path_item(item: &PathItem) -> Value {
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
    });
    super::add_extensions(operation, &mut written);
    if !operation.parameters.is_empty() {
        written["parameters"] = operation.parameters.iter().map(parameter).collect();
    }
    if let Some(body) = &operation.body {
        written["requestBody"] = json!({"content": content(&operation.consumes, &body.content)});
        if body.required {
            written["requestBody"]["required"] = true.into();
        }
    }
    written
}

fn responses(operation: &Operation) -> Map<String, Value> {
    let response = |code: &u16| {
        let content = content(&operation.produces, &operation.content);
        (code.to_string(), json!({"description": status_text(*code), "content": content}))
    };
    let unauthorized = ("401".to_owned(), json!({"description": status_text(401)}));
    operation.codes.iter().map(response).chain([unauthorized]).collect()
}

/// Returns the schema of a body for each media type.
fn content(media_types: &[&str], content: &Content) -> Map<String, Value> {
    let schema = super::schema(content, Dialect::V3);
    media_types.iter().map(|name| ((*name).to_owned(), json!({ "schema": schema }))).collect()
}

fn parameter(parameter: &Parameter) -> Value {
    let mut written = json!({
        "name": parameter.name,
        "in": parameter.place,
        "schema": {"type": parameter.kind, "uniqueItems": true},
    });
    super::add_keywords(parameter, &mut written);
    written
}
