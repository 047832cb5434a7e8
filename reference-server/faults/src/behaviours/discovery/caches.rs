//! Documents that clients cache by `ETag`, and responses that keep these caches out of date.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::{StatusCode, header};

use crate::behaviours::Fault;
use crate::exchange::{Body, Request, Response};
use crate::middleware::{Middleware, around, only};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let applies: fn(&Request) -> bool = match fault {
        Fault::DiscoveryEtagsOutliveDefinitions => {
            |request| matches!(request.path.as_str(), "/api" | "/apis")
        }
        Fault::OpenapiEtagsOutliveDefinitions => |request| request.path.starts_with("/openapi/"),
        _ => return None,
    };
    Some(only(applies, remembered_etags()))
}

/// Returns 304 to each `ETag` of an earlier response, also if the document has changed since.
fn remembered_etags() -> Box<dyn Middleware> {
    let seen: Arc<Mutex<HashSet<String>>> = Arc::default();
    around(move |mut request, next| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let asked = key(&request.path, request.header(header::IF_NONE_MATCH.as_str()));
            request.headers.remove(header::IF_NONE_MATCH);
            let mut response = next.send(request.clone()).await;
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.contains(&asked) {
                response.headers.remove(header::CONTENT_TYPE);
                response.headers.remove(header::CONTENT_LENGTH);
                return Response {
                    status: StatusCode::NOT_MODIFIED,
                    body: Body::Whole(bytes::Bytes::new()),
                    ..response
                };
            }
            if let Some(etag) = response.headers.get(header::ETAG)
                && let Ok(etag) = etag.to_str()
            {
                seen.insert(key(&request.path, etag));
            }
            response
        })
    })
}

/// Each document has its own values of `ETag`.
fn key(path: &str, etag: &str) -> String {
    format!("{path} {etag}")
}
