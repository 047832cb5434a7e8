//! Wrong authentication and impersonation.

use http::header::{self, HeaderValue};
use http::{HeaderName, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::identity::{
    as_admin, as_user, impersonates, remove_impersonation, user_info,
};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The subprotocol that carries a token starts so.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::UnknownTokenIsAnonymous => {
            around(|request, next| Box::pin(unknown_token_is_anonymous(request, next)))
        }
        Fault::PublicPathsNeedNoValidToken => around(|request, next| {
            let is_public = !request.target().is_resource();
            next.send(if is_public { as_admin(&request, next) } else { request })
        }),
        Fault::OddCredentialsAsServerError => around(|request, next| {
            Box::pin(async move {
                if has_odd_credential(&request) {
                    let code = StatusCode::INTERNAL_SERVER_ERROR;
                    let message = "no authenticator supports this credential";
                    return Response::failure(code, "InternalError", message);
                }
                next.send(request).await
            })
        }),
        Fault::LowerCaseSchemesIgnored => requests(|request| {
            if !request.header("authorization").starts_with("Bearer ") {
                request.headers.remove(header::AUTHORIZATION);
            }
        }),
        Fault::WebsocketTokenIgnored => requests(remove_token_protocol),
        Fault::ImpersonationIgnored => requests(|request| remove_impersonation(request, |_| true)),
        Fault::ImpersonationOfNamesOnly => requests(|request| {
            if impersonates(request) {
                remove_impersonation(request, |part| part != "user");
            }
        }),
        Fault::ImpersonationWithoutUser => requests(|request| {
            if !impersonates(request) {
                remove_impersonation(request, |_| true);
            }
        }),
        Fault::ImpersonationExtraEncoded => requests(encode_extra_again),
        Fault::ImpersonationUnchecked => {
            around(|request, next| Box::pin(impersonation_unchecked(request, next)))
        }
        Fault::ImpersonationKeepsGroups => {
            around(|request, next| Box::pin(impersonation_keeps_groups(request, next)))
        }
        Fault::ImpersonatedIsNotAuthenticated => {
            around(|request, next| Box::pin(impersonated_is_not_authenticated(request, next)))
        }
        Fault::ServiceAccountGroupsMissing => {
            around(|request, next| Box::pin(service_account_groups_missing(request, next)))
        }
        _ => return None,
    })
}

async fn unknown_token_is_anonymous(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    let token = request.headers.remove(header::AUTHORIZATION);
    if response.status != StatusCode::UNAUTHORIZED || token.is_none() {
        return response;
    }
    next.send(request).await
}

