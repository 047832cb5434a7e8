//! The opening handshake, with the rules of Kubernetes for subprotocols.
//!
//! Rejections are short texts without a Status, as those of kube-apiserver. There is one
//! difference. For a client without subprotocols, kube-apiserver returns an empty
//! `Sec-WebSocket-Protocol`, which RFC 6455 forbids. This server omits the header.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::upgrade::{Handshake, Protocol, bare, text};

/// The prefix of a bearer token in the list of subprotocols. Browsers can set no other header.
const TOKEN_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Why a WebSocket handshake is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The method is not GET.
    #[error("bad method")]
    Method,
    /// `Sec-WebSocket-Version` is not 13.
    #[error("missing or bad WebSocket Version")]
    Version,
    /// `Sec-WebSocket-Key` is missing.
    #[error("mismatch challenge/response")]
    Key,
    /// The server supports none of the subprotocols.
    #[error("no common subprotocol")]
    Protocol,
    /// A watch of a browser has no `Origin`.
    #[error("missing Origin")]
    Origin,
    /// A watch names more than one subprotocol.
    #[error("more than one subprotocol")]
    SeveralProtocols,
}

impl HandshakeError {
    /// Returns the stable code of this error.
    pub fn code(self) -> &'static str {
        match self {
            Self::Method => "websocket-method",
            Self::Version => "websocket-version",
            Self::Key => "websocket-key",
            Self::Protocol => "websocket-protocol",
            Self::Origin => "websocket-origin",
            Self::SeveralProtocols => "websocket-several-protocols",
        }
    }

    /// Returns the HTTP response of this rejection.
    pub fn response(self) -> Response<Bytes> {
        let (status, extra) = match self {
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, None),
            Self::Version => (StatusCode::BAD_REQUEST, Some((header::SEC_WEBSOCKET_VERSION, "13"))),
            Self::Protocol | Self::Origin => {
                (StatusCode::FORBIDDEN, Some((header::CONNECTION, "close")))
            }
            Self::Key | Self::SeveralProtocols => (StatusCode::BAD_REQUEST, None),
        };
        let mut response = match self {
            Self::Protocol | Self::Origin | Self::SeveralProtocols => bare(status),
            _ => text(status, self.to_string()),
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

impl From<HandshakeError> for Handshake {
    fn from(error: HandshakeError) -> Self {
        error.response().into()
    }
}

/// Why a bearer token in the list of subprotocols is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is empty or not base64url.
    #[error("expected a token in base64url without padding among the subprotocols")]
    Encoding,
    /// The response would have to repeat the token as the chosen subprotocol.
    #[error("expected a subprotocol besides the token")]
    Alone,
}

impl TokenError {
    /// Returns the stable code of this error.
    pub fn code(self) -> &'static str {
        match self {
            Self::Encoding => "websocket-token-encoding",
            Self::Alone => "websocket-token-alone",
        }
    }
}

/// Returns the subprotocols of the client in its order, without a bearer token.
pub fn protocols(headers: &HeaderMap) -> Vec<&str> {
    all_protocols(headers).filter(|protocol| !protocol.starts_with(TOKEN_PREFIX)).collect()
}

fn all_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    protocols.map(str::trim).filter(|protocol| !protocol.is_empty())
}

/// Returns the bearer token in the subprotocols of a WebSocket request.
pub fn bearer_token(headers: &HeaderMap) -> Result<Option<String>, TokenError> {
    if Protocol::of(headers) != Some(Protocol::Websocket) {
        return Ok(None);
    }
    let mut all = all_protocols(headers);
    let Some(encoded) = all.find_map(|protocol| protocol.strip_prefix(TOKEN_PREFIX)) else {
        return Ok(None);
    };
    let token =
        URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|token| String::from_utf8(token).ok());
    let token = token.filter(|token| !token.is_empty()).ok_or(TokenError::Encoding)?;
    if protocols(headers).is_empty() { Err(TokenError::Alone) } else { Ok(Some(token)) }
}

/// Checks the method and the headers that RFC 6455 requires.
pub fn check(method: &Method, headers: &HeaderMap) -> Result<(), HandshakeError> {
    if method != Method::GET {
        return Err(HandshakeError::Method);
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(HandshakeError::Version);
    }
    if headers.get(header::SEC_WEBSOCKET_KEY).is_none_or(HeaderValue::is_empty) {
        return Err(HandshakeError::Key);
    }
    Ok(())
}

