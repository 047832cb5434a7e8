//! How watches begin: versions, selectors, initial events, and versions that the server compacted.

use futures_util::{StreamExt as _, stream};
use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::behaviours::Fault;
use crate::behaviours::support::events::{set_events, take_events};
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::server::{admin_headers, current_version};
use crate::document::ends_initial_events;
use crate::exchange::{Body, Request, Response};
use crate::frames;
use crate::middleware::{Middleware, Next, around, edit_events, requests, uncompressed};
use kubeproof_apimachinery::request::Query;

/// The buffer of a connection that this server makes up, in bytes.
const PIPE: usize = 64 * 1024;
/// A WebSocket frame that closes the connection.
const CLOSE: [u8; 2] = [0x88, 0];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    selections(fault).or_else(|| starts(fault)).or_else(|| rejections(fault))
}

/// Faults in what a watch selects, and how it shows that.
fn selections(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WatchIgnoresSelector => around(|request, next| {
            Box::pin(without_selectors(request, next, &["labelSelector", "fieldSelector"]))
        }),
        Fault::WatchIgnoresFields => {
            around(|request, next| Box::pin(without_selectors(request, next, &["fieldSelector"])))
        }
        Fault::WatchIgnoresNamespace => around(|request, next| Box::pin(everywhere(request, next))),
        _ => return parts_of_selections(fault),
    })
}

/// Faults in which a watch applies a part of its selection.
fn parts_of_selections(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WatchMatchesNamespacePrefix => around(|request, next| {
            Box::pin(async move {
                let prefix = request.target().namespace;
                let watches = request.is_watch();
                let mut response = everywhere(request, next).await;
                if watches && !prefix.is_empty() {
                    edit_events(&mut response, move |event| {
                        let namespace = meta(&event["object"], "namespace");
                        let is_kept = namespace.is_empty() || namespace.starts_with(&prefix);
                        if is_kept { vec![event] } else { Vec::new() }
                    });
                }
                response
            })
        }),
        Fault::WatchesApplyOneSelector => {
            ignoring_fields(|request, _| request.query().get("labelSelector").is_some())
        }
        Fault::InitialEventsIgnoreFields => ignoring_fields(|request, _| {
            request.query().get("sendInitialEvents").is_some_and(|value| value == "true")
        }),
        Fault::UnversionedWatchesIgnoreFields => ignoring_fields(|request, _| {
            let query = request.query();
            query.get("resourceVersion").is_none_or(str::is_empty)
                && query.get("sendInitialEvents").is_none()
        }),
        Fault::WatchIgnoresTheNode => ignoring_fields(|_, fields| fields.contains("spec.nodeName")),
        Fault::WatchesIgnoreNegatedFields => ignoring_fields(|_, fields| fields.contains("!=")),
        Fault::SelectableFieldsOfListsOnly => ignoring_fields(|request, fields| {
            fields.starts_with("spec.") && request.target().is_custom()
        }),
        Fault::WatchesNeedNegatedKeys => requests(|request| {
            if request.is_watch() {
                request.edit_query(need_negated_keys);
            }
        }),
        Fault::WatchIgnoresForm => requests(|request| {
            if request.is_watch() {
                request
                    .headers
                    .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
            }
        }),
        _ => return None,
    })
}

/// Faults in the version and the initial events of a watch.
fn starts(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WatchWithoutInitialEvents => {
            around(|request, next| Box::pin(from_now(request, next, &["", "0"])))
        }
        Fault::WatchFromZeroIsFromNow => {
            around(|request, next| Box::pin(from_now(request, next, &["0"])))
        }
        Fault::WatchHeadersLate => around(|request, next| Box::pin(with_event(request, next))),
        Fault::InitialEventsAlways => {
            around(|request, next| Box::pin(always_initial(request, next)))
        }
        _ => return None,
    })
}

