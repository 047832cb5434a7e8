//! The kind of an upgraded connection, from its request and its 101 response.

use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderMap, HeaderName};
use kubeproof_apimachinery::request::Query;
use kubeproof_streaming::Protocol;
use kubeproof_streaming::websocket::channel::Coding;

use crate::exchange::{Body, Request, Response};

/// The header in which SPDY clients and servers name protocols.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// How an upgraded connection carries its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// WebSocket messages with a channel each.
    Channels(Coding),
    /// SPDY frames.
    Spdy,
    /// SPDY frames in binary WebSocket messages.
    Tunnel,
    /// WebSocket messages with pieces of a log.
    Log(Coding),
    /// WebSocket messages with an event each.
    Watch,
}

/// An upgraded connection to one of the server's own endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// `exec`, `attach`, `portforward`, `log`; empty for a watch.
    pub(crate) subresource: String,
    pub(crate) framing: Framing,
    /// The version of the protocol of exec and attach, from 1 to 5.
    pub(crate) version: u8,
    pub(crate) query: Query,
}

impl Session {
    /// Returns none for a response that is not upgraded, and for a connection to a backend of the
    /// proxy subresources.
    pub(crate) fn of(request: &Request, response: &Response) -> Option<Self> {
        if !matches!(response.body, Body::Upgraded(_)) {
            return None;
        }
        let subresource = request.target().subresource;
        let chosen = chosen_protocol(&response.headers);
        let framing = match (Protocol::of(&response.headers)?, subresource.as_str()) {
            (Protocol::Other, _) | (_, "proxy") => return None,
            (Protocol::Spdy, _) => Framing::Spdy,
            (Protocol::Websocket, "portforward") if chosen.starts_with("SPDY/3.1+") => {
                Framing::Tunnel
            }
            (Protocol::Websocket, "exec" | "attach" | "portforward") => {
                Framing::Channels(Coding::of(chosen))
            }
            (Protocol::Websocket, "log") => Framing::Log(Coding::of(chosen)),
            (Protocol::Websocket, _) => Framing::Watch,
        };
        let version = match chosen.as_bytes() {
            [b'v', digit @ b'1'..=b'9', b'.', ..] => digit - b'0',
            _ => 1,
        };
        Some(Self { subresource, framing, version, query: request.query() })
    }

    /// Returns true for exec and attach.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.subresource.as_str(), "exec" | "attach")
    }

    pub(crate) fn is_port_forward(&self) -> bool {
        self.subresource == "portforward"
    }

    /// Returns true for a WebSocket, with or without tunnelled SPDY.
    pub(crate) fn is_websocket(&self) -> bool {
        self.framing != Framing::Spdy
    }

    /// Returns true for SPDY frames, tunnelled or not.
    pub(crate) fn is_spdy(&self) -> bool {
        matches!(self.framing, Framing::Spdy | Framing::Tunnel)
    }
}

fn chosen_protocol(headers: &HeaderMap) -> &str {
    let value = headers.get(SEC_WEBSOCKET_PROTOCOL).or_else(|| headers.get(STREAM_PROTOCOL));
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the protocol that a request asks for, unless a backend of a proxy has to respond.
pub(crate) fn protocol(request: &Request) -> Option<Protocol> {
    if request.target().subresource == "proxy" {
        return None;
    }
    Protocol::of(&request.headers)
}

/// Returns true if a request asks the server itself for a WebSocket.
pub(crate) fn is_websocket(request: &Request) -> bool {
    protocol(request) == Some(Protocol::Websocket)
}

/// Returns true if a request is for exec or attach.
pub(crate) fn is_command(request: &Request) -> bool {
    let target = request.target();
    target.is_core("pods") && matches!(target.subresource.as_str(), "exec" | "attach")
}
