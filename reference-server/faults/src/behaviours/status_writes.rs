//! Writes to the status subresource that lose a part of the body.

use http::Method;
use serde_json::Value;

use super::support::is_update;
use crate::middleware::{Middleware, around};
use crate::set::Fault;

/// The fields of the metadata that the fault drops.
const DROPPED: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StatusDropsMetadata => around(|mut request, next| {
            Box::pin(async move {
                if is_update(&request) && request.target().subresource == "status" {
                    let current = if request.method == Method::PUT {
                        next.server.read(&request.path).await.unwrap_or_default()
                    } else {
                        Value::Null
                    };
                    request.edit_json(|body| drop_metadata(body, &current));
                }
                next.send(request).await
            })
        }),
        _ => return None,
    })
}

/// Replaces the fields with those of the current object. A patch loses them.
fn drop_metadata(body: &mut Value, current: &Value) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for field in DROPPED {
        match current["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}
