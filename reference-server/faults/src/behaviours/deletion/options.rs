//! Options of deletions that the server reads wrongly.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{delete_options, is_delete};
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::server::wait_for_a_change;
use crate::document;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DeleteOptionsOfCoreOnly => {
            around(|request, next| Box::pin(only_core_options(request, next)))
        }
        Fault::DeleteOptionsUnread => {
            around(|request, next| Box::pin(ignore_unreadable(request, next)))
        }
        Fault::QueriedGracePeriodIgnored => requests(|request| {
            if is_delete(request) && request.target().is_core("pods") {
                request.edit_query(|query| drop(query.remove("gracePeriodSeconds")));
            }
        }),
        Fault::UntypedDeleteOptionsRejected => around(|request, next| {
            Box::pin(async move {
                let is_untyped =
                    request.json().is_some_and(|options| options.get("kind").is_none());
                if request.method == Method::DELETE && is_untyped {
                    let message = "the options have no kind";
                    return Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
                }
                next.send(request).await
            })
        }),
        Fault::ProtobufDeleteOptionsDropped => without_protobuf("delete"),
        Fault::ProtobufCollectionOptionsDropped => without_protobuf("deletecollection"),
        Fault::DeletePreconditionsBeforeTheDeletion => {
            around(|request, next| Box::pin(check_first(request, next)))
        }
        Fault::DeleteOptionsInJsonOnly => around(|request, next| {
            Box::pin(async move {
                let is_other = matches!(request.media_type().as_str(), "" | "application/yaml");
                if request.method == Method::DELETE && !request.body.is_empty() && is_other {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        _ => return None,
    })
}

/// Drops options in protobuf from requests with the verb.
fn without_protobuf(verb: &'static str) -> Box<dyn Middleware> {
    requests(move |request| {
        if request.verb() == verb && document::is_protobuf(&request.headers) {
            request.body = bytes::Bytes::new();
            request.headers.remove(http::header::CONTENT_TYPE);
        }
    })
}

/// Checks the preconditions, and deletes when other clients had time to write.
async fn check_first(mut request: Request, next: Next<'_>) -> Response {
    let wanted = delete_options(&request).remove("preconditions");
    let Some(Value::Object(wanted)) = wanted.filter(|_| is_delete(&request)) else {
        return next.send(request).await;
    };
    let current = next.server.read(&request.path).await.unwrap_or_default();
    if wanted.iter().all(|(name, value)| current["metadata"][name] == *value) {
        wait_for_a_change(&request, next).await;
        request.edit_json(|options| drop(remove(options, "preconditions")));
    }
    next.send(request).await
}

/// Rejects options whose apiVersion is not `v1`.
async fn only_core_options(request: Request, next: Next<'_>) -> Response {
    let version = delete_options(&request).get("apiVersion").cloned().unwrap_or(json!("v1"));
    if request.method == Method::DELETE && request.target().is_resource() && version != "v1" {
        let message = "the body must be a DeleteOptions of v1";
        return Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
    }
    next.send(request).await
}

/// Deletes without options if the server cannot read them.
async fn ignore_unreadable(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    let deletes = is_delete(&request) || request.verb() == "deletecollection";
    if !deletes || response.status != StatusCode::BAD_REQUEST || request.body.is_empty() {
        return response;
    }
    request.body = bytes::Bytes::new();
    request.headers.remove(http::header::CONTENT_TYPE);
    next.send(request).await
}
