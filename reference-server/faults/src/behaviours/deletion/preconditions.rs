//! Preconditions of deletions that the server ignores in some cases.

use serde_json::{Map, Value};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{edit_delete_options, is_delete};
use crate::middleware::{Middleware, around, requests};

const PRECONDITIONS: &str = "preconditions";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::UidPreconditionBesideVersionIgnored => ignored_beside("uid", "resourceVersion"),
        Fault::VersionPreconditionBesideUidIgnored => ignored_beside("resourceVersion", "uid"),
        Fault::PreconditionsOfPodsIgnored => requests(|request| {
            if is_delete(request) && request.target().is_core("pods") {
                edit_delete_options(request, |options| drop(options.remove(PRECONDITIONS)));
            }
        }),
        Fault::PreconditionsOfHeldObjectsIgnored => around(|mut request, next| {
            Box::pin(async move {
                let held = |object: Value| object["metadata"].get("finalizers").is_some();
                if is_delete(&request) && next.server.read(&request.path).await.is_some_and(held) {
                    edit_delete_options(&mut request, |options| {
                        drop(options.remove(PRECONDITIONS));
                    });
                }
                next.send(request).await
            })
        }),
        _ => return None,
    })
}

/// Ignores a precondition if there is another one.
fn ignored_beside(precondition: &'static str, other: &'static str) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_delete(request) {
            edit_delete_options(request, |options| {
                let given = options.get_mut(PRECONDITIONS).and_then(Value::as_object_mut);
                if let Some(given) = given.filter(|given| given.contains_key(other)) {
                    Map::remove(given, precondition);
                }
            });
        }
    })
}
