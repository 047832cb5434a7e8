//! Tokens of service accounts: audiences, lifetimes and the objects to which they are bound.

use http::Method;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::requests::rewrite;
use crate::exchange::Request;
use crate::middleware::{Middleware, Next, around, documents, only, requests};

/// The shortest lifetime of a token, in seconds.
const SHORTEST: i64 = 600;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::TokensAreForTheServer => around(|request, next| Box::pin(for_server(request, next))),
        Fault::TokenReviewsIgnoreAudiences => requests(|request| {
            if request.method == Method::POST && request.target().resource == "tokenreviews" {
                rewrite(request, |review| drop(remove(&mut review["spec"], "audiences")));
            }
        }),
        Fault::TokenReviewsOmitAudiences => only(
            |request| request.target().resource == "tokenreviews",
            documents(|_, review| drop(remove(&mut review["status"], "audiences"))),
        ),
        Fault::ShortTokensAccepted => token_requests(|spec| {
            if spec["expirationSeconds"].as_i64().is_some_and(|seconds| seconds < SHORTEST) {
                spec["expirationSeconds"] = SHORTEST.into();
            }
        }),
        Fault::TokensWithoutExpiration => only(
            is_token_request,
            documents(|_, token| drop(remove(&mut token["status"], "expirationTimestamp"))),
        ),
        Fault::TokenReviewsWithoutGroups => only(
            |request| request.target().resource == "tokenreviews",
            documents(|_, review| {
                let user = review.pointer_mut("/status/user").and_then(Value::as_object_mut);
                if let Some(user) = user {
                    user.retain(|name, _| name != "uid" && name != "groups");
                }
            }),
        ),
        Fault::TokensBoundToAnyUid => token_requests(|spec| {
            if spec.get("boundObjectRef").is_some() {
                drop(remove(&mut spec["boundObjectRef"], "uid"));
            }
        }),
        Fault::TokenRequestOfAnyName => requests(|request| {
            if is_token_request(request) {
                rewrite(request, |token| drop(remove(token, "metadata")));
            }
        }),
        Fault::TokensAreNotBound => token_requests(|spec| drop(remove(spec, "boundObjectRef"))),
        _ => return None,
    })
}

fn is_token_request(request: &Request) -> bool {
    request.method == Method::POST && request.target().subresource == "token"
}

/// Edits the spec of each token request.
fn token_requests(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_token_request(request) {
            rewrite(request, |body| edit(&mut body["spec"]));
        }
    })
}

/// Requests a token for the server, and shows the audiences of the client.
async fn for_server(mut request: Request, next: Next<'_>) -> crate::exchange::Response {
    let mut audiences = None;
    if is_token_request(&request) {
        rewrite(&mut request, |body| audiences = remove(&mut body["spec"], "audiences"));
    }
    let mut response = next.send(request).await;
    if let Some(audiences) = audiences.filter(|_| response.status.is_success()) {
        response.edit_value(|token| token["spec"]["audiences"] = audiences);
    }
    response
}
