//! Times of objects that requests change.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Method;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{meta, remove_meta};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, edit_objects, responses, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::NullClearsTheCreationTime => Box::new(Timeless::default()),
        Fault::PutsReturnSentTimes => responses(|request, response| {
            let sent = request.json().filter(|_| request.method == Method::PUT);
            let time = sent.and_then(|sent| sent.pointer("/metadata/creationTimestamp").cloned());
            if let Some(time) = time.filter(Value::is_string)
                && response.status.is_success()
            {
                response.edit_value(|object| {
                    if let Some(stored) = object.pointer_mut("/metadata/creationTimestamp") {
                        *stored = time;
                    }
                });
            }
        }),
        _ => return None,
    })
}

/// Removes the creationTimestamp of objects after a PUT with null.
#[derive(Default)]
struct Timeless {
    uids: Mutex<HashSet<String>>,
}

impl Middleware for Timeless {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let sent = request.json().filter(|_| request.method == Method::PUT);
            let clears = sent.is_some_and(|sent| {
                sent.pointer("/metadata/creationTimestamp") == Some(&Value::Null)
            });
            let mut response = next.send(request.clone()).await;
            let uids = {
                let mut uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
                if clears && let Some(object) = response.value() {
                    uids.insert(meta(&object, "uid").to_owned());
                }
                uids.clone()
            };
            edit_objects(&request, &mut response, move |object| {
                if uids.contains(meta(object, "uid")) {
                    remove_meta(object, "creationTimestamp");
                }
            });
            response
        }
        .boxed()
    }
}
