//! Patches that are applied in a wrong way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Map, Value};

use crate::behaviours::Fault;
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::{MERGE_PATCH, set_media_type};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, edit_objects, requests, uncompressed};

pub(super) const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MergePatchAsStrategic => requests(|request| {
            if is_patch(request, MERGE_PATCH) && !request.target().is_custom() {
                set_media_type(request, STRATEGIC);
            }
        }),
        Fault::StrategicPatchAsMerge => requests(|request| {
            if is_patch(request, STRATEGIC) {
                set_media_type(request, MERGE_PATCH);
            }
        }),
        Fault::MergePatchRejected => around(|request, next| {
            Box::pin(async move {
                if is_patch(&request, MERGE_PATCH) {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::PatchOfUnknownTypeIgnored => unknown_types_ignored(),
        Fault::JsonPatchTestIgnored => operations(|operations| {
            operations.retain(|operation| operation["op"] != "test");
        }),
        Fault::JsonPatchTestsCompareScalarsOnly => operations(|operations| {
            operations.retain(|operation| {
                let value = &operation["value"];
                operation["op"] != "test" || !(value.is_object() || value.is_array())
            });
        }),
        Fault::JsonPatchMoveCopies => operations(|operations| {
            for operation in operations.iter_mut().filter(|operation| operation["op"] == "move") {
                operation["op"] = "copy".into();
            }
        }),
        Fault::JsonPatchDashPrepends => operations(|operations| {
            for operation in operations.iter_mut().filter(|operation| operation["op"] == "add") {
                let list = operation["path"].as_str().and_then(|path| path.strip_suffix("/-"));
                if let Some(first) = list.map(|list| format!("{list}/0")) {
                    operation["path"] = first.into();
                }
            }
        }),
        Fault::JsonPatchNotAtomic => not_atomic(),
        Fault::MergePatchAppendsLists => appends_lists(),
        Fault::MergePatchKeepsNull => keeps_null(),
        Fault::HugeNumbersRoundedByPatches => doubles(),
        _ => return strategic(fault),
    })
}

/// Strategic merge patches: each fault edits the patch on its way to the server.
fn strategic(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit: fn(&mut Value) = match fault {
        Fault::StrategicReplacesKeyedLists => |patch| {
            if let Some(items) = patch.as_array_mut()
                && items.iter().any(|item| item.is_object() && item.get("$patch").is_none())
            {
                items.push(serde_json::json!({ "$patch": "replace" }));
            }
        },
        Fault::StrategicDeleteIgnored => |patch| without_directive(patch, "delete"),
        Fault::StrategicReplaceListIgnored => |patch| {
            if patch.is_array() {
                without_directive(patch, "replace");
            }
        },
        Fault::StrategicReplaceMapIgnored => |patch| {
            if let Some(fields) = patch.as_object_mut()
                && fields.len() > 1
                && fields.get("$patch").is_some_and(|directive| directive == "replace")
            {
                fields.remove("$patch");
            }
        },
        Fault::StrategicRetainKeysIgnored => {
            |patch| without_fields(patch, |name, _| name == "$retainKeys")
        }
        Fault::StrategicOrderIgnored => {
            |patch| without_fields(patch, |name, _| name.starts_with("$setElementOrder/"))
        }
        Fault::StrategicNullIgnored => |patch| without_fields(patch, |_, value| value.is_null()),
        Fault::StrategicSetDuplicates => return Some(duplicates()),
        _ => return None,
    };
    Some(requests(move |request| {
        if is_patch(request, STRATEGIC) {
            request.edit_json(|patch| everywhere(patch, &mut |value| edit(value)));
        }
    }))
}

/// Removes the items of a list, and the fields of a map, that have this `$patch` directive.
fn without_directive(patch: &mut Value, directive: &str) {
    let has = |value: &Value| value.get("$patch").is_some_and(|found| found == directive);
    match patch {
        Value::Array(items) => items.retain(|item| !has(item)),
        Value::Object(fields) => fields.retain(|_, value| !has(value)),
        _ => {}
    }
}

fn without_fields(patch: &mut Value, unwanted: fn(&str, &Value) -> bool) {
    if let Some(fields) = patch.as_object_mut() {
        fields.retain(|name, value| !unwanted(name, value));
    }
}

/// Edits the operations of JSON patches.
pub(super) fn operations(edit: fn(&mut Vec<Value>)) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_patch(request, JSON) {
            request.edit_json(|patch| {
                if let Some(operations) = patch.as_array_mut() {
                    edit(operations);
                }
            });
        }
    })
}

/// Stores what the operations before a failed one did.
fn not_atomic() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if !is_patch(&request, JSON) || !response.status.is_client_error() {
                return response;
            }
            let Some(Value::Array(mut operations)) = request.json() else { return response };
            while operations.pop().is_some() && !operations.is_empty() {
                let mut shorter = request.clone();
                shorter.set_json(&Value::Array(operations.clone()));
                if next.send(shorter).await.status.is_success() {
                    break;
                }
            }
            response
        })
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

/// Adds the scalars of a strategic merge patch to lists that contain them already. The server would
/// merge them, so the object is shown with the duplicates.
fn duplicates() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            if !is_patch(&request, STRATEGIC) {
                return next.send(request).await;
            }
            uncompressed(&mut request);
            let patch = request.json().unwrap_or_default();
            let before = next.server.read(&request.path).await.unwrap_or_default();
            let mut response = next.send(request.clone()).await;
            if response.status.is_success() {
                response.edit_value(|object| repeat(object, &patch, &before));
            }
            response
        })
    })
}

fn repeat(object: &mut Value, patch: &Value, before: &Value) {
    match (object, patch, before) {
        (Value::Object(fields), Value::Object(patch), Value::Object(before)) => {
            for (name, field) in fields {
                if let (Some(patch), Some(before)) = (patch.get(name), before.get(name)) {
                    repeat(field, patch, before);
                }
            }
        }
        (Value::Array(items), Value::Array(added), Value::Array(present)) => {
            let repeated = added.iter().filter(|item| !item.is_object() && present.contains(item));
            items.extend(repeated.cloned());
        }
        _ => {}
    }
}

/// Returns the object unchanged where the server rejects the media type.
fn unknown_types_ignored() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if request.method != Method::PATCH
                || response.status != StatusCode::UNSUPPORTED_MEDIA_TYPE
            {
                return response;
            }
            next.send(request.by_same_client(Method::GET, &request.path)).await
        })
    })
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

/// Passes the integers of a patch for a custom resource through doubles.
fn doubles() -> Box<dyn Middleware> {
    requests(|request| {
        if request.method == Method::PATCH && request.target().is_custom() {
            request.edit_json(|patch| {
                everywhere(patch, &mut |value| {
                    if let Some(number) = value.as_i64() {
                        #[expect(
                            clippy::cast_precision_loss,
                            clippy::cast_possible_truncation,
                            reason = "the loss is the fault"
                        )]
                        let rounded = (number as f64) as i64;
                        *value = rounded.into();
                    }
                });
            });
        }
    })
}

pub(super) fn is_patch(request: &Request, media_type: &str) -> bool {
    request.method == Method::PATCH && request.media_type() == media_type
}

fn uid(response: &Response) -> Option<String> {
    let object = response.value()?;
    object["metadata"]["uid"].as_str().map(str::to_owned)
}
