//! Rejected objects that watchers see for a moment.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::StatusCode;
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::random_letters;
use crate::behaviours::support::requests::is_create;
use crate::behaviours::support::server::current_version;
use crate::exchange::{Body, Request, Response};
use crate::middleware::{Middleware, Next, edit_lines, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    (fault == Fault::InvalidObjectsFlash)
        .then(|| Box::new(Flashes::default()) as Box<dyn Middleware>)
}

/// Sends every rejected custom resource to the watches of its collection, and then its deletion.
#[derive(Default)]
struct Flashes(Mutex<Vec<Watcher>>);

struct Watcher {
    target: ResourceInfo,
    /// The terms of the label selector.
    selector: Vec<(String, String)>,
    lines: UnboundedSender<Bytes>,
}

impl Watcher {
    fn receives(&self, target: &ResourceInfo, object: &Value) -> bool {
        let own = &self.target;
        let labels = &object["metadata"]["labels"];
        (&own.group, &own.version, &own.resource)
            == (&target.group, &target.version, &target.resource)
            && (own.namespace.is_empty() || own.namespace == target.namespace)
            && self.selector.iter().all(|(label, value)| labels[label.as_str()] == value.as_str())
    }
}

impl Flashes {
    /// Opens a watch that also receives rejected objects.
    fn open(&self, request: &Request, response: &mut Response) {
        let Some(selector) = selector(request) else { return };
        edit_lines(response, |line| vec![line]);
        let Body::Stream(body) = &mut response.body else { return };
        let (lines, receiver) = unbounded_channel();
        let server = std::mem::replace(body, stream::empty().boxed());
        // The watch ends when the server ends it.
        let server = server.map(Some).chain(stream::iter([None]));
        let merged = stream::select(server, received(receiver).map(Some));
        *body = merged
            .take_while(|line| std::future::ready(line.is_some()))
            .filter_map(std::future::ready)
            .boxed();
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|watcher| !watcher.lines.is_closed());
        watchers.push(Watcher { target: request.target(), selector, lines });
    }

    /// Sends an object to the watches of its collection, as created and deleted.
    async fn show(&self, request: &Request, next: Next<'_>) {
        let (target, Some(mut object)) = (request.target(), request.json()) else { return };
        let version = current_version(next.server, &target).await.unwrap_or_default();
        object["metadata"]["resourceVersion"] = version.into();
        object["metadata"]["uid"] = random_letters(36).into();
        if !target.namespace.is_empty() {
            object["metadata"]["namespace"] = target.namespace.as_str().into();
        }
        let watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for watcher in watchers.iter().filter(|watcher| watcher.receives(&target, &object)) {
            for kind in ["ADDED", "DELETED"] {
                let event = json!({ "type": kind, "object": object });
                // The watch has ended if this fails.
                let _ = watcher.lines.send(format!("{event}\n").into());
            }
        }
    }
}

impl Middleware for Flashes {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            if !request.target().is_custom() {
                return next.send(request).await;
            }
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            if request.is_watch() {
                self.open(&request, &mut response);
            } else if is_create(&request)
                && !request.is_dry_run()
                && response.status == StatusCode::UNPROCESSABLE_ENTITY
            {
                self.show(&request, next).await;
            }
            response
        }
        .boxed()
    }
}

/// The terms of a label selector that has only equalities; `None` for other selections.
fn selector(request: &Request) -> Option<Vec<(String, String)>> {
    let query = request.query();
    if query.get("fieldSelector").is_some_and(|fields| !fields.is_empty()) {
        return None;
    }
    let terms =
        query.get("labelSelector").unwrap_or_default().split(',').filter(|term| !term.is_empty());
    let term = |term: &str| {
        let (label, value) = term.split_once('=')?;
        let value = value.strip_prefix('=').unwrap_or(value);
        (!label.ends_with('!')).then(|| (label.trim().to_owned(), value.trim().to_owned()))
    };
    terms.map(term).collect()
}

fn received(receiver: UnboundedReceiver<Bytes>) -> impl futures_util::Stream<Item = Bytes> + Send {
    stream::unfold(receiver, |mut receiver| async move {
        let line = receiver.recv().await?;
        Some((line, receiver))
    })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn only_equalities_are_followed() {
        for (path, expected) in [
            ("/apis/a.b/v1/cs", Some(0)),
            ("/apis/a.b/v1/cs?labelSelector=a%3Db,c%3D%3Dd", Some(2)),
            ("/apis/a.b/v1/cs?labelSelector=a!%3Db", None),
            ("/apis/a.b/v1/cs?labelSelector=a", None),
            ("/apis/a.b/v1/cs?fieldSelector=a%3Db", None),
        ] {
            let terms = selector(&Request::new(Method::GET, path));
            assert_eq!(terms.map(|terms| terms.len()), expected, "{path}");
        }
    }
}
