//! Paths and methods that lead to the wrong place.

use http::{Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::requests::is_create;
use crate::behaviours::support::served;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MethodOverrideHonoured => requests(|request| {
            if let Ok(method) =
                Method::from_bytes(request.header("x-http-method-override").as_bytes())
            {
                request.method = method;
            }
        }),
        Fault::UnknownAsBadRequest => {
            around(|request, next| Box::pin(unknown_as_bad_request(request, next)))
        }
        Fault::ClusterResourceInNamespaces => {
            around(|request, next| Box::pin(cluster_resource_in_namespaces(request, next)))
        }
        Fault::NamespacesFromBodies => {
            around(|request, next| Box::pin(namespaces_from_bodies(request, next)))
        }
        _ => return None,
    })
}

async fn unknown_as_bad_request(request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    let discovery = request.path.starts_with("/api/") || request.path.starts_with("/apis/");
    let response = next.send(request).await;
    if response.status != StatusCode::NOT_FOUND || !discovery {
        return response;
    }
    if target.is_resource() && served::is_served(&target, next).await {
        return response;
    }
    let message = "the server has no such group, version or resource";
    Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message)
}

async fn cluster_resource_in_namespaces(mut request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    let response = next.send(request.clone()).await;
    if response.status != StatusCode::NOT_FOUND || target.namespace.is_empty() {
        return response;
    }
    let resource = ResourceInfo { subresource: String::new(), ..target.clone() };
    let entry = served::entry(&resource, next).await;
    if entry.is_none_or(|entry| entry["namespaced"] != false) {
        return response;
    }
    request.path = request.path.replacen(&format!("/namespaces/{}", target.namespace), "", 1);
    next.send(request).await
}

async fn namespaces_from_bodies(mut request: Request, next: Next<'_>) -> Response {
    let mut target = request.target();
    if is_create(&request)
        && target.namespace.is_empty()
        && served::entry(&target, next).await.is_some_and(|entry| entry["namespaced"] == true)
    {
        let body = request.json().unwrap_or_default();
        let named = Some(meta(&body, "namespace")).filter(|namespace| !namespace.is_empty());
        named.unwrap_or("default").clone_into(&mut target.namespace);
        request.path = target.collection();
    }
    next.send(request).await
}
