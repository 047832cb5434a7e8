//! Generations and uids that change at the wrong moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{meta, random_uuid};
use crate::behaviours::support::requests::{STRATEGIC_PATCH, is_apply, is_update};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_objects, objects, uncompressed};

const JSON_PATCH: &str = "application/json-patch+json";

/// What is added to the generations of objects, by uid.
type Offsets = Arc<Mutex<HashMap<String, i64>>>;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::GenerationNotBumped => first_generation(),
        Fault::GenerationStartsOver => objects(|_, object| {
            if object["metadata"].get("generation").is_some() {
                object["metadata"]["generation"] = 1.into();
            }
        }),
        Fault::GenerationAlwaysBumped => bumped(|_| true),
        Fault::JsonPatchBumpsGeneration => bumped(|request| request.media_type() == JSON_PATCH),
        Fault::ScaleKeepsGeneration => kept(|request| request.target().subresource == "scale"),
        Fault::StrategicPatchesKeepGeneration => {
            kept(|request| is_object(request) && request.media_type() == STRATEGIC_PATCH)
        }
        Fault::AppliesKeepGeneration => kept(|request| is_object(request) && is_apply(request)),
        Fault::StrategicPatchesOfLabelsMoveGeneration => {
            bumped(|request| is_object(request) && request.media_type() == STRATEGIC_PATCH)
        }
        Fault::AppliesOfTheStatusMoveGeneration => {
            bumped(|request| is_status(request) && is_apply(request))
        }
        Fault::JsonPatchesOfTheStatusMoveGeneration => {
            bumped(|request| is_status(request) && request.media_type() == JSON_PATCH)
        }
        Fault::StatusBumpsGeneration => bumped(is_status),
        Fault::GenerationFromClient => from_client(),
        Fault::ObservedByServer => observed(),
        Fault::UidChangesOnUpdate => new_uids(),
        _ => return None,
    })
}

fn is_object(request: &Request) -> bool {
    request.target().is_object()
}

fn is_status(request: &Request) -> bool {
    request.target().subresource == "status"
}

/// Shows each object with the generation that it had when it was first seen.
fn first_generation() -> Box<dyn Middleware> {
    let first: Mutex<HashMap<String, Value>> = Mutex::default();
    objects(move |_, object| {
        let uid = meta(object, "uid").to_owned();
        if let Some(generation) = object["metadata"].get_mut("generation") {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            *generation = first.entry(uid).or_insert_with(|| generation.clone()).clone();
        }
    })
}

/// Adds one to the generation for each write that changes the object and not its generation.
fn bumped(counts: fn(&Request) -> bool) -> Box<dyn Middleware> {
    let offsets = Offsets::default();
    around(move |mut request, next| {
        let offsets = offsets.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let (before, mut response) = around_write(&request, next).await;
            if let (Some(before), Some(after)) = (before, response.value())
                && counts(&request)
                && metadata(&before, "resourceVersion") != metadata(&after, "resourceVersion")
                && metadata(&before, "generation") == metadata(&after, "generation")
            {
                let mut offsets = offsets.lock().unwrap_or_else(PoisonError::into_inner);
                *offsets.entry(meta(&after, "uid").to_owned()).or_default() += 1;
            }
            show_offsets(&request, &mut response, offsets);
            response
        })
    })
}

/// Adds to the generation of each object what is known for its uid.
fn show_offsets(request: &Request, response: &mut Response, offsets: Offsets) {
    edit_objects(request, response, move |object| {
        let offsets = offsets.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = offsets.get(meta(object, "uid")).copied().unwrap_or_default();
        if let Some(generation) = metadata(object, "generation").as_i64() {
            object["metadata"]["generation"] = (generation + offset).into();
        }
    });
}

/// Shows the generation that an object had before each of some writes.
fn kept(counts: fn(&Request) -> bool) -> Box<dyn Middleware> {
    let offsets = Offsets::default();
    around(move |mut request, next| {
        let offsets = offsets.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let (before, mut response) = around_write(&request, next).await;
            let target = request.target();
            if let Some(before) = before.filter(|_| counts(&request))
                && let Some(after) = next.server.read(&target.object(&target.name)).await
            {
                let number = |object| metadata(object, "generation").as_i64().unwrap_or_default();
                let mut offsets = offsets.lock().unwrap_or_else(PoisonError::into_inner);
                *offsets.entry(meta(&after, "uid").to_owned()).or_default() +=
                    number(&before) - number(&after);
            }
            show_offsets(&request, &mut response, offsets);
            response
        })
    })
}

/// Shows the generation that the last write named.
fn from_client() -> Box<dyn Middleware> {
    let given: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    around(move |mut request, next| {
        let given = given.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let sent = request.json().map(|body| metadata(&body, "generation").clone());
            let (_, mut response) = around_write(&request, next).await;
            if is_update(&request)
                && response.status == StatusCode::OK
                && let Some(generation) = sent.filter(Value::is_number)
                && let Some(after) = response.value()
            {
                let mut given = given.lock().unwrap_or_else(PoisonError::into_inner);
                given.insert(meta(&after, "uid").to_owned(), generation);
            }
            edit_objects(&request, &mut response, move |object| {
                let given = given.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(generation) = given.get(meta(object, "uid")) {
                    object["metadata"]["generation"] = generation.clone();
                }
            });
            response
        })
    })
}

/// Moves `status.observedGeneration` along with the generation.
fn observed() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let (before, response) = around_write(&request, next).await;
            let (Some(before), Some(after)) = (before, response.value()) else { return response };
            let generation = metadata(&after, "generation");
            let observed = after.pointer("/status/observedGeneration").is_some();
            if !observed || metadata(&before, "generation") == generation {
                return response;
            }
            let status = request.target().object(&request.target().name) + "/status";
            let patch = json!({ "status": { "observedGeneration": generation } });
            let media_type = "application/merge-patch+json";
            next.server.as_admin(Method::PATCH, &status, Some((media_type, &patch))).await;
            next.send(request.by_same_client(Method::GET, &request.path)).await
        })
    })
}

/// Shows each object with another uid after every write, and translates it back in requests.
fn new_uids() -> Box<dyn Middleware> {
    let shown: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    around(move |mut request, next| {
        let shown = shown.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            if let Ok(text) = std::str::from_utf8(&request.body) {
                let mut text = text.to_owned();
                for (real, shown) in shown.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    text = text.replace(shown.as_str(), real);
                }
                request.body = text.into();
            }
            let (before, mut response) = around_write(&request, next).await;
            if let (Some(before), Some(after)) = (before, response.value())
                && metadata(&before, "resourceVersion") != metadata(&after, "resourceVersion")
            {
                let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                shown.insert(meta(&after, "uid").to_owned(), random_uuid());
            }
            edit_objects(&request, &mut response, move |object| {
                let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(uid) = shown.get(meta(object, "uid")) {
                    object["metadata"]["uid"] = uid.as_str().into();
                }
            });
            response
        })
    })
}

/// Sends a request. For a write that succeeds it also returns the object as it was before.
async fn around_write(request: &Request, next: Next<'_>) -> (Option<Value>, Response) {
    if !is_update(request) || request.is_dry_run() {
        return (None, next.send(request.clone()).await);
    }
    let target = request.target();
    let before = next.server.read(&target.object(&target.name)).await;
    let response = next.send(request.clone()).await;
    (before.filter(|_| response.status == StatusCode::OK), response)
}

fn metadata<'a>(object: &'a Value, field: &str) -> &'a Value {
    &object["metadata"][field]
}
