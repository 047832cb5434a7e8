//! Writes to the status subresource that lose a part of the body, or store too much of it.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::remove_meta;
use crate::behaviours::support::requests::{MERGE_PATCH, is_apply, is_update};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

/// The fields of the metadata that the fault drops.
const DROPPED: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StatusDropsMetadata => around(|mut request, next| {
            Box::pin(async move {
                if is_update(&request) && request.target().subresource == "status" {
                    let current = if request.method == Method::PUT {
                        next.server.read(&request.path).await.unwrap_or_default()
                    } else {
                        Value::Null
                    };
                    request.edit_json(|body| drop_metadata(body, &current));
                }
                next.send(request).await
            })
        }),
        Fault::CustomStatusWritesMetadata => {
            let is_put = |request: &Request| request.method == Method::PUT;
            around(move |request, next| Box::pin(with_metadata(request, next, is_put)))
        }
        Fault::StatusAppliesWriteMetadata => {
            around(|request, next| Box::pin(with_metadata(request, next, is_apply)))
        }
        Fault::StatusDeleteRemovesTheObject => requests(|request| {
            let target = request.target();
            if request.method == Method::DELETE && target.subresource == "status" {
                request.path = target.object(&target.name);
            }
        }),
        Fault::StatusPostIsAPut => requests(|request| {
            if request.method == Method::POST && request.target().subresource == "status" {
                request.method = Method::PUT;
            }
        }),
        Fault::StatusOfAnotherUidAccepted => requests(|request| {
            if request.method == Method::PUT && request.target().subresource == "status" {
                request.edit_json(|object| drop(remove_meta(object, "uid")));
            }
        }),
        _ => return None,
    })
}

/// Stores the labels and annotations that some writes of the status send.
async fn with_metadata(
    request: Request,
    next: Next<'_>,
    applies: fn(&Request) -> bool,
) -> Response {
    let target = request.target();
    let response = next.send(request.clone()).await;
    if !applies(&request)
        || target.subresource != "status"
        || !target.is_custom()
        || response.status != StatusCode::OK
        || request.is_dry_run()
    {
        return response;
    }
    let sent = request.json().unwrap_or_default();
    let metadata = &sent["metadata"];
    let mut patch = json!({ "metadata": {} });
    for field in ["labels", "annotations"] {
        // An apply without a field leaves it unchanged.
        if metadata[field].is_object() || !is_apply(&request) {
            patch["metadata"][field] = metadata[field].clone();
        }
    }
    let object = target.object(&target.name);
    next.server.as_admin(Method::PATCH, &object, Some((MERGE_PATCH, &patch))).await;
    next.send(request.by_same_client(Method::GET, &request.path)).await
}

/// Replaces the fields with those of the current object. A patch loses them.
fn drop_metadata(body: &mut Value, current: &Value) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for field in DROPPED {
        match current["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}
