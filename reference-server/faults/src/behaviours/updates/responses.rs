//! Responses of writes that show something else than what the server has stored.

use http::{Method, StatusCode};
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::remove_meta;
use crate::behaviours::support::requests::is_update;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, responses, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let concerns: fn(&Request) -> bool = match fault {
        Fault::JsonPatchesReturnTheOldVersion => |request| {
            request.target().is_object() && request.media_type() == "application/json-patch+json"
        },
        Fault::StatusPatchesReturnTheOldVersion => {
            |request| request.method == Method::PATCH && request.target().subresource == "status"
        }
        Fault::StatusWritesReturnNoLabels => {
            return Some(unlabelled(|request| {
                is_update(request) && request.target().subresource == "status"
            }));
        }
        Fault::DeletionsReturnNoLabels => {
            return Some(unlabelled(|request| request.verb() == "delete"));
        }
        Fault::WritesReturnAnotherCreationTime => {
            return Some(responses(|request, response| {
                if request.method == Method::PATCH && response.status == StatusCode::OK {
                    response.edit_value(|object| {
                        object["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z".into();
                    });
                }
            }));
        }
        _ => return None,
    };
    Some(around(move |request, next| Box::pin(with_old_version(request, next, concerns))))
}

/// Removes the labels from some responses.
fn unlabelled(concerns: fn(&Request) -> bool) -> Box<dyn Middleware> {
    responses(move |request, response| {
        if concerns(request) {
            response.edit_value(|object| drop(remove_meta(object, "labels")));
        }
    })
}

/// Shows the version that the object had before the write.
async fn with_old_version(
    mut request: Request,
    next: Next<'_>,
    concerns: fn(&Request) -> bool,
) -> Response {
    if !concerns(&request) {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let before = next.server.read(&request.path).await.unwrap_or_default();
    let mut response = next.send(request).await;
    let version = &before["metadata"]["resourceVersion"];
    if response.status == StatusCode::OK && *version != Value::Null {
        response.edit_value(|object| object["metadata"]["resourceVersion"] = version.clone());
    }
    response
}
