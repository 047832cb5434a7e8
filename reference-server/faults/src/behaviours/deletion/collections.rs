//! Deletions of collections that select or delete the wrong objects.

use http::Method;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::selector_terms::label_terms;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, only, requests, responses, uncompressed};

/// The maximum number of objects that a deletion removes.
const PAGE: usize = 30;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let middleware = match fault {
        Fault::DeleteCollectionIgnoresSelector => requests(|request| {
            request.edit_query(|query| {
                query.remove("labelSelector");
                query.remove("fieldSelector");
            });
        }),
        Fault::CollectionIgnoresNegatedFields => requests(|request| {
            request.edit_query(|query| {
                if query.get("fieldSelector").is_some_and(|fields| fields.contains("!=")) {
                    query.remove("fieldSelector");
                }
            });
        }),
        Fault::CollectionIgnoresExistence => {
            without_terms(|term| !term.contains(['=', '(', '<', '>']))
        }
        Fault::CollectionIgnoresSets => without_terms(|term| term.contains(" in ")),
        Fault::CollectionStopsAtHeldObjects => deleting(|items| {
            let is_held = |item: &Value| item["metadata"].get("finalizers").is_some();
            if let Some(first) = items.iter().position(is_held) {
                items.truncate(first + 1);
            }
        }),
        Fault::CollectionDeletesOnePage => deleting(|items| items.truncate(PAGE)),
        Fault::CollectionSkipsHeldObjects => deleting(|items| {
            items.retain(|item| item["metadata"].get("finalizers").is_none());
        }),
        Fault::CollectionStatusCodeIsText => responses(|_, response| {
            if response.status.is_success() && response.value().is_some() {
                response.set_value(&json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "code": "200",
                }));
            }
        }),
        _ => return None,
    };
    Some(only(|request| request.verb() == "deletecollection", middleware))
}

/// Ignores some terms of a label selector.
fn without_terms(ignored: fn(&str) -> bool) -> Box<dyn Middleware> {
    requests(move |request| {
        let query = request.query();
        let terms = label_terms(query.get("labelSelector").unwrap_or_default());
        let kept: Vec<_> = terms.into_iter().filter(|term| !ignored(term)).collect();
        let selector = kept.join(",");
        request.edit_query(|query| {
            if query.get("labelSelector").is_some() {
                query.set("labelSelector", selector);
            }
        });
    })
}

/// Deletes some of the selected objects one by one.
fn deleting(select: fn(&mut Vec<Value>)) -> Box<dyn Middleware> {
    around(move |request, next| Box::pin(delete(request, next, select)))
}

async fn delete(request: Request, next: Next<'_>, select: fn(&mut Vec<Value>)) -> Response {
    // Only a valid request deletes something.
    let mut trial = request.clone();
    trial.edit_query(|query| query.set("dryRun", "All"));
    uncompressed(&mut trial);
    let server = next.server.clone();
    let mut response = next.send(trial).await;
    if request.is_dry_run() || !response.status.is_success() {
        return response;
    }
    let target = request.target();
    let Some(mut list) = server.read(&format!("{}?{}", request.path, request.query())).await else {
        return response;
    };
    let Some(items) = list["items"].as_array_mut() else { return response };
    select(items);
    for item in items {
        let mut object = target.clone();
        meta(item, "namespace").clone_into(&mut object.namespace);
        let path = object.object(meta(item, "name"));
        server.as_admin(Method::DELETE, &path, Some(("application/json", &json!({})))).await;
    }
    response.set_value(&list);
    response
}
