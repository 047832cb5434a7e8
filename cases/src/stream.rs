//! Streams: what a case says of connections that are upgraded to WebSocket or SPDY.
//!
//! A case speaks of channels by name (`stdin`, `stdout`, `data`), so that one case runs over every protocol; how a
//! channel is carried, by a byte before each message or by a SPDY stream of its own, is the harness's to know.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{Check, Request};
use crate::pattern::{Pattern, TextPattern};
use crate::span::Span;
use crate::template::Template;

/// What a connection is upgraded to.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// RFC 6455.
    Websocket,
    /// SPDY/3.1.
    Spdy,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Websocket => "websocket",
            Self::Spdy => "spdy",
        })
    }
}

/// The subprotocol that carries SPDY in WebSocket messages.
pub const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// A way to carry a stream: `websocket/v5.channel.k8s.io`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Protocol {
    /// What the connection is upgraded to.
    pub over: Carrier,
    /// What is negotiated on it.
    pub name: String,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.over, self.name)
    }
}

impl Protocol {
    /// Whether one side of a channel can be ended while the other goes on.
    pub fn half_closes(&self) -> bool {
        self.is_spdy() || self.name.starts_with("v5.")
    }

    /// Whether each channel is a SPDY stream, at whatever depth.
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
    let known = PROTOCOL_SETS.iter().flat_map(|(_, members)| *members).any(|member| *member == text);
    let (over, name) = text.split_once('/').filter(|_| known)?;
    let over = if over == "spdy" { Carrier::Spdy } else { Carrier::Websocket };
    Some(Protocol { over, name: name.to_owned() })
}

/// What the channels of a stream are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// exec and attach: `stdin`, `stdout`, `stderr`, `error`, `resize`.
    #[default]
    Command,
    /// port-forward: `data` and `error` for the first port, `data1` and `error1` for the second, ...
    Ports,
    /// Everything else (log, watch, what a proxy lets through): `data`.
    Plain,
}

/// Opens a stream, which stays open while later steps run.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The handshake. Its method is empty where the carrier decides; its `expect` judges the answer.
    pub request: Request,
    /// What its channels are.
    pub kind: StreamKind,
    /// `None`: as the case's protocol says.
    pub over: Option<Carrier>,
    /// What is offered, the best first; `None`: the case's protocol.
    pub offers: Option<Vec<Template>>,
    /// The remote ports of a port-forward.
    pub ports: Vec<u16>,
    /// The SPDY streams that are created first, in this order; `None`: those that the request asks for.
    pub create: Option<Vec<String>>,
    /// The bearer token goes in the list of subprotocols, as browsers send it.
    pub token_in_protocols: bool,
}

impl Stream {
    /// Whether a check of the case says what the answer to the handshake must be.
    pub fn judges_answer(&self) -> bool {
        use crate::case::Claim;
        fn judged(claims: &[Claim]) -> bool {
            claims.iter().any(|claim| match claim {
                Claim::Status(_) | Claim::Refused(_) => true,
                Claim::AnyOf(sets) => sets.iter().any(|set| judged(set)),
                _ => false,
            })
        }
        self.request.expect.iter().any(|check| judged(&check.claims))
    }
}

/// Creates a SPDY stream on an open connection.
#[derive(Clone, Debug)]
pub struct Creation {
    /// The id of the stream.
    pub stream: String,
    /// The name by which later steps know the new channel.
    pub channel: String,
    /// Its headers.
    pub headers: Vec<(String, Template)>,
    /// Nothing will be sent on it.
    pub end: bool,
    /// Its number, where it is not to be the next odd one.
    pub number: Option<u32>,
    /// Where it stands.
    pub span: Span,
}

/// Sends something on an open stream.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The id of the stream.
    pub stream: String,
    /// What goes out.
    pub what: Outbound,
    /// Where it stands.
    pub span: Span,
}

/// What a step sends.
#[derive(Clone, Debug)]
pub enum Outbound {
    /// Data of a channel.
    Data {
        /// Its name, or the number as it stands on the wire.
        channel: String,
        /// The bytes.
        payload: Payload,
        /// The most bytes of a message.
        pieces: usize,
        /// Nothing follows.
        end: bool,
    },
    /// The size of the terminal.
    Resize {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// A WebSocket frame with this payload, lawful or not.
    Frame {
        /// Its head.
        head: FrameHead,
        /// Its payload.
        payload: Payload,
    },
    /// A ping: a WebSocket payload, or the number of a SPDY ping.
    Ping(String),
    /// `RST_STREAM`.
    Reset {
        /// The channel.
        channel: String,
        /// As 5, to cancel.
        status: u32,
    },
    /// Bytes as they stand, below all framing.
    Raw(Vec<u8>),
}

/// Bytes that a step sends.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Text with variables.
    Text(Template),
    /// These.
    Bytes(Vec<u8>),
    /// So many bytes of a fixed sequence, the first 256 of which are all byte values in order.
    Noise(usize),
}

/// The head of a WebSocket frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameHead {
    /// 0 to 15.
    pub opcode: u8,
    /// The last frame of its message.
    pub fin: bool,
    /// Whether the payload is masked, as clients must.
    pub masked: bool,
    /// The three reserved bits, 0 to 7.
    pub reserved: u8,
    /// The length that the head claims, where it is not that of the payload.
    pub claims: Option<u64>,
}

/// Reads an open stream until something has come.
#[derive(Clone, Debug)]
pub struct Receiving {
    /// The id of the stream.
    pub stream: String,
    /// The id of the check.
    pub id: String,
    /// What is waited for.
    pub until: Arrival,
    /// Where it stands.
    pub span: Span,
}

/// What is waited for.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// The channel's data so far match.
    Text {
        /// By name.
        channel: String,
        /// Matches somewhere.
        text: TextPattern,
    },
    /// The channel has brought so many bytes.
    Bytes {
        /// By name.
        channel: String,
        /// At least.
        bytes: u64,
    },
    /// The server has ended the channel, or the connection.
    End {
        /// By name.
        channel: String,
    },
    /// A frame of the server matches. Each is taken once.
    Frame(Pattern),
}

/// Reads a stream to the end that the server makes.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The id of the stream.
    pub stream: String,
    /// The id of the check that the end comes; default `<stream>-finishes`.
    pub id: String,
    /// A connection that goes without a word is lawful, too.
    pub dropped: bool,
    /// Checks by CEL over the finished stream.
    pub expect: Vec<Check>,
    /// Where it stands.
    pub span: Span,
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
