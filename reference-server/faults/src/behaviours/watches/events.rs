//! Events of watches: their types, their objects, and which of them arrive.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::events::is_change;
use crate::behaviours::support::objects::{is_deleting, meta, remove_meta, revision};
use crate::document::ends_initial_events;
use crate::exchange::Request;
use crate::middleware::{Middleware, events, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    if fault == Fault::ClusterWatchesWithoutDeletions {
        return Some(events(|request| {
            let target = request.target();
            let applies = target.is_custom() && target.namespace.is_empty();
            move |event| if applies && event["type"] == "DELETED" { vec![] } else { vec![event] }
        }));
    }
    lost(fault).or_else(|| changed(fault)).or_else(|| bookmarks(fault))
}

/// Faults in which events arrive, and how often.
fn lost(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WatchLosesAnEvent => every(3, |_| Vec::new()),
        Fault::WatchLosesUnderLoad => every(16, |_| Vec::new()),
        Fault::WatchDoublesAnEvent => every(3, |event| vec![event.clone(), event]),
        Fault::WatchSkipsFirstEvent => events(|request| {
            let mut skips = starts_at_version(request);
            move |event| {
                let skip = is_change(&event) && std::mem::take(&mut skips);
                if skip { Vec::new() } else { vec![event] }
            }
        }),
        Fault::WatchDeletionsInARow => events(|_| {
            let mut after_deletion = false;
            move |event| {
                let deletion = event["type"] == "DELETED";
                let repeats = deletion && after_deletion;
                if is_change(&event) {
                    after_deletion = deletion;
                }
                if repeats { Vec::new() } else { vec![event] }
            }
        }),
        Fault::WatchReplaysItsVersion => requests(|request| {
            if starts_at_version(request) {
                request.edit_query(|query| {
                    let version = query
                        .get("resourceVersion")
                        .and_then(|version| version.parse::<u64>().ok());
                    if let Some(version) = version {
                        query.set("resourceVersion", version.saturating_sub(1).max(1).to_string());
                    }
                });
            }
        }),
        Fault::TimeoutOfFilteredWatchesIgnored => requests(|request| {
            if request.is_watch() && request.query().get("fieldSelector").is_some() {
                request.edit_query(|query| drop(query.remove("timeoutSeconds")));
            }
        }),
        Fault::TimeoutSecondsIgnored => requests(|request| {
            if request.is_watch() {
                request.edit_query(|query| drop(query.remove("timeoutSeconds")));
            }
        }),
        _ => return None,
    })
}

/// Faults in the types and objects of events.
fn changed(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ModifiedIsAdded => each(|event| {
            if event["type"] == "MODIFIED" {
                event["type"] = json!("ADDED");
            }
        }),
        Fault::WatchDeletedIsBare => each(|event| {
            if event["type"] == "DELETED" {
                let object = &event["object"];
                let (name, namespace) = (meta(object, "name"), meta(object, "namespace"));
                event["object"] = json!({ "metadata": { "name": name, "namespace": namespace } });
            }
        }),
        Fault::WatchWithoutOwners => each(|event| {
            remove_meta(&mut event["object"], "ownerReferences");
        }),
        Fault::DeletedWithoutAnnotations => each(|event| {
            if event["type"] == "DELETED" {
                remove_meta(&mut event["object"], "annotations");
            }
        }),
        Fault::DeletionsLoseTheirTimestamp => each(|event| {
            if event["type"] == "DELETED" {
                remove_meta(&mut event["object"], "deletionTimestamp");
            }
        }),
        Fault::InitialEventsWithoutManagedFields => events(|request| {
            let mut is_initial = request.query().flag("sendInitialEvents");
            move |mut event| {
                is_initial &= !ends_initial_events(&event);
                if is_initial {
                    remove_meta(&mut event["object"], "managedFields");
                }
                vec![event]
            }
        }),
        Fault::WatchMarksAsDeleted => events(|_| {
            let mut marked = HashSet::new();
            move |mut event| {
                if is_deleting(&event["object"])
                    && marked.insert(meta(&event["object"], "uid").to_owned())
                    && event["type"] == "MODIFIED"
                {
                    event["type"] = json!("DELETED");
                }
                vec![event]
            }
        }),
        _ => return None,
    })
}