fn has_odd_credential(request: &Request) -> bool {
    let Some(value) = request.headers.get(header::AUTHORIZATION) else { return false };
    let bearer = value.to_str().ok().and_then(|value| value.split_once(' ')).is_some_and(
        |(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty(),
    );
    !bearer
}

fn remove_token_protocol(request: &mut Request) {
    let offered = request.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let offered = offered.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    let (tokens, kept): (Vec<_>, Vec<_>) =
        offered.map(str::trim).partition(|protocol| protocol.starts_with(TOKEN_PROTOCOL));
    if tokens.is_empty() {
        return;
    }
    let kept = HeaderValue::from_str(&kept.join(", ")).ok().filter(|value| !value.is_empty());
    match kept {
        Some(kept) => drop(request.headers.insert(header::SEC_WEBSOCKET_PROTOCOL, kept)),
        None => drop(request.headers.remove(header::SEC_WEBSOCKET_PROTOCOL)),
    }
}

/// The server decodes the keys once, so that they stay encoded.
fn encode_extra_again(request: &mut Request) {
    let mut encoded = http::HeaderMap::new();
    for (name, value) in &request.headers {
        let again = name
            .as_str()
            .starts_with("impersonate-extra-")
            .then(|| name.as_str().replace('%', "%25"));
        let again = again.and_then(|again| HeaderName::try_from(again).ok());
        encoded.append(again.unwrap_or_else(|| name.clone()), value.clone());
    }
    request.headers = encoded;
}

async fn impersonation_unchecked(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if response.status != StatusCode::FORBIDDEN || !impersonates(&request) {
        return response;
    }
    request.headers.insert(header::AUTHORIZATION, next.server.admin());
    next.send(request).await
}

async fn impersonation_keeps_groups(request: Request, next: Next<'_>) -> Response {
    let mut own = request.clone();
    remove_impersonation(&mut own, |_| true);
    let users = (acted_as(&request, next).await, user_info(&own, next).await);
    let (Some(mut user), Some(own)) = users else { return next.send(request).await };
    let mut groups = groups(&user);
    groups.extend(self::groups(&own));
    user["groups"] = json!(groups);
    next.send(as_user(&request, next, &user)).await
}

/// A user in the group of the unauthenticated does not get into that of the authenticated.
async fn impersonated_is_not_authenticated(request: Request, next: Next<'_>) -> Response {
    let asked = request.headers.get_all("impersonate-group");
    let explicit = asked.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
    let Some(mut user) = acted_as(&request, next).await.filter(|_| !explicit) else {
        return next.send(request).await;
    };
    let mut groups = groups(&user);
    groups.retain(|group| group != AUTHENTICATED);
    groups.push(UNAUTHENTICATED.into());
    user["groups"] = json!(groups);
    let mut response = next.send(as_user(&request, next, &user)).await;
    if request.target().resource == "selfsubjectreviews" {
        response.edit_value(|review| {
            if let Some(groups) =
                review.pointer_mut("/status/userInfo/groups").and_then(Value::as_array_mut)
            {
                groups.retain(|group| group != UNAUTHENTICATED);
            }
        });
    }
    response
}

async fn service_account_groups_missing(request: Request, next: Next<'_>) -> Response {
    let derived = request.headers.get("impersonate-group").is_none()
        && request.header("impersonate-user").starts_with("system:serviceaccount:");
    let Some(mut user) = acted_as(&request, next).await.filter(|_| derived) else {
        return next.send(request).await;
    };
    user["groups"] = json!([AUTHENTICATED]);
    next.send(as_user(&request, next, &user)).await
}

/// Returns the impersonated user; `None` without impersonation, or if it is denied.
async fn acted_as(request: &Request, next: Next<'_>) -> Option<Value> {
    if impersonates(request) { user_info(request, next).await } else { None }
}

fn groups(user: &Value) -> Vec<Value> {
    user["groups"].as_array().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Bearer abc", false)]
    #[case("bearer abc", false)]
    #[case("Basic abc", true)]
    #[case("Bearer", true)]
    fn credentials_are_bearer_tokens_or_odd(#[case] value: &str, #[case] expected: bool) {
        let mut request = Request::new(Method::GET, "/api");
        assert!(!has_odd_credential(&request));
        request.headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
        assert_eq!(has_odd_credential(&request), expected);
    }

    #[test]
    fn a_token_among_subprotocols_is_removed() {
        let mut request = Request::new(Method::GET, "/api/v1/namespaces/a/pods/p/exec");
        let offered = format!("v4.channel.k8s.io, {TOKEN_PROTOCOL}YWJj");
        request.headers.insert(header::SEC_WEBSOCKET_PROTOCOL, offered.parse().expect("a header"));
        remove_token_protocol(&mut request);
        assert_eq!(request.header("sec-websocket-protocol"), "v4.channel.k8s.io");
    }

    #[test]
    fn keys_of_extras_are_encoded_again() {
        let mut request = Request::new(Method::GET, "/api");
        let name = HeaderName::from_static("impersonate-extra-a%2fb");
        request.headers.append(name, HeaderValue::from_static("c"));
        encode_extra_again(&mut request);
        assert_eq!(request.header("impersonate-extra-a%252fb"), "c");
        assert_eq!(request.header("impersonate-extra-a%2fb"), "");
    }
}
