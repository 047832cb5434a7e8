//! Writes to subresources that do not count as writes to the object.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::RwLock;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::requests::{is_apply, is_update, rewrite};
use crate::exchange::{Body, Request, Response};
use crate::middleware::{Middleware, Next, edit_objects, uncompressed};

/// Returns whether a fault concerns a write.
type Concerns = fn(&Request) -> bool;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::BuiltinStatusSendsNoEvent => silent(is_builtin_status),
        Fault::ScaleSendsNoEvent => silent(is_scale),
        Fault::BindingSendsNoEvent => silent(|request| subresource(request) == "binding"),
        Fault::ResizeSendsNoEvent => silent(|request| updates(request, "resize")),
        Fault::ApprovalSendsNoEvent => silent(|request| updates(request, "approval")),
        Fault::FinalizeSendsNoEvent => silent(|request| updates(request, "finalize")),
        Fault::BuiltinStatusKeepsVersion => kept(is_builtin_status),
        Fault::ScaleKeepsVersion => kept(is_scale),
        Fault::ConflictAfterStatusWrite => conflicts(|request| subresource(request) == "status"),
        Fault::ConflictAfterScale => conflicts(is_scale),
        Fault::ConflictAfterApply => conflicts(is_apply),
        Fault::ConflictAfterJsonPatch => {
            conflicts(|request| is_update(request) && request.media_type().contains("json-patch"))
        }
        Fault::ConflictAfterMetadataWrite => conflicts(|request| {
            is_update(request) && request.json().is_some_and(|body| body.get("spec").is_none())
        }),
        Fault::ScalePatchSendsNoEvent => {
            silent(|request| is_scale(request) && request.method == Method::PATCH)
        }
        Fault::StatusApplySendsNoEvent => {
            silent(|request| is_apply(request) && subresource(request) == "status")
        }
        Fault::EphemeralContainersSendNoEvent => {
            silent(|request| subresource(request) == "ephemeralcontainers")
        }
        Fault::ApprovalKeepsVersion => kept(|request| subresource(request) == "approval"),
        Fault::CustomScaleKeepsVersion => {
            kept(|request| is_scale(request) && request.target().group.contains("kubeproof"))
        }
        Fault::StatusPatchKeepsVersion => {
            kept(|request| request.method == Method::PATCH && subresource(request) == "status")
        }
        _ => return None,
    })
}

fn subresource(request: &Request) -> String {
    request.target().subresource
}

fn updates(request: &Request, name: &str) -> bool {
    is_update(request) && subresource(request) == name
}

fn is_scale(request: &Request) -> bool {
    updates(request, "scale")
}

/// Returns whether a request writes the status of a resource that the suite does not define.
fn is_builtin_status(request: &Request) -> bool {
    let target = request.target();
    is_update(request) && target.subresource == "status" && !target.group.contains("kubeproof")
}

fn silent(concerns: Concerns) -> Box<dyn Middleware> {
    Box::new(Silent { concerns, versions: Arc::default() })
}

fn kept(concerns: Concerns) -> Box<dyn Middleware> {
    Box::new(Kept { concerns, versions: Arc::default() })
}

fn conflicts(concerns: Concerns) -> Box<dyn Middleware> {
    Box::new(Conflicts { concerns, versions: Mutex::default() })
}

/// Sends a write, and returns the version of the object after it.
async fn write(mut request: Request, next: Next<'_>) -> (Response, Option<String>) {
    uncompressed(&mut request);
    let target = request.target();
    let response = next.send(request.clone()).await;
    if !response.status.is_success() || request.is_dry_run() {
        return (response, None);
    }
    let written = response.value().unwrap_or_default();
    let version = match meta(&written, "resourceVersion") {
        "" => {
            let object = next.server.read(&target.object(&target.name)).await.unwrap_or_default();
            meta(&object, "resourceVersion").to_owned()
        }
        version => version.to_owned(),
    };
    (response, Some(version))
}

/// Drops the events of some writes. An event waits for the end of the writes that are under way,
/// which may have caused it.
struct Silent {
    concerns: Concerns,
    versions: Arc<RwLock<HashSet<String>>>,
}

