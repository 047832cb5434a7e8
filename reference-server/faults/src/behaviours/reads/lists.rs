//! Lists: their metadata, their items, and the version that they show.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{
    is_deleting, meta, random_uuid, remove, remove_meta, revision,
};
use crate::behaviours::support::server::current_version;
use crate::document;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, documents, only, requests, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    types(fault)
        .or_else(|| representation(fault))
        .or_else(|| abridged(fault))
        .or_else(|| versions(fault))
}

/// Faults in the kinds and API versions of lists and their items.
fn types(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ListKindIsList => shown(|list| list["kind"] = json!("List")),
        Fault::ListVersionWithoutGroup => shown(|list| {
            let api_version = list["apiVersion"].as_str().unwrap_or_default().to_owned();
            if let Some((group, version)) = api_version.split_once('/')
                && group != "meta.k8s.io"
                && !group.contains("kubeproof")
            {
                list["apiVersion"] = version.into();
            }
        }),
        Fault::ItemsCarryListKind => shown(|list| {
            let kind = list["kind"].clone();
            items(list).for_each(|item| item["kind"] = kind.clone());
        }),
        Fault::PartialItemsAreConfigMaps => shown(|list| {
            if list["kind"] == "PartialObjectMetadataList" {
                for item in items(list) {
                    item["kind"] = "ConfigMap".into();
                    item["apiVersion"] = "v1".into();
                }
            }
        }),
        _ => return None,
    })
}

/// Faults in lists and their items.
fn representation(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::EmptyListIsNull => shown(|list| {
            if list["items"] == json!([]) {
                list["items"] = Value::Null;
            }
        }),
        Fault::ListsApplyTheFieldSelectorOnly => requests(|request| {
            if is_list(request) && request.query().get("fieldSelector").is_some() {
                request.edit_query(|query| drop(query.remove("labelSelector")));
            }
        }),
        Fault::ListsHideTerminatingObjects => shown(|list| {
            if let Some(items) = list["items"].as_array_mut() {
                items.retain(|item| !is_deleting(item));
            }
        }),
        Fault::ListVersionOfNewestItem => shown(|list| {
            let version = |item: &mut Value| meta(item, "resourceVersion").parse::<u64>().ok();
            let newest = items(list).filter_map(version).max();
            if let (true, Some(newest)) = (meta(list, "continue").is_empty(), newest) {
                list["metadata"]["resourceVersion"] = newest.to_string().into();
            }
        }),
        Fault::ListLooksLikeObject => shown(|list| {
            list["metadata"]["uid"] = random_uuid().into();
            list["metadata"]["creationTimestamp"] = format!("{:.0}", Timestamp::now()).into();
        }),
        Fault::ItemsCarryListVersion => shown(|list| {
            let version = list["metadata"]["resourceVersion"].clone();
            items(list).for_each(|item| item["metadata"]["resourceVersion"] = version.clone());
        }),
        Fault::ListWithoutVersion => documents(|request, document| {
            if is_list(request) && (document::is_list(document) || document["kind"] == "Table") {
                remove_meta(document, "resourceVersion");
            }
        }),
        _ => return None,
    })
}

/// Faults in items that lack a part of their object.
fn abridged(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ItemsAbridged => shown(|list| {
            items(list).for_each(|item| drop(remove_meta(item, "uid")));
        }),
        Fault::ListsWithoutManagedFields => shown(|list| {
            items(list).for_each(|item| drop(remove_meta(item, "managedFields")));
        }),
        Fault::LaterPagesWithoutAnnotations => shown_to(
            |request| request.query().get("continue").is_some(),
            |item| drop(remove_meta(item, "annotations")),
        ),
        Fault::BuiltinListsWithoutStatus => shown_to(
            |request| !request.target().group.contains("kubeproof"),
            |item| drop(remove(item, "status")),
        ),
        Fault::AllNamespacesWithoutOwners => shown_to(
            |request| request.target().namespace.is_empty(),
            |item| drop(remove_meta(item, "ownerReferences")),
        ),
        Fault::ListsWithoutFinalizers => shown(|list| {
            items(list).for_each(|item| drop(remove_meta(item, "finalizers")));
        }),
        Fault::FieldSelectedWithoutLabels => shown_to(
            |request| request.query().get("fieldSelector").is_some(),
            |item| drop(remove_meta(item, "labels")),
        ),
        Fault::ExactListsWithoutManagedFields => shown_to(
            |request| request.query().get("resourceVersion").is_some(),
            |item| drop(remove_meta(item, "managedFields")),
        ),
        Fault::YamlListsWithoutAnnotations => shown_to(
            |request| request.header("accept").contains("yaml"),
            |item| drop(remove_meta(item, "annotations")),
        ),
        Fault::MetadataListsWithoutLabels => shown_to(
            |request| request.header("accept").contains("PartialObjectMetadata"),
            |item| drop(remove_meta(item, "labels")),
        ),
        _ => return None,
    })
}

