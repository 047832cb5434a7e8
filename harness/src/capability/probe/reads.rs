//! Probes that only read.

use kubeproof_cases::protocol::{Carrier, StreamKind};

use super::{ProbeResult, Requester, Resources, collection, named, some_collection};
use crate::capability::{ProbeOptions, outgoing};
use crate::exchange::{BrokenKind, Exchange, Outcome};
use crate::transport::Upgrade;
use crate::transport::stream::{Handshake, Shape};
use crate::transport::watch::Next;

pub(super) async fn openapi_v2(requester: &Requester<'_>) -> ProbeResult {
    let exchange = requester.get("/openapi/v2", "application/json").await;
    let too_long =
        matches!(&exchange.outcome, Outcome::Broken(broken) if broken.kind == BrokenKind::Budget);
    let valid = exchange.json().is_some_and(|document| document["swagger"] == "2.0");
    if too_long || valid {
        Ok(())
    } else {
        Err(format!("GET /openapi/v2 returns no document: {}", exchange.in_words()).into())
    }
}

pub(super) async fn openapi_v3(requester: &Requester<'_>) -> ProbeResult {
    let exchange = requester.get("/openapi/v3", "application/json").await;
    let valid = exchange.json().is_some_and(|document| document["paths"].is_object());
    if valid {
        Ok(())
    } else {
        Err(format!("GET /openapi/v3 returns no index: {}", exchange.in_words()).into())
    }
}

/// The cases judge a server that is not healthy.
pub(super) async fn health_endpoints(requester: &Requester<'_>) -> ProbeResult {
    for path in ["/livez", "/readyz"] {
        let exchange = requester.get(path, "*/*").await;
        if !matches!(exchange.status(), 200 | 500..) {
            return Err(format!("GET {path} returns {}", exchange.in_words()).into());
        }
    }
    Ok(())
}

pub(super) async fn representation(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
    kind: &str,
) -> ProbeResult {
    let collection = some_collection(resources, options, "list")?;
    let accept = format!("application/json;as={kind};v=v1;g=meta.k8s.io");
    let exchange = requester.get(&format!("{collection}?limit=1"), &accept).await;
    // A list of another form is a wrong response, which cases judge.
    let single = kind.trim_end_matches("List");
    let valid = exchange.json().is_some_and(|body| body["kind"] == kind || body["kind"] == single);
    if valid {
        Ok(())
    } else {
        Err(format!("{collection} is not available as {kind}: {}", exchange.in_words()).into())
    }
}

/// A streaming list starts with a bookmark at once. Other servers send one within a watch of a
/// second.
pub(super) async fn bookmarks(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    let collection = some_collection(resources, options, "watch")?;
    let common =
        "watch=true&allowWatchBookmarks=true&timeoutSeconds=1&labelSelector=kubeproof.dev%2Fprobe";
    let ways = ["&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ""];
    for way in ways {
        let request =
            outgoing("GET", &format!("{collection}?{common}{way}"), "application/json", None);
        let mut watch = requester.client.watch(request, requester.deadline).await;
        while let Next::Event(event) = watch.next(requester.deadline).await {
            if event.kind == "BOOKMARK" {
                return Ok(());
            }
        }
        if watch.is_open() {
            break;
        }
    }
    Err(format!("a watch of {collection} has no bookmark in spite of allowWatchBookmarks").into())
}

/// Servers before 1.32 do not mark the end of initial events by default. Cases watch with a label
/// selector. A server that marks the end only without one, or only after some objects, supports the
/// feature, with a defect. Some namespace exists on each server that has namespaces.
pub(super) async fn streaming_lists(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    let collection = some_collection(resources, options, "watch")?;
    let common = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
                  &resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    let ways = [
        (collection.as_str(), "&labelSelector=kubeproof.dev%2Fprobe"),
        (collection.as_str(), ""),
        ("/api/v1/namespaces", ""),
    ];
    for (path, selector) in ways {
        let target = format!("{path}?{common}{selector}");
        let request = outgoing("GET", &target, "application/json", None);
        let mut watch = requester.client.watch(request, requester.deadline).await;
        while let Next::Event(event) = watch.next(requester.deadline).await {
            if event.object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true" {
                return Ok(());
            }
        }
        if watch.is_open() {
            break;
        }
    }
    Err(format!("a watch of {collection} does not mark the end of its initial events").into())
}

