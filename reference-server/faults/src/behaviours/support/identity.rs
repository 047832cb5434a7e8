//! Requests about the client of a request: who it is, and what it may do.

use http::header;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::exchange::{Request, Response};
use crate::middleware::Next;

const IMPERSONATE: &str = "impersonate-";

/// Returns the `userInfo` of the client, impersonation included. `None` if the server rejects the
/// credential or the impersonation, or if the user is not authenticated.
pub(crate) async fn user_info(request: &Request, next: Next<'_>) -> Option<Value> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let review = request.by_same_client(Method::POST, path).with_json("application/json", &review);
    let response = next.send(review).await;
    let info = response.value()?.pointer("/status/userInfo")?.clone();
    (response.status == StatusCode::CREATED).then_some(info)
}

/// Returns whether the client may do something, described by these `resourceAttributes`.
pub(crate) async fn may(request: &Request, next: Next<'_>, attributes: &Value) -> bool {
    access(request, next, &json!({ "resourceAttributes": attributes })).await == Some(true)
}

/// Returns the result of a `SelfSubjectAccessReview` of the client.
pub(crate) async fn access(request: &Request, next: Next<'_>, spec: &Value) -> Option<bool> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec,
    });
    let review = request.by_same_client(Method::POST, path).with_json("application/json", &review);
    next.send(review).await.value()?.pointer("/status/allowed")?.as_bool()
}

/// Returns the `resourceAttributes` of a request.
pub(crate) fn attributes(request: &Request) -> Value {
    let target = request.target();
    json!({
        "verb": request.verb(), "group": target.group, "version": target.version,
        "resource": target.resource, "subresource": target.subresource,
        "namespace": target.namespace, "name": target.name,
    })
}

/// Returns the same request with the credential of the administrator, and without impersonation.
pub(crate) fn as_admin(request: &Request, next: Next<'_>) -> Request {
    let mut request = request.clone();
    remove_impersonation(&mut request, |_| true);
    request.headers.insert(header::AUTHORIZATION, next.server.admin());
    request
}

/// Lets the administrator send the request for this user, exactly as the `userInfo` describes it.
pub(crate) fn as_user(request: &Request, next: Next<'_>, user: &Value) -> Request {
    let mut request = as_admin(request, next);
    let mut add = |name: &str, value: &Value| {
        let name = HeaderName::try_from(format!("{IMPERSONATE}{name}"));
        let value = HeaderValue::try_from(value.as_str().unwrap_or_default());
        if let (Ok(name), Ok(value)) = (name, value)
            && !value.is_empty()
        {
            request.headers.append(name, value);
        }
    };
    add("user", &user["username"]);
    add("uid", &user["uid"]);
    for group in user["groups"].as_array().into_iter().flatten() {
        add("group", group);
    }
    for (key, values) in user["extra"].as_object().into_iter().flatten() {
        let key = format!("extra-{}", utf8_percent_encode(key, NON_ALPHANUMERIC));
        values.as_array().into_iter().flatten().for_each(|value| add(&key, value));
    }
    request
}

/// Returns whether the request impersonates a user.
pub(crate) fn impersonates(request: &Request) -> bool {
    !request.header("impersonate-user").is_empty()
}

/// Removes the `Impersonate-*` headers whose rest of the name is chosen.
pub(crate) fn remove_impersonation(request: &mut Request, chosen: impl Fn(&str) -> bool) {
    let names: Vec<_> = request
        .headers
        .keys()
        .filter(|name| name.as_str().strip_prefix(IMPERSONATE).is_some_and(&chosen))
        .cloned()
        .collect();
    for name in names {
        request.headers.remove(name);
    }
}

/// Returns whether authorization denied the request. Other rules also return 403.
pub(crate) fn is_denied(response: &Response) -> bool {
    response.status == StatusCode::FORBIDDEN
        && response.value().is_none_or(|status| {
            status["message"].as_str().is_some_and(|message| message.contains(" cannot "))
        })
}
