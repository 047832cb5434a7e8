//! Reads of single objects: missing ones, names and versions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::failures::{failure, is_about};
use crate::behaviours::support::objects::{meta, remove};
use crate::behaviours::support::requests::{is_get, is_update};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, only, requests, responses, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MissingObjectAsServerError => missing_objects(|| {
            let message = "Internal error occurred: no such key";
            Response::failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
        }),
        Fault::MissingObjectIsNull => {
            missing_objects(|| Response::json(StatusCode::OK, &Value::Null))
        }
        Fault::GetByPrefix => around(|request, next| Box::pin(get_by_prefix(request, next))),
        Fault::GetLags => Box::new(Lag::default()),
        Fault::GetAtExactVersion => responses(at_exact_version),
        Fault::CachedObjectsWithoutKind => responses(|request, response| {
            let is_cached = request.query().get("resourceVersion") == Some("0");
            if is_get(request) && is_cached && response.status == StatusCode::OK {
                response.edit_value(|object| {
                    remove(object, "kind");
                    remove(object, "apiVersion");
                });
            }
        }),
        Fault::FutureVersionAccepted => {
            around(|request, next| Box::pin(accept_future(request, next)))
        }
        Fault::GetOfAFutureVersion => only(
            |request| request.verb() == "get",
            around(|request, next| Box::pin(accept_future(request, next))),
        ),
        Fault::FutureVersionOfTheCluster => only(
            |request| request.verb() == "list" && request.target().namespace.is_empty(),
            around(|request, next| Box::pin(accept_future(request, next))),
        ),
        Fault::InitialEventsOfLists => requests(|request| {
            if request.verb() == "list" {
                request.edit_query(|query| drop(query.remove("sendInitialEvents")));
            }
        }),
        Fault::MalformedVersionIgnored => requests(|request| {
            let mut query = request.query();
            let malformed = query
                .get("resourceVersion")
                .is_some_and(|version| !version.is_empty() && version.parse::<u64>().is_err());
            if request.method == Method::GET && request.target().is_resource() && malformed {
                query.remove("resourceVersion");
                request.set_query(&query);
            }
        }),
        _ => return None,
    })
}

/// Returns each object as it was before its last update.
#[derive(Default)]
struct Lag {
    /// The objects before their last update, by path.
    before: Mutex<HashMap<String, Value>>,
}

impl Middleware for Lag {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let target = request.target();
            let path = request.path.clone();
            if !target.is_resource() || target.name.is_empty() || request.is_dry_run() {
                return next.send(request).await;
            }
            if is_get(&request) {
                uncompressed(&mut request);
                let mut response = next.send(request).await;
                let before = self.before().get(&path).cloned();
                if let Some(before) = before.filter(|_| response.status == StatusCode::OK) {
                    response.edit_value(|object| {
                        if object["kind"] == before["kind"] {
                            *object = before;
                        }
                    });
                }
                return response;
            }
            let before = next.server.read(&path).await.filter(|_| is_update(&request));
            let response = next.send(request).await;
            if response.status.is_success() {
                match before {
                    Some(before) => drop(self.before().insert(path, before)),
                    None => drop(self.before().remove(&path)),
                }
            }
            response
        }
        .boxed()
    }
}

impl Lag {
    fn before(&self) -> std::sync::MutexGuard<'_, HashMap<String, Value>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces the response to a read of an object that does not exist.
fn missing_objects(response: impl Fn() -> Response + Send + Sync + 'static) -> Box<dyn Middleware> {
    responses(move |request, missing| {
        if is_get(request) && is_about(missing, "NotFound", &request.target().name) {
            *missing = response();
        }
    })
}

/// Returns the first object whose name begins with the requested one.
async fn get_by_prefix(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let response = next.send(request.clone()).await;
    let target = request.target();
    if !is_get(&request) || !is_about(&response, "NotFound", &target.name) {
        return response;
    }
    let list = next.send(request.by_same_client(Method::GET, &target.collection())).await;
    let items = list.value().and_then(|mut list| list["items"].as_array_mut().map(std::mem::take));
    let begins = |item: &Value| meta(item, "name").starts_with(&target.name);
    match items.unwrap_or_default().into_iter().find(begins) {
        Some(item) => {
            next.send(Request { path: target.object(meta(&item, "name")), ..request }).await
        }
        None => response,
    }
}

/// Returns 404 for an object in another version than the requested one.
fn at_exact_version(request: &Request, response: &mut Response) {
    let query = request.query();
    let asked = query.get("resourceVersion").filter(|version| !version.is_empty());
    let (true, Some(asked)) = (is_get(request), asked) else { return };
    if response.value().is_some_and(|object| {
        let version = meta(&object, "resourceVersion");
        !version.is_empty() && version != asked
    }) {
        let target = request.target();
        *response = failure(StatusCode::NOT_FOUND, "NotFound", &target, &target.name);
    }
}

/// Ignores a resourceVersion that does not exist yet.
async fn accept_future(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let response = next.send(request.clone()).await;
    if !matches!(request.verb(), "get" | "list") || response.status != StatusCode::GATEWAY_TIMEOUT {
        return response;
    }
    request.edit_query(|query| {
        query.remove("resourceVersion");
        query.remove("resourceVersionMatch");
    });
    next.send(request).await
}
