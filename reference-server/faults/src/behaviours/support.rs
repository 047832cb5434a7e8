//! Helpers that the middleware of several parts of the API share.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;
use rand::RngExt as _;
use serde_json::{Map, Value, json};

use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, requests};
use crate::upstream::Upstream;

/// The letters of generated names.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Groups whose resources can be created and are not stored.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";

/// Returns the rejection of a media type that the server does not know.
pub(super) fn unsupported_media_type() -> Response {
    let message = "the body of the request was in an unknown format";
    Response::failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
}

/// Rejects requests as invalid.
pub(super) fn rejecting(message: &'static str, of: fn(&Request) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            if of(&request) {
                return Response::failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
            }
            next.send(request).await
        })
    })
}

/// Returns whether a request creates an object that the server stores.
pub(super) fn is_create(request: &Request) -> bool {
    let target = request.target();
    request.method == Method::POST
        && target.is_collection()
        && !REVIEWS.contains(&target.group.as_str())
        && !target.is_core("bindings")
}

/// Returns whether a request reads one object or its status.
pub(super) fn is_get(request: &Request) -> bool {
    request.verb() == "get" && matches!(request.target().subresource.as_str(), "" | "status")
}

/// Returns whether a request deletes one object.
pub(super) fn is_delete(request: &Request) -> bool {
    request.verb() == "delete" && request.target().is_object()
}

/// Returns whether a request replaces or patches an object or its subresource.
pub(super) fn is_update(request: &Request) -> bool {
    matches!(request.method, Method::PUT | Method::PATCH) && !request.target().name.is_empty()
}

pub(super) fn is_post_or_put(request: &Request) -> bool {
    matches!(request.method, Method::POST | Method::PUT)
}

/// Returns whether a request is a server-side apply.
pub(super) fn is_apply(request: &Request) -> bool {
    request.method == Method::PATCH && request.media_type().starts_with("application/apply-patch")
}

pub(super) fn set_media_type(request: &mut Request, media_type: &'static str) {
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
}

/// Edits the object in the body of every create.
pub(super) fn created(
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
pub(super) fn rewrite(request: &mut Request, edit: impl FnOnce(&mut Value)) {
    let Some(sent) = request.json() else { return };
    let mut edited = sent.clone();
    edit(&mut edited);
    if edited != sent {
        request.set_json(&edited);
    }
}

/// Returns a text of the metadata; empty if it is missing.
pub(super) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(super) fn remove_meta(object: &mut Value, field: &str) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(field)
}

pub(super) fn remove(object: &mut Value, field: &str) -> Option<Value> {
    object.as_object_mut()?.remove(field)
}

/// Edits a document and all values inside it. Inner values come first.
pub(super) fn everywhere(value: &mut Value, edit: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| everywhere(item, edit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| everywhere(field, edit)),
        _ => {}
    }
    edit(value);
}

/// Returns whether an object is being deleted.
pub(super) fn is_deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// Returns whether a response is a failure with this reason for the object with this name.
pub(super) fn is_about(response: &Response, reason: &str, name: &str) -> bool {
    response.has_reason(reason)
        && response.value().is_some_and(|status| status["details"]["name"] == name)
}

/// A failure for one object, with details as the server writes them.
pub(super) fn failure(
    code: StatusCode,
    reason: &str,
    target: &ResourceInfo,
    name: &str,
) -> Response {
    let word = match reason {
        "AlreadyExists" => "already exists",
        "NotFound" => "not found",
        _ => "cannot be used",
    };
    let message = format!("{} {name:?} {word}", target.resource);
    let mut response = Response::failure(code, reason, message);
    let mut details = json!({ "name": name, "kind": target.resource });
    if !target.group.is_empty() {
        details["group"] = target.group.as_str().into();
    }
    response.edit_value(|status| status["details"] = details);
    response
}