/// Faults in bookmarks.
fn bookmarks(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::BookmarkBehind => events(|_| {
            let mut newest: u64 = 0;
            move |mut event| {
                if is_change(&event) {
                    newest = newest.max(revision(&event["object"]));
                } else if event["type"] == "BOOKMARK" && newest > 0 {
                    event["object"]["metadata"]["resourceVersion"] =
                        (newest - 1).to_string().into();
                }
                vec![event]
            }
        }),
        Fault::BookmarkOfTheFirstEvent => events(|_| {
            let mut first = None;
            move |mut event| {
                let version = event["object"]["metadata"]["resourceVersion"].clone();
                let first = first.get_or_insert(version);
                if event["type"] == "BOOKMARK" && !ends_initial_events(&event) {
                    event["object"]["metadata"]["resourceVersion"] = first.clone();
                }
                vec![event]
            }
        }),
        Fault::BookmarksEndInitialEvents => each(|event| {
            if event["type"] == "BOOKMARK" {
                event["object"]["metadata"]["annotations"] =
                    json!({ "k8s.io/initial-events-end": "true" });
            }
        }),
        Fault::BookmarkVersionIsANumber => each(|event| {
            if event["type"] == "BOOKMARK" {
                event["object"]["metadata"]["resourceVersion"] = revision(&event["object"]).into();
            }
        }),
        Fault::BookmarkWithoutVersion => each(|event| {
            if event["type"] == "BOOKMARK" {
                remove_meta(&mut event["object"], "resourceVersion");
            }
        }),
        Fault::TableBookmarksBare => each(|event| {
            if event["type"] == "BOOKMARK" && event["object"]["kind"] == "Table" {
                event["object"] = event["object"]["rows"][0]["object"].take();
            }
        }),
        Fault::MetadataBookmarksBare => each(|event| {
            if event["type"] == "BOOKMARK" && event["object"]["kind"] == "PartialObjectMetadata" {
                remove_meta(&mut event["object"], "annotations");
            }
        }),
        _ => return initial_events(fault),
    })
}

/// Faults in the events before the end of the initial list, and after it.
fn initial_events(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::InitialEventsEndTwice => events(|_| {
            |event| {
                if ends_initial_events(&event) { vec![event.clone(), event] } else { vec![event] }
            }
        }),
        Fault::NoEndWithoutInitialEvents => events(|_| {
            let mut is_empty = true;
            move |event| {
                is_empty &= !is_change(&event);
                if is_empty && ends_initial_events(&event) { Vec::new() } else { vec![event] }
            }
        }),
        Fault::SecondEventAfterBookmarkLost => events(|_| {
            let mut changes: Option<u32> = None;
            move |event| {
                if ends_initial_events(&event) {
                    changes = Some(0);
                } else if let Some(changes) = changes.as_mut().filter(|_| is_change(&event)) {
                    *changes += 1;
                }
                if changes == Some(2) && is_change(&event) { Vec::new() } else { vec![event] }
            }
        }),
        Fault::InitialEventsEndAtTheOldest => events(|_| {
            let mut oldest = u64::MAX;
            move |mut event| {
                if is_change(&event) {
                    oldest = oldest.min(revision(&event["object"]));
                } else if ends_initial_events(&event) && oldest < u64::MAX {
                    event["object"]["metadata"]["resourceVersion"] = oldest.to_string().into();
                }
                vec![event]
            }
        }),
        _ => return unmarked_events(fault),
    })
}

/// Faults in the marks and the order of the initial events.
fn unmarked_events(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::InitialEventsEndUnmarked => events(|request| {
            let selects = request.query().get("labelSelector").is_some();
            move |mut event| {
                if selects && ends_initial_events(&event) {
                    remove_meta(&mut event["object"], "annotations");
                }
                vec![event]
            }
        }),
        Fault::WebsocketWatchesWithoutBookmarks => events(|request| {
            let upgrades = request.upgrade.is_some();
            move |event| {
                let drops = upgrades && event["type"] == "BOOKMARK";
                if drops { Vec::new() } else { vec![event] }
            }
        }),
        Fault::InitialEventsEndEarly => events(|request| {
            let mut held = request.query().flag("sendInitialEvents").then(Vec::new);
            move |event| {
                if ends_initial_events(&event) {
                    let mut all = vec![event];
                    all.extend(held.take().unwrap_or_default());
                    return all;
                }
                match &mut held {
                    Some(held) if is_change(&event) => {
                        held.push(event);
                        Vec::new()
                    }
                    _ => vec![event],
                }
            }
        }),
        _ => return None,
    })
}

/// Edits each event.
fn each(edit: impl Fn(&mut Value) + Clone + Send + Sync + 'static) -> Box<dyn Middleware> {
    events(move |_| {
        let edit = edit.clone();
        move |mut event| {
            edit(&mut event);
            vec![event]
        }
    })
}

/// Edits every nth change that a watch reports.
fn every(nth: usize, edit: fn(Value) -> Vec<Value>) -> Box<dyn Middleware> {
    events(move |_| {
        let mut changes: usize = 0;
        move |event| {
            changes += usize::from(is_change(&event));
            if is_change(&event) && changes.is_multiple_of(nth) { edit(event) } else { vec![event] }
        }
    })
}

/// Returns whether a watch starts at a version that the client names, without initial events.
pub(super) fn starts_at_version(request: &Request) -> bool {
    let query = request.query();
    let version = query.get("resourceVersion").unwrap_or_default();
    request.is_watch() && !matches!(version, "" | "0") && !query.flag("sendInitialEvents")
}
