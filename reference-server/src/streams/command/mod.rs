//! Commands: exec and attach, whose streams are the three of a process, its errors and the size of its terminal.

mod output;
#[cfg(test)]
mod pressure;
mod resize;
mod shared;
mod spdy;
mod status;
mod websocket;

use std::future::Future;

use http::StatusCode;

use super::spdy::handshake as spdy_handshake;
use super::websocket::channels::Coding;
use super::websocket::handshake as websocket_handshake;
use super::{Reply, Upgrade, Wish};
use crate::runtime::{ExecRequest, Process, StartError};
use crate::{Fault, Faults};

pub(crate) use shared::attaches;

/// The protocols of SPDY, best first, as a refusal lists them.
const SPDY_PROTOCOLS: &[&str] =
    &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// The subprotocols of WebSocket, but for the fifth.
const WEBSOCKET_PROTOCOLS: &[&str] =
    &["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];
/// Wins wherever it stands in the list of a client.
const V5: &str = "v5.channel.k8s.io";
const NO_STREAMS: &str = "you must specify at least 1 of stdin, stdout, stderr";

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V1,
    V2,
    /// Terminals can be resized.
    V3,
    /// The end is told as a Status.
    V4,
    /// A client can end stdin over WebSocket.
    V5,
}

impl Version {
    fn of(protocol: &str) -> Self {
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

/// Serves a command: answers the handshake, and drives what `start` starts.
///
/// `start` is called once the client has its streams; what goes wrong then is told on the error channel. What the node
/// would refuse before, `refusal`, is told as an answer; in the fifth version on the error channel too, since there the API
/// server accepts a client before it asks the node.
pub(crate) fn serve<F, W>(
    upgrade: Upgrade,
    request: ExecRequest,
    refusal: Option<Refusal>,
    start: F,
    faults: Faults,
) -> Reply
where
    F: FnOnce(ExecRequest) -> W + Send + 'static,
    W: Future<Output = Result<Process, StartError>> + Send,
{
    let refusal = refusal.or_else(|| Refusal::of_streams(&request, faults));
    match upgrade.wish() {
        Wish::Websocket => over_websocket(upgrade, effective(request, faults), refusal, start, faults),
        Wish::Spdy => over_spdy(upgrade, effective(request, faults), refusal, start, faults),
        Wish::Other => {
            let why = "unable to upgrade: missing upgrade headers in request";
            Reply::refused(StatusCode::BAD_REQUEST, why)
        }
    }
}

/// Why a node does not take a request on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: StatusCode,
    pub(crate) why: String,
}

impl Refusal {
    /// None for a request that asks for a stream at least.
    fn of_streams(request: &ExecRequest, faults: Faults) -> Option<Self> {
        let any = request.stdin || request.stdout || request.stderr || faults.on(Fault::NoStreamsAccepted);
        (!any).then(|| Self { code: StatusCode::BAD_REQUEST, why: NO_STREAMS.to_owned() })
    }
}

/// What the streams of a request are worth: with a terminal, errors come with the rest of the output.
fn effective(mut request: ExecRequest, faults: Faults) -> ExecRequest {
    request.tty |= faults.on(Fault::TerminalAlways);
    request.tty &= !faults.on(Fault::TerminalNever);
    request.stdin |= faults.on(Fault::UnaskedStdinStaysOpen);
    request.stderr &= !request.tty;
    request
}

fn over_websocket<F, W>(
    upgrade: Upgrade,
    request: ExecRequest,
    refusal: Option<Refusal>,
    start: F,
    faults: Faults,
) -> Reply
where
    F: FnOnce(ExecRequest) -> W + Send + 'static,
    W: Future<Output = Result<Process, StartError>> + Send,
{
    if let Err(refusal) = websocket_handshake::check(upgrade.method(), upgrade.headers(), faults) {
        return refusal.into();
    }
    let v5 = websocket_handshake::offers(upgrade.headers()).contains(&V5) && !faults.on(Fault::V5Unknown);
    let protocol = if v5 {
        V5
    } else {
        match websocket_handshake::negotiate(upgrade.headers(), WEBSOCKET_PROTOCOLS, faults) {
            Ok(protocol) => protocol,
            Err(refusal) => return refusal.into(),
        }
    };
    let refused = match refusal {
        Some(refusal) if !v5 => return Reply::refused(refusal.code, &refusal.why),
        refusal => refusal.map(|refusal| refusal.why),
    };
    let mut request = request;
    if faults.on(Fault::UnaskedOutputSent) {
        request.stdout = true;
        request.stderr = !request.tty;
    }
    let coding = if protocol.contains("base64") { Coding::Base64 } else { Coding::Binary };
    let dialect = websocket::Dialect { version: Version::of(protocol), coding, faults };
    let answer = websocket_handshake::switch(upgrade.headers(), protocol, faults);
    upgrade.switch(answer, move |connection| websocket::run(connection, dialect, request, refused, start))
}

fn over_spdy<F, W>(
    upgrade: Upgrade,
    request: ExecRequest,
    refusal: Option<Refusal>,
    start: F,
    faults: Faults,
) -> Reply
where
    F: FnOnce(ExecRequest) -> W + Send + 'static,
    W: Future<Output = Result<Process, StartError>> + Send,
{
    if let Some(refusal) = refusal {
        return Reply::refused(refusal.code, &refusal.why);
    }
    let protocol = match spdy_handshake::negotiate(upgrade.headers(), SPDY_PROTOCOLS, faults) {
        Ok(protocol) => protocol,
        Err(refusal) => return refusal.into(),
    };
    let version = Version::of(protocol);
    let answer = spdy_handshake::switch(protocol, faults);
    upgrade.switch(answer, move |connection| spdy::run(connection, version, request, start, faults))
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
    fn a_protocol_has_its_version_in_front(#[case] protocol: &str, #[case] version: Version) {
        assert_eq!(Version::of(protocol), version);
    }

    /// The streams that are asked for: stdin, stdout, stderr.
    #[rstest]
    #[case([true, false, false], false)]
    #[case([false, true, false], false)]
    #[case([false, false, true], false)]
    #[case([false, false, false], true)]
    fn any_one_stream_is_enough(#[case] asked: [bool; 3], #[case] refused: bool) {
        let [stdin, stdout, stderr] = asked;
        let request = ExecRequest { stdin, stdout, stderr, ..ExecRequest::default() };
        assert_eq!(Refusal::of_streams(&request, Faults::none()).is_some(), refused);
    }
}