/// The headers of a request with the credential of the administrator.
pub(super) fn admin_headers(request: &Request, server: &Upstream) -> HeaderMap {
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
pub(super) async fn current_version(server: &Upstream, target: &ResourceInfo) -> Option<String> {
    let list = server.read(&format!("{}?limit=1", target.collection())).await?;
    list["metadata"]["resourceVersion"].as_str().map(str::to_owned)
}

/// Turns the first deletion of each object of a resource into a dry run. The second one deletes the
/// object, so that a run can clean up.
pub(super) fn first_deletions_are_dry(resource: &'static str) -> Box<dyn Middleware> {
    let seen: Mutex<HashSet<String>> = Mutex::default();
    requests(move |request| {
        if is_delete(request) && request.target().resource == resource && request.body.is_empty() {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.insert(request.path.clone()) {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }
    })
}

/// A version of this server as a number; 0 if it is none.
pub(super) fn revision(object: &Value) -> u64 {
    meta(object, "resourceVersion").parse().unwrap_or_default()
}

/// Random letters, as in generated names.
pub(super) fn random_letters(count: usize) -> String {
    let mut rng = rand::rng();
    (0..count).map(|_| char::from(ALPHABET[rng.random_range(..ALPHABET.len())])).collect()
}

/// Returns a random UUID of version 4.
pub(super) fn random_uuid() -> String {
    let hex = format!("{:032x}", rand::random::<u128>());
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// Edits the options of a deletion, in the query or in the body. Malformed options stay unchanged.
pub(super) fn edit_delete_options(
    request: &mut Request,
    edit: impl FnOnce(&mut Map<String, Value>),
) {
    if !request.body.is_empty() {
        return rewrite(request, |options| {
            if let Some(options) = options.as_object_mut() {
                edit(options);
            }
        });
    }
    let mut query = request.query();
    let Some(sent) = options_of_query(&query) else { return };
    let mut options = sent.clone();
    edit(&mut options);
    if options == sent {
        return;
    }
    for name in ["dryRun", "gracePeriodSeconds", "propagationPolicy", "orphanDependents"] {
        query.remove(name);
    }
    request.set_query(&query);
    options.insert("kind".to_owned(), json!("DeleteOptions"));
    options.insert("apiVersion".to_owned(), json!("v1"));
    *request = request.clone().with_json("application/json", &options.into());
}

/// The options of a deletion in the form of a body; `None` if a value is invalid.
fn options_of_query(query: &kubeproof_apimachinery::request::Query) -> Option<Map<String, Value>> {
    let mut options = Map::new();
    let dry_run: Vec<&str> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
    if !dry_run.is_empty() {
        options.insert("dryRun".to_owned(), json!(dry_run));
    }
    if let Some(seconds) = query.get("gracePeriodSeconds") {
        options.insert("gracePeriodSeconds".to_owned(), json!(seconds.parse::<i64>().ok()?));
    }
    if let Some(policy) = query.get("propagationPolicy") {
        options.insert("propagationPolicy".to_owned(), json!(policy));
    }
    if query.get("orphanDependents").is_some() {
        options.insert("orphanDependents".to_owned(), json!(query.flag("orphanDependents")));
    }
    Some(options)
}

/// The options of a deletion, as the server reads them.
pub(super) fn delete_options(request: &Request) -> Map<String, Value> {
    if request.body.is_empty() {
        return options_of_query(&request.query()).unwrap_or_default();
    }
    match request.json() {
        Some(Value::Object(options)) => options,
        _ => Map::new(),
    }
}

/// Returns whether a deletion is a dry run.
pub(super) fn is_dry_delete(request: &Request) -> bool {
    delete_options(request)
        .get("dryRun")
        .is_some_and(|values| values != &json!([]) && !values.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_deletion_move_from_the_query_to_the_body_when_they_change() {
        let mut request =
            Request::new(Method::DELETE, "/api/v1/pods/p?gracePeriodSeconds=5&pretty=true");
        edit_delete_options(&mut request, |_| {});
        assert!(request.body.is_empty());
        edit_delete_options(&mut request, |options| {
            options.insert("propagationPolicy".to_owned(), json!("Orphan"));
        });
        let body = request.json().expect("a body");
        assert_eq!(
            (&body["gracePeriodSeconds"], &body["propagationPolicy"]),
            (&json!(5), &json!("Orphan"))
        );
        assert_eq!(request.raw_query, "pretty=true");
    }

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