/// Faults in which watches the server rejects, and how.
fn rejections(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::InitialEventsUnchecked => {
            around(|request, next| Box::pin(accept_options(request, next)))
        }
        Fault::FutureWatchFails => around(|request, next| {
            Box::pin(async move {
                let query = request.query();
                let asked = query.get("resourceVersion").and_then(|text| text.parse::<u64>().ok());
                if let (true, Some(asked)) = (request.is_watch(), asked)
                    && let Some(newest) = current_version(next.server, &request.target()).await
                    && newest.parse().is_ok_and(|newest: u64| asked > newest)
                {
                    let message = "the version is too large";
                    let status = StatusCode::INTERNAL_SERVER_ERROR;
                    return Response::failure(status, "InternalError", message);
                }
                next.send(request).await
            })
        }),
        Fault::ExpiredWatchContinues => {
            around(|request, next| Box::pin(continue_expired(request, next)))
        }
        Fault::ExpiredWatchEndsInSilence => {
            around(|request, next| Box::pin(end_expired(request, next)))
        }
        Fault::RejectedWatchIsUpgraded => {
            around(|request, next| Box::pin(upgrade_rejected(request, next)))
        }
        _ => return None,
    })
}

/// Removes some field selectors from watches.
fn ignoring_fields(applies: fn(&Request, &str) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let query = request.query();
            let fields = query.get("fieldSelector");
            let is_concerned = fields.is_some_and(|fields| applies(&request, fields));
            let ignored: &[&str] = if is_concerned { &["fieldSelector"] } else { &[] };
            without_selectors(request, next, ignored).await
        })
    })
}

/// Adds a requirement that each key of a negated requirement exists.
fn need_negated_keys(query: &mut Query) {
    let Some(mut selector) = query.get("labelSelector").map(str::to_owned) else { return };
    let keys: Vec<String> = selector
        .split(',')
        .filter_map(|part| part.split_once("!=").or_else(|| part.split_once(" notin ")))
        .map(|(key, _)| key.trim().to_owned())
        .collect();
    for key in keys {
        selector.push(',');
        selector.push_str(&key);
    }
    query.set("labelSelector", selector);
}

/// Removes selectors that the server accepts.
async fn without_selectors(
    mut request: Request,
    next: Next<'_>,
    parameters: &'static [&'static str],
) -> Response {
    if request.is_watch() {
        let query = request.query();
        let mut check = Query::default();
        check.set("limit", "1");
        for name in parameters {
            if let Some(selector) = query.get(name) {
                check.set(name, selector);
            }
        }
        let path = format!("{}?{check}", request.target().collection());
        if next.server.as_admin(Method::GET, &path, None).await.status == StatusCode::OK {
            request.edit_query(|query| parameters.iter().for_each(|name| drop(query.remove(name))));
        }
    }
    next.send(request).await
}

/// Watches all namespaces for a client that may list one.
pub(super) async fn everywhere(mut request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    if !request.is_watch() || target.namespace.is_empty() || !target.name.is_empty() {
        return next.send(request).await;
    }
    let list = request.by_same_client(Method::GET, &format!("{}?limit=1", target.collection()));
    if next.send(list).await.status == StatusCode::OK {
        request.headers = admin_headers(&request, next.server);
        request.path = ResourceInfo { namespace: String::new(), ..target }.collection();
        request.edit_query(|query| query.set("watch", "true"));
    }
    next.send(request).await
}

/// Starts a watch at the newest version instead of one of these.
async fn from_now(
    mut request: Request,
    next: Next<'_>,
    versions: &'static [&'static str],
) -> Response {
    let query = request.query();
    let version = query.get("resourceVersion").unwrap_or_default();
    if request.is_watch() && versions.contains(&version) && query.get("sendInitialEvents").is_none()
    {
        start_now(&mut request, next.server).await;
    }
    next.send(request).await
}

/// Holds the head of the response back until the first event.
async fn with_event(request: Request, next: Next<'_>) -> Response {
    let is_watch = request.is_watch();
    let mut response = next.send(request).await;
    if let (true, Body::Stream(events)) = (is_watch, &mut response.body) {
        let mut all = std::mem::replace(events, stream::empty().boxed());
        if let Some(first) = all.next().await {
            *events = stream::iter([first]).chain(all).boxed();
        }
    }
    response
}

