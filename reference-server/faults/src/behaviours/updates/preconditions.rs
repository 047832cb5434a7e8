//! Versions and uids in the body that the server ignores for some writes.

use http::Method;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{is_deleting, remove_meta};
use crate::behaviours::support::requests::{MERGE_PATCH, STRATEGIC_PATCH, is_apply, rewrite};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    versions(fault).or_else(|| uids(fault))
}

fn versions(fault: Fault) -> Option<Box<dyn Middleware>> {
    let concerns: fn(&Request) -> bool = match fault {
        Fault::StalePutsOfPodsAccepted => |request| is_put_of(request, "pods"),
        Fault::StalePutsOfNamespacesAccepted => |request| is_put_of(request, "namespaces"),
        Fault::StaleDryRunsAccepted => {
            |request| request.method == Method::PUT && request.is_dry_run()
        }
        Fault::StaleYamlAccepted => {
            |request| request.method == Method::PUT && request.media_type().ends_with("yaml")
        }
        Fault::StaleStrategicPatchesAccepted => {
            |request| request.target().is_object() && request.media_type() == STRATEGIC_PATCH
        }
        Fault::StaleStatusAppliesAccepted => {
            |request| is_apply(request) && request.target().subresource == "status"
        }
        Fault::StaleApprovalsAccepted => {
            |request| request.method == Method::PUT && request.target().subresource == "approval"
        }
        Fault::StalePutsOfDeletedObjectsAccepted => {
            return Some(around(|request, next| Box::pin(ignore_of_deleted(request, next))));
        }
        Fault::StalePartsOfPodsAccepted => |request| {
            let part = request.target().subresource;
            request.method == Method::PATCH
                && matches!(part.as_str(), "ephemeralcontainers" | "resize")
        },
        _ => return None,
    };
    Some(ignoring("resourceVersion", concerns))
}

fn uids(fault: Fault) -> Option<Box<dyn Middleware>> {
    let concerns: fn(&Request) -> bool = match fault {
        Fault::OtherUidOfDryRunsAccepted => {
            |request| request.method == Method::PUT && request.is_dry_run()
        }
        Fault::OtherUidOfPatchesAccepted => {
            |request| request.target().is_object() && is_merge(request)
        }
        Fault::OtherUidOfSubresourcePatchesAccepted => |request| {
            let part = request.target().subresource;
            is_merge(request) && matches!(part.as_str(), "status" | "scale")
        },
        _ => return None,
    };
    Some(ignoring("uid", concerns))
}

/// Removes a field of the metadata from the bodies of some requests.
fn ignoring(field: &'static str, concerns: fn(&Request) -> bool) -> Box<dyn Middleware> {
    requests(move |request| {
        if concerns(request) {
            rewrite(request, |body: &mut Value| drop(remove_meta(body, field)));
        }
    })
}

/// Ignores the versions in PUTs of objects that are being deleted.
async fn ignore_of_deleted(mut request: Request, next: Next<'_>) -> Response {
    if request.method == Method::PUT
        && next.server.read(&request.path).await.is_some_and(|object| is_deleting(&object))
    {
        rewrite(&mut request, |body| drop(remove_meta(body, "resourceVersion")));
    }
    next.send(request).await
}

fn is_put_of(request: &Request, resource: &str) -> bool {
    let target = request.target();
    request.method == Method::PUT && target.is_object() && target.is_core(resource)
}

fn is_merge(request: &Request) -> bool {
    matches!(request.media_type().as_str(), MERGE_PATCH | STRATEGIC_PATCH)
}
