//! Merge patches: wrong effects on lists and of null.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::{Map, Value};

use super::media_types::is_patch;
use crate::behaviours::Fault;
use crate::behaviours::support::requests::MERGE_PATCH;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_objects, uncompressed};

/// Maps of texts in which the fault creates empty values.
const MAPS: [&str; 2] = ["/data", "/spec/labels"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MergePatchAppendsLists => appends_lists(),
        Fault::MergePatchKeepsNull => keeps_null(),
        Fault::NullCreatesEmptyKeys => {
            around(|request, next| Box::pin(null_creates_keys(request, next)))
        }
        _ => return None,
    })
}

/// Appends the lists of a merge patch to those of the object.
fn appends_lists() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            if is_patch(&request, MERGE_PATCH)
                && let Some(mut patch) = request.json()
                && let Some(current) = next.server.read(&request.path).await
            {
                append(&mut patch, &current);
                request.set_json(&patch);
            }
            next.send(request).await
        })
    })
}

fn append(patch: &mut Value, current: &Value) {
    match (patch, current) {
        (Value::Object(fields), Value::Object(present)) => {
            for (name, field) in fields {
                if let Some(present) = present.get(name) {
                    append(field, present);
                }
            }
        }
        (Value::Array(items), Value::Array(present)) => {
            let added = std::mem::take(items);
            items.extend(present.iter().cloned().chain(added));
        }
        _ => {}
    }
}

/// Shows the fields that a merge patch sets to null as null, until the object is written again.
fn keeps_null() -> Box<dyn Middleware> {
    let nulls: Arc<Mutex<HashMap<String, Vec<String>>>> = Arc::default();
    around(move |mut request, next| {
        let nulls = nulls.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let mut pointers = Vec::new();
            if is_patch(&request, MERGE_PATCH) {
                request.edit_json(|patch| take_nulls(patch, "", &mut pointers));
            }
            let mut response = next.send(request.clone()).await;
            let writes = matches!(request.method, Method::PUT | Method::PATCH);
            if writes && let Some(uid) = uid(&response) {
                nulls.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, pointers);
            }
            edit_objects(&request, &mut response, move |object| {
                let nulls = nulls.lock().unwrap_or_else(PoisonError::into_inner);
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                for pointer in nulls.get(uid).into_iter().flatten() {
                    set(object, pointer, Value::Null);
                }
            });
            response
        })
    })
}

/// Removes the null fields of a patch and notes where they were.
fn take_nulls(patch: &mut Value, at: &str, pointers: &mut Vec<String>) {
    let Some(fields) = patch.as_object_mut() else { return };
    fields.retain(|name, value| {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        if value.is_null() {
            pointers.push(pointer);
            return false;
        }
        take_nulls(value, &pointer, pointers);
        true
    });
}

/// Sets a field, and creates the objects on the way.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let names = pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
    let mut place = object;
    for name in names {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
}

fn uid(response: &Response) -> Option<String> {
    let object = response.value()?;
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

/// Sets the absent keys that a merge patch sets to null to an empty text.
async fn null_creates_keys(mut request: Request, next: Next<'_>) -> Response {
    if is_patch(&request, MERGE_PATCH)
        && let Some(current) = next.server.read(&request.path).await
    {
        request.edit_json(|patch| {
            for map in MAPS {
                let present = current.pointer(map);
                let named = patch.pointer_mut(map).and_then(Value::as_object_mut);
                for (key, value) in named.into_iter().flat_map(Map::iter_mut) {
                    if value.is_null() && present.and_then(|map| map.get(key)).is_none() {
                        *value = "".into();
                    }
                }
            }
        });
    }
    next.send(request).await
}
