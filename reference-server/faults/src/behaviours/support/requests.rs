//! Requests: what they do, and edits of their bodies.

use http::Method;
use http::header::{self, HeaderValue};
use serde_json::Value;

use crate::exchange::Request;
use crate::middleware::{Middleware, requests};

/// Groups whose resources can be created and are not stored.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Returns whether a request creates an object that the server stores.
pub(crate) fn is_create(request: &Request) -> bool {
    let target = request.target();
    request.method == Method::POST
        && target.is_collection()
        && !REVIEWS.contains(&target.group.as_str())
        && !target.is_core("bindings")
}

/// Returns whether a request reads one object or its status.
pub(crate) fn is_get(request: &Request) -> bool {
    request.verb() == "get" && matches!(request.target().subresource.as_str(), "" | "status")
}

/// Returns whether a request replaces or patches an object or its subresource.
pub(crate) fn is_update(request: &Request) -> bool {
    matches!(request.method, Method::PUT | Method::PATCH) && !request.target().name.is_empty()
}

pub(crate) fn is_post_or_put(request: &Request) -> bool {
    matches!(request.method, Method::POST | Method::PUT)
}

/// Returns whether a request is a server-side apply.
pub(crate) fn is_apply(request: &Request) -> bool {
    request.method == Method::PATCH && request.media_type().starts_with("application/apply-patch")
}

pub(crate) fn set_media_type(request: &mut Request, media_type: &'static str) {
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
}

/// Edits the object in the body of every create.
pub(crate) fn created(
    edit: impl Fn(&Request, &mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_create(request) {
            let copy = request.clone();
            rewrite(request, |object| edit(&copy, object));
        }
    })
}

/// Edits a body. Bytes that need no edit stay as the client sent them.
pub(crate) fn rewrite(request: &mut Request, edit: impl FnOnce(&mut Value)) {
    let Some(sent) = request.json() else { return };
    let mut edited = sent.clone();
    edit(&mut edited);
    if edited != sent {
        request.set_json(&edited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_and_subresources_are_no_creates() {
        for (path, expected) in [
            ("/api/v1/namespaces/a/pods", true),
            ("/api/v1/namespaces/a/pods/p/eviction", false),
            ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false),
            ("/healthz", false),
        ] {
            assert_eq!(is_create(&Request::new(Method::POST, path)), expected, "{path}");
        }
    }
}
