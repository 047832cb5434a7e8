//! Deletion of objects and collections: options, marks and responses.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Map, Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{edit_delete_options, is_delete, is_dry_delete};
use crate::behaviours::support::failures::is_about;
use crate::behaviours::support::objects::{is_deleting, meta, remove_meta};
use crate::behaviours::support::requests::{MERGE_PATCH, is_update};
use crate::document;
use crate::exchange::{Request, Response};
use crate::middleware::{
    Middleware, Next, around, edit_objects, requests, responses, uncompressed,
};

const POLICIES: [&str; 3] = ["Foreground", "Background", "Orphan"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    options_ignored(fault).or_else(|| marks(fault)).or_else(|| outcomes(fault))
}

/// Faults in the options of a deletion.
fn options_ignored(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DryRunPersists => requests(persist_dry_run),
        Fault::UidPreconditionIgnored => options(|_, options| ignore_precondition(options, "uid")),
        Fault::VersionPreconditionIgnored => {
            options(|_, options| ignore_precondition(options, "resourceVersion"))
        }
        Fault::PropagationPolicyIgnored => options(|_, options| {
            if options.get("propagationPolicy").is_none_or(is_policy) {
                options.remove("propagationPolicy");
                options.remove("orphanDependents");
            }
        }),
        Fault::CollectionPolicyIgnored => options(|request, options| {
            if request.verb() == "deletecollection"
                && options.get("propagationPolicy").is_some_and(is_policy)
            {
                options.remove("propagationPolicy");
            }
        }),
        Fault::QueriedPropagationPolicyIgnored => requests(|request| {
            let query = request.query();
            let policy = query.get("propagationPolicy").unwrap_or_default();
            if is_delete(request) && POLICIES.contains(&policy) {
                request.edit_query(|query| drop(query.remove("propagationPolicy")));
            }
        }),
        Fault::UnknownPropagationAccepted => options(|_, options| {
            if options
                .get("propagationPolicy")
                .is_some_and(|policy| policy.is_string() && !is_policy(policy))
            {
                options.remove("propagationPolicy");
            }
        }),
        Fault::OrphanDependentsIgnored => options(|_, options| {
            options.remove("orphanDependents");
        }),
        Fault::OrphanDependentsBesidePolicy => options(|_, options| {
            if options.contains_key("propagationPolicy") {
                options.remove("orphanDependents");
            }
        }),
        _ => return collections_and_bodies(fault),
    })
}

/// Faults that depend on the form or the target of a DELETE.
fn collections_and_bodies(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DryRunInBodyIgnored => options(|request, options| {
            if !request.body.is_empty() {
                options.remove("dryRun");
            }
        }),
        Fault::GracePeriodIgnored => options(|request, options| {
            if request.target().is_core("pods") {
                options.insert("gracePeriodSeconds".to_owned(), json!(0));
            }
        }),
        Fault::CollectionDryRunPersists => requests(|request| {
            if request.verb() == "deletecollection" {
                persist_dry_run(request);
            }
        }),
        Fault::CollectionPreconditionsIgnored => options(|request, options| {
            if request.verb() == "deletecollection" {
                options.remove("preconditions");
            }
        }),
        Fault::UidPreconditionOfBuiltInsOnly => options(|request, options| {
            if request.target().is_custom() {
                ignore_precondition(options, "uid");
            }
        }),
        _ => return None,
    })
}

/// Faults of objects that are marked for deletion.
fn marks(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::FinalizersIgnored => {
            around(|request, next| Box::pin(ignore_finalizers(request, next)))
        }
        Fault::DeletionNotMarked => around(|request, next| Box::pin(without_mark(request, next))),
        Fault::FirstPolicyStays => {
            around(|request, next| Box::pin(keep_first_policy(request, next)))
        }
        Fault::GraceNeverShortened => around(|request, next| Box::pin(keep_grace(request, next))),
        Fault::SecondDeleteBumpsVersion => Box::new(LaterMarks::default()),
        Fault::SecondDeleteRestartsTheTime => {
            Box::new(LaterMarks { restarts: true, ..LaterMarks::default() })
        }
        Fault::SecondDeleteReturnsANewTime => around(|mut request, next| {
            Box::pin(async move {
                uncompressed(&mut request);
                let before = marked_before(&request, next).await;
                let mut response = next.send(request).await;
                if let (Some(object), true) = (before, response.status.is_success()) {
                    response.edit_value(|returned| delay(returned, age_of_mark(&object)));
                }
                response
            })
        }),
        Fault::FinalizersDroppedWhileDeleting => {
            around(|request, next| Box::pin(without_new_finalizers(request, next)))
        }
        _ => return None,
    })
}

