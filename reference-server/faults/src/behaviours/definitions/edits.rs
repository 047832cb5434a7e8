//! Edits of definitions on their way to the server. Clients see a definition as they wrote it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::Value;

use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_objects, uncompressed};

/// Changes definitions on their way to the server. The original must be valid, and clients see it
/// unchanged.
pub(super) fn definitions(
    edit: impl Fn(&mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    let originals: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    let edit = Arc::new(edit);
    around(move |mut request, next| {
        let (originals, edit) = (originals.clone(), edit.clone());
        Box::pin(async move {
            uncompressed(&mut request);
            let mut response = if is_definition(&request) {
                define(&request, next, &originals, &*edit).await
            } else {
                next.send(request.clone()).await
            };
            edit_objects(&request, &mut response, move |object| {
                if object["kind"] == "CustomResourceDefinition" {
                    let originals = originals.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    if let Some(original) = originals.get(name) {
                        restore(object, original);
                    }
                }
            });
            response
        })
    })
}

async fn define(
    request: &Request,
    next: Next<'_>,
    originals: &Mutex<HashMap<String, Value>>,
    edit: &(dyn Fn(&mut Value) + Send + Sync),
) -> Response {
    let mut dry = request.clone();
    dry.edit_query(|query| query.set("dryRun", "All"));
    let checked = next.send(dry).await;
    let Some(original) = checked.value().filter(|_| checked.status.is_success()) else {
        return checked;
    };
    if request.is_dry_run() {
        return checked;
    }
    let name = original["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut edited = original.clone();
    edit(&mut edited);
    originals.lock().unwrap_or_else(PoisonError::into_inner).insert(name, original);
    let mut changed = request.clone();
    if request.method == Method::PATCH {
        changed.method = Method::PUT;
    }
    remove(&mut edited["metadata"], "managedFields");
    if request.method == Method::POST {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            remove(&mut edited["metadata"], field);
        }
    }
    remove(&mut edited, "status");
    let defined = next.send(changed.with_json("application/json", &edited)).await;
    if defined.status == StatusCode::UNPROCESSABLE_ENTITY {
        // The changed definition is not valid, so this one keeps its effect.
        return next.send(request.clone()).await;
    }
    defined
}

/// Shows the schemas and columns of the original.
fn restore(object: &mut Value, original: &Value) {
    let versions = object["spec"]["versions"].as_array_mut().into_iter().flatten();
    let originals = original["spec"]["versions"].as_array().into_iter().flatten();
    for (version, original) in versions.zip(originals) {
        for field in ["schema", "additionalPrinterColumns"] {
            match original.get(field) {
                Some(value) => version[field] = value.clone(),
                None => remove(version, field),
            }
        }
    }
}

fn is_definition(request: &Request) -> bool {
    let target = request.target();
    target.resource == "customresourcedefinitions"
        && target.subresource.is_empty()
        && matches!(request.method, Method::POST | Method::PUT | Method::PATCH)
}

/// Calls `edit` for a schema and for all schemas inside of it.
pub(super) fn everywhere(schema: &mut Value, edit: &mut dyn FnMut(&mut Value)) {
    edit(schema);
    for properties in ["properties", "patternProperties"] {
        if let Some(properties) = schema.get_mut(properties).and_then(Value::as_object_mut) {
            properties.values_mut().for_each(|property| everywhere(property, edit));
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner).filter(|inner| inner.is_object()) {
            everywhere(inner, edit);
        }
    }
}

pub(super) fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}
