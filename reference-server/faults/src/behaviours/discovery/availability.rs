//! Discovery documents that the server does not return. Its errors stay.

use http::{HeaderValue, StatusCode, header};

use super::documents::is_discovery;
use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, only, responses};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::DiscoveryRedirects => only(
            is_discovery,
            around(|mut request, next| {
                Box::pin(async move {
                    let slashed = format!("{}/", request.path);
                    if let Some(path) = request.path.strip_suffix('/') {
                        request.path = path.to_owned();
                        return next.send(request).await;
                    }
                    let response = next.send(request).await;
                    if response.status.is_success() { redirect_to(&slashed) } else { response }
                })
            }),
        ),
        Fault::NoDiscovery => {
            missing(|request| is_discovery(request) || request.path.starts_with("/openapi/"))
        }
        Fault::ApisMissing => missing(|request| request.path == "/apis"),
        _ => return None,
    })
}

/// Returns 404 instead of documents.
fn missing(applies: fn(&Request) -> bool) -> Box<dyn Middleware> {
    let replace = |request: &Request, response: &mut Response| {
        if response.status.is_success() {
            *response = not_found(request);
        }
    };
    only(applies, responses(replace))
}

fn redirect_to(path: &str) -> Response {
    let mut response = Response::text(StatusCode::TEMPORARY_REDIRECT, "Temporary Redirect");
    if let Ok(location) = HeaderValue::from_str(path) {
        response.headers.insert(header::LOCATION, location);
    }
    response
}

fn not_found(request: &Request) -> Response {
    let message = format!("the server could not find {}", request.path);
    Response::failure(StatusCode::NOT_FOUND, "NotFound", message)
}