/// A server may ignore the upgrade and stream the events in the body.
pub(super) async fn websocket_watches(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    let collection = some_collection(resources, options, "watch")?;
    let query = "watch=true&timeoutSeconds=1&labelSelector=kubeproof.dev%2Fprobe";
    let handshake = Handshake::new(Carrier::Websocket, Vec::new());
    let mut request = outgoing("GET", &format!("{collection}?{query}"), "", None);
    let origin = ("origin".to_owned(), "https://kubeproof.dev".to_owned());
    request.headers = handshake.headers(vec![origin]);
    let shape = Shape { kind: StreamKind::Plain, ports: Vec::new() };
    let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols: false };
    let stream = requester.client.stream(request, upgrade, requester.deadline).await;
    match stream.head.status() {
        200 | 400 | 403 | 404 | 405 | 426 | 501 => Err(format!(
            "a watch of {collection} does not accept an upgrade to WebSocket: {}",
            stream.head.in_words()
        )
        .into()),
        // Cases judge all other responses.
        _ => Ok(()),
    }
}

/// Looks for traces of kube-controller-manager. Waiting for a garbage collection would be slow.
pub(super) async fn garbage_collection(requester: &Requester<'_>) -> ProbeResult {
    let traces = [
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager",
        // A controller writes this into every namespace.
        "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt",
    ];
    for trace in traces {
        if requester.get(trace, "application/json").await.status() == 200 {
            return Ok(());
        }
    }
    Err("the cluster has no controllers: kube-system has neither the lease kube-controller-manager \
         nor the config map kube-root-ca.crt"
        .into())
}

/// Tests the only field selector that every resource should have.
pub(super) async fn field_selectors(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    let collection = some_collection(resources, options, "list")?;
    let target =
        format!("{collection}?fieldSelector=metadata.name%3D{}&limit=1", options.probe_name);
    let exchange = requester.get(&target, "application/json").await;
    match exchange.status() {
        400 => {
            Err(format!("a field selector in {collection} is rejected: {}", exchange.in_words())
                .into())
        }
        _ => Ok(()),
    }
}

/// Paging is missing if a list with limit 1 has more items and no continue token. A server with
/// fewer objects is probed again with objects of the run.
pub(super) async fn paging(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    // Every cluster has several namespaces.
    let namespaces = named("namespaces", "v1", "");
    let collection = match resources.get(&namespaces) {
        Some(found) if found.verbs.contains("list") => collection(&namespaces, false, options),
        _ => some_collection(resources, options, "list")?,
    };
    let exchange = requester.get(&format!("{collection}?limit=1"), "application/json").await;
    Ok(ignores_limit(&exchange, &collection).unwrap_or(Ok(()))?)
}

/// Returns whether a list with limit 1 shows support for pages, or why not. `None` if it shows
/// neither, because the collection may hold fewer than two objects.
pub(crate) fn ignores_limit(list: &Exchange, collection: &str) -> Option<Result<(), String>> {
    let list = list.json()?;
    let items = list["items"].as_array().map_or(0, Vec::len);
    let ends = list["metadata"]["continue"].as_str().unwrap_or_default().is_empty();
    match (items, ends) {
        (2.., true) => Some(Err(format!(
            "the server ignores limits: {collection} returns {items} items for limit 1"
        ))),
        (_, false) => Some(Ok(())),
        _ => None,
    }
}

/// Tests whether the server compacted its first version.
pub(super) async fn short_history(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    let collection = some_collection(resources, options, "list")?;
    let target = format!("{collection}?resourceVersion=1&resourceVersionMatch=Exact&limit=1");
    match requester.get(&target, "application/json").await.status() {
        410 => Ok(()),
        _ => Err("the server has not compacted its first version".into()),
    }
}
