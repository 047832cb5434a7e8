//! Creates: taken names, namespaces, and what the server stores of the object.

use http::{Method, StatusCode, header};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::failures::{failure, is_about};
use crate::behaviours::support::objects::{meta, random_letters, remove_meta};
use crate::behaviours::support::requests::{MERGE_PATCH, created, is_create, rewrite};
use crate::behaviours::support::server::{admin_headers, current_version};
use crate::document;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, only, requests, responses, uncompressed};

/// The most attempts at a replacement, each after a conflict.
const ATTEMPTS: usize = 8;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    rejections(fault).or_else(|| bodies(fault)).or_else(|| outcomes(fault))
}

/// Faults in what a create rejects, and how.
fn rejections(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::CreateOverwrites => {
            around(|request, next| Box::pin(create_or_replace(request, next)))
        }
        Fault::ConflictAsCreated => taken_names(|_, status| status["reason"] = json!("Conflict")),
        Fault::AlreadyExistsAsBadRequest => taken_names(|response, status| {
            response.status = StatusCode::BAD_REQUEST;
            status["code"] = json!(400);
        }),
        Fault::CreateWithVersionAccepted => created(|_, object| {
            remove_meta(object, "resourceVersion");
        }),
        Fault::NamespaceMismatchAccepted => created(|request, object| {
            let namespace = request.target().namespace;
            if !namespace.is_empty() && !meta(object, "namespace").is_empty() {
                object["metadata"]["namespace"] = namespace.into();
            }
        }),
        Fault::MissingNamespaceAccepted => {
            around(|request, next| Box::pin(with_namespace(request, next)))
        }
        Fault::TerminatingNamespaceAccepts => {
            around(|request, next| Box::pin(despite_termination(request, next)))
        }
        Fault::NamesTakenEverywhere => {
            around(|request, next| Box::pin(taken_anywhere(request, next)))
        }
        Fault::DryRunUnchecked => {
            around(|request, next| Box::pin(dry_run_of_any_name(request, next)))
        }
        Fault::DryRunValuesUnchecked => requests(|request| {
            let mut query = request.query();
            if is_create(request) && query.all("dryRun").any(|value| value != "All") {
                query.remove("dryRun");
                request.set_query(&query);
            }
        }),
        _ => return None,
    })
}

/// Faults that change the object before the server stores it.
fn bodies(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::EmptyLabelsDropped => created(|_, object| {
            if let Some(labels) =
                object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
            {
                labels.retain(|_, value| value != "");
            }
        }),
        Fault::AnnotationsTrimmed => created(|_, object| {
            let annotations =
                object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
            for value in annotations.into_iter().flat_map(|annotations| annotations.values_mut()) {
                if let Some(text) = value.as_str() {
                    *value = text.trim().into();
                }
            }
        }),
        Fault::EmptyListsDropped => custom_specs(|value| {
            drop_fields(value, |field| field.as_array().is_some_and(Vec::is_empty));
        }),
        Fault::ZeroesOmitted => custom_specs(|value| drop_fields(value, |field| field == "")),
        Fault::NullItemsDropped => custom_specs(|value| {
            if let Some(items) = value.as_array_mut() {
                items.retain(|item| !item.is_null());
            }
        }),
        Fault::LargeIntegersRounded => custom_specs(|value| {
            if let Some(integer) = value.as_i64() {
                *value = round(integer).into();
            }
        }),
        _ => return None,
    })
}

/// Faults in what a create stores and returns.
fn outcomes(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::CreateReturnsOk => responses(|request, response| {
            if is_create(request) && response.status == StatusCode::CREATED {
                response.status = StatusCode::OK;
            }
        }),
        Fault::CreateReturnsTheRequest => responses(|request, response| {
            if is_create(request) && response.status == StatusCode::CREATED {
                return_request(request, response);
            }
        }),
        Fault::CreateStoresNothing => requests(|request| {
            let target = request.target();
            if is_create(request) && !target.namespace.is_empty() && !target.is_core("pods") {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }),
        Fault::StatusKeptOnCreate => around(|request, next| Box::pin(keep_status(request, next))),
        Fault::BuiltinStatusKeptOnCreate => only(
            |request| !request.target().is_custom(),
            around(|request, next| Box::pin(keep_status(request, next))),
        ),
        Fault::JobStatusKeptOnCreate => only(
            |request| request.target().group == "batch" && request.target().resource == "jobs",
            around(|request, next| Box::pin(keep_status(request, next))),
        ),
        Fault::NotAcceptableAfterWrite => {
            around(|request, next| Box::pin(write_first(request, next)))
        }
        _ => return None,
    })
}

/// Edits the rejection of a taken name.
fn taken_names(
    edit: impl Fn(&mut Response, &mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    responses(move |request, response| {
        if is_create(request)
            && response.has_reason("AlreadyExists")
            && let Some(mut status) = response.value()
        {
            edit(response, &mut status);
            response.set_value(&status);
        }
    })
}

/// Edits each value in the specs of new custom resources, from the outside in.
fn custom_specs(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    created(move |request, object| {
        if request.target().is_custom()
            && let Some(spec) = object.get_mut("spec")
        {
            visit(spec, &edit);
        }
    })
}

fn visit(value: &mut Value, edit: &dyn Fn(&mut Value)) {
    edit(value);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, edit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| visit(field, edit)),
        _ => {}
    }
}

