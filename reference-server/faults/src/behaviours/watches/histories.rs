//! Watches that lose track of what happened: selections, histories and rejected objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Method, header};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::events::starts_at_version;
use crate::behaviours::Fault;
use crate::behaviours::support::events::{is_change, set_events, take_events};
use crate::behaviours::support::objects::{meta, remove, revision};
use crate::behaviours::support::server::{admin_headers, current_version};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_events, edit_lines, uncompressed};

/// The longest line that a truncated watch sends, in bytes.
const LONGEST_LINE: usize = 1 << 16;
/// Pause after which a watch has received all events that the server had for it.
const QUIET: Duration = Duration::from_millis(25);
/// The most events that a watch holds back.
const BATCH: usize = 128;
/// Time in which a second watch receives an event that a first one has received.
const LATEST: Duration = Duration::from_secs(2);

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::SelectorEntryIsModified => around(|request, next| {
            Box::pin(compared(request, next, |mut event, actual| {
                if event["type"] == "ADDED" && actual == "MODIFIED" {
                    event["type"] = json!("MODIFIED");
                }
                Some(event)
            }))
        }),
        Fault::SelectorExitIsSilent => around(|request, next| {
            Box::pin(compared(request, next, |event, actual| {
                let leaves = event["type"] == "DELETED" && actual == "MODIFIED";
                (!leaves).then_some(event)
            }))
        }),
        Fault::WatchCoalesces => around(|request, next| Box::pin(coalesced(request, next))),
        Fault::WatchLinesCut => around(|request, next| {
            Box::pin(async move {
                let watches = request.is_watch();
                let mut response = next.send(request).await;
                if watches {
                    edit_lines(&mut response, |line| {
                        vec![line.slice(..line.len().min(LONGEST_LINE))]
                    });
                }
                response
            })
        }),
        Fault::WatchStatusBehind => around(|request, next| Box::pin(status_behind(request, next))),
        Fault::DeletedKeepsVersion => Box::new(LastVersions::default()),
        _ => return None,
    })
}

