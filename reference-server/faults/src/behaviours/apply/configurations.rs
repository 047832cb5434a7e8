//! Server-side apply with wrong checks of the configuration's metadata.

use http::StatusCode;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{everywhere, meta};
use crate::behaviours::support::requests::{is_apply, rewrite};
use crate::exchange::Response;
use crate::middleware::{Middleware, around, requests};

/// The fields of the metadata that managers own.
const OWNED: [&str; 3] = ["labels", "annotations", "finalizers"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ApplyRejectsLastLabel => around(|request, next| {
            Box::pin(async move {
                let manager = request.query().get("fieldManager").unwrap_or_default().to_owned();
                if is_apply(&request)
                    && request.json().is_some_and(|config| owns_nothing(&config))
                    && let Some(current) = next.server.read(&request.path).await
                    && owned_something(&current, &manager)
                {
                    let message = "the name of the object was undeterminable";
                    return Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
                }
                next.send(request).await
            })
        }),
        Fault::ApplyNameOptional => requests(|request| {
            let name = request.target().name.clone();
            if is_apply(request) {
                request.edit_json(|config| {
                    if config.is_object() && meta(config, "name").is_empty() {
                        config["metadata"]["name"] = json!(name);
                    }
                });
            }
        }),
        Fault::ApplyDropsDuplicateItems => requests(|request| {
            if is_apply(request) {
                rewrite(request, |config| everywhere(config, &mut drop_duplicates));
            }
        }),
        _ => return None,
    })
}

/// Keeps the last of the items with the same name, and one of equal values.
fn drop_duplicates(value: &mut Value) {
    let Value::Array(items) = value else { return };
    let key = |item: &Value| item.get("name").unwrap_or(item).clone();
    let keys: Vec<_> = items.iter().map(key).collect();
    let mut index = 0;
    items.retain(|_| {
        index += 1;
        !keys[index..].contains(&keys[index - 1])
    });
}

fn owns_nothing(config: &Value) -> bool {
    OWNED.iter().all(|field| config["metadata"].get(field).is_none())
}

/// Reports whether the manager applied a field of the metadata.
fn owned_something(object: &Value, manager: &str) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["fieldsV1"].get("f:metadata").is_some()
    })
}
