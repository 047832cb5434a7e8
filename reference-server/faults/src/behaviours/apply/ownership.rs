//! Server-side apply with wrong owners and checks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use serde_saphyr::DuplicateKeyPolicy;

use crate::behaviours::Fault;
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::objects::{everywhere, meta, remove, remove_meta};
use crate::behaviours::support::requests::{MERGE_PATCH, is_apply, set_media_type};
use crate::behaviours::support::server::bump;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_objects, objects, requests, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ApplyIgnoresConflicts => requests(|request| {
            if is_apply(request) {
                request.edit_query(|query| query.set("force", "true"));
            }
        }),
        Fault::ApplyForceIgnored => requests(|request| {
            if is_apply(request) {
                request.edit_query(|query| {
                    query.remove("force");
                });
            }
        }),
        Fault::ApplyDryRunPersists => requests(|request| {
            if is_apply(request) {
                request.edit_query(|query| {
                    query.remove("dryRun");
                });
            }
        }),
        Fault::ApplyManagedFieldsAccepted => configurations(|config| {
            remove_meta(config, "managedFields");
        }),
        Fault::ApplyVersionIgnored => configurations(|config| {
            remove_meta(config, "resourceVersion");
        }),
        Fault::ApplyNameMismatchAccepted => requests(|request| {
            if is_apply(request) {
                let name = request.target().name;
                request.edit_json(|config| {
                    if !meta(config, "name").is_empty() {
                        config["metadata"]["name"] = name.into();
                    }
                });
            }
        }),
        Fault::ApplyUidOfMissingIgnored => around(|mut request, next| {
            Box::pin(async move {
                if is_apply(&request) && next.server.read(&request.path).await.is_none() {
                    request.edit_json(|config| drop(remove_meta(config, "uid")));
                }
                next.send(request).await
            })
        }),
        Fault::ApplyTypeNotChecked => typed(),
        Fault::ApplyJsonOnly => json_only(),
        _ => return responses(fault),
    })
}

/// Shows another time in the response to an apply that changes nothing.
async fn new_times(mut request: Request, next: Next<'_>) -> Response {
    if !is_apply(&request) {
        return next.send(request).await;
    }
    let current = next.server.read(&request.path).await.unwrap_or_default();
    uncompressed(&mut request);
    let mut response = next.send(request).await;
    if response.status == StatusCode::OK {
        response.edit_value(|object| {
            if object["metadata"]["resourceVersion"] == current["metadata"]["resourceVersion"] {
                object["metadata"]["managedFields"][0]["time"] = json!("2026-01-01T00:00:00Z");
            }
        });
    }
    response
}

/// Faults in the responses to an apply.
fn responses(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ApplyNoOpShowsNewTimes => around(|request, next| Box::pin(new_times(request, next))),
        Fault::ApplyCreateReturnsOk => around(|request, next| {
            Box::pin(async move {
                let applies = is_apply(&request);
                let mut response = next.send(request).await;
                if applies && response.status == StatusCode::CREATED {
                    response.status = StatusCode::OK;
                }
                response
            })
        }),
        Fault::ApplyNeverCreates => around(|request, next| {
            Box::pin(async move {
                // A request without a manager is rejected before the server looks for the object.
                if is_apply(&request) && request.query().get("fieldManager").is_some() {
                    let read = next.send(request.by_same_client(Method::GET, &request.path)).await;
                    if read.status == StatusCode::NOT_FOUND {
                        return read;
                    }
                }
                next.send(request).await
            })
        }),
        Fault::ApplyConflictWithoutCauses => conflicts(|status| drop(remove(status, "details"))),
        Fault::ApplyNamesOneConflict => conflicts(|status| {
            if let Some(causes) = status["details"]["causes"].as_array_mut() {
                causes.truncate(1);
            }
        }),
        Fault::StatusApplyIsAnUpdate => objects(|_, object| {
            let managers = object["metadata"]["managedFields"].as_array_mut();
            for manager in managers.into_iter().flatten() {
                if manager["subresource"] == "status" {
                    manager["operation"] = "Update".into();
                }
            }
        }),
        Fault::ApplyDuplicatesUnreported => requests(|request| {
            // Reading the document keeps the last of each field and drops the others.
            if is_apply(request) {
                let options =
                    serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
                let read = serde_saphyr::from_slice_with_options::<Value>(&request.body, options);
                if let Ok(config) = read {
                    request.body = config.to_string().into();
                }
            }
        }),
        _ => return ownership(fault),
    })
}

/// Faults in managed fields, and in the scale subresource.
fn ownership(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::UpdatesNotTracked => objects(|_, object| {
            if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
                entries.retain(|entry| entry["operation"] != "Update");
            }
        }),
        Fault::OwnersWithoutTime => objects(|_, object| {
            let entries = object["metadata"]["managedFields"].as_array_mut();
            for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
                entry.remove("time");
            }
        }),
        Fault::AppliersWithoutTime => objects(|_, object| {
            let entries = object["metadata"]["managedFields"].as_array_mut();
            for entry in entries.into_iter().flatten().filter(|one| one["operation"] == "Apply") {
                remove(entry, "time");
            }
        }),
        Fault::ItemsOwnedByIndex => objects(|_, object| {
            let entries = object.pointer_mut("/metadata/managedFields");
            for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(fields) = entry.get_mut("fieldsV1") {
                    everywhere(fields, &mut index_items);
                }
            }
        }),
        Fault::ManagedFieldsNotReset => requests(|request| {
            if matches!(request.method, Method::PUT | Method::PATCH) && !is_apply(request) {
                request.edit_json(|body| {
                    if body["metadata"]["managedFields"] == json!([{}]) {
                        remove_meta(body, "managedFields");
                    }
                });
            }
        }),
        Fault::ManagedFieldsNotResetByPut => requests(|request| {
            if request.method == Method::PUT {
                request.edit_json(|body| {
                    if body["metadata"]["managedFields"] == json!([{}]) {
                        remove_meta(body, "managedFields");
                    }
                });
            }
        }),
        Fault::ManagersUnprintable => requests(|request| {
            let manager = request.query().get("fieldManager").unwrap_or_default().to_owned();
            if manager.contains(char::is_control) {
                let printable = manager.replace(char::is_control, "");
                request.edit_query(|query| query.set("fieldManager", printable));
            }
        }),
        _ => return later_applies(fault),
    })
}

