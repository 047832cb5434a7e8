//! Garbage collection: owners, dependents and the order in which they go.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{
    delete_options, edit_delete_options, is_delete, is_dry_delete,
};
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::requests::{MERGE_PATCH, created, is_create, rewrite};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_objects, requests, uncompressed};

const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object in a cycle.
const CYCLE: &str = "faults.kubeproof.dev/cycle";
/// Marks an API group that the server does not have, whose objects are never collected.
const UNKNOWN: &str = "not-collected.";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::GarbageStays => around(|request, next| Box::pin(without_owners(request, next))),
        Fault::ClusterScopedOwnersIgnored => requests(|request| {
            if is_create(request) {
                rewrite(request, |object| {
                    let owners = object["metadata"]["ownerReferences"].as_array_mut();
                    if let Some(owners) = owners {
                        owners.retain(|owner| owner["kind"] != "Namespace");
                    }
                });
            }
        }),
        Fault::EveryDependentBlocks => created(|_, object| {
            let owners = object["metadata"]["ownerReferences"].as_array_mut();
            owners
                .into_iter()
                .flatten()
                .for_each(|owner| owner["blockOwnerDeletion"] = true.into());
        }),
        Fault::OrphansDeleted => around(|mut request, next| {
            if policy(&request) == "Orphan" {
                set_policy(&mut request, "Background");
            }
            next.send(request)
        }),
        Fault::ForegroundDoesNotWait => {
            around(|request, next| Box::pin(do_not_wait(request, next)))
        }
        Fault::OwnersMatchByName => {
            around(|request, next| Box::pin(with_present_owners(request, next)))
        }
        Fault::OneOwnerIsAll => {
            Box::new(Dependents { fault: Mistake::AnyOwner, ..Dependents::default() })
        }
        Fault::OwnershipCyclesStay => around(|request, next| Box::pin(hold_cycle(request, next))),
        Fault::BackgroundWaits => Box::new(Dependents::default()),
        _ => return None,
    })
}

/// Gives the owners of a new object the uids of the objects that have their names now.
async fn with_present_owners(mut request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    if is_create(&request) {
        let mut object = request.json().unwrap_or_default();
        let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten() {
            let name = owner["name"].as_str().unwrap_or_default();
            let present = next.server.read(&target.object(name)).await.unwrap_or_default();
            if present["kind"] == owner["kind"] && present["kind"].is_string() {
                owner["uid"] = present["metadata"]["uid"].clone();
            }
        }
        rewrite(&mut request, |body| *body = object);
    }
    next.send(request).await
}

/// The propagation policy that a deletion names; empty for other requests.
fn policy(request: &Request) -> String {
    if !is_delete(request) && request.verb() != "deletecollection" {
        return String::new();
    }
    let options = delete_options(request);
    match (options.get("propagationPolicy"), options.get("orphanDependents")) {
        (None, Some(Value::Bool(true))) => "Orphan".to_owned(),
        (policy, _) => policy.and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

fn set_policy(request: &mut Request, policy: &str) {
    edit_delete_options(request, |options| {
        options.remove("orphanDependents");
        options.insert("propagationPolicy".to_owned(), policy.into());
    });
}

/// Hides the owners of every object from the garbage collector, and shows them to clients.
async fn without_owners(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    rewrite(&mut request, |body| {
        edit_owners(body, &|version| match version.split_once('/') {
            Some((group, version)) => format!("{UNKNOWN}{group}/{version}"),
            None => format!("{UNKNOWN}core/{version}"),
        });
    });
    let mut response = next.send(request.clone()).await;
    edit_objects(&request, &mut response, |object| {
        edit_owners(object, &|version| match version.strip_prefix(UNKNOWN) {
            Some(known) => known.strip_prefix("core/").unwrap_or(known).to_owned(),
            None => version.to_owned(),
        });
    });
    response
}

/// Edits the apiVersion of every owner reference in a document.
fn edit_owners(value: &mut Value, edit: &dyn Fn(&str) -> String) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| edit_owners(item, edit)),
        Value::Object(fields) => {
            let names = ["apiVersion", "kind", "name", "uid"];
            if names.iter().all(|name| fields.get(*name).is_some_and(Value::is_string)) {
                let version = edit(fields["apiVersion"].as_str().unwrap_or_default());
                fields.insert("apiVersion".to_owned(), version.into());
            }
            fields.values_mut().for_each(|field| edit_owners(field, edit));
        }
        _ => {}
    }
}

