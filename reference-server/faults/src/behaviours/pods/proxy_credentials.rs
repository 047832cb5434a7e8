//! A proxy of pods that does not remove the credential of the client.
//!
//! The server removes the header, so the middleware forwards the request itself: over a
//! port-forward to the pod.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method};
use kubeproof_streaming::websocket::channel::Coding;
use kubeproof_streaming::websocket::frame::{Decoder, Opcode};
use serde_json::{Value, json};

use super::proxies::split;
use crate::behaviours::Fault;
use crate::exchange::{Body, Io, Request, Response};
use crate::middleware::{Middleware, Next, around};
use crate::streams::{Flow, Pump, Relay, websocket};
use crate::upstream;

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// The channels of the only port.
const DATA: u8 = 0;
const ERROR: u8 = 1;
/// A key as RFC 6455 has it in its example.
const KEY: HeaderValue = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    (fault == Fault::ProxyLeaksToken).then(|| {
        around(|request, next| {
            Box::pin(async move {
                match forward(&request, next).await {
                    Some(response) => response,
                    None => next.send(request).await,
                }
            })
        })
    })
}

/// Forwards a request to a pod. Returns none for what the server has to decide or reject.
async fn forward(request: &Request, next: Next<'_>) -> Option<Response> {
    let target = request.target();
    let (prefix, rest) = split(&request.path);
    let is_pod = target.is_core("pods") && target.subresource == "proxy";
    if !is_pod || rest.is_empty() || request.headers.contains_key(header::UPGRADE) {
        return None;
    }
    let (name, port) = target.name.split_once(':').unwrap_or((&target.name, ""));
    if !is_allowed(request, next).await {
        return None;
    }
    let pod = next.server.read(&target.object(name)).await?;
    let port = if port.is_empty() { first_port(&pod) } else { port.parse().ok()? };
    let host = format!("{}:{port}", pod["status"]["podIP"].as_str()?);
    let connection = connect(&target.object(name), port, next).await?;
    let mut response = upstream::exchange(connection, proxied(request, rest, &host)).await.ok()?;
    without_hops(&mut response.headers);
    let location =
        response.headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
    if let Some(path) = location.filter(|location| location.starts_with('/'))
        && let Ok(moved) = HeaderValue::from_str(&format!("{prefix}{path}"))
    {
        response.headers.insert(header::LOCATION, moved);
    }
    Some(response)
}

async fn is_allowed(request: &Request, next: Next<'_>) -> bool {
    let target = request.target();
    let review = json!({
        "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": { "resourceAttributes": {
            "verb": request.verb(), "resource": target.resource, "subresource": target.subresource,
            "namespace": target.namespace, "name": target.name, "version": target.version,
        } },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = request.by_same_client(Method::POST, path).with_json("application/json", &review);
    let review = next.server.send(asked).await.value().unwrap_or_default();
    review["status"]["allowed"] == true
}

/// The first port of the containers, or 80.
fn first_port(pod: &Value) -> u16 {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
    let first = ports.find_map(|port| u16::try_from(port["containerPort"].as_u64()?).ok());
    first.unwrap_or(80)
}

/// Opens a connection to a port of a pod, over a port-forward of the administrator.
async fn connect(pod: &str, port: u16, next: Next<'_>) -> Option<Box<dyn Io>> {
    let mut request = Request::new(Method::GET, &format!("{pod}/portforward?ports={port}"));
    for (name, value) in [
        (header::AUTHORIZATION, next.server.admin()),
        (header::CONNECTION, HeaderValue::from_static("Upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        (header::SEC_WEBSOCKET_KEY, KEY),
        (header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("v4.channel.k8s.io")),
    ] {
        request.headers.insert(name, value);
    }
    match next.server.send(request).await.body {
        Body::Upgraded(server) => {
            let (to_server, to_client) = (into_messages(), out_of_messages());
            Some(Pump { to_server, to_client, ..Pump::default() }.start(server))
        }
        _ => None,
    }
}

/// Puts bytes into messages of the data channel.
fn into_messages() -> Relay {
    Box::new(|input, output| {
        websocket::message(Coding::Binary, DATA, input).masked([1, 2, 3, 4]).encode(output);
        input.clear();
        Flow::Continue
    })
}

/// Takes bytes out of messages of the data channel. An error of the port ends the connection.
fn out_of_messages() -> Relay {
    let mut decoder = Decoder::default();
    let mut announced = [false; 2];
    Box::new(move |input, output| {
        while let Ok(Some(frame)) = decoder.decode(input) {
            if frame.opcode == Opcode::Close {
                return Flow::Stop;
            }
            // The first message of each channel is the port.
            if let Some((channel @ (DATA | ERROR), bytes)) =
                websocket::decode(Coding::Binary, &frame)
                && std::mem::replace(&mut announced[usize::from(channel)], true)
            {
                if channel == ERROR {
                    return Flow::Stop;
                }
                output.extend_from_slice(&bytes);
            }
        }
        Flow::Continue
    })
}

/// The request as the pod gets it, with the credential.
fn proxied(request: &Request, rest: &str, host: &str) -> Request {
    let mut proxied = request.clone();
    rest.clone_into(&mut proxied.path);
    without_hops(&mut proxied.headers);
    let forwarded = [
        ("x-forwarded-uri", HeaderValue::from_str(&request.path).ok()),
        ("x-forwarded-host", request.headers.get(header::HOST).cloned()),
        ("x-forwarded-proto", Some(HeaderValue::from_static("http"))),
        ("host", HeaderValue::from_str(host).ok()),
    ];
    for (name, value) in forwarded {
        if let Some(value) = value {
            proxied.headers.insert(name, value);
        }
    }
    proxied
}

fn without_hops(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn announcements_of_ports_are_no_content() {
        let (mut wire, mut content) = (BytesMut::new(), BytesMut::new());
        for (channel, bytes) in [(DATA, &b"\x50\x00"[..]), (ERROR, b"\x50\x00"), (DATA, b"HTTP")] {
            websocket::message(Coding::Binary, channel, bytes).encode(&mut wire);
        }
        let mut relay = out_of_messages();
        assert_eq!(relay(&mut wire, &mut content), Flow::Continue);
        assert_eq!(content, "HTTP");
        websocket::message(Coding::Binary, ERROR, b"refused").encode(&mut wire);
        assert_eq!(relay(&mut wire, &mut content), Flow::Stop);
    }
}