fn drop_fields(value: &mut Value, drops: impl Fn(&Value) -> bool) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !drops(field));
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "this is the fault"
)]
fn round(integer: i64) -> i64 {
    integer as f64 as i64
}

/// Replaces the object if its name is taken.
pub(super) async fn create_or_replace(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let rejected = next.send(request.clone()).await;
    if !is_create(&request) || !rejected.has_reason("AlreadyExists") {
        return rejected;
    }
    let Some(mut object) = request.json() else { return rejected };
    let path = request.target().object(meta(&object, "name"));
    remove_meta(&mut object, "uid");
    for _ in 0..ATTEMPTS {
        let Some(current) = next.server.read(&path).await else { return rejected };
        object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        let mut put = Request { method: Method::PUT, path: path.clone(), ..request.clone() };
        put.set_json(&object);
        let mut response = next.send(put).await;
        match response.status {
            StatusCode::OK => {
                response.status = StatusCode::CREATED;
                return response;
            }
            StatusCode::CONFLICT => {}
            _ => return rejected,
        }
    }
    rejected
}

/// Creates the namespace if it is missing.
async fn with_namespace(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let response = next.send(request.clone()).await;
    let namespace = request.target().namespace;
    if !is_create(&request) || !is_about(&response, "NotFound", &namespace) {
        return response;
    }
    let body =
        json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": { "name": namespace } });
    let body = Some(("application/json", &body));
    next.server.as_admin(Method::POST, "/api/v1/namespaces", body).await;
    next.send(request).await
}

/// Returns 201 for an object in a terminating namespace, whose controller would delete it at once.
async fn despite_termination(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let rejected = next.send(request.clone()).await;
    let terminating = |status: Value| {
        let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
        causes.iter().any(|cause| cause["reason"] == "NamespaceTerminating")
    };
    if !is_create(&request) || !rejected.value().is_some_and(terminating) {
        return rejected;
    }
    let target = request.target();
    let namespace = target.namespace.clone();
    let elsewhere = ResourceInfo { namespace: "default".to_owned(), ..target };
    let mut dry = Request { path: elsewhere.collection(), ..request };
    dry.headers = admin_headers(&dry, next.server);
    dry.edit_query(|query| query.set("dryRun", "All"));
    rewrite(&mut dry, |object| {
        remove_meta(object, "namespace");
    });
    let mut response = next.send(dry).await;
    if response.status != StatusCode::CREATED {
        return rejected;
    }
    let version = current_version(next.server, &elsewhere).await.unwrap_or_default();
    response.edit_value(|object| {
        object["metadata"]["namespace"] = namespace.into();
        object["metadata"]["resourceVersion"] = version.into();
    });
    response
}

/// Rejects a name that is taken in any namespace.
async fn taken_anywhere(request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    let name = request.json().map(|object| meta(&object, "name").to_owned()).unwrap_or_default();
    if !is_create(&request) || target.namespace.is_empty() || name.is_empty() {
        return next.send(request).await;
    }
    let everywhere = ResourceInfo { namespace: String::new(), ..target.clone() }.collection();
    let list =
        next.server.read(&format!("{everywhere}?fieldSelector=metadata.name%3D{name}")).await;
    if list.is_some_and(|list| list["items"].as_array().is_some_and(|items| !items.is_empty())) {
        return failure(StatusCode::CONFLICT, "AlreadyExists", &target, &name);
    }
    next.send(request).await
}

/// Lets a dry run succeed whose name is taken.
async fn dry_run_of_any_name(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let response = next.send(request.clone()).await;
    if !is_create(&request) || !request.is_dry_run() || !response.has_reason("AlreadyExists") {
        return response;
    }
    let name = request.json().map(|object| object["metadata"]["name"].clone());
    request.edit_json(|object| object["metadata"]["name"] = random_letters(16).into());
    let mut response = next.send(request).await;
    response.edit_value(|object| {
        if document::is_object(object) {
            object["metadata"]["name"] = name.unwrap_or_default();
        }
    });
    response
}

/// Shows the object as the client sent it, with the metadata of the server.
fn return_request(request: &Request, response: &mut Response) {
    let Some(mut sent) = request.json() else { return };
    response.edit_value(|object| {
        if object["kind"] == sent["kind"] {
            sent["metadata"] = object["metadata"].take();
            *object = sent;
        }
    });
}

/// Writes the status that the client sent.
async fn keep_status(request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    let status = request.json().map(|object| object["status"].clone()).unwrap_or_default();
    if !is_create(&request)
        || response.status != StatusCode::CREATED
        || request.is_dry_run()
        || !status.is_object()
    {
        return response;
    }
    let name = response.value().map(|object| meta(&object, "name").to_owned()).unwrap_or_default();
    let path = format!("{}/status", request.target().object(&name));
    let mut write = Request::new(Method::PATCH, &path);
    write.headers = admin_headers(&request, next.server);
    let mut written = next.send(write.with_json(MERGE_PATCH, &json!({ "status": status }))).await;
    if written.status != StatusCode::OK {
        return response;
    }
    written.status = StatusCode::CREATED;
    written
}

/// Stores the object before it rejects the media type of the response.
async fn write_first(request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if is_create(&request) && response.status == StatusCode::NOT_ACCEPTABLE {
        let mut again = request;
        again.headers.remove(header::ACCEPT);
        next.send(again).await;
    }
    response
}