/// Faults in what a deletion returns.
fn outcomes(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DeleteReturnsAnEmptyObject => responses(|request, response| {
            if is_delete(request) && is_success_status(response) {
                response.set_value(&json!({}));
            }
        }),
        Fault::DeleteReturnsNothing => responses(|request, response| {
            let gone = |object: Value| document::is_object(&object) && !is_deleting(&object);
            if is_delete(request)
                && response.status == StatusCode::OK
                && (is_success_status(response) || response.value().is_some_and(gone))
            {
                response.set_bytes("");
            }
        }),
        Fault::DeletionReturnsUnmarked => responses(|request, response| {
            if is_delete(request) {
                response.edit_value(|object| {
                    if document::is_object(object) {
                        remove_meta(object, "deletionTimestamp");
                    }
                });
            }
        }),
        Fault::WritesHideTheDeletion => responses(|request, response| {
            if is_update(request) && response.status.is_success() {
                response.edit_value(|object| drop(remove_meta(object, "deletionTimestamp")));
            }
        }),
        Fault::DeleteMissingSucceeds => responses(|request, response| {
            let target = request.target();
            if is_delete(request) && is_about(response, "NotFound", &target.name) {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": { "name": target.name, "kind": target.resource },
                });
                *response = Response::json(StatusCode::OK, &status);
            }
        }),
        _ => return None,
    })
}

/// Edits the options of every deletion of an object or a collection.
fn options(
    edit: impl Fn(&Request, &mut Map<String, Value>) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_delete(request) || request.verb() == "deletecollection" {
            let copy = request.clone();
            edit_delete_options(request, |options| edit(&copy, options));
        }
    })
}

fn ignore_precondition(options: &mut Map<String, Value>, name: &str) {
    if let Some(preconditions) = options.get_mut("preconditions").and_then(Value::as_object_mut) {
        preconditions.remove(name);
    }
}

fn is_policy(policy: &Value) -> bool {
    policy.as_str().is_some_and(|policy| POLICIES.contains(&policy))
}

fn is_success_status(response: &Response) -> bool {
    response.value().is_some_and(|body| body["kind"] == "Status" && body["status"] == "Success")
}

/// Removes the dry run from every write.
fn persist_dry_run(request: &mut Request) {
    if request.method == Method::GET || !request.target().is_resource() {
        return;
    }
    if request.query().all("dryRun").all(|value| value == "All") && request.is_dry_run() {
        request.edit_query(|query| {
            query.remove("dryRun");
        });
    }
    if request.method == Method::DELETE {
        edit_delete_options(request, |options| {
            if options.get("dryRun") == Some(&json!(["All"])) {
                options.remove("dryRun");
            }
        });
    }
}

/// Removes the finalizers of what a deletion marked.
async fn ignore_finalizers(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let response = next.send(request.clone()).await;
    let verb = request.verb();
    if !matches!(verb, "delete" | "deletecollection") || is_dry_delete(&request) {
        return response;
    }
    let target = request.target();
    let Some(body) = response.value() else { return response };
    let marked: Vec<&Value> = match body["items"].as_array() {
        Some(items) => items.iter().collect(),
        None => vec![&body],
    };
    for object in marked.into_iter().filter(|object| is_deleting(object)) {
        let namespace = meta(object, "namespace").to_owned();
        let place = ResourceInfo { namespace, ..target.clone() };
        let path = place.object(meta(object, "name"));
        if place.resource == "customresourcedefinitions" {
            continue;
        }
        let none = json!({ "metadata": { "finalizers": null } });
        next.server.as_admin(Method::PATCH, &path, Some((MERGE_PATCH, &none))).await;
        if place.is_core("namespaces") {
            finalize(&path, next).await;
        }
    }
    response
}

