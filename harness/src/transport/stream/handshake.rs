//! The request that upgrades a connection, and the validation of its response.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubeproof_cases::protocol::Carrier;

use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::exchange::Received;

/// A requested upgrade.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The protocol of the connection.
    pub over: Carrier,
    /// Subprotocols, the preferred one first.
    pub offers: Vec<String>,
    key: String,
}

impl Handshake {
    /// Creates a handshake with a random nonce.
    pub fn new(over: Carrier, offers: Vec<String>) -> Self {
        Self { over, offers, key: BASE64_STANDARD.encode(rand::random::<[u8; 16]>()) }
    }

    /// Returns the headers of the upgrade. Headers of a case replace these, and empty ones remove
    /// them.
    pub fn headers(&self, given: Vec<(String, String)>) -> Vec<(String, String)> {
        let own: Vec<(&str, String)> = match self.over {
            Carrier::Websocket => {
                let mut own = vec![
                    ("connection", "Upgrade".to_owned()),
                    ("upgrade", "websocket".to_owned()),
                    ("sec-websocket-version", "13".to_owned()),
                    ("sec-websocket-key", self.key.clone()),
                ];
                if !self.offers.is_empty() {
                    own.push(("sec-websocket-protocol", self.offers.join(", ")));
                }
                own
            }
            Carrier::Spdy => {
                let mut own =
                    vec![("connection", "Upgrade".to_owned()), ("upgrade", "SPDY/3.1".to_owned())];
                own.extend(
                    self.offers.iter().map(|offer| ("x-stream-protocol-version", offer.clone())),
                );
                own
            }
            Carrier::Http => Vec::new(),
        };
        let named = |name: &str| given.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let own = own.into_iter().filter(|(name, _)| !named(name));
        let mut headers: Vec<(String, String)> =
            own.map(|(name, value)| (name.to_owned(), value)).collect();
        headers.extend(given.into_iter().filter(|(_, value)| !value.is_empty()));
        headers
    }

    /// Returns the mistakes of the response that opens the stream.
    pub fn problems(&self, response: &Received) -> Vec<String> {
        let mut problems = Vec::new();
        let values = |name: &str| {
            let found =
                response.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
        };
        let (upgrade, version) = match self.over {
            Carrier::Websocket => ("websocket", "sec-websocket-protocol"),
            Carrier::Spdy => ("spdy/3.1", "x-stream-protocol-version"),
            Carrier::Http => return problems,
        };
        if !values("upgrade").iter().any(|value| value.eq_ignore_ascii_case(upgrade)) {
            problems.push(format!("Upgrade is {:?}, not {upgrade}", values("upgrade").join(", ")));
        }
        let tokens = values("connection").join(",");
        if !tokens.split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade")) {
            problems.push(format!("Connection is {tokens:?}, and does not name Upgrade"));
        }
        if self.over == Carrier::Websocket {
            let accept = values("sec-websocket-accept");
            if accept != [self.accept()] {
                problems.push(format!("Sec-WebSocket-Accept {accept:?} does not match the key"));
            }
            let extensions: Vec<&str> = values("sec-websocket-extensions");
            if extensions.iter().any(|value| !value.is_empty()) {
                problems.push(format!(
                    "the client did not request the extensions {}",
                    extensions.join(", ")
                ));
            }
        }
        let chosen: Vec<&str> =
            values(version).into_iter().filter(|value| !value.is_empty()).collect();
        match chosen.as_slice() {
            [] if self.offers.is_empty() => {}
            [] => {
                problems
                    .push(format!("{version} is missing: the server chose no offered protocol"));
            }
            [one] if self.offers.iter().any(|offer| offer == one) => {}
            [one] => problems.push(format!("{version} is {one:?}, which was not offered")),
            _ => problems.push(format!("{version} names several protocols: {}", chosen.join(", "))),
        }
        problems
    }

    /// Returns the chosen subprotocol; empty for none.
    pub fn chosen(&self, response: &Received) -> String {
        let version = match self.over {
            Carrier::Websocket => "sec-websocket-protocol",
            Carrier::Spdy => "x-stream-protocol-version",
            Carrier::Http => return String::new(),
        };
        let found = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(version));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    fn accept(&self) -> String {
        derive_accept_key(self.key.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn response(headers: &[(&str, &str)]) -> Received {
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Received::head(101, "HTTP/1.1", headers)
    }

    /// Key and response of RFC 6455, section 1.3.
    fn asked(offers: &[&str]) -> Handshake {
        let offers = offers.iter().map(|offer| (*offer).to_owned()).collect();
        Handshake { over: Carrier::Websocket, offers, key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned() }
    }

    const ACCEPT: (&str, &str) = ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    const UPGRADE: [(&str, &str); 2] =
        [("Upgrade", "WebSocket"), ("Connection", "keep-alive, Upgrade")];

    #[rstest]
    #[case::right(
        &["v5.channel.k8s.io"],
        &[ACCEPT, ("Sec-WebSocket-Protocol", "v5.channel.k8s.io")],
        0
    )]
    #[case::nothing_offered(&[], &[ACCEPT, ("Sec-WebSocket-Protocol", "")], 0)]
    #[case::not_echoed(&["v5.channel.k8s.io"], &[ACCEPT], 1)]
    #[case::not_offered(
        &["v5.channel.k8s.io"],
        &[ACCEPT, ("Sec-WebSocket-Protocol", "v4.channel.k8s.io")],
        1
    )]
    #[case::wrong_accept(&[], &[("Sec-WebSocket-Accept", "dGhlIHNhbXBsZSBub25jZQ==")], 1)]
    #[case::extension(&[], &[ACCEPT, ("Sec-WebSocket-Extensions", "permessage-deflate")], 1)]
    fn a_response_is_held_against_what_was_asked(
        #[case] offers: &[&str],
        #[case] headers: &[(&str, &str)],
        #[case] problems: usize,
    ) {
        let found = asked(offers).problems(&response(&[&UPGRADE[..], headers].concat()));
        assert_eq!(found.len(), problems, "{found:?}");
    }

    #[test]
    fn headers_of_a_case_replace_ours() {
        let given = vec![
            ("Sec-WebSocket-Version".to_owned(), "8".to_owned()),
            ("Sec-WebSocket-Key".to_owned(), String::new()),
        ];
        let headers = asked(&["a", "b"]).headers(given);
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["connection", "upgrade", "sec-websocket-protocol", "Sec-WebSocket-Version"]
        );
        assert_eq!(headers[2].1, "a, b");
    }
}
