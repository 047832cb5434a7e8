//! Requests of the middleware itself to the server behind the proxy.

use http::{HeaderMap, Method, header};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};

use super::requests::{MERGE_PATCH, is_update};
use crate::exchange::Request;
use crate::middleware::{Middleware, Next, around};
use crate::upstream::Upstream;

/// The headers of a request with the credential of the administrator.
pub(crate) fn admin_headers(request: &Request, server: &Upstream) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        if !name.as_str().starts_with("impersonate-") {
            headers.append(name, value.clone());
        }
    }
    headers.insert(header::AUTHORIZATION, server.admin());
    headers
}

/// The newest version of a collection.
pub(crate) async fn current_version(server: &Upstream, target: &ResourceInfo) -> Option<String> {
    let list = server.read(&format!("{}?limit=1", target.collection())).await?;
    list["metadata"]["resourceVersion"].as_str().map(str::to_owned)
}

/// Waits a moment for another client to change the object of a request.
pub(crate) async fn wait_for_a_change(request: &Request, next: Next<'_>) {
    let path = request.target().object(&request.target().name);
    let version = async || {
        let object = next.server.read(&path).await.unwrap_or_default();
        object["metadata"]["resourceVersion"].clone()
    };
    let first = version().await;
    for _ in 0..50 {
        if version().await != first {
            return;
        }
    }
}

/// Writes an annotation and removes it, so that the object has the same content and a new version.
pub(crate) async fn bump(request: &Request, next: Next<'_>) {
    let path = request.target().object(&request.target().name);
    for value in [json!("1"), Value::Null] {
        let edit = json!({ "metadata": { "annotations": { "faults.kubeproof.dev/bump": value } } });
        next.server.as_admin(Method::PATCH, &path, Some((MERGE_PATCH, &edit))).await;
    }
}

/// Writes one part of the body through another endpoint, after the write itself.
pub(crate) fn also_writes(
    subresources: &'static [&'static str],
    part: &'static str,
    other: &'static str,
) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let target = request.target();
            let response = next.send(request.clone()).await;
            let applies = is_update(&request) && subresources.contains(&&*target.subresource);
            if !applies || !response.status.is_success() || request.is_dry_run() {
                return response;
            }
            let Some(value) = request.json().and_then(|body| body.get(part).cloned()) else {
                return response;
            };
            let path = target.object(&target.name) + other;
            let edit = json!({ part: value });
            let written =
                next.server.as_admin(Method::PATCH, &path, Some((MERGE_PATCH, &edit))).await;
            if !written.status.is_success() {
                return response;
            }
            next.send(request.by_same_client(Method::GET, &request.path)).await
        })
    })
}