impl Middleware for Silent {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            if (self.concerns)(&request) {
                let mut versions = self.versions.write().await;
                let (response, version) = write(request, next).await;
                versions.extend(version);
                return response;
            }
            if !request.is_watch() {
                return next.send(request).await;
            }
            let mut request = request;
            uncompressed(&mut request);
            let mut response = next.send(request).await;
            if let Body::Stream(stream) = &mut response.body {
                let chunks = std::mem::replace(stream, futures_util::stream::empty().boxed());
                let versions = Arc::clone(&self.versions);
                *stream = chunks
                    .then(move |chunk| {
                        let versions = Arc::clone(&versions);
                        async move { without(&chunk, &*versions.read().await) }
                    })
                    .boxed();
            }
            response
        }
        .boxed()
    }
}

/// Removes the events of some versions from whole lines. The server sends whole lines.
fn without(chunk: &[u8], versions: &HashSet<String>) -> Bytes {
    let is_kept = |line: &&[u8]| {
        let event: Value = serde_json::from_slice(line).unwrap_or_default();
        event["type"] != "MODIFIED" || !versions.contains(meta(&event["object"], "resourceVersion"))
    };
    let lines = chunk.split_inclusive(|byte| *byte == b'\n');
    lines.filter(is_kept).collect::<Vec<_>>().concat().into()
}

/// Shows the version before a write after it.
struct Kept {
    concerns: Concerns,
    versions: Arc<Mutex<KeptVersions>>,
}

#[derive(Default)]
struct KeptVersions {
    /// The version that the fault shows instead of another one.
    shown: HashMap<String, String>,
    /// The newest version that it shows as this one.
    newest: HashMap<String, String>,
}

impl KeptVersions {
    fn keep(&mut self, before: &str, after: &str) {
        let shown = self.shown.get(before).cloned().unwrap_or_else(|| before.to_owned());
        self.newest.insert(shown.clone(), after.to_owned());
        self.shown.insert(after.to_owned(), shown);
    }
}

impl Middleware for Kept {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            if is_update(&request) {
                rewrite(&mut request, |object| {
                    let newest =
                        lock(&self.versions).newest.get(meta(object, "resourceVersion")).cloned();
                    if let Some(newest) = newest {
                        object["metadata"]["resourceVersion"] = newest.into();
                    }
                });
            }
            let mut response = if (self.concerns)(&request) {
                let target = request.target();
                let before = next.server.read(&target.object(&target.name)).await;
                let (response, after) = write(request.clone(), next).await;
                let before = before.unwrap_or_default();
                if let Some(after) = after.filter(|after| after != meta(&before, "resourceVersion"))
                {
                    lock(&self.versions).keep(meta(&before, "resourceVersion"), &after);
                }
                response
            } else {
                next.send(request.clone()).await
            };
            let versions = Arc::clone(&self.versions);
            edit_objects(&request, &mut response, move |object| {
                let shown = lock(&versions).shown.get(meta(object, "resourceVersion")).cloned();
                if let Some(shown) = shown {
                    object["metadata"]["resourceVersion"] = shown.into();
                }
            });
            response
        }
        .boxed()
    }
}

/// Rejects PUTs with the version that some write returned, although it is the current one.
struct Conflicts {
    concerns: Concerns,
    versions: Mutex<HashSet<String>>,
}

impl Middleware for Conflicts {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            if (self.concerns)(&request) && is_update(&request) {
                let (response, version) = write(request, next).await;
                lock(&self.versions).extend(version);
                return response;
            }
            let conflicts = request.method == Method::PUT
                && request.json().is_some_and(|object| {
                    lock(&self.versions).contains(meta(&object, "resourceVersion"))
                });
            if conflicts {
                let message = "the object has been modified; please apply your changes to the \
                               latest version";
                return Response::failure(StatusCode::CONFLICT, "Conflict", message);
            }
            next.send(request).await
        }
        .boxed()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_these_versions_are_removed() {
        let chunk =
            b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n{}\n";
        let versions = HashSet::from(["1".to_owned()]);
        assert_eq!(without(chunk, &versions), "{}\n");
        assert_eq!(without(chunk, &HashSet::new()), chunk.as_slice());
    }

    #[test]
    fn a_version_is_kept_over_several_writes() {
        let mut versions = KeptVersions::default();
        versions.keep("1", "2");
        versions.keep("2", "3");
        assert_eq!(versions.shown["3"], "1");
        assert_eq!(versions.newest["1"], "3");
    }
}
