//! The handshake of RFC 6455, and what Kubernetes lets clients say in their list of subprotocols.
//!
//! Refusals are the short ones of a real server, without a Status: nothing that speaks WebSocket would read it. One thing a
//! real server does is left out: when the client names no subprotocol it still answers an empty `Sec-WebSocket-Protocol`,
//! on which the RFC has browsers fail.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::respond::Answer;
use crate::{Fault, Faults};

/// In front of a bearer token that travels as a subprotocol, which is all that a browser can set.
const TOKEN_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The subprotocols that a client offers, in its order; a bearer token among them is left out.
pub(crate) fn offers(headers: &HeaderMap) -> Vec<&str> {
    all_offers(headers).filter(|offer| !offer.starts_with(TOKEN_PREFIX)).collect()
}

fn all_offers(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let offers = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    offers.map(str::trim).filter(|offer| !offer.is_empty())
}

/// A token among the subprotocols cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnusableToken {
    #[error("the token among the subprotocols is no base64url without padding")]
    Undecodable,
    /// The answer would have to repeat the token.
    #[error("there is no subprotocol besides the token")]
    Alone,
}

/// The bearer token among the subprotocols.
pub(crate) fn token(headers: &HeaderMap) -> Result<Option<String>, UnusableToken> {
    let Some(encoded) = all_offers(headers).find_map(|offer| offer.strip_prefix(TOKEN_PREFIX)) else {
        return Ok(None);
    };
    let token = URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|token| String::from_utf8(token).ok());
    let token = token.filter(|token| !token.is_empty()).ok_or(UnusableToken::Undecodable)?;
    if offers(headers).is_empty() { Err(UnusableToken::Alone) } else { Ok(Some(token)) }
}

/// Checks what the RFC asks of a client.
pub(crate) fn check(method: &Method, headers: &HeaderMap, faults: Faults) -> Result<(), Box<Answer>> {
    let refuse = |code, why: &'static str| Box::new(Answer::text(code, why));
    if method != Method::GET {
        return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "bad method"));
    }
    let version_13 = headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    if !version_13 && !faults.on(Fault::WebsocketVersionUnchecked) {
        let mut answer = refuse(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
        answer.headers.push((header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")));
        return Err(answer);
    }
    if headers.get(header::SEC_WEBSOCKET_KEY).is_none_or(HeaderValue::is_empty) {
        return Err(refuse(StatusCode::BAD_REQUEST, "mismatch challenge/response"));
    }
    Ok(())
}

/// Chooses the first of the client's subprotocols that is in `known`. A client that offers none gets the empty one.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    known: &[&'static str],
    faults: Faults,
) -> Result<&'static str, Box<Answer>> {
    let offers = offers(headers);
    let find = |offer: &&str| known.iter().find(|known| *known == offer).copied();
    let chosen = if faults.on(Fault::WebsocketLastOfferWins) {
        offers.iter().rev().find_map(find)
    } else {
        offers.iter().find_map(find)
    };
    match chosen {
        Some(chosen) => Ok(chosen),
        None if offers.is_empty() => Ok(""),
        None if faults.on(Fault::WebsocketUnknownProtocolAccepted) => Ok(""),
        None => Err(Box::new(forbidden())),
    }
}

/// No common subprotocol, or no origin.
pub(crate) fn forbidden() -> Answer {
    Answer::bare(StatusCode::FORBIDDEN).header(header::CONNECTION, HeaderValue::from_static("close"))
}

