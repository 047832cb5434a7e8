//! Values that clients see instead of the stored ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{meta, remove};
use crate::behaviours::support::requests::{is_create, rewrite};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, edit_objects, uncompressed};

/// Defaults that the server derives from other fields, by resource.
const DERIVED: [(&str, &str); 5] = [
    ("replicationcontrollers", "/spec/selector"),
    ("replicationcontrollers", "/metadata/labels"),
    ("namespaces", "/metadata/labels"),
    ("customresourcedefinitions", "/spec/names/singular"),
    ("customresourcedefinitions", "/spec/names/listKind"),
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let create: Create = match fault {
        Fault::ClusterIpUnchecked => |request, next| accept_any_address(request, next).boxed(),
        Fault::ClusterIpUnallocated => |request, next| without_address(request, next).boxed(),
        Fault::DerivedDefaultsMissing => |request, next| without_derived(request, next).boxed(),
        Fault::DeletionMarkKeptOnCreate => {
            |request, next| with_deletion_mark(request, next).boxed()
        }
        _ => return None,
    };
    Some(Box::new(Overlay { create, shown: Arc::default() }))
}

/// Sends a request. Returns what clients see of the object in the response.
type Create = for<'a> fn(Request, Next<'a>) -> BoxFuture<'a, (Response, Vec<Shown>)>;

/// What clients see at a JSON pointer: a value, or nothing.
type Shown = (&'static str, Option<Value>);

/// The path and the values of an object, by its uid.
type ShownByUid = HashMap<String, (String, Vec<Shown>)>;

/// Shows other values of the objects that clients create.
struct Overlay {
    create: Create,
    shown: Arc<Mutex<ShownByUid>>,
}

impl Overlay {
    /// Removes the shown values from an update, so that the server keeps the stored ones.
    fn restore(&self, request: &mut Request) {
        if request.method != Method::PUT {
            return;
        }
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = shown.values().find(|(path, _)| *path == request.path);
        let values = entry.map(|(_, values)| values.clone()).unwrap_or_default();
        rewrite(request, |object| {
            for (pointer, value) in &values {
                if value.is_some() && object.pointer(pointer) == value.as_ref() {
                    set(object, pointer, None);
                }
            }
        });
    }
}

impl Middleware for Overlay {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            self.restore(&mut request);
            let mut response = if is_create(&request) {
                let (response, values) = (self.create)(request.clone(), next).await;
                if response.status == StatusCode::CREATED
                    && !values.is_empty()
                    && !request.is_dry_run()
                {
                    let object = response.value().unwrap_or_default();
                    let path = request.target().object(meta(&object, "name"));
                    let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                    shown.insert(meta(&object, "uid").to_owned(), (path, values));
                }
                response
            } else {
                next.send(request.clone()).await
            };
            let shown = self.shown.clone();
            edit_objects(&request, &mut response, move |object| {
                let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, values)) = shown.get(meta(object, "uid")) {
                    for (pointer, value) in values {
                        set(object, pointer, value.clone());
                    }
                }
            });
            response
        }
        .boxed()
    }
}

/// Sets or removes a field of an object, if its parent exists.
fn set(object: &mut Value, pointer: &str, value: Option<Value>) {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    let Some(parent) = object.pointer_mut(parent) else { return };
    match value {
        Some(value) => parent[field] = value,
        None => drop(remove(parent, field)),
    }
}

/// Creates a service whose address the server rejects with a free one, and shows the requested one.
async fn accept_any_address(mut request: Request, next: Next<'_>) -> (Response, Vec<Shown>) {
    let response = next.send(request.clone()).await;
    let sent = request.json().unwrap_or_default();
    let address = sent["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    if !request.target().is_core("services")
        || !response.has_reason("Invalid")
        || matches!(address.as_str(), "" | "None")
    {
        return (response, Vec::new());
    }
    rewrite(&mut request, |service| {
        set(service, "/spec/clusterIP", None);
        set(service, "/spec/clusterIPs", None);
    });
    let again = next.send(request).await;
    if again.status != StatusCode::CREATED {
        return (response, Vec::new());
    }
    let addresses = json!([address]);
    (again, vec![("/spec/clusterIP", Some(address.into())), ("/spec/clusterIPs", Some(addresses))])
}

/// Hides the address of a service that names none.
async fn without_address(request: Request, next: Next<'_>) -> (Response, Vec<Shown>) {
    let sent = request.json().unwrap_or_default();
    let hides = request.target().is_core("services") && sent.pointer("/spec/clusterIP").is_none();
    let values = if hides {
        vec![("/spec/clusterIP", None), ("/spec/clusterIPs", None)]
    } else {
        Vec::new()
    };
    (next.send(request).await, values)
}

/// Hides the derived defaults of fields that the client leaves out.
async fn without_derived(request: Request, next: Next<'_>) -> (Response, Vec<Shown>) {
    let (sent, target) = (request.json().unwrap_or_default(), request.target());
    let values = DERIVED
        .into_iter()
        .filter(|(resource, pointer)| {
            target.resource == *resource && sent.pointer(pointer).is_none()
        })
        .map(|(_, pointer)| (pointer, None))
        .collect();
    (next.send(request).await, values)
}

/// Shows the deletionTimestamp that the client sends.
async fn with_deletion_mark(request: Request, next: Next<'_>) -> (Response, Vec<Shown>) {
    let sent = request.json().unwrap_or_default();
    let mark = sent["metadata"]["deletionTimestamp"].clone();
    let values = if mark.is_string() {
        vec![("/metadata/deletionTimestamp", Some(mark))]
    } else {
        Vec::new()
    };
    (next.send(request).await, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_set_and_removed_where_its_parent_exists() {
        let mut object = json!({ "spec": { "a": 1 } });
        set(&mut object, "/spec/a", None);
        set(&mut object, "/spec/b", Some(json!(2)));
        set(&mut object, "/status/c", Some(json!(3)));
        assert_eq!(object, json!({ "spec": { "b": 2 } }));
    }
}