/// Edits the events of a watch with a selector. The edit gets the type that each event has without
/// the selector.
async fn compared(
    mut request: Request,
    next: Next<'_>,
    edit: fn(Value, &str) -> Option<Value>,
) -> Response {
    let query = request.query();
    let selects = query.get("labelSelector").is_some() || query.get("fieldSelector").is_some();
    if !request.is_watch() || !selects {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let start = match query.get("resourceVersion") {
        Some(version) if !matches!(version, "" | "0") => Some(version.to_owned()),
        _ => current_version(next.server, &request.target()).await,
    };
    let mut all = request.clone();
    all.headers = admin_headers(&request, next.server);
    all.headers.remove(header::ACCEPT);
    all.headers.remove(header::UPGRADE);
    all.headers.remove(header::CONNECTION);
    all.upgrade = None;
    all.edit_query(|query| {
        for name in ["labelSelector", "fieldSelector", "sendInitialEvents", "resourceVersionMatch"]
        {
            query.remove(name);
        }
        query.set("resourceVersion", start.clone().unwrap_or_default());
    });
    let reference = take_events(&mut next.server.send(all).await);
    let mut response = next.send(request).await;
    let (Some(reference), Some(start)) = (reference, start) else { return response };
    let Some(events) = take_events(&mut response) else { return response };
    let types = Types {
        // After its end, the watch is asked again for each later event.
        events: Box::pin(reference.fuse()),
        start: start.parse().unwrap_or_default(),
        seen: BTreeMap::new(),
    };
    let events = stream::unfold((events, types), move |(mut events, mut types)| async move {
        loop {
            let event = events.next().await?;
            let actual = types.of(&event).await;
            if let Some(event) = edit(event, &actual) {
                return Some((event, (events, types)));
            }
        }
    });
    set_events(&mut response, events);
    response
}

/// The types of events of a watch without a selector.
struct Types {
    events: BoxStream<'static, Value>,
    start: u64,
    /// Types by version, of events that the watch with the selector has not received yet.
    seen: BTreeMap<u64, String>,
}

impl Types {
    /// The type of an event without the selector; empty if there is none.
    async fn of(&mut self, event: &Value) -> String {
        let version = revision(&event["object"]);
        if !is_change(event) || version <= self.start {
            return String::new();
        }
        while !self.seen.contains_key(&version) {
            let Ok(Some(other)) = timeout(LATEST, self.events.next()).await else {
                return String::new();
            };
            let kind = other["type"].as_str().unwrap_or_default().to_owned();
            self.seen.insert(revision(&other["object"]), kind);
        }
        self.seen = self.seen.split_off(&version);
        self.seen.get(&version).cloned().unwrap_or_default()
    }
}

/// Drops each event that is followed at once by another one of the same object.
async fn coalesced(mut request: Request, next: Next<'_>) -> Response {
    if !request.is_watch() {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let mut response = next.send(request).await;
    let Some(events) = take_events(&mut response) else { return response };
    let batches = stream::unfold(events, |mut events| async move {
        let mut batch = vec![events.next().await?];
        while batch.len() < BATCH {
            let Ok(Some(event)) = timeout(QUIET, events.next()).await else { break };
            batch.push(event);
        }
        Some((stream::iter(newest(batch)), events))
    });
    set_events(&mut response, batches.flatten());
    response
}

/// The last event of each object, and all events that are about no object.
fn newest(batch: Vec<Value>) -> Vec<Value> {
    let name = |event: &Value| {
        let object = &event["object"];
        (meta(object, "namespace").to_owned(), meta(object, "name").to_owned())
    };
    let mut kept: Vec<Value> = Vec::new();
    for event in batch {
        if is_change(&event) {
            kept.retain(|earlier| !is_change(earlier) || name(earlier) != name(&event));
        }
        kept.push(event);
    }
    kept
}

/// Sends each change with the status of the state before it.
async fn status_behind(mut request: Request, next: Next<'_>) -> Response {
    if !request.is_watch() {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let mut known = HashMap::new();
    if starts_at_version(&request) {
        let version = request.query().get("resourceVersion").unwrap_or_default().to_owned();
        let collection = request.target().collection();
        let path = format!("{collection}?resourceVersion={version}&resourceVersionMatch=Exact");
        let list = next.server.read(&path).await.unwrap_or_default();
        for object in list["items"].as_array().into_iter().flatten() {
            known.insert(meta(object, "uid").to_owned(), object.get("status").cloned());
        }
    }
    let mut response = next.send(request).await;
    edit_events(&mut response, move |mut event| {
        let object = &mut event["object"];
        let uid = meta(object, "uid").to_owned();
        let before = known.insert(uid, object.get("status").cloned());
        if let (true, Some(before)) = (event["type"] == "MODIFIED", before) {
            match before {
                Some(status) => event["object"]["status"] = status,
                None => drop(remove(&mut event["object"], "status")),
            }
        }
        vec![event]
    });
    response
}

/// Remembers the version of the last write of each object, and shows it in DELETED events.
#[derive(Default)]
struct LastVersions(Arc<Mutex<HashMap<String, u64>>>);

impl Middleware for LastVersions {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            let known = self.0.clone();
            if matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
                remember(&known, &response.value().unwrap_or_default());
            } else if request.is_watch() {
                edit_events(&mut response, move |mut event| {
                    if event["type"] == "DELETED" {
                        let object = &mut event["object"];
                        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Some(version) = known.get(meta(object, "uid")) {
                            object["metadata"]["resourceVersion"] = version.to_string().into();
                        }
                    } else if is_change(&event) {
                        remember(&known, &event["object"]);
                    }
                    vec![event]
                });
            }
            response
        }
        .boxed()
    }
}

fn remember(known: &Mutex<HashMap<String, u64>>, object: &Value) {
    let (uid, version) = (meta(object, "uid"), revision(object));
    if !uid.is_empty() && version > 0 {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = known.entry(uid.to_owned()).or_default();
        *newest = version.max(*newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_of_each_object_stays() {
        let event = |kind: &str, name: &str| {
            json!({
                "type": kind, "object": { "metadata": { "name": name } },
            })
        };
        let batch = vec![
            event("ADDED", "a"),
            event("ADDED", "b"),
            event("BOOKMARK", ""),
            event("DELETED", "a"),
        ];
        assert_eq!(
            newest(batch),
            [event("ADDED", "b"), event("BOOKMARK", ""), event("DELETED", "a")]
        );
    }
}
