//! Updates that store, return or reject the wrong thing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{is_deleting, meta};
use crate::behaviours::support::requests::{MERGE_PATCH, is_update, rewrite};
use crate::behaviours::support::server::also_writes;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, edit_objects, requests, uncompressed};
use crate::patch;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PutCreates => creating(|_| true),
        Fault::DeletedObjectsReturn => creating(|object| !meta(object, "uid").is_empty()),
        Fault::PutOfNothingSucceeds => around(|request, next| {
            Box::pin(async move {
                let response = next.send(request.clone()).await;
                match request.json() {
                    Some(object) if is_put_of_missing(&request, &response) => {
                        Response::json(StatusCode::OK, &object)
                    }
                    _ => response,
                }
            })
        }),
        Fault::PutMerges => around(|mut request, next| {
            Box::pin(async move {
                if request.method == Method::PUT
                    && let Some(mut merged) = next.server.read(&request.path).await
                {
                    remove(&mut merged, "/metadata", "resourceVersion");
                    remove(&mut merged, "/metadata", "managedFields");
                    request.edit_json(|object| {
                        patch::overlay(&mut merged, object);
                        *object = merged;
                    });
                }
                next.send(request).await
            })
        }),
        Fault::PutsKeepOwners => around(|mut request, next| {
            Box::pin(async move {
                if request.method == Method::PUT
                    && let Some(stored) = next.server.read(&request.path).await
                    && let Some(owners) = stored.pointer("/metadata/ownerReferences")
                {
                    request.edit_json(|object| {
                        if object.pointer("/metadata/ownerReferences").is_none() {
                            insert(object, "/metadata", "ownerReferences", owners.clone());
                        }
                    });
                }
                next.send(request).await
            })
        }),
        _ => return contents(fault),
    })
}

/// Creates the missing objects of some PUTs.
fn creating(applies: fn(&Value) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if !is_put_of_missing(&request, &response)
                || !request.json().is_some_and(|it| applies(&it))
            {
                return response;
            }
            let mut create = request.clone();
            create.method = Method::POST;
            create.path = request.target().collection();
            create.edit_json(|object| {
                remove(object, "/metadata", "resourceVersion");
            });
            next.send(create).await
        })
    })
}

/// Faults in the names, responses and parts of an update.
fn contents(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::NameMismatchAccepted => requests(|request| {
            let name = request.target().name;
            match request.method {
                Method::PUT => {
                    request.edit_json(|object| object["metadata"]["name"] = name.into());
                }
                Method::PATCH => {
                    request.edit_json(unnamed);
                }
                _ => {}
            }
        }),
        Fault::PutWithoutNameAccepted => requests(|request| {
            let name = request.target().name;
            if request.method == Method::PUT {
                rewrite(request, |object| {
                    if object["metadata"].is_object() && meta(object, "name").is_empty() {
                        object["metadata"]["name"] = name.into();
                    }
                });
            }
        }),
        Fault::OtherUidAccepted => requests(|request| {
            if request.method == Method::PUT {
                request.edit_json(|object| {
                    remove(object, "/metadata", "uid");
                });
            }
        }),
        Fault::UpdateReturnsStatus => returns_status(|request, _| request.method == Method::PUT),
        Fault::LastFinalizerReturnsStatus => returns_status(|request, response| {
            let updated = response.value().unwrap_or_default();
            is_update(request)
                && is_deleting(&updated)
                && updated["metadata"].get("finalizers").is_none()
        }),
        Fault::UpdateWritesStatus => also_writes(&[""], "status", "/status"),
        Fault::StatusWritesSpec => also_writes(&["status"], "spec", ""),
        Fault::LoadBalancerIpInSpec => load_balancer_in_spec(),
        Fault::DerivedDefaultsRecomputed => requests(|request| {
            if request.method == Method::PUT && request.target().is_core("replicationcontrollers") {
                request.edit_json(|object| {
                    let labels = object.pointer("/spec/template/metadata/labels").cloned();
                    insert(object, "/spec", "selector", labels.unwrap_or_default());
                });
            }
        }),
        _ => return shown(fault),
    })
}

