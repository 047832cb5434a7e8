//! Evictions of pods.

use http::{Method, StatusCode, header};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{remove, remove_meta};
use crate::behaviours::support::requests::rewrite;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests, responses, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::EvictionIgnoresBudgets => {
            around(|request, next| Box::pin(ignore_budgets(request, next)))
        }
        Fault::EvictionForbidden => responses(|request, response| {
            if is_eviction(request) && response.status == StatusCode::TOO_MANY_REQUESTS {
                response.status = StatusCode::FORBIDDEN;
                response.headers.remove(header::RETRY_AFTER);
                response.edit_value(|status| {
                    status["reason"] = json!("Forbidden");
                    status["code"] = json!(403);
                });
            }
        }),
        Fault::EvictionOfAnyName => requests(|request| {
            if is_eviction(request) {
                let name = request.target().name;
                rewrite(request, |eviction| {
                    if eviction["metadata"]["name"].is_string() {
                        eviction["metadata"]["name"] = name.into();
                    }
                });
            }
        }),
        Fault::EvictionOfAnyNamespace => requests(|request| {
            if is_eviction(request) {
                rewrite(request, |eviction| drop(remove_meta(eviction, "namespace")));
            }
        }),
        Fault::EvictionIgnoresPreconditions => requests(|request| {
            if is_eviction(request) {
                rewrite(request, |eviction| {
                    if eviction["deleteOptions"].is_object() {
                        remove(&mut eviction["deleteOptions"], "preconditions");
                    }
                });
            }
        }),
        Fault::EvictionIgnoresDryRunOfTheQuery => requests(|request| {
            if is_eviction(request) {
                request.edit_query(|query| drop(query.remove("dryRun")));
            }
        }),
        Fault::EvictionEvictsNothing => requests(|request| {
            if is_eviction(request) {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }),
        _ => return None,
    })
}

fn is_eviction(request: &Request) -> bool {
    let target = request.target();
    request.method == Method::POST && target.is_core("pods") && target.subresource == "eviction"
}

/// Deletes the pod although a budget does not allow it.
async fn ignore_budgets(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let response = next.send(request.clone()).await;
    if !is_eviction(&request) || response.status != StatusCode::TOO_MANY_REQUESTS {
        return response;
    }
    let target = request.target();
    let mut options = request.json().map(|eviction| eviction["deleteOptions"].clone());
    if let Some(Value::Null) = options {
        options = None;
    }
    let mut path = target.object(&target.name);
    if request.is_dry_run() {
        path.push_str("?dryRun=All");
        options = None;
    }
    let body = options.as_ref().map(|options| ("application/json", options));
    let deleted = next.server.as_admin(Method::DELETE, &path, body).await;
    if deleted.status != StatusCode::OK {
        return deleted;
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Response::json(StatusCode::CREATED, &status)
}