/// Faults in the version that a list shows.
fn versions(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ListLags => Box::new(Lag::default()),
        Fault::NotOlderThanRejected => around(|request, next| {
            Box::pin(async move {
                let matched = request.query().get("resourceVersionMatch") == Some("NotOlderThan");
                if matched && is_list(&request) {
                    let message = "resourceVersionMatch NotOlderThan is not supported";
                    return Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
                }
                next.send(request).await
            })
        }),
        Fault::ExactVersionIgnored => requests(|request| {
            let mut query = request.query();
            if is_list(request) && query.get("resourceVersionMatch") == Some("Exact") {
                query.set("resourceVersionMatch", "NotOlderThan");
                request.set_query(&query);
            }
        }),
        Fault::HistoryOffByOne => requests(|request| {
            let mut query = request.query();
            let exact = query.get("resourceVersionMatch") == Some("Exact");
            let version =
                query.get("resourceVersion").and_then(|version| version.parse::<u64>().ok());
            if let (true, true, None, Some(version)) =
                (is_list(request), exact, query.get("limit"), version)
            {
                query.set("resourceVersion", version.saturating_sub(1).to_string());
                request.set_query(&query);
            }
        }),
        Fault::VersionMatchUnchecked => around(|request, next| {
            let unchecked = StatusCode::UNPROCESSABLE_ENTITY;
            Box::pin(without(
                request,
                next,
                unchecked,
                &["resourceVersionMatch", "sendInitialEvents"],
            ))
        }),
        Fault::ExpiredListShowsLatest => around(|request, next| {
            let parameters = &["resourceVersion", "resourceVersionMatch"];
            Box::pin(without(request, next, StatusCode::GONE, parameters))
        }),
        _ => return None,
    })
}

/// Returns whether a request lists a collection.
pub(super) fn is_list(request: &Request) -> bool {
    request.verb() == "list" && request.method == Method::GET
}

/// Edits every list of objects.
fn shown(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    documents(move |request, document| {
        if request.target().is_collection() && document::is_list(document) {
            edit(document);
        }
    })
}

/// Edits the items of the lists that some requests get.
fn shown_to(applies: fn(&Request) -> bool, edit: fn(&mut Value)) -> Box<dyn Middleware> {
    only(applies, shown(move |list| items(list).for_each(edit)))
}

fn items(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list["items"].as_array_mut().into_iter().flatten()
}

/// Lists again without some parameters if the server rejects them with this code.
async fn without(
    mut request: Request,
    next: Next<'_>,
    rejection: StatusCode,
    parameters: &'static [&'static str],
) -> Response {
    let response = next.send(request.clone()).await;
    if !is_list(&request) || response.status != rejection {
        return response;
    }
    request.edit_query(|query| parameters.iter().for_each(|name| drop(query.remove(name))));
    next.send(request).await
}

/// Shows each collection as it was before the last write.
#[derive(Default)]
struct Lag {
    /// The version of the last write, by group and resource.
    last: Mutex<HashMap<(String, String), u64>>,
}

impl Middleware for Lag {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let target = request.target();
            let resource = (target.group.clone(), target.resource.clone());
            if is_list(&request) {
                let last = self
                    .last
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get(&resource)
                    .copied();
                return match last {
                    Some(last) => before(last, request, next).await,
                    None => next.send(request).await,
                };
            }
            if request.method == Method::GET || !target.is_resource() {
                return next.send(request).await;
            }
            uncompressed(&mut request);
            let response = next.send(request.clone()).await;
            let mut written = response.value().map(|object| revision(&object)).unwrap_or_default();
            if request.method == Method::DELETE {
                let version = current_version(next.server, &target).await;
                written = version.and_then(|version| version.parse().ok()).unwrap_or_default();
            }
            if written > 0 && response.status.is_success() {
                self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(resource, written);
            }
            response
        }
        .boxed()
    }
}

/// Lists the version before `last`, unless the client names a version or the server has compacted
/// it.
async fn before(last: u64, request: Request, next: Next<'_>) -> Response {
    let query = request.query();
    if ["resourceVersion", "continue"]
        .iter()
        .any(|name| query.get(name).is_some_and(|v| !v.is_empty()))
    {
        return next.send(request).await;
    }
    let mut older = request.clone();
    older.edit_query(|query| {
        query.set("resourceVersion", (last - 1).to_string());
        query.set("resourceVersionMatch", "Exact");
    });
    let response = next.send(older).await;
    if response.status == StatusCode::OK { response } else { next.send(request).await }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_uid_has_the_form_of_a_uuid() {
        let lengths: Vec<usize> = random_uuid().split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
    }
}
