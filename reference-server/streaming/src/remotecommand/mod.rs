//! Commands: exec and attach.
//!
//! The streams of a command are stdin, stdout, stderr, its exit status (`error`) and the size of
//! its terminal (`resize`). [`serve`] negotiates the protocol and connects them to a [`Process`].

#[cfg(test)]
mod backpressure;
mod output;
mod process;
mod resize;
mod spdy;
pub mod status;
mod websocket;

use std::fmt::Display;
use std::future::Future;

use http::StatusCode;

pub use self::process::{ExecRequest, Exit, Pipe, Process, TerminalSize};
use crate::spdy::handshake as spdy_handshake;
use crate::upgrade::{Handshake, Protocol, Upgrade};
use crate::websocket::channel::Coding;
use crate::websocket::handshake as websocket_handshake;

/// The protocols over SPDY, in the order in which a rejection lists them.
const SPDY_PROTOCOLS: &[&str] =
    &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// The subprotocols of WebSocket before v5.
const WEBSOCKET_PROTOCOLS: &[&str] =
    &["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];
/// Wins at any place in the list of the client.
const V5: &str = "v5.channel.k8s.io";
const NO_STREAMS: &str = "you must specify at least 1 of stdin, stdout, stderr";

/// A version of the remote command protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The exit status is a text, and only failures have one.
    V1,
    /// Fixes the order of the streams in SPDY.
    V2,
    /// Adds terminal sizes.
    V3,
    /// The exit status is a JSON Status.
    V4,
    /// Lets a WebSocket client close stdin.
    V5,
}

impl Version {
    /// Returns the version of a protocol, such as `v4.base64.channel.k8s.io`.
    pub fn of(protocol: &str) -> Self {
        match protocol.split_once('.').map(|(version, _)| version) {
            Some("v5") => Self::V5,
            Some("v4") => Self::V4,
            Some("v3") => Self::V3,
            Some("v2") => Self::V2,
            _ => Self::V1,
        }
    }

    fn status_is_json(self) -> bool {
        self >= Self::V4
    }
}

/// Why a node rejects a command before it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The HTTP status of the response.
    pub status: StatusCode,
    /// The reason in plain text.
    pub message: String,
}

impl Rejection {
    fn without_streams(request: &ExecRequest) -> Option<Self> {
        let any = request.stdin || request.stdout || request.stderr;
        (!any).then(|| Self { status: StatusCode::BAD_REQUEST, message: NO_STREAMS.to_owned() })
    }
}

/// Serves a command. Calls `start` when the client has opened its streams.
///
/// An error of `start` goes to the error channel. A `rejection` is the HTTP response, except in v5.
/// There, kube-apiserver accepts the client before it asks the node, so the rejection goes to the
/// error channel.
pub fn serve<F, W, E>(
    upgrade: Upgrade,
    mut request: ExecRequest,
    rejection: Option<Rejection>,
    start: F,
) -> Handshake
where
    F: FnOnce(ExecRequest) -> W + Send + 'static,
    W: Future<Output = Result<Process, E>> + Send,
    E: Display + Send,
{
    let rejection = rejection.or_else(|| Rejection::without_streams(&request));
    // A terminal has one output.
    request.stderr &= !request.tty;
    match upgrade.protocol() {
        Protocol::Websocket => over_websocket(upgrade, request, rejection, start),
        Protocol::Spdy => over_spdy(upgrade, request, rejection, start),
        Protocol::Other => Handshake::reject_protocol(),
    }
}

fn over_websocket<F, W, E>(
    upgrade: Upgrade,
    request: ExecRequest,
    rejection: Option<Rejection>,
    start: F,
) -> Handshake
where
    F: FnOnce(ExecRequest) -> W + Send + 'static,
    W: Future<Output = Result<Process, E>> + Send,
    E: Display + Send,
{
    if let Err(error) = websocket_handshake::check(upgrade.method(), upgrade.headers()) {
        return error.into();
    }
    let is_v5 = websocket_handshake::protocols(upgrade.headers()).contains(&V5);
    let protocol = if is_v5 {
        V5
    } else {
        match websocket_handshake::negotiate(upgrade.headers(), WEBSOCKET_PROTOCOLS) {
            Ok(protocol) => protocol,
            Err(error) => return error.into(),
        }
    };
    let rejected = match rejection {
        Some(rejection) if !is_v5 => {
            return Handshake::reject(rejection.status, &rejection.message);
        }
        rejection => rejection.map(|rejection| rejection.message),
    };
    let dialect =
        websocket::Dialect { version: Version::of(protocol), coding: Coding::of(protocol) };
    let response = websocket_handshake::switching_protocols(upgrade.headers(), protocol);
    upgrade.accept(response, move |connection| {
        websocket::run(connection, dialect, request, rejected, start)
    })
}

fn over_spdy<F, W, E>(
    upgrade: Upgrade,
    request: ExecRequest,
    rejection: Option<Rejection>,
    start: F,
) -> Handshake
where
    F: FnOnce(ExecRequest) -> W + Send + 'static,
    W: Future<Output = Result<Process, E>> + Send,
    E: Display + Send,
{
    if let Some(rejection) = rejection {
        return Handshake::reject(rejection.status, &rejection.message);
    }
    let protocol = match spdy_handshake::negotiate(upgrade.headers(), SPDY_PROTOCOLS) {
        Ok(protocol) => protocol,
        Err(error) => return error.into(),
    };
    let version = Version::of(protocol);
    let response = spdy_handshake::switching_protocols(protocol);
    upgrade.accept(response, move |connection| spdy::run(connection, version, request, start))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("v5.channel.k8s.io", Version::V5)]
    #[case("v4.base64.channel.k8s.io", Version::V4)]
    #[case("v3.channel.k8s.io", Version::V3)]
    #[case("v2.channel.k8s.io", Version::V2)]
    #[case("base64.channel.k8s.io", Version::V1)]
    #[case("channel.k8s.io", Version::V1)]
    fn protocols_start_with_their_version(#[case] protocol: &str, #[case] version: Version) {
        assert_eq!(Version::of(protocol), version);
    }

    /// The cases list stdin, stdout and stderr.
    #[rstest]
    #[case([true, false, false], false)]
    #[case([false, true, false], false)]
    #[case([false, false, true], false)]
    #[case([false, false, false], true)]
    fn a_request_needs_at_least_one_stream(#[case] streams: [bool; 3], #[case] rejected: bool) {
        let [stdin, stdout, stderr] = streams;
        let request = ExecRequest { stdin, stdout, stderr, ..ExecRequest::default() };
        assert_eq!(Rejection::without_streams(&request).is_some(), rejected);
    }
}
