//! Upgraded connections: a pump between client and server that decodes, edits and encodes frames.
//!
//! [`Session`] describes a connection after its handshake. [`websocket`] and [`spdy`] edit frames,
//! and [`command`] edits what exec and attach carry, whatever the framing.

pub(crate) mod command;
mod pump;
mod session;
pub(crate) mod spdy;
pub(crate) mod websocket;

use bytes::Bytes;

use crate::exchange::{Body, Io, Request, Response};
use crate::middleware::{Middleware, responses};

pub(crate) use pump::{Flow, Pump, Relay, unchanged};
pub(crate) use session::{Framing, Session, is_command, is_websocket, protocol};

/// The server's side of an upgraded connection.
type Connection = Box<dyn Io>;

/// Replaces the server's side of each upgraded connection by what `wrap` returns for it.
pub(crate) fn sessions(
    wrap: impl Fn(&Session, Connection) -> Connection + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    responses(move |request, response| wrap_session(request, response, &wrap))
}

/// Wraps the upgraded connection of a response, if it is one.
pub(crate) fn wrap_session(
    request: &Request,
    response: &mut Response,
    wrap: &dyn Fn(&Session, Connection) -> Connection,
) {
    let Some(session) = Session::of(request, response) else { return };
    let body = std::mem::replace(&mut response.body, Body::Whole(Bytes::new()));
    response.body = match body {
        Body::Upgraded(server) => Body::Upgraded(wrap(&session, server)),
        other => other,
    };
}