/// Names the items of a field set by index instead of by key.
fn index_items(fields: &mut Value) {
    let Value::Object(members) = fields else { return };
    let (mut named, mut index) = (serde_json::Map::new(), 0);
    for (name, value) in std::mem::take(members) {
        let is_item = name.starts_with("k:");
        named.insert(if is_item { format!("i:{index}") } else { name }, value);
        index += usize::from(is_item);
    }
    *members = named;
}

/// Faults of applies that follow other writes.
fn later_applies(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ApplyNoOpBumpsVersion => bumps(),
        Fault::ApplyOwnsStatus => owns_status(),
        Fault::ScaleNotApplied => around(|request, next| {
            Box::pin(async move {
                if is_apply(&request) && request.target().subresource == "scale" {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::ScaleApplyOwnsNothing => requests(|request| {
            if is_apply(request) && request.target().subresource == "scale" {
                set_media_type(request, MERGE_PATCH);
                request.edit_query(|query| {
                    query.remove("force");
                });
            }
        }),
        _ => return None,
    })
}

/// Edits the Status of conflicts of applies.
fn conflicts(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let applies = is_apply(&request);
            let mut response = next.send(request).await;
            if applies && response.status == StatusCode::CONFLICT {
                response.edit_value(edit);
            }
            response
        })
    })
}

/// Makes a write of each apply that changes nothing.
fn bumps() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let before =
                if is_apply(&request) { next.server.read(&request.path).await } else { None };
            let response = next.send(request.clone()).await;
            let (Some(before), Some(after)) = (before, response.value()) else { return response };
            let version = "/metadata/resourceVersion";
            if response.status != StatusCode::OK
                || before.pointer(version) != after.pointer(version)
            {
                return response;
            }
            bump(&request, next).await;
            next.send(request.by_same_client(Method::GET, &request.path)).await
        })
    })
}

/// The managers that sent a status, with its fields, by the uid of the object.
type StatusOwners = HashMap<String, Vec<(String, Value)>>;

/// Shows an applier of the main resource as an owner of the status that it sent.
fn owns_status() -> Box<dyn Middleware> {
    let owners: Arc<Mutex<StatusOwners>> = Arc::default();
    around(move |mut request, next| {
        let owners = owners.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            if is_apply(&request)
                && request.target().is_object()
                && let Some(status) =
                    request.json().and_then(|config| config.get("status").cloned())
                && let Some(object) = response.value()
                && let Some(uid) = object["metadata"]["uid"].as_str()
            {
                let manager = request.query().get("fieldManager").unwrap_or_default().to_owned();
                let mut known = owners.lock().unwrap_or_else(PoisonError::into_inner);
                known.entry(uid.to_owned()).or_default().push((manager, fields(&status)));
            }
            edit_objects(&request, &mut response, move |object| {
                let known = owners.lock().unwrap_or_else(PoisonError::into_inner);
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                let owned = known.get(uid).cloned().unwrap_or_default();
                let entries = object["metadata"]["managedFields"].as_array_mut();
                for entry in entries.into_iter().flatten() {
                    for (manager, fields) in &owned {
                        if entry["manager"] == manager.as_str() && entry["operation"] == "Apply" {
                            entry["fieldsV1"]["f:status"] = fields.clone();
                        }
                    }
                }
            });
            response
        })
    })
}

/// The field set of a value without lists: `{"f:a": {}}`.
fn fields(value: &Value) -> Value {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, value)| (format!("f:{name}"), fields(value))).collect()
}

/// Fills in kind and apiVersion of the resource where a configuration has neither.
fn typed() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            if is_apply(&request)
                && let Some(mut config) = request.json()
                && config.get("kind").is_none()
                && config.get("apiVersion").is_none()
            {
                let target = request.target();
                let collection =
                    next.server.read(&format!("{}?limit=1", target.collection())).await;
                let kind =
                    collection.as_ref().and_then(|list| list["kind"].as_str()).unwrap_or_default();
                config["kind"] = kind.strip_suffix("List").unwrap_or(kind).into();
                config["apiVersion"] = target.api_version().into();
                request.set_json(&config);
            }
            next.send(request).await
        })
    })
}

fn json_only() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let broken = serde_json::from_slice::<Value>(&request.body).err();
            match broken {
                Some(error) if is_apply(&request) => {
                    let message = format!("error decoding JSON: {error}");
                    Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message)
                }
                _ => next.send(request).await,
            }
        })
    })
}

/// Edits every applied configuration.
fn configurations(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_apply(request) {
            request.edit_json(edit);
        }
    })
}
