//! The protocols that carry streams, and the sets of them that cases name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The carrier of a connection.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// RFC 6455.
    Websocket,
    /// SPDY/3.1.
    Spdy,
    /// The body of a response of HTTP, without an upgrade. It has one direction and no protocol.
    Http,
}

impl Carrier {
    /// Returns the status code with which a server opens a stream.
    pub fn opening_status(self) -> u16 {
        if self == Self::Http { 200 } else { 101 }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Websocket => "websocket",
            Self::Spdy => "spdy",
            Self::Http => "http",
        })
    }
}

/// The subprotocol that carries SPDY in WebSocket messages.
pub const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// A way to carry a stream: `websocket/v5.channel.k8s.io`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Protocol {
    /// The carrier of the connection.
    pub over: Carrier,
    /// The subprotocol.
    pub name: String,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.over, self.name)
    }
}

impl Protocol {
    /// Returns whether one side of a channel can end while the other continues.
    pub fn half_closes(&self) -> bool {
        self.is_spdy() || self.name.starts_with("v5.")
    }

    /// Returns whether channels are SPDY streams, directly or in a tunnel.
    pub fn is_spdy(&self) -> bool {
        self.over == Carrier::Spdy || self.name == TUNNEL
    }
}

/// Sets of protocols that cases name by one word.
pub const PROTOCOL_SETS: [(&str, &[&str]); 6] = [
    (
        "command",
        &[
            "websocket/v5.channel.k8s.io",
            "websocket/v4.channel.k8s.io",
            "websocket/channel.k8s.io",
            "websocket/v4.base64.channel.k8s.io",
            "websocket/base64.channel.k8s.io",
            "spdy/v4.channel.k8s.io",
            "spdy/v3.channel.k8s.io",
            "spdy/v2.channel.k8s.io",
            "spdy/channel.k8s.io",
        ],
    ),
    (
        "command-status",
        &[
            "websocket/v5.channel.k8s.io",
            "websocket/v4.channel.k8s.io",
            "websocket/v4.base64.channel.k8s.io",
            "spdy/v4.channel.k8s.io",
        ],
    ),
    (
        "command-text",
        &[
            "websocket/channel.k8s.io",
            "websocket/base64.channel.k8s.io",
            "spdy/v3.channel.k8s.io",
            "spdy/v2.channel.k8s.io",
            "spdy/channel.k8s.io",
        ],
    ),
    (
        "command-half-close",
        &[
            "websocket/v5.channel.k8s.io",
            "spdy/v4.channel.k8s.io",
            "spdy/v3.channel.k8s.io",
            "spdy/v2.channel.k8s.io",
            "spdy/channel.k8s.io",
        ],
    ),
    (
        "ports",
        &[
            "websocket/v4.channel.k8s.io",
            "websocket/v4.base64.channel.k8s.io",
            "websocket/SPDY/3.1+portforward.k8s.io",
            "spdy/portforward.k8s.io",
        ],
    ),
    ("log", &["websocket/binary.k8s.io", "websocket/base64.binary.k8s.io"]),
];

/// A protocol by its name in files.
pub fn protocol(text: &str) -> Option<Protocol> {
    let known =
        PROTOCOL_SETS.iter().flat_map(|(_, members)| *members).any(|member| *member == text);
    let (over, name) = text.split_once('/').filter(|_| known)?;
    let over = if over == "spdy" { Carrier::Spdy } else { Carrier::Websocket };
    Some(Protocol { over, name: name.to_owned() })
}

/// The channels of a stream.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// exec and attach: `stdin`, `stdout`, `stderr`, `error`, `resize`.
    #[default]
    Command,
    /// port-forward: `data` and `error` for the first port, `data1` and `error1` for the second,
    /// ...
    Ports,
    /// Everything else (log, watch, what a proxy lets through): `data`.
    Plain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_a_set_is_a_protocol_that_prints_as_it_is_written() {
        for member in PROTOCOL_SETS.iter().flat_map(|(_, members)| *members) {
            assert_eq!(protocol(member).map(|parsed| parsed.to_string()).as_deref(), Some(*member));
        }
        assert_eq!(protocol("websocket/v6.channel.k8s.io"), None);
    }

    #[test]
    fn a_tunnel_is_spdy_over_websocket() {
        let tunnel = protocol("websocket/SPDY/3.1+portforward.k8s.io");
        assert!(tunnel.is_some_and(|tunnel| tunnel.over == Carrier::Websocket && tunnel.is_spdy()));
    }
}
