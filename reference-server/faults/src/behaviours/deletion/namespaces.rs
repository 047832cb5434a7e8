//! Namespaces that are missing, or that go without their content.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{edit_delete_options, is_delete, is_dry_delete};
use crate::behaviours::support::failures::failure;
use crate::behaviours::support::objects::{is_deleting, meta, remove_meta};
use crate::behaviours::support::requests::{is_create, is_get};
use crate::document;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, documents, edit_events, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DefaultNamespaceMissing => Box::new(Hidden::new(["default".to_owned()], false)),
        Fault::NamespacesReturnServerError => {
            around(|request, next| Box::pin(no_namespaces(request, next)))
        }
        Fault::WatchesMissNewNamespaces => Box::new(Late::default()),
        Fault::DeleteCollectionMatchesNamespacePrefix => {
            around(|request, next| Box::pin(sweep_prefix(request, next)))
        }
        Fault::ListedNamespacesAreActive => documents(|request, list| {
            if request.verb() == "list" && request.target().is_core("namespaces") {
                for item in list["items"].as_array_mut().into_iter().flatten() {
                    item["status"]["phase"] = "Active".into();
                }
            }
        }),
        Fault::MissingNamespacesHaveNoLists => {
            around(|request, next| Box::pin(no_list_of_missing(request, next)))
        }
        Fault::TerminatingNamespacesKeepCustomResources => {
            around(|request, next| Box::pin(without_deletion(request, next)))
        }
        Fault::NamespaceContentStays => Box::new(Hidden::new([], true)),
        _ => return None,
    })
}

/// Shows custom resources in a terminating namespace as if they were not deleted.
async fn without_deletion(mut request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    let applies = is_get(&request) && target.is_custom() && !target.namespace.is_empty();
    if applies {
        uncompressed(&mut request);
    }
    let mut response = next.send(request).await;
    let path = format!("/api/v1/namespaces/{}", target.namespace);
    if applies && next.server.read(&path).await.is_some_and(|namespace| is_deleting(&namespace)) {
        response.edit_value(|object| drop(remove_meta(object, "deletionTimestamp")));
    }
    response
}

/// Fails every request for a namespace.
async fn no_namespaces(request: Request, next: Next<'_>) -> Response {
    if request.target().is_core("namespaces") {
        let code = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::failure(code, "InternalError", "the store of namespaces is unavailable");
    }
    next.send(request).await
}

/// Returns 404 for the list of a namespace that does not exist.
async fn no_list_of_missing(request: Request, next: Next<'_>) -> Response {
    let namespace = request.target().namespace;
    let path = format!("/api/v1/namespaces/{namespace}");
    if request.verb() == "list" && !namespace.is_empty() && next.server.read(&path).await.is_none()
    {
        let message = format!("namespaces \"{namespace}\" not found");
        return Response::failure(StatusCode::NOT_FOUND, "NotFound", message);
    }
    next.send(request).await
}

/// Deletes a collection, and that of all namespaces whose names begin with the namespace.
async fn sweep_prefix(request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    let response = next.send(request.clone()).await;
    if request.verb() != "deletecollection"
        || target.namespace.is_empty()
        || response.status != StatusCode::OK
    {
        return response;
    }
    let namespaces = next.server.read("/api/v1/namespaces").await.unwrap_or_default();
    let names = namespaces["items"].as_array().into_iter().flatten().map(|one| meta(one, "name"));
    for name in names.filter(|name| name.starts_with(&target.namespace)) {
        let other = ResourceInfo { namespace: name.to_owned(), ..target.clone() };
        let path = format!("{}?{}", other.collection(), request.query());
        next.server.as_admin(Method::DELETE, &path, None).await;
    }
    response
}

/// Hides the events of namespaces that are younger than a watch.
#[derive(Default)]
struct Late {
    created: Arc<Mutex<HashSet<String>>>,
}

impl Middleware for Late {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let target = request.target();
            let known = created(&self.created).clone();
            let mut response = next.send(request.clone()).await;
            if is_create(&request) && target.is_core("namespaces") {
                let name = response.value().map(|one| meta(&one, "name").to_owned());
                created(&self.created).extend(name);
            }
            if request.is_watch() && target.namespace.is_empty() {
                let now = Arc::clone(&self.created);
                edit_events(&mut response, move |event| {
                    let namespace = meta(&event["object"], "namespace");
                    let is_late = !known.contains(namespace) && created(&now).contains(namespace);
                    if is_late { Vec::new() } else { vec![event] }
                });
            }
            response
        }
        .boxed()
    }
}

fn created(names: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hides namespaces: clients see their content, and neither read them nor create in them.
struct Hidden {
    names: Arc<Mutex<HashSet<String>>>,
    /// Returns whether a deletion hides a namespace instead of deleting it.
    hides_deleted: bool,
}

impl Hidden {
    fn new(names: impl IntoIterator<Item = String>, hides_deleted: bool) -> Self {
        Self { names: Arc::new(Mutex::new(names.into_iter().collect())), hides_deleted }
    }

    fn contains(&self, name: &str) -> bool {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Hides a namespace that the client may delete. Returns the namespace as it was.
    async fn hide(&self, mut request: Request, next: Next<'_>) -> Response {
        edit_delete_options(&mut request, |options| {
            options.insert("dryRun".to_owned(), json!(["All"]));
        });
        let target = request.target();
        let response = next.send(request).await;
        if response.status.is_success() {
            self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(target.name);
        }
        response
    }

    /// Shows a hidden namespace again that the client creates.
    async fn show(&self, name: &str, next: Next<'_>) -> Option<Response> {
        let namespace = next.server.read(&format!("/api/v1/namespaces/{name}")).await?;
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        Some(Response::json(StatusCode::CREATED, &namespace))
    }

    fn filter(&self, request: &Request, response: &mut Response) {
        let names = self.names.clone();
        let hidden = move |object: &Value| {
            let names = names.lock().unwrap_or_else(PoisonError::into_inner);
            names.contains(meta(object, "name"))
        };
        if request.is_watch() {
            return edit_events(response, move |event| {
                if hidden(&event["object"]) { Vec::new() } else { vec![event] }
            });
        }
        response.edit_value(|list| {
            if let (true, Some(items)) = (document::is_list(list), list["items"].as_array_mut()) {
                items.retain(|item| !hidden(item));
            }
        });
    }
}

impl Middleware for Hidden {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let target = request.target();
            if is_create(&request) && self.contains(&target.namespace) {
                return missing(&target.namespace);
            }
            if !target.is_core("namespaces") {
                return next.send(request).await;
            }
            if self.contains(&target.name) {
                return missing(&target.name);
            }
            if self.hides_deleted && is_delete(&request) && !is_dry_delete(&request) {
                return self.hide(request, next).await;
            }
            if is_create(&request) {
                let name = request.json().map(|object| meta(&object, "name").to_owned());
                if let Some(name) = name.filter(|name| self.contains(name))
                    && let Some(response) = self.show(&name, next).await
                {
                    return response;
                }
            }
            let filters = request.method == Method::GET && target.is_collection();
            if filters {
                uncompressed(&mut request);
            }
            let mut response = next.send(request.clone()).await;
            if filters {
                self.filter(&request, &mut response);
            }
            response
        }
        .boxed()
    }
}

fn missing(name: &str) -> Response {
    let target = ResourceInfo { resource: "namespaces".to_owned(), ..ResourceInfo::default() };
    failure(StatusCode::NOT_FOUND, "NotFound", &target, name)
}
