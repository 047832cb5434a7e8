//! The health endpoints: `/healthz`, `/livez` and `/readyz`, and their single checks.

use http::{Method, StatusCode};

use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, only, requests, responses};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let middleware = match fault {
        Fault::HealthWithoutBody => responses(|request, response| {
            if endpoint(&request.path).is_some_and(|(_, check)| check.is_empty()) {
                response.set_bytes("");
            }
        }),
        Fault::HealthVerboseIgnored => without("verbose"),
        Fault::HealthExclusionsIgnored => without("exclude"),
        Fault::HealthChecksUnknown => responses(|request, response| {
            if endpoint(&request.path).is_some_and(|(_, check)| !check.is_empty()) {
                *response = Response::text(StatusCode::NOT_FOUND, "404 page not found\n");
            }
        }),
        Fault::HealthChecksInvented => responses(|request, response| {
            if endpoint(&request.path).is_some_and(|(_, check)| !check.is_empty()) {
                *response = Response::text(StatusCode::OK, "ok");
            }
        }),
        Fault::HealthExclusionsChecked => around(|request, next| {
            Box::pin(async move {
                let mut verbose = request.clone();
                verbose.edit_query(|query| query.set("verbose", "true"));
                let checks = next.send(verbose).await;
                if String::from_utf8_lossy(checks.bytes()).contains("cannot be excluded") {
                    return Response::text(StatusCode::BAD_REQUEST, "unknown check\n");
                }
                next.send(request).await
            })
        }),
        _ => return None,
    };
    Some(only(is_health, middleware))
}

fn is_health(request: &Request) -> bool {
    request.method == Method::GET && endpoint(&request.path).is_some()
}

/// Returns the endpoint of a path, and the single check; empty if the path is the endpoint itself.
fn endpoint(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/')?;
    let (endpoint, check) = path.split_once('/').unwrap_or((path, ""));
    matches!(endpoint, "healthz" | "livez" | "readyz").then_some((endpoint, check))
}

/// Removes a parameter of the query.
fn without(parameter: &'static str) -> Box<dyn Middleware> {
    requests(move |request| {
        request.edit_query(|query| {
            query.remove(parameter);
        });
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/readyz", Some(("readyz", "")))]
    #[case("/livez/poststarthook/a", Some(("livez", "poststarthook/a")))]
    #[case("/version", None)]
    fn endpoints_have_checks(#[case] path: &str, #[case] expected: Option<(&str, &str)>) {
        assert_eq!(endpoint(path), expected);
    }

    #[tokio::test]
    async fn parameters_are_removed() {
        let request = Request::new(Method::GET, "/readyz?verbose&exclude=ping");
        let seen = crate::behaviours::sent(of(Fault::HealthVerboseIgnored), request).await;
        let query = seen.expect("a fault of this file").query();
        assert_eq!((query.get("verbose"), query.get("exclude")), (None, Some("ping")));
    }
}
