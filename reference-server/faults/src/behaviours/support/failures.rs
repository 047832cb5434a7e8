//! Failures that the server returns.

use http::StatusCode;
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::json;

use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around};

/// Returns the rejection of a media type that the server does not know.
pub(crate) fn unsupported_media_type() -> Response {
    let message = "the body of the request was in an unknown format";
    Response::failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
}

/// Rejects requests as invalid.
pub(crate) fn rejecting(message: &'static str, of: fn(&Request) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            if of(&request) {
                return Response::failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
            }
            next.send(request).await
        })
    })
}

/// A failure for one object, with details as the server writes them.
pub(crate) fn failure(
    code: StatusCode,
    reason: &str,
    target: &ResourceInfo,
    name: &str,
) -> Response {
    let word = match reason {
        "AlreadyExists" => "already exists",
        "NotFound" => "not found",
        _ => "cannot be used",
    };
    let message = format!("{} {name:?} {word}", target.resource);
    let mut response = Response::failure(code, reason, message);
    let mut details = json!({ "name": name, "kind": target.resource });
    if !target.group.is_empty() {
        details["group"] = target.group.as_str().into();
    }
    response.edit_value(|status| status["details"] = details);
    response
}

/// Returns whether a response is a failure with this reason for the object with this name.
pub(crate) fn is_about(response: &Response, reason: &str, name: &str) -> bool {
    response.has_reason(reason)
        && response.value().is_some_and(|status| status["details"]["name"] == name)
}

/// The response to a method that the resource does not have.
pub(crate) fn method_not_allowed() -> Response {
    let message = "the server does not allow this method on the requested resource";
    Response::failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
}