/// Removes a namespace whatever it contains.
async fn finalize(path: &str, next: Next<'_>) {
    if let Some(mut namespace) = next.server.read(path).await {
        namespace["spec"]["finalizers"] = json!([]);
        let path = format!("{path}/finalize");
        next.server.as_admin(Method::PUT, &path, Some(("application/json", &namespace))).await;
    }
}

/// Returns 200 and changes nothing if a finalizer holds the object.
async fn without_mark(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let target = request.target();
    if !is_delete(&request) || target.resource == "customresourcedefinitions" {
        return next.send(request).await;
    }
    let mut dry = request.clone();
    edit_delete_options(&mut dry, |options| {
        drop(options.insert("dryRun".to_owned(), json!(["All"])));
    });
    let tried = next.send(dry).await;
    let held = tried.value().is_some_and(|object| {
        is_deleting(&object)
            && object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
    });
    if !held {
        return next.send(request).await;
    }
    match next.server.read(&target.object(&target.name)).await {
        Some(object) => Response::json(StatusCode::OK, &object),
        None => tried,
    }
}

/// The object of a deletion, if an earlier one marked it already.
async fn marked_before(request: &Request, next: Next<'_>) -> Option<Value> {
    if !is_delete(request) {
        return None;
    }
    let target = request.target();
    next.server.read(&target.object(&target.name)).await.filter(is_deleting)
}

/// Ignores the policy of a second deletion.
async fn keep_first_policy(mut request: Request, next: Next<'_>) -> Response {
    if marked_before(&request, next).await.is_some() {
        edit_delete_options(&mut request, |options| {
            if options.get("propagationPolicy").is_none_or(is_policy) {
                options.remove("propagationPolicy");
                options.remove("orphanDependents");
            }
        });
    }
    next.send(request).await
}

/// Keeps the grace period of the first deletion, unless a later one sets it to 0.
async fn keep_grace(mut request: Request, next: Next<'_>) -> Response {
    if let Some(object) = marked_before(&request, next).await {
        let left = object["metadata"]["deletionGracePeriodSeconds"].clone();
        edit_delete_options(&mut request, |options| {
            if options.get("gracePeriodSeconds").and_then(Value::as_i64) != Some(0) {
                options.insert("gracePeriodSeconds".to_owned(), left);
            }
        });
    }
    next.send(request).await
}

/// Moves the deletionTimestamp of an object by a second with each further deletion.
#[derive(Default)]
struct LaterMarks {
    /// Seconds by uid.
    moved: std::sync::Arc<Mutex<HashMap<String, i64>>>,
    /// Moves to the time of the later deletion, and not by one second.
    restarts: bool,
}

impl Middleware for LaterMarks {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let before = marked_before(&request, next).await;
            let mut response = next.send(request.clone()).await;
            if let (Some(object), true) = (before, response.status.is_success()) {
                let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
                let seconds = moved.entry(meta(&object, "uid").to_owned()).or_default();
                *seconds = if self.restarts { age_of_mark(&object) } else { *seconds + 1 };
            }
            let moved = self.moved.clone();
            edit_objects(&request, &mut response, move |object| {
                let moved = moved.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(seconds) = moved.get(meta(object, "uid")) {
                    delay(object, *seconds);
                }
            });
            response
        }
        .boxed()
    }
}

/// The seconds since the deletionTimestamp.
fn age_of_mark(object: &Value) -> i64 {
    let mark = meta(object, "deletionTimestamp").parse::<Timestamp>();
    mark.map_or(0, |mark| Timestamp::now().as_second() - mark.as_second())
}

/// Drops the finalizers that a PUT adds to an object that is being deleted.
async fn without_new_finalizers(mut request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    if request.method == Method::PUT && target.is_object() {
        let current = next.server.read(&target.object(&target.name)).await.filter(is_deleting);
        if let Some(current) = current {
            let known = current["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            request.edit_json(|object| {
                if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
                    finalizers.retain(|finalizer| known.contains(finalizer));
                }
            });
        }
    }
    next.send(request).await
}

fn delay(object: &mut Value, seconds: i64) {
    let time = meta(object, "deletionTimestamp").parse::<Timestamp>();
    if let Ok(later) = time.map(|time| time + SignedDuration::from_secs(seconds)) {
        object["metadata"]["deletionTimestamp"] = later.to_string().into();
    }
}
