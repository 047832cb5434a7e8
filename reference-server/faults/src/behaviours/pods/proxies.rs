//! The proxy subresources of pods, services and nodes.

use bytes::Bytes;
use http::{Method, StatusCode, header};
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::failures::method_not_allowed;
use crate::document;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, requests, responses};

/// The headers that the server itself needs.
const NEEDED: [&str; 7] = [
    "authorization",
    "connection",
    "content-length",
    "host",
    "transfer-encoding",
    "upgrade",
    "x-stream-protocol-version",
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ProxyByGetOnly => around(|request, next| {
            Box::pin(async move {
                if is_proxy(&request) && request.method != Method::GET {
                    return method_not_allowed();
                }
                next.send(request).await
            })
        }),
        Fault::ProxyPathLost => proxied(|request| {
            let (prefix, rest) = split(&request.path);
            if !rest.is_empty() {
                request.path = format!("{prefix}/");
            }
        }),
        Fault::ProxyQueryLost => proxied(|request| request.raw_query.clear()),
        Fault::ProxyBodyLost => proxied(|request| request.body = Bytes::new()),
        Fault::ProxyUpgradeRejected => proxied(|request| {
            request.headers.remove(header::UPGRADE);
            request.headers.remove(header::CONNECTION);
            request.upgrade = None;
        }),
        Fault::ProxyHeadersLost => proxied(|request| {
            let names: Vec<_> = request.headers.keys().cloned().collect();
            for name in names {
                if !NEEDED.contains(&name.as_str()) && !name.as_str().starts_with("impersonate-") {
                    request.headers.remove(name);
                }
            }
        }),
        Fault::ProxyStatusLost => responses(|request, response| {
            let redirect = split(&request.path).1.is_empty();
            if is_proxy(request) && !redirect && is_of_backend(response) {
                response.status = StatusCode::OK;
            }
        }),
        Fault::ServicePortNamesUnknown => proxied(without_port_name),
        Fault::NothingBehindIsInternal => {
            failed("services", StatusCode::SERVICE_UNAVAILABLE, |status| {
                let message = status["message"].as_str().unwrap_or_default();
                message.starts_with("no endpoints available").then(|| {
                    let message = format!("Internal error occurred: {message}");
                    Response::failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
                })
            })
        }
        Fault::UnknownNodeIsDown => failed("nodes", StatusCode::NOT_FOUND, |status| {
            (status["details"]["kind"] == "nodes").then(node_is_down)
        }),
        _ => return None,
    })
}

fn is_proxy(request: &Request) -> bool {
    request.target().subresource == "proxy"
}

/// Edits the requests for a proxy.
fn proxied(edit: fn(&mut Request)) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_proxy(request) {
            edit(request);
        }
    })
}

/// Replaces failures of a proxy of this resource, given their Status.
fn failed(
    resource: &'static str,
    code: StatusCode,
    replace: fn(&Value) -> Option<Response>,
) -> Box<dyn Middleware> {
    responses(move |request, response| {
        if is_proxy(request)
            && request.target().is_core(resource)
            && response.status == code
            && let Some(status) = response.value().filter(document::is_failure)
            && let Some(replaced) = replace(&status)
        {
            *response = replaced;
        }
    })
}

/// The path up to the subresource, and what follows it.
pub(super) fn split(path: &str) -> (&str, &str) {
    let segments = if path.starts_with("/api/v1/namespaces/") { 7 } else { 5 };
    let end = path.match_indices('/').nth(segments).map_or(path.len(), |(at, _)| at);
    path.split_at(end)
}

/// Returns true for a response of the backend, and false for one of the server itself.
fn is_of_backend(response: &Response) -> bool {
    let upgraded = response.status == StatusCode::SWITCHING_PROTOCOLS;
    !upgraded && !response.value().is_some_and(|value| document::is_failure(&value))
}

/// Replaces the name of a service port by a number that no port has.
fn without_port_name(request: &mut Request) {
    let target = request.target();
    let name = target.name.split(':').collect::<Vec<_>>();
    let port = match name.as_slice() {
        [_, port] | [_, _, port] => *port,
        _ => return,
    };
    if !target.is_core("services") || port.is_empty() || port.parse::<u16>().is_ok() {
        return;
    }
    let (prefix, rest) = split(&request.path);
    let unknown = target.name.strip_suffix(port).unwrap_or_default();
    if let Some((collection, _)) = prefix.trim_end_matches("/proxy").rsplit_once('/') {
        request.path = format!("{collection}/{unknown}0/proxy{rest}");
    }
}

/// The error of a server that cannot reach the node, which has no reason.
fn node_is_down() -> Response {
    let message = "error dialing backend: no node of this name responds";
    let mut response = Response::failure(StatusCode::INTERNAL_SERVER_ERROR, "", message);
    response.edit_value(|status| {
        if let Some(status) = status.as_object_mut() {
            status.remove("reason");
        }
    });
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_after_the_subresource() {
        for (path, parts) in [
            (
                "/api/v1/namespaces/n/pods/p:80/proxy/a/b",
                ("/api/v1/namespaces/n/pods/p:80/proxy", "/a/b"),
            ),
            ("/api/v1/nodes/n/proxy/proxy/a", ("/api/v1/nodes/n/proxy", "/proxy/a")),
            ("/api/v1/nodes/n/proxy", ("/api/v1/nodes/n/proxy", "")),
        ] {
            assert_eq!(split(path), parts);
        }
    }

    #[test]
    fn named_ports_of_services_become_unknown_ones() {
        for (path, expected) in [
            ("/services/http:s:web/proxy/a", "/services/http:s:0/proxy/a"),
            ("/services/s:web/proxy", "/services/s:0/proxy"),
            ("/services/s:80/proxy/", "/services/s:80/proxy/"),
            ("/pods/p:web/proxy/", "/pods/p:web/proxy/"),
        ] {
            let mut request = Request::new(Method::GET, &format!("/api/v1/namespaces/n{path}"));
            without_port_name(&mut request);
            assert_eq!(request.path, format!("/api/v1/namespaces/n{expected}"));
        }
    }
}
