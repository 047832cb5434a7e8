//! OpenAPI v2 ("Swagger"): one document for the whole API.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::{Dialect, KINDS, definitions};
use super::info;
use super::operations::{self, Body, Operation, Parameter, PathItem};
use crate::config::KubernetesVersion;
use crate::discovery::Resource;

/// Returns the document of `/openapi/v2`.
pub(crate) fn document(resources: &[Arc<Resource>], version: KubernetesVersion) -> Value {
    let items = resources.iter().flat_map(|resource| operations::paths(resource));
    let paths: Map<_, _> = items.map(|item| (item.path.clone(), path(&item))).collect();
    json!({
        "swagger": "2.0",
        "info": info(version),
        "paths": paths,
        "definitions": definitions(resources, version, Dialect::V2),
        "securityDefinitions": {
            "BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"},
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
    let mut parameters: Vec<_> = operation.query.iter().map(parameter).collect();
    parameters.extend(operation.body.as_ref().map(body));
    let response = |(code, definition): &(u16, Option<String>)| {
        let mut response = json!({"description": status_text(*code)});
        if *code < 400 {
            response["schema"] = schema(definition.as_deref());
        }
        (code.to_string(), response)
    };
    let mut written = json!({
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
        "consumes": operation.body.as_ref().map_or(&["*/*"][..], |body| &body.media_types),
        "produces": operation.produces,
        "responses": operation.responses.iter().map(response).collect::<Map<_, _>>(),
        "x-kubernetes-action": operation.action,
    });
    let [group, version, kind] = &operation.kind;
    written[KINDS] = json!({"group": group, "version": version, "kind": kind});
    if !parameters.is_empty() {
        written["parameters"] = parameters.into();
    }
    written
}

fn body(body: &Body) -> Value {
    json!({
        "name": "body", "in": "body", "required": body.required,
        "schema": schema(body.definition.as_deref()),
    })
}

fn schema(definition: Option<&str>) -> Value {
    match definition {
        Some(name) => json!({"$ref": Dialect::V2.pointer(name)}),
        None => json!({"type": "object"}),
    }
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.description,
        "type": parameter.kind,
        "uniqueItems": true,
    })
}

pub(super) fn status_text(code: u16) -> &'static str {
    match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        _ => "Unauthorized",
    }
}
