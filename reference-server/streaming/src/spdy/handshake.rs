//! The handshake. The client lists protocols, and the server chooses one.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::upgrade::{Handshake, bare, text};

const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");

/// Why a SPDY handshake is rejected. The texts are those of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The request has no header with protocols.
    #[error("header X-Stream-Protocol-Version does not exist in request with {headers} headers")]
    NoHeader {
        /// The number of headers in the request.
        headers: usize,
    },
    /// The header lists no protocol.
    #[error("header X-Stream-Protocol-Version contains [], but no valid protocols")]
    NoProtocol,
    /// The server supports none of the protocols.
    #[error(
        "unable to negotiate protocol: client supports [{}], server accepts [{}]",
        .offered.join(" "), .known.join(" ")
    )]
    UnknownProtocol {
        /// The protocols of the client.
        offered: Vec<String>,
        /// The protocols of the server.
        known: &'static [&'static str],
    },
}

impl HandshakeError {
    /// Returns the stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoHeader { .. } => "spdy-no-protocol-header",
            Self::NoProtocol => "spdy-no-protocol",
            Self::UnknownProtocol { .. } => "spdy-unknown-protocol",
        }
    }

    /// Returns the HTTP response of this rejection.
    pub fn response(&self) -> Response<Bytes> {
        let status = match self {
            Self::NoHeader { .. } | Self::NoProtocol => StatusCode::BAD_REQUEST,
            Self::UnknownProtocol { .. } => StatusCode::FORBIDDEN,
        };
        let mut response = text(status, format!("unable to upgrade: {self}\n"));
        if let Self::UnknownProtocol { known, .. } = self {
            for protocol in *known {
                response.headers_mut().append(ACCEPTED, HeaderValue::from_static(protocol));
            }
        }
        response
    }
}

impl From<HandshakeError> for Handshake {
    fn from(error: HandshakeError) -> Self {
        error.response().into()
    }
}

/// Chooses the first protocol in the request headers that is in `known`.
pub fn negotiate(
    headers: &HeaderMap,
    known: &'static [&'static str],
) -> Result<&'static str, HandshakeError> {
    if !headers.contains_key(VERSION) {
        return Err(HandshakeError::NoHeader { headers: headers.len() });
    }
    let values = headers.get_all(VERSION).iter().filter_map(|value| value.to_str().ok());
    let offered: Vec<&str> = values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .collect();
    if offered.is_empty() {
        return Err(HandshakeError::NoProtocol);
    }
    choose(&offered, known)
}

/// Chooses the first protocol of `offered` that is in `known`.
pub fn choose(
    offered: &[&str],
    known: &'static [&'static str],
) -> Result<&'static str, HandshakeError> {
    let chosen = offered.iter().find_map(|one| known.iter().find(|known| *known == one).copied());
    chosen.ok_or_else(|| HandshakeError::UnknownProtocol {
        offered: offered.iter().map(|one| (*one).to_owned()).collect(),
        known,
    })
}

/// Returns the 101 response for a protocol.
pub fn switching_protocols(protocol: &'static str) -> Response<Bytes> {
    let mut response = bare(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    headers.insert(VERSION, HeaderValue::from_static(protocol));
    response
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KNOWN: &[&str] =
        &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];

    fn headers(offered: &[&'static str]) -> HeaderMap {
        offered.iter().map(|one| (VERSION, HeaderValue::from_static(one))).collect()
    }

    #[rstest]
    #[case(&["v4.channel.k8s.io", "v3.channel.k8s.io"], "v4.channel.k8s.io")]
    #[case(&["v2.channel.k8s.io", "v4.channel.k8s.io"], "v2.channel.k8s.io")]
    #[case(&["bogus", "v3.channel.k8s.io"], "v3.channel.k8s.io")]
    #[case(&["v5.channel.k8s.io,v4.channel.k8s.io"], "v4.channel.k8s.io")]
    fn the_first_known_protocol_wins(#[case] offered: &[&'static str], #[case] chosen: &str) {
        assert_eq!(negotiate(&headers(offered), KNOWN), Ok(chosen));
    }

    #[rstest]
    #[case(&[], 400, 0)]
    #[case(&["", " , "], 400, 0)]
    #[case(&["v9.channel.k8s.io"], 403, 4)]
    fn without_a_common_protocol_the_upgrade_is_rejected(
        #[case] offered: &[&'static str],
        #[case] status: u16,
        #[case] accepted: usize,
    ) {
        let response =
            negotiate(&headers(offered), KNOWN).expect_err("no common protocol").response();
        let listed = response.headers().get_all(ACCEPTED).iter().count();
        assert_eq!((response.status().as_u16(), listed), (status, accepted));
    }
}