async fn start_now(request: &mut Request, server: &crate::upstream::Upstream) {
    if let Some(version) = current_version(server, &request.target()).await {
        request.edit_query(|query| query.set("resourceVersion", version));
    }
}

/// Sends the initial events that the client declines, without the bookmark that ends them.
async fn always_initial(mut request: Request, next: Next<'_>) -> Response {
    let query = request.query();
    let declines = query.get("sendInitialEvents").is_some() && !query.flag("sendInitialEvents");
    if !request.is_watch() || !declines {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    request.edit_query(|query| {
        query.set("sendInitialEvents", "true");
        query.set("allowWatchBookmarks", "true");
    });
    let mut response = next.send(request).await;
    let bookmarks = query.flag("allowWatchBookmarks");
    edit_events(&mut response, move |event| {
        let drops = ends_initial_events(&event) || (!bookmarks && event["type"] == "BOOKMARK");
        if drops { Vec::new() } else { vec![event] }
    });
    response
}

/// Changes options that the server rejects to some that it accepts.
async fn accept_options(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if !request.is_watch() || response.status != StatusCode::UNPROCESSABLE_ENTITY {
        return response;
    }
    request.edit_query(|query| {
        query.remove("continue");
        query.remove("resourceVersionMatch");
        if query.get("sendInitialEvents").is_some() {
            query.set("resourceVersionMatch", "NotOlderThan");
        }
    });
    next.send(request).await
}

/// Returns whether an event reports that the version of the watch is compacted.
fn is_expired(event: &Value) -> bool {
    event["type"] == "ERROR" && event["object"]["code"] == 410
}

/// Continues with the newest version when the server has compacted that of the watch.
async fn continue_expired(mut request: Request, next: Next<'_>) -> Response {
    if !request.is_watch() {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let mut response = next.send(request.clone()).await;
    if response.status == StatusCode::GONE {
        start_now(&mut request, next.server).await;
        return next.send(request).await;
    }
    let Some(events) = take_events(&mut response) else { return response };
    let state = (events, request, next.server.clone());
    set_events(
        &mut response,
        stream::unfold(state, |(mut events, mut request, server)| async move {
            loop {
                let event = events.next().await?;
                if !is_expired(&event) {
                    return Some((event, (events, request, server)));
                }
                start_now(&mut request, &server).await;
                events = take_events(&mut server.send(request.clone()).await)?;
            }
        }),
    );
    response
}

/// Ends a watch without an error when the server has compacted its version.
async fn end_expired(mut request: Request, next: Next<'_>) -> Response {
    if !request.is_watch() {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let mut response = next.send(request).await;
    if response.status == StatusCode::GONE {
        let mut ended = Response::json(StatusCode::OK, &Value::Null);
        ended.body = Body::Stream(stream::empty().boxed());
        return ended;
    }
    edit_events(&mut response, |event| if is_expired(&event) { Vec::new() } else { vec![event] });
    response
}

/// Upgrades a WebSocket watch that the server rejects, and sends the failure as an event.
async fn upgrade_rejected(request: Request, next: Next<'_>) -> Response {
    let rejected = next.send(request.clone()).await;
    if !request.is_watch() || request.upgrade.is_none() || !rejected.status.is_client_error() {
        return rejected;
    }
    let Some(status) = rejected.value() else { return rejected };
    let mut valid = request;
    valid.edit_query(|query| {
        query.remove("labelSelector");
        query.remove("fieldSelector");
    });
    let mut upgraded = next.send(valid).await;
    if !matches!(upgraded.body, Body::Upgraded(_)) {
        return rejected;
    }
    let (client, mut server) = tokio::io::duplex(PIPE);
    upgraded.body = Body::Upgraded(Box::new(client));
    let event = format!("{}\n", json!({ "type": "ERROR", "object": status }));
    tokio::spawn(async move {
        // The client is gone if this fails.
        let _ = server.write_all(&frames::text(event.as_bytes())).await;
        let _ = server.write_all(&CLOSE).await;
        let _ = server.shutdown().await;
    });
    upgraded
}
