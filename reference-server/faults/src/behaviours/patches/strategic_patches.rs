//! Strategic merge patches: wrong effects of directives and of keys of lists.

use serde_json::{Value, json};

use super::media_types::is_patch;
use crate::behaviours::Fault;
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::STRATEGIC_PATCH;
use crate::exchange::Request;
use crate::middleware::{Middleware, around, requests, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit: fn(&mut Value) = match fault {
        Fault::StrategicReplacesKeyedLists => |patch| {
            if let Some(items) = patch.as_array_mut()
                && items.iter().any(|item| item.is_object() && item.get("$patch").is_none())
            {
                items.push(json!({ "$patch": "replace" }));
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
        _ => return parts(fault),
    };
    Some(edited(move |_, patch| everywhere(patch, &mut |value| edit(value))))
}

fn is_of_status(request: &Request) -> bool {
    request.target().subresource == "status"
}

/// Faults in single lists of a patch.
fn parts(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StrategicReplacesServicePorts => edited(|request, patch| {
            if request.target().is_core("services") {
                replace_list(patch.pointer_mut("/spec/ports"));
            }
        }),
        Fault::StrategicPatchesOfStatusRejected => around(|request, next| {
            Box::pin(async move {
                if is_patch(&request, STRATEGIC_PATCH) && is_of_status(&request) {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::StrategicPatchesOfStatusReplaceLists => edited(|request, patch| {
            if is_of_status(request) {
                replace_list(patch.pointer_mut("/status/conditions"));
            }
        }),
        Fault::StrategicReplacesOwners => edited(|_, patch| {
            replace_list(patch.pointer_mut("/metadata/ownerReferences"));
        }),
        Fault::StrategicReplacesMounts => edited(|_, patch| {
            everywhere(patch, &mut |value| replace_list(value.get_mut("volumeMounts")));
        }),
        Fault::StrategicSetDuplicates => duplicates(),
        _ => return None,
    })
}

/// Edits strategic merge patches.
fn edited(edit: impl Fn(&Request, &mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_patch(request, STRATEGIC_PATCH) {
            let copy = request.clone();
            request.edit_json(|patch| edit(&copy, patch));
        }
    })
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

/// Lets a list of a strategic merge patch replace that of the object.
fn replace_list(list: Option<&mut Value>) {
    if let Some(items) = list.and_then(Value::as_array_mut) {
        items.push(json!({ "$patch": "replace" }));
    }
}

/// Adds the scalars of a strategic merge patch to lists that contain them already. The server would
/// merge them, so the object is shown with the duplicates.
fn duplicates() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            if !is_patch(&request, STRATEGIC_PATCH) {
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
