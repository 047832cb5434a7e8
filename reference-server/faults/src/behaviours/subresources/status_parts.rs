//! Writes to the main endpoint that change the status, and patches of the status.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{is_deleting, remove_meta};
use crate::behaviours::support::requests::{
    MERGE_PATCH, STRATEGIC_PATCH, is_apply, is_update, rewrite,
};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests, uncompressed};

const JSON_PATCH: &str = "application/json-patch+json";

/// A write to the status: the media type and the body.
type Write = (&'static str, Value);

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let write: fn(&Request) -> Option<Write> = match fault {
        Fault::StatusClearedByPut => |request| {
            let is_put = request.method == Method::PUT && request.target().is_custom();
            let body = request.json().filter(|_| is_put)?;
            let status = body["status"].as_object();
            let is_empty = status.is_none_or(serde_json::Map::is_empty);
            is_empty.then(|| (MERGE_PATCH, json!({ "status": null })))
        },
        Fault::PatchesWriteStatus => |request| match request.media_type().as_str() {
            MERGE_PATCH => status_of(request).map(|status| (MERGE_PATCH, status)),
            JSON_PATCH => {
                operations_of(request, "/status").map(|operations| (JSON_PATCH, operations))
            }
            _ => None,
        },
        Fault::StrategicPatchesWriteStatus => |request| {
            let is_strategic = request.media_type() == STRATEGIC_PATCH;
            status_of(request).filter(|_| is_strategic).map(|status| (MERGE_PATCH, status))
        },
        Fault::ApplyWritesStatus => |request| {
            let applies = is_apply(request) && !request.target().is_custom();
            status_of(request).filter(|_| applies).map(|status| (MERGE_PATCH, status))
        },
        Fault::StatusJsonPatchesWriteSpec => {
            return Some(around(|request, next| Box::pin(writing_spec(request, next))));
        }
        Fault::StatusMergePatchesReplace => return Some(replacing(MERGE_PATCH)),
        Fault::StatusStrategicPatchesReplace => return Some(replacing(STRATEGIC_PATCH)),
        Fault::StatusPutsMerge => {
            return Some(around(|request, next| Box::pin(merge_put(request, next))));
        }
        Fault::StatusOfDeletedObjectsRejected => {
            return Some(around(|request, next| Box::pin(reject_of_deleted(request, next))));
        }
        Fault::StaleStatusPatchAccepted => {
            return Some(requests(|request| {
                if request.method == Method::PATCH && request.target().subresource == "status" {
                    request.edit_json(without_version);
                }
            }));
        }
        _ => return None,
    };
    Some(around(move |request, next| Box::pin(writing_status(request, next, write))))
}

/// Removes the members of the status that a patch of this type does not name.
fn replacing(media_type: &'static str) -> Box<dyn Middleware> {
    around(move |mut request, next| {
        Box::pin(async move {
            let is_patch = request.target().subresource == "status";
            if is_patch
                && request.media_type() == media_type
                && let Some(object) = next.server.read(&request.path).await
            {
                rewrite(&mut request, |patch| {
                    let Some(status) = patch["status"].as_object_mut() else { return };
                    for member in object["status"].as_object().into_iter().flatten() {
                        status.entry(member.0).or_insert(Value::Null);
                    }
                });
            }
            next.send(request).await
        })
    })
}

/// Adds the stored members of the status to those of a PUT.
async fn merge_put(mut request: Request, next: Next<'_>) -> Response {
    if request.method == Method::PUT
        && request.target().subresource == "status"
        && let Some(object) = next.server.read(&request.path).await
    {
        rewrite(&mut request, |body| {
            let Some(status) = body["status"].as_object_mut() else { return };
            for (name, value) in object["status"].as_object().into_iter().flatten() {
                status.entry(name).or_insert_with(|| value.clone());
            }
        });
    }
    next.send(request).await
}

async fn reject_of_deleted(request: Request, next: Next<'_>) -> Response {
    if is_update(&request)
        && request.target().subresource == "status"
        && next.server.read(&request.path).await.is_some_and(|object| is_deleting(&object))
    {
        let message = "the object is being deleted";
        return Response::failure(StatusCode::CONFLICT, "Conflict", message);
    }
    next.send(request).await
}

/// Writes the status after each write to the main endpoint for which `write` returns one.
fn writing_status(
    mut request: Request,
    next: Next<'_>,
    write: fn(&Request) -> Option<Write>,
) -> BoxFuture<'_, Response> {
    async move {
        let target = request.target();
        let concerns = is_update(&request) && target.is_object() && !request.is_dry_run();
        let Some((media_type, body)) = write(&request).filter(|_| concerns) else {
            return next.send(request).await;
        };
        uncompressed(&mut request);
        let response = next.send(request.clone()).await;
        if response.status != StatusCode::OK {
            return response;
        }
        let path = format!("{}/status", target.object(&target.name));
        next.server.as_admin(Method::PATCH, &path, Some((media_type, &body))).await;
        next.send(request.by_same_client(Method::GET, &request.path)).await
    }
    .boxed()
}

/// The status in the body of a request, as a merge patch.
fn status_of(request: &Request) -> Option<Value> {
    let body = request.json()?;
    body.get("status").map(|status| json!({ "status": status }))
}

/// Applies the operations of a JSON patch of the status that concern the spec, too.
fn writing_spec(mut request: Request, next: Next<'_>) -> BoxFuture<'_, Response> {
    async move {
        let target = request.target();
        let is_patch = target.subresource == "status" && request.media_type() == JSON_PATCH;
        let operations = operations_of(&request, "/spec");
        let Some(operations) = operations.filter(|_| is_patch && !request.is_dry_run()) else {
            return next.send(request).await;
        };
        uncompressed(&mut request);
        let path = target.object(&target.name);
        next.server.as_admin(Method::PATCH, &path, Some((JSON_PATCH, &operations))).await;
        next.send(request).await
    }
    .boxed()
}

/// The operations of a JSON patch that concern a part of the object.
fn operations_of(request: &Request, part: &str) -> Option<Value> {
    let mut operations = request.json()?;
    let list = operations.as_array_mut()?;
    list.retain(|operation| operation["path"].as_str().is_some_and(|path| path.starts_with(part)));
    (!list.is_empty()).then_some(operations)
}

/// Removes the version from a patch of any type.
fn without_version(patch: &mut Value) {
    match patch {
        Value::Array(operations) => {
            operations.retain(|operation| operation["path"] != "/metadata/resourceVersion");
        }
        patch => drop(remove_meta(patch, "resourceVersion")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_on_the_status_remain() {
        let patch = json!([
            { "op": "add", "path": "/metadata/labels", "value": {} },
            { "op": "remove", "path": "/status" },
        ]);
        let request = Request::new(Method::PATCH, "/apis/a.b/v1/namespaces/n/cs/c");
        let status = request.clone().with_json(JSON_PATCH, &patch);
        assert_eq!(
            operations_of(&status, "/status"),
            Some(json!([{ "op": "remove", "path": "/status" }]))
        );
        let other = request.with_json(JSON_PATCH, &json!([patch[0]]));
        assert_eq!(operations_of(&other, "/status"), None);
    }
}