/// Adds a finalizer to an object with owners before its foreground deletion.
async fn hold_cycle(request: Request, next: Next<'_>) -> Response {
    if policy(&request) == "Foreground"
        && is_delete(&request)
        && !is_dry_delete(&request)
        && let Some(object) = next.server.read(&request.path).await
        && object["metadata"].get("ownerReferences").is_some()
    {
        let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> = finalizers.into_iter().chain([json!(CYCLE)]).collect();
        let change = json!({ "metadata": { "finalizers": all } });
        let target = request.target();
        let path = target.object(&target.name);
        next.server.as_admin(Method::PATCH, &path, Some((MERGE_PATCH, &change))).await;
    }
    next.send(request).await
}

/// Removes the finalizer of a foreground deletion at once.
async fn do_not_wait(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let foreground =
        policy(&request) == "Foreground" && is_delete(&request) && !is_dry_delete(&request);
    let response = next.send(request.clone()).await;
    let Some(object) = response.value().filter(|_| foreground) else { return response };
    let target = request.target();
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if finalizers.contains(&json!(FOREGROUND)) {
        let left: Vec<Value> = finalizers.into_iter().filter(|name| name != FOREGROUND).collect();
        let change = json!({ "metadata": { "finalizers": left } });
        let owner = target.object(&target.name);
        next.server.as_admin(Method::PATCH, &owner, Some((MERGE_PATCH, &change))).await;
    }
    response
}

/// The mistake when an owner is deleted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mistake {
    /// A background deletion waits for the dependents.
    #[default]
    Waits,
    /// The dependents go although they have other owners.
    AnyOwner,
}

/// Remembers the dependents of each owner that clients write.
#[derive(Default)]
struct Dependents {
    fault: Mistake,
    /// Paths by the uid of the owner.
    paths: Mutex<HashMap<String, BTreeSet<String>>>,
}

impl Dependents {
    fn remember(&self, request: &Request, response: &Response) {
        let Some(object) = response.value() else { return };
        let target = request.target();
        let path = target.object(meta(&object, "name"));
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        for owner in object["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
            if let Some(uid) = owner["uid"].as_str() {
                paths.entry(uid.to_owned()).or_default().insert(path.clone());
            }
        }
    }

    /// The dependents of the object that a request deletes.
    async fn of(&self, request: &Request, next: Next<'_>) -> BTreeSet<String> {
        let target = request.target();
        let Some(owner) = next.server.read(&target.object(&target.name)).await else {
            return BTreeSet::new();
        };
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.get(meta(&owner, "uid")).cloned().unwrap_or_default()
    }
}

impl Middleware for Dependents {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            if matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
                let response = next.send(request.clone()).await;
                self.remember(&request, &response);
                return response;
            }
            if !is_delete(&request) || is_dry_delete(&request) || policy(&request) == "Orphan" {
                return next.send(request).await;
            }
            let dependents = self.of(&request, next).await;
            if self.fault == Mistake::Waits && !dependents.is_empty() {
                set_policy(&mut request, "Foreground");
            }
            let response = next.send(request).await;
            if self.fault == Mistake::AnyOwner && response.status.is_success() {
                for path in dependents {
                    next.server.as_admin(Method::DELETE, &path, None).await;
                }
            }
            response
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_references_are_found_wherever_they_are() {
        let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" });
        let mut body =
            json!([{ "op": "add", "value": [owner] }, { "apiVersion": "v1", "kind": "Pod" }]);
        edit_owners(&mut body, &|version| format!("x/{version}"));
        assert_eq!(body[0]["value"][0]["apiVersion"], "x/v1");
        assert_eq!(body[1]["apiVersion"], "v1");
    }
}
