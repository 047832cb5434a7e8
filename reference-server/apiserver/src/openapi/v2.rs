//! OpenAPI v2 ("Swagger"): one document for the whole API.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::{Dialect, definitions};
use super::info;
use super::operations::{Body, Operation, PathItem};
use super::parameters::Parameter;
use crate::config::KubernetesVersion;
use crate::discovery::Resource;

/// Returns the document of `/openapi/v2`.
pub(crate) fn document(resources: &[Arc<Resource>], version: KubernetesVersion) -> Value {
    let items: Vec<_> = super::by_path(resources)
        .iter()
        .flat_map(|(path, resources)| super::items(path, resources, version))
        .collect();
    let paths: Map<_, _> = items.iter().map(|item| (item.path.clone(), path(item))).collect();
    let needed = items.iter().flat_map(PathItem::definitions);
    json!({
        "swagger": "2.0",
        "info": info(version),
        "paths": paths,
        "definitions": definitions(resources, needed, version, Dialect::V2),
        "securityDefinitions": super::security_schemes(),
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
    let mut parameters: Vec<_> = operation.body.iter().map(body).collect();
    parameters.extend(operation.parameters.iter().map(parameter));
    let schema = super::schema(&operation.content, Dialect::V2);
    let response = |code: &u16| {
        (code.to_string(), json!({"description": status_text(*code), "schema": schema}))
    };
    let unauthorized = ("401".to_owned(), json!({"description": status_text(401)}));
    let responses = operation.codes.iter().map(response).chain([unauthorized]);
    let mut written = json!({
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
        "produces": operation.produces,
        "schemes": ["https"],
        "responses": responses.collect::<Map<_, _>>(),
    });
    super::add_extensions(operation, &mut written);
    if !operation.consumes.is_empty() {
        written["consumes"] = json!(operation.consumes);
    }
    if !parameters.is_empty() {
        written["parameters"] = parameters.into();
    }
    written
}

fn body(body: &Body) -> Value {
    let schema = super::schema(&body.content, Dialect::V2);
    let mut written = json!({"name": "body", "in": "body", "schema": schema});
    if body.required {
        written["required"] = true.into();
    }
    written
}

fn parameter(parameter: &Parameter) -> Value {
    let mut written = json!({
        "name": parameter.name,
        "in": parameter.place,
        "type": parameter.kind,
        "uniqueItems": true,
    });
    super::add_keywords(parameter, &mut written);
    written
}

pub(super) fn status_text(code: u16) -> &'static str {
    match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        _ => "Unauthorized",
    }
}