/// The answer that turns the connection over.
pub(crate) fn switch(headers: &HeaderMap, protocol: &str, faults: Faults) -> Answer {
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    let accept = if faults.on(Fault::WebsocketAcceptIsKey) {
        String::from_utf8_lossy(key).into_owned()
    } else {
        derive_accept_key(key)
    };
    let first = all_offers(headers).next().unwrap_or_default();
    let named = match protocol {
        _ if faults.on(Fault::WebsocketProtocolNotEchoed) => "",
        _ if faults.on(Fault::WebsocketFirstOfferEchoed) => first,
        _ if faults.on(Fault::WebsocketTokenEchoed) && first.starts_with(TOKEN_PREFIX) => first,
        chosen => chosen,
    };
    let mut answer = Answer::bare(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::UPGRADE, HeaderValue::from_static("websocket"))
        .header(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    let mut add = |name: HeaderName, value: &str| {
        // Base64, and what came as a header.
        if let Ok(value) = HeaderValue::from_str(value) {
            answer.headers.push((name, value));
        }
    };
    add(header::SEC_WEBSOCKET_ACCEPT, &accept);
    if !named.is_empty() {
        add(header::SEC_WEBSOCKET_PROTOCOL, named);
    }
    if faults.on(Fault::WebsocketExtensionUnasked) {
        add(header::SEC_WEBSOCKET_EXTENSIONS, "permessage-deflate");
    }
    answer
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KNOWN: &[&str] = &["v4.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];

    fn headers(offers: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(offers));
        headers
    }

    #[rstest]
    #[case("v4.channel.k8s.io, channel.k8s.io", Some("v4.channel.k8s.io"))]
    #[case("channel.k8s.io,v4.channel.k8s.io", Some("channel.k8s.io"))]
    #[case("bogus, v4.channel.k8s.io", Some("v4.channel.k8s.io"))]
    #[case("base64url.bearer.authorization.k8s.io.eA, base64.channel.k8s.io", Some("base64.channel.k8s.io"))]
    #[case("", Some(""))]
    #[case("v2.channel.k8s.io", None)]
    fn the_first_offer_that_is_known_wins(#[case] offers: &'static str, #[case] chosen: Option<&str>) {
        assert_eq!(negotiate(&headers(offers), KNOWN, Faults::none()).ok(), chosen);
    }

    #[test]
    fn the_key_is_answered_as_the_rfc_has_it() {
        let answer = switch(&headers("v4.channel.k8s.io"), "v4.channel.k8s.io", Faults::none());
        let text: Vec<_> = answer.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        let expected = [
            "upgrade: \"websocket\"",
            "connection: \"Upgrade\"",
            "sec-websocket-accept: \"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\"",
            "sec-websocket-protocol: \"v4.channel.k8s.io\"",
        ];
        assert_eq!(text, expected);
    }

    #[test]
    fn a_client_that_offers_nothing_gets_no_protocol_header() {
        let answer = switch(&headers(""), "", Faults::none());
        assert!(answer.headers.iter().all(|(name, _)| name != header::SEC_WEBSOCKET_PROTOCOL));
    }

    #[rstest]
    #[case("base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io", Ok(Some("secret")))]
    #[case("v4.channel.k8s.io", Ok(None))]
    #[case("base64url.bearer.authorization.k8s.io.c2VjcmV0", Err(UnusableToken::Alone))]
    #[case("base64url.bearer.authorization.k8s.io.!, v4.channel.k8s.io", Err(UnusableToken::Undecodable))]
    fn tokens_of_browsers(
        #[case] offers: &'static str,
        #[case] expected: Result<Option<&str>, UnusableToken>,
    ) {
        assert_eq!(
            token(&headers(offers)).as_ref().map(Option::as_deref),
            expected.as_ref().map(|token| *token)
        );
    }

    #[rstest]
    #[case(Method::POST, "13", "key", 405)]
    #[case(Method::GET, "8", "key", 400)]
    #[case(Method::GET, "13", "", 400)]
    fn what_is_no_handshake(
        #[case] method: Method,
        #[case] version: &'static str,
        #[case] key: &'static str,
        #[case] code: u16,
    ) {
        let mut headers = headers("");
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(version));
        headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static(key));
        assert_eq!(check(&method, &headers, Faults::none()).expect_err("a refusal").status.as_u16(), code);
    }
}