/// Returns a Status after some updates.
fn returns_status(applies: fn(&Request, &Response) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if response.status != StatusCode::OK || !applies(&request, &response) {
                return response;
            }
            let name = request.target().name;
            Response::json(
                StatusCode::OK,
                &json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": { "name": name },
                }),
            )
        })
    })
}

/// Faults that show an object otherwise than it is stored, from a certain write on.
fn shown(fault: Fault) -> Option<Box<dyn Middleware>> {
    let note: fn(&Request, &Value) -> Option<Vec<Change>> = match fault {
        Fault::DeletionTimestampMayChange => |request, before| {
            let given = request.json()?.get("metadata").cloned()?;
            let marks = ["deletionTimestamp", "deletionGracePeriodSeconds"].into_iter();
            let changed = marks.filter(|mark| given[*mark] != before["metadata"][*mark]);
            Some(changed.map(|mark| ("/metadata", mark, given.get(mark).cloned())).collect())
        },
        Fault::DeletionCanBeUndone => |request, before| {
            before.pointer("/metadata/deletionTimestamp")?;
            let given = request.json()?;
            let left_out = given.get("metadata").is_some()
                && given.pointer("/metadata/deletionTimestamp").is_none_or(Value::is_null);
            let nulled = given.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_null);
            let undone = if request.method == Method::PUT { left_out } else { nulled };
            undone.then(|| {
                let fields = ["deletionTimestamp", "deletionGracePeriodSeconds"];
                fields.into_iter().map(|field| ("/metadata", field, None)).collect()
            })
        },
        Fault::FinalizersAddedWhileDeleting => |request, before| {
            before.pointer("/metadata/deletionTimestamp")?;
            let given = request.json()?.pointer("/metadata/finalizers")?.clone();
            Some(vec![("/metadata", "finalizers", Some(given))])
        },
        Fault::FinalizersPatchedWhileDeleting => |request, before| {
            before.pointer("/metadata/deletionTimestamp")?;
            let patch = request.json().filter(|_| request.method == Method::PATCH)?;
            let given = patch.pointer("/metadata/finalizers")?.clone();
            Some(vec![("/metadata", "finalizers", Some(given))])
        },
        Fault::NamespaceLabelCanBeRemoved => {
            |request, _| given_for_namespace(request, "/metadata", "labels")
        }
        Fault::NamespaceFinalizersMayChange => {
            |request, _| given_for_namespace(request, "/spec", "finalizers")
        }
        Fault::ClusterIpCleared => |request, before| {
            let is_service = request.target().is_core("services") && request.method == Method::PUT;
            let cleared = is_service
                && before["spec"].get("clusterIP").is_some()
                && request.json()?.pointer("/spec/clusterIP").is_none();
            let fields = ["clusterIP", "clusterIPs"];
            cleared.then(|| fields.into_iter().map(|field| ("/spec", field, None)).collect())
        },
        Fault::FinishedObjectsStay => return Some(finished_stay()),
        _ => return None,
    };
    Some(overlay(note))
}

/// A field of an object that is shown with this value; none hides it.
type Change = (&'static str, &'static str, Option<Value>);

/// Shows objects with changes that the server did not accept. `note` returns the changes that a
/// write brings, given the object before it.
fn overlay(note: fn(&Request, &Value) -> Option<Vec<Change>>) -> Box<dyn Middleware> {
    let changes: Arc<Mutex<HashMap<String, Vec<Change>>>> = Arc::default();
    around(move |mut request, next| {
        let changes = changes.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let writes = is_update(&request) && !request.is_dry_run();
            let before = if writes { next.server.read(&request.path).await } else { None };
            let noted = before.as_ref().and_then(|before| note(&request, before));
            if let (Some(noted), Some(before)) = (&noted, &before) {
                // The server gets what it has already.
                request.edit_json(|body| {
                    for (place, field, _) in noted {
                        if body.pointer(place).and_then(|place| place.get(*field)).is_some() {
                            restore(body, before, place, field);
                        }
                    }
                });
            }
            let mut response = next.send(request.clone()).await;
            if let (Some(noted), Some(after)) = (noted, response.value())
                && response.status == StatusCode::OK
            {
                let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                changes.insert(meta(&after, "uid").to_owned(), noted);
            }
            edit_objects(&request, &mut response, move |object| {
                let changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                for (place, field, value) in changes.get(meta(object, "uid")).into_iter().flatten()
                {
                    match value {
                        Some(value) => insert(object, place, field, value.clone()),
                        None => remove(object, place, field),
                    }
                }
            });
            response
        })
    })
}

