//! Faults of aggregation: groups that extension servers serve.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::StatusCode;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::deletions::{is_delete, is_dry_delete};
use crate::behaviours::support::objects::remove;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, documents, edit_documents, objects, only, responses};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::UnavailableGroupsNotFound => responses(|request, response| {
            let is_unavailable = response.status == StatusCode::SERVICE_UNAVAILABLE;
            if is_unavailable && request.path.starts_with("/apis/") {
                *response = Response::text(StatusCode::NOT_FOUND, "404 page not found\n");
            }
        }),
        Fault::ApiServicesWithoutConditions => objects(|request, object| {
            if is_api_service(request) {
                remove(&mut object["status"], "conditions");
            }
        }),
        Fault::UnavailableGroupsCurrent => {
            only(is_list_of_groups, documents(|_, document| mark_current(document)))
        }
        Fault::DeletedGroupsListed => Box::new(DeletedGroups::default()),
        _ => return None,
    })
}

fn is_api_service(request: &Request) -> bool {
    let target = request.target();
    target.group == "apiregistration.k8s.io" && target.resource == "apiservices"
}

fn is_list_of_groups(request: &Request) -> bool {
    request.path == "/apis"
}

fn mark_current(document: &mut Value) {
    let groups = document["items"].as_array_mut().into_iter().flatten();
    for version in groups.filter_map(|group| group["versions"].as_array_mut()).flatten() {
        version["freshness"] = "Current".into();
    }
}

/// Lists the groups of API services after their deletion.
#[derive(Default)]
struct DeletedGroups(Arc<Mutex<BTreeSet<(String, String)>>>);

impl Middleware for DeletedGroups {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let mut response = next.send(request.clone()).await;
            if is_delete(&request) && is_api_service(&request) && !is_dry_delete(&request) {
                // The name of an API service is its version and its group.
                if let Some((version, group)) = request.target().name.split_once('.') {
                    let mut deleted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    deleted.insert((group.to_owned(), version.to_owned()));
                }
            }
            if is_list_of_groups(&request) {
                let deleted = Arc::clone(&self.0);
                edit_documents(
                    &request,
                    &mut response,
                    Arc::new(move |_, document| {
                        list(&deleted.lock().unwrap_or_else(PoisonError::into_inner), document);
                    }),
                );
            }
            response
        }
        .boxed()
    }
}

/// Adds groups to an `APIGroupList`, unless it has them.
fn list(deleted: &BTreeSet<(String, String)>, document: &mut Value) {
    let Some(groups) = document.get_mut("groups").and_then(Value::as_array_mut) else { return };
    for (name, version) in deleted {
        if !groups.iter().any(|group| group["name"] == name.as_str()) {
            let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
            groups.push(json!({"name": name, "versions": [version], "preferredVersion": version}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_group_is_listed_once() {
        let deleted = BTreeSet::from([("a.example.com".to_owned(), "v1".to_owned())]);
        let mut document = json!({"groups": []});
        list(&deleted, &mut document);
        assert_eq!(document["groups"][0]["versions"][0]["groupVersion"], "a.example.com/v1");
        let once = document.clone();
        list(&deleted, &mut document);
        assert_eq!(document, once);
    }

    #[test]
    fn every_version_becomes_current() {
        let stale = json!({"version": "v1", "freshness": "Stale"});
        let mut document = json!({"items": [{"versions": [stale]}, {}]});
        mark_current(&mut document);
        assert_eq!(document["items"][0]["versions"][0]["freshness"], "Current");
    }
}
