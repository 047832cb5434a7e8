//! Optimistic concurrency: writes that ignore a resourceVersion or judge it in a wrong way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::requests::{is_apply, is_update, rewrite};
use crate::behaviours::support::server::{admin_headers, bump};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_objects, uncompressed};

/// Between the check of a version and the write. Without it concurrent writers rarely meet.
const RACE_WINDOW: Duration = Duration::from_millis(20);

/// The number of attempts at a write that conflicts with another writer.
const ATTEMPTS: usize = 50;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StaleWriteAccepted => accepts(|given, _| given.parse::<u64>().is_ok()),
        Fault::UnreadableVersionAccepted => accepts(|given, _| given.parse::<u64>().is_err()),
        Fault::FutureWriteAccepted => accepts(|given, current| {
            let version = |text: &str| text.parse::<u64>().unwrap_or_default();
            version(given) > version(current)
        }),
        Fault::LostUpdate => lost_update(),
        Fault::VersionsShared => Box::new(Shared::default()),
        Fault::NoOpBumpsVersion => around(|request, next| {
            Box::pin(async move {
                let before = if is_update(&request) && !request.is_dry_run() {
                    next.server.read(&request.path).await
                } else {
                    None
                };
                let response = next.send(request.clone()).await;
                let (Some(before), Some(after)) = (before, response.value()) else {
                    return response;
                };
                if response.status != StatusCode::OK || version(&before) != version(&after) {
                    return response;
                }
                bump(&request, next).await;
                next.send(request.by_same_client(Method::GET, &request.path)).await
            })
        }),
        _ => return conflicts(fault),
    })
}

/// Faults in when and how a write conflicts.
fn conflicts(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ConflictAsBadRequest => around(|request, next| {
            Box::pin(async move {
                let writes =
                    is_update(&request) && request.media_type() != "application/apply-patch+yaml";
                let response = next.send(request).await;
                if writes
                    && response.status == StatusCode::CONFLICT
                    && response.has_reason("Conflict")
                {
                    let message = "the object has been modified";
                    return Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
                }
                response
            })
        }),
        Fault::PutNeedsVersion => around(|request, next| {
            Box::pin(async move {
                let unversioned = |body: Value| version(&body).is_none_or(str::is_empty);
                if request.method == Method::PUT && request.json().is_some_and(unversioned) {
                    let message = "the object has been modified; please apply your changes to the \
                                   latest version";
                    return Response::failure(StatusCode::CONFLICT, "Conflict", message);
                }
                next.send(request).await
            })
        }),
        Fault::StalePutOfEqualContentAccepted => around(|request, next| {
            Box::pin(async move {
                if request.method == Method::PUT
                    && let Some(mut sent) = request.json()
                    && let Some(stored) = next.server.read(&request.path).await
                {
                    sent["metadata"]["resourceVersion"] =
                        stored["metadata"]["resourceVersion"].clone();
                    if sent == stored {
                        return Response::json(StatusCode::OK, &stored);
                    }
                }
                next.send(request).await
            })
        }),
        _ => return None,
    })
}

/// Replaces the version of a write by the current one where `accepted` says so.
fn accepts(accepted: fn(&str, &str) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let body = if is_update(&request) { request.json() } else { None };
            let given = body.as_ref().and_then(version).unwrap_or_default().to_owned();
            if given.is_empty() || given == "0" {
                return next.send(request).await;
            }
            let Some(current) = next.server.read(&request.path).await else {
                return next.send(request).await;
            };
            if !accepted(&given, version(&current).unwrap_or_default()) {
                return next.send(request).await;
            }
            with_latest_version(request, next).await
        })
    })
}

/// Writes with the latest version, whatever was written in the meantime.
async fn with_latest_version(mut request: Request, next: Next<'_>) -> Response {
    let mut response = None;
    for _ in 0..ATTEMPTS {
        if let Some(current) = next.server.read(&request.path).await {
            request.edit_json(|body| {
                body["metadata"]["resourceVersion"] = version(&current).unwrap_or_default().into();
            });
        }
        let attempt = next.send(request.clone()).await;
        if attempt.status != StatusCode::CONFLICT {
            return attempt;
        }
        response = Some(attempt);
    }
    match response {
        Some(response) => response,
        None => next.send(request).await,
    }
}

/// Shows every second version of an object as the version before it.
#[derive(Default)]
struct Shared(Arc<Mutex<SharedVersions>>);

#[derive(Default)]
struct SharedVersions {
    /// The last version of each object, by uid, and whether it is shown as another one.
    last: HashMap<String, (String, bool)>,
    /// The versions that are shown as others.
    shown: HashMap<String, String>,
    /// The newest version behind each of these others.
    newest: HashMap<String, String>,
}

impl SharedVersions {
    fn update(&mut self, object: &Value) {
        let (uid, new) = (meta(object, "uid"), meta(object, "resourceVersion"));
        match self.last.get(uid).cloned() {
            Some((last, _)) if last == new => {}
            Some((last, false)) => {
                self.shown.insert(new.to_owned(), last.clone());
                self.newest.insert(last, new.to_owned());
                self.last.insert(uid.to_owned(), (new.to_owned(), true));
            }
            _ => drop(self.last.insert(uid.to_owned(), (new.to_owned(), false))),
        }
    }
}

impl Middleware for Shared {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let is_update = is_update(&request) && !request.is_dry_run();
            if is_update {
                rewrite(&mut request, |object| {
                    let newest = lock(&self.0).newest.get(meta(object, "resourceVersion")).cloned();
                    if let Some(newest) = newest {
                        object["metadata"]["resourceVersion"] = newest.into();
                    }
                });
            }
            let mut response = next.send(request.clone()).await;
            if is_update
                && request.target().subresource.is_empty()
                && response.status == StatusCode::OK
                && let Some(object) = response.value()
            {
                lock(&self.0).update(&object);
            }
            let shared = Arc::clone(&self.0);
            edit_objects(&request, &mut response, move |object| {
                let shown = lock(&shared).shown.get(meta(object, "resourceVersion")).cloned();
                if let Some(shown) = shown {
                    object["metadata"]["resourceVersion"] = shown.into();
                }
            });
            response
        }
        .boxed()
    }
}

fn lock(shared: &Mutex<SharedVersions>) -> MutexGuard<'_, SharedVersions> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks the version first and writes later, over what others wrote in between.
fn lost_update() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            // A PUT of the result cannot replace an apply, a proxied request or a change of status.
            let is_plain = is_update(&request)
                && !is_apply(&request)
                && request.target().subresource.is_empty();
            if !is_plain || request.is_dry_run() {
                return next.send(request).await;
            }
            let mut dry = request.clone();
            dry.edit_query(|query| query.set("dryRun", "All"));
            let checked = next.send(dry).await;
            let Some(mut object) = checked.value().filter(|_| checked.status == StatusCode::OK)
            else {
                return next.send(request).await;
            };
            sleep(RACE_WINDOW).await;
            if request.method == Method::PUT {
                return with_latest_version(request, next).await;
            }
            // The user may be permitted to patch only. A PUT without owners keeps the old ones.
            let mut put = request.clone();
            put.method = Method::PUT;
            put.headers = admin_headers(&request, next.server);
            if object["metadata"]["managedFields"].is_null() {
                object["metadata"]["managedFields"] = json!([{}]);
            }
            with_latest_version(put.with_json("application/json", &object), next).await
        })
    })
}

fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}