/// Chooses the first protocol of the client that is in `known`. Returns an empty one if it lists
/// none.
pub fn negotiate(
    headers: &HeaderMap,
    known: &[&'static str],
) -> Result<&'static str, HandshakeError> {
    let offered = protocols(headers);
    match offered.iter().find_map(|one| known.iter().find(|known| *known == one).copied()) {
        Some(chosen) => Ok(chosen),
        None if offered.is_empty() => Ok(""),
        None => Err(HandshakeError::Protocol),
    }
}

/// Returns the 101 response to a client with these headers. An empty protocol has no header.
pub fn switching_protocols(headers: &HeaderMap, protocol: &str) -> Response<Bytes> {
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    let mut response = bare(StatusCode::SWITCHING_PROTOCOLS);
    let added = response.headers_mut();
    added.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    added.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    let accept = derive_accept_key(key);
    let pairs = [
        (header::SEC_WEBSOCKET_ACCEPT, accept.as_str()),
        (header::SEC_WEBSOCKET_PROTOCOL, protocol),
    ];
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
        // Both values are valid: one is base64, the other one came as a header.
        if let Ok(value) = HeaderValue::from_str(value) {
            added.insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KNOWN: &[&str] = &["v4.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];

    fn headers(protocols: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(
            header::SEC_WEBSOCKET_KEY,
            HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="),
        );
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
        headers
    }

    #[rstest]
    #[case("v4.channel.k8s.io, channel.k8s.io", Some("v4.channel.k8s.io"))]
    #[case("channel.k8s.io,v4.channel.k8s.io", Some("channel.k8s.io"))]
    #[case("bogus, v4.channel.k8s.io", Some("v4.channel.k8s.io"))]
    #[case(
        "base64url.bearer.authorization.k8s.io.eA, base64.channel.k8s.io",
        Some("base64.channel.k8s.io")
    )]
    #[case("", Some(""))]
    #[case("v2.channel.k8s.io", None)]
    fn the_first_known_protocol_wins(#[case] offered: &'static str, #[case] chosen: Option<&str>) {
        assert_eq!(negotiate(&headers(offered), KNOWN).ok(), chosen);
    }

    #[test]
    fn the_accept_key_is_that_of_the_rfc() {
        let response = switching_protocols(&headers("v4.channel.k8s.io"), "v4.channel.k8s.io");
        let lines: Vec<_> =
            response.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        let expected = [
            "upgrade: \"websocket\"",
            "connection: \"Upgrade\"",
            "sec-websocket-accept: \"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\"",
            "sec-websocket-protocol: \"v4.channel.k8s.io\"",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_client_without_protocols_gets_no_protocol_header() {
        let response = switching_protocols(&headers(""), "");
        assert!(!response.headers().contains_key(header::SEC_WEBSOCKET_PROTOCOL));
    }

    #[rstest]
    #[case("base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io", Ok(Some("secret")))]
    #[case("v4.channel.k8s.io", Ok(None))]
    #[case("base64url.bearer.authorization.k8s.io.c2VjcmV0", Err(TokenError::Alone))]
    #[case("base64url.bearer.authorization.k8s.io.!, v4.channel.k8s.io", Err(TokenError::Encoding))]
    fn browsers_send_their_token_as_a_protocol(
        #[case] offered: &'static str,
        #[case] expected: Result<Option<&str>, TokenError>,
    ) {
        assert_eq!(
            bearer_token(&headers(offered)).as_ref().map(Option::as_deref),
            expected.as_ref().map(|token| *token)
        );
    }

    #[test]
    fn other_requests_have_no_token_in_their_protocols() {
        let mut headers =
            headers("base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io");
        headers.remove(header::UPGRADE);
        assert_eq!(bearer_token(&headers), Ok(None));
    }

    #[rstest]
    #[case(Method::POST, "13", "key", HandshakeError::Method, 405)]
    #[case(Method::GET, "8", "key", HandshakeError::Version, 400)]
    #[case(Method::GET, "13", "", HandshakeError::Key, 400)]
    fn an_incomplete_handshake_is_rejected(
        #[case] method: Method,
        #[case] version: &'static str,
        #[case] key: &'static str,
        #[case] expected: HandshakeError,
        #[case] status: u16,
    ) {
        let mut headers = headers("");
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(version));
        headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static(key));
        assert_eq!(check(&method, &headers), Err(expected));
        assert_eq!(expected.response().status().as_u16(), status);
    }
}
