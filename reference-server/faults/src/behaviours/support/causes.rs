//! The causes of rejections: the mistakes that the server finds in an object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, uncompressed};
use crate::patch;

/// Phrases in the messages of mistakes that are not found by a rule.
const BUILT_IN: [&str; 6] = [
    "in body should",
    "in body must",
    "must be of type",
    "may not be more",
    "must have at most",
    "must have at least",
];

/// Returns whether a fault ignores a cause.
pub(crate) type Ignores = fn(&Request, &Value) -> bool;

/// Accepts requests that the server rejects, if the fault ignores all causes.
pub(crate) fn ignoring(ignores: Ignores) -> Box<dyn Middleware> {
    let kept: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    around(move |mut request, next| {
        let kept = kept.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            if response.status == StatusCode::NOT_FOUND {
                return missing(&request, response, &kept);
            }
            if response.status != StatusCode::UNPROCESSABLE_ENTITY {
                return response;
            }
            let all = causes(&response);
            let left: Vec<Value> =
                all.iter().filter(|cause| !ignores(&request, cause)).cloned().collect();
            if left.len() == all.len() {
                return response;
            }
            if left.is_empty() {
                return accept(&request, next, &kept).await;
            }
            response.edit_value(|status| status["details"]["causes"] = left.into());
            response
        })
    })
}

/// Objects that the fault keeps can be read and deleted.
fn missing(
    request: &Request,
    response: Response,
    kept: &Mutex<HashMap<String, Value>>,
) -> Response {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let object = match request.method {
        Method::GET => kept.get(&request.path).cloned(),
        Method::DELETE => kept.remove(&request.path),
        _ => None,
    };
    object.map_or(response, |object| Response::json(StatusCode::OK, &object))
}

/// Accepts the object of a request that the server rejects.
async fn accept(
    request: &Request,
    next: Next<'_>,
    kept: &Mutex<HashMap<String, Value>>,
) -> Response {
    let mut object = request.json().unwrap_or_default();
    let target = request.target();
    if request.method == Method::PATCH {
        let mut current = next.server.read(&request.path).await.unwrap_or_default();
        patch::overlay(&mut current, &object);
        return Response::json(StatusCode::OK, &current);
    }
    if request.method != Method::POST {
        return Response::json(StatusCode::OK, &object);
    }
    if !target.namespace.is_empty() {
        object["metadata"]["namespace"] = target.namespace.as_str().into();
    }
    let created = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    object["metadata"]["creationTimestamp"] = created.into();
    object["metadata"]["uid"] = "6b2c1d3e-0000-4000-8000-000000000000".into();
    object["metadata"]["resourceVersion"] = "1".into();
    if target.resource.ends_with("reviews") {
        object["status"] = json!({ "allowed": false });
    } else if !request.is_dry_run() {
        let path = target.object(object["metadata"]["name"].as_str().unwrap_or_default());
        kept.lock().unwrap_or_else(PoisonError::into_inner).insert(path, object.clone());
    }
    Response::json(StatusCode::CREATED, &object)
}

/// Rejects requests that the server would accept, with a cause.
pub(crate) fn rejecting(cause: fn(&Request) -> Option<Value>) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            match cause(&request) {
                Some(cause) => rejection(&cause),
                None => next.send(request).await,
            }
        })
    })
}

/// A response that rejects an object for one cause.
pub(crate) fn rejection(cause: &Value) -> Response {
    let message = format!("{}: {}", field(cause), message(cause));
    Response::json(
        StatusCode::UNPROCESSABLE_ENTITY,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": "Invalid",
            "message": message, "code": 422, "details": { "causes": [cause] },
        }),
    )
}

/// The causes of a rejection.
pub(crate) fn causes(response: &Response) -> Vec<Value> {
    let status = response.value().filter(|_| response.status == StatusCode::UNPROCESSABLE_ENTITY);
    let causes = status.and_then(|status| status.pointer("/details/causes").cloned());
    causes.and_then(|causes| causes.as_array().cloned()).unwrap_or_default()
}

pub(crate) fn field(cause: &Value) -> &str {
    cause["field"].as_str().unwrap_or_default()
}

pub(crate) fn message(cause: &Value) -> &str {
    cause["message"].as_str().unwrap_or_default()
}

/// The value that a request has at the field of a cause.
pub(crate) fn value(request: &Request, cause: &Value) -> Option<Value> {
    request.json()?.pointer(&pointer(field(cause))).cloned()
}

/// `spec.ports[0].name` as the pointer `/spec/ports/0/name`.
pub(crate) fn pointer(field: &str) -> String {
    format!("/{}", field.replace(['.', '['], "/").replace(']', ""))
}

/// Returns whether a rule of the definition found a mistake, not the schema itself.
pub(crate) fn is_rule_cause(cause: &Value) -> bool {
    let by_schema = [
        "FieldValueNotSupported",
        "FieldValueDuplicate",
        "FieldValueTypeInvalid",
        "FieldValueTooLong",
    ];
    let reason = cause["reason"].as_str().unwrap_or_default();
    !by_schema.contains(&reason) && !BUILT_IN.iter().any(|phrase| message(cause).contains(phrase))
}
