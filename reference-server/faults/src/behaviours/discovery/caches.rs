//! Documents that clients cache by `ETag`, and responses that keep these caches out of date.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use http::{StatusCode, header};
use serde_json::{Map, Value};

use crate::behaviours::Fault;
use crate::exchange::{Body, Request, Response};
use crate::middleware::{Middleware, around, documents, only, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let applies: fn(&Request) -> bool = match fault {
        Fault::DiscoveryEtagsOutliveDefinitions => {
            |request| matches!(request.path.as_str(), "/api" | "/apis")
        }
        Fault::OpenapiEtagsOutliveDefinitions => |request| request.path.starts_with("/openapi/"),
        Fault::OpenapiV3EtagsAreConstant => |request| request.path.starts_with("/openapi/v3/"),
        Fault::GroupDocumentsCached => return Some(cached_groups()),
        Fault::OpenapiV3KeepsDeletedGroups => return Some(keeping_groups()),
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

/// Returns the first document of each API group forever.
fn cached_groups() -> Box<dyn Middleware> {
    let first: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    around(move |mut request, next| {
        let first = Arc::clone(&first);
        Box::pin(async move {
            let group = request.path.strip_prefix("/apis/").unwrap_or_default();
            if group.is_empty() || group.contains('/') {
                return next.send(request).await;
            }
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            if response.status == StatusCode::OK
                && let Some(document) = response.value()
            {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                let document = first.entry(request.path).or_insert(document);
                response.set_value(document);
            }
            response
        })
    })
}

/// Shows each path that the index of OpenAPI v3 ever had.
fn keeping_groups() -> Box<dyn Middleware> {
    let seen: Mutex<Map<String, Value>> = Mutex::default();
    let edit = move |_: &Request, index: &mut Value| {
        let Some(paths) = index["paths"].as_object_mut() else { return };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, link) in paths.iter() {
            seen.entry(path).or_insert_with(|| link.clone());
        }
        for (path, link) in seen.iter() {
            paths.entry(path).or_insert_with(|| link.clone());
        }
    };
    only(|request| request.path == "/openapi/v3", documents(edit))
}

/// Each document has its own values of `ETag`.
fn key(path: &str, etag: &str) -> String {
    format!("{path} {etag}")
}