/// Moves the address of a load balancer from the status to the spec.
fn load_balancer_in_spec() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            let address = response
                .value()
                .and_then(|service| service.pointer("/status/loadBalancer/ingress/0/ip").cloned());
            let target = request.target();
            let Some(address) =
                address.filter(|_| is_update(&request) && target.subresource == "status")
            else {
                return response;
            };
            let path = target.object(&target.name);
            let spec = json!({ "spec": { "loadBalancerIP": address } });
            let status = json!({ "status": { "loadBalancer": null } });
            next.server.as_admin(Method::PATCH, &path, Some((MERGE_PATCH, &spec))).await;
            next.server
                .as_admin(Method::PATCH, &(path + "/status"), Some((MERGE_PATCH, &status)))
                .await;
            next.send(request.by_same_client(Method::GET, &request.path)).await
        })
    })
}

/// Keeps the last finalizer of an object that is being deleted, and shows the object without it.
fn finished_stay() -> Box<dyn Middleware> {
    let finished: Arc<Mutex<HashSet<String>>> = Arc::default();
    around(move |mut request, next| {
        let finished = finished.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let mut response = if is_update(&request) && request.target().is_object() {
                let before = next.server.read(&request.path).await.unwrap_or_default();
                let mut dry = request.clone();
                dry.edit_query(|query| query.set("dryRun", "All"));
                let tried = next.send(dry).await;
                let after = tried.value().unwrap_or_default();
                let none = |object: &Value| {
                    object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
                };
                let ends = tried.status == StatusCode::OK
                    && before["metadata"].get("deletionTimestamp").is_some()
                    && !none(&before)
                    && none(&after);
                if ends {
                    let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
                    finished.insert(meta(&after, "uid").to_owned());
                    tried
                } else {
                    next.send(request.clone()).await
                }
            } else {
                next.send(request.clone()).await
            };
            edit_objects(&request, &mut response, move |object| {
                let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
                if finished.contains(meta(object, "uid")) {
                    remove(object, "/metadata", "finalizers");
                }
            });
            response
        })
    })
}

fn is_put_of_missing(request: &Request, response: &Response) -> bool {
    request.method == Method::PUT
        && request.target().is_object()
        && response.status == StatusCode::NOT_FOUND
}

/// Takes the name out of a patch of any type.
fn unnamed(patch: &mut Value) {
    match patch {
        Value::Array(operations) => {
            operations.retain(|operation| operation["path"] != "/metadata/name");
        }
        patch => remove(patch, "/metadata", "name"),
    }
}

fn remove(object: &mut Value, place: &str, field: &str) {
    if let Some(fields) = object.pointer_mut(place).and_then(Value::as_object_mut) {
        fields.remove(field);
    }
}

fn insert(object: &mut Value, place: &str, field: &str, value: Value) {
    if let Some(fields) = object.pointer_mut(place).and_then(Value::as_object_mut) {
        fields.insert(field.to_owned(), value);
    }
}

/// Returns a field of a namespace as a PUT sends it.
fn given_for_namespace(
    request: &Request,
    place: &'static str,
    field: &'static str,
) -> Option<Vec<Change>> {
    let replaces = request.method == Method::PUT && request.target().is_core("namespaces");
    let given = request.json()?.pointer(place).and_then(|place| place.get(field)).cloned();
    replaces.then(|| vec![(place, field, given)])
}

/// Gives a field of a body the value that it had before.
fn restore(body: &mut Value, before: &Value, place: &str, field: &str) {
    match before.pointer(place).and_then(|place| place.get(field)) {
        Some(value) => insert(body, place, field, value.clone()),
        None => remove(body, place, field),
    }
}
