//! Watches of a part of a collection: what they select, and in which form.

use std::collections::HashMap;

use futures_util::StreamExt as _;
use http::{Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};

use super::starts::everywhere;
use crate::behaviours::Fault;
use crate::behaviours::support::events::{is_change, set_events, take_events};
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::served;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, edit_events, events, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::SelectorExitShowsTheNewObject => around(|request, next| {
            Box::pin(exits(request, next, |object, mut current, _| {
                current["metadata"]["resourceVersion"] =
                    object["metadata"]["resourceVersion"].take();
                *object = current;
            }))
        }),
        Fault::SelectorExitKeepsVersion => around(|request, next| {
            Box::pin(exits(request, next, |object, _, last| {
                if let Some(last) = last {
                    object["metadata"]["resourceVersion"] = last.clone();
                }
            }))
        }),
        Fault::AllNamespacesWithoutMetadataChanges => events(|request| {
            let everywhere = request.target().namespace.is_empty();
            let mut generations = HashMap::new();
            move |event| {
                let object = &event["object"];
                let generation = object["metadata"]["generation"].as_i64();
                let known = generations.insert(meta(object, "uid").to_owned(), generation);
                let same = generation.is_some() && known == Some(generation);
                let namespaced = everywhere && !meta(object, "namespace").is_empty();
                let drops = namespaced && same && event["type"] == "MODIFIED";
                if drops { Vec::new() } else { vec![event] }
            }
        }),
        Fault::WatchAcceptsUnknownFields => around(|mut request, next| {
            Box::pin(async move {
                let response = next.send(request.clone()).await;
                if !request.is_watch() || response.status != StatusCode::BAD_REQUEST {
                    return response;
                }
                request.edit_query(|query| drop(query.remove("fieldSelector")));
                next.send(request).await
            })
        }),
        Fault::WatchOfANameInAllNamespaces => around(|request, next| {
            let query = request.query();
            let fields = query.get("fieldSelector").unwrap_or_default();
            if fields.starts_with("metadata.name=") {
                Box::pin(everywhere(request, next))
            } else {
                next.send(request)
            }
        }),
        Fault::DeletionsIgnoreForm => {
            around(|request, next| Box::pin(whole_deletions(request, next)))
        }
        _ => return None,
    })
}

/// Edits the events of objects that leave the selection of a watch. The edit gets the object as it
/// is now, and the version of its last event.
async fn exits(
    mut request: Request,
    next: Next<'_>,
    edit: fn(&mut Value, Value, Option<&Value>),
) -> Response {
    let query = request.query();
    let selects =
        ["labelSelector", "fieldSelector"].iter().any(|selector| query.get(selector).is_some());
    if !request.is_watch() || !selects {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let target = request.target();
    let mut response = next.send(request).await;
    let Some(events) = take_events(&mut response) else { return response };
    let state = (events, next.server.clone(), HashMap::<String, Value>::new());
    let events = futures_util::stream::unfold(state, move |(mut events, server, mut last)| {
        let target = target.clone();
        async move {
            let mut event = events.next().await?;
            let object = &mut event["object"];
            let uid = meta(object, "uid").to_owned();
            if event["type"] == "DELETED" {
                let object = &mut event["object"];
                let namespace = meta(object, "namespace").to_owned();
                let path = ResourceInfo { namespace, ..target }.object(meta(object, "name"));
                let current = server.as_admin(Method::GET, &path, None).await.value();
                if let Some(current) = current.filter(|current| meta(current, "uid") == uid) {
                    edit(object, current, last.get(&uid));
                }
            } else if is_change(&event) {
                last.insert(uid, event["object"]["metadata"]["resourceVersion"].clone());
            }
            Some((event, (events, server, last)))
        }
    });
    set_events(&mut response, events);
    response
}

/// Sends DELETED events with the kind of the resource, whatever form the client requests.
async fn whole_deletions(mut request: Request, next: Next<'_>) -> Response {
    if !request.is_watch() || !request.header("accept").contains("as=") {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let target = request.target();
    let entry = served::entry(&target, next).await.unwrap_or_default();
    let mut response = next.send(request).await;
    edit_events(&mut response, move |mut event| {
        if event["type"] == "DELETED" {
            let mut object = event["object"].take();
            if object["kind"] == "Table" {
                object = object["rows"][0]["object"].take();
            }
            event["object"] = json!({
                "kind": entry["kind"], "apiVersion": target.api_version(),
                "metadata": object["metadata"],
            });
        }
        vec![event]
    });
    response
}
