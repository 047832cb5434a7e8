//! Streams: connections that are upgraded to WebSocket or SPDY, and bodies that arrive over time.
//!
//! A case names channels (`stdin`, `stdout`, `data`), so that one case runs over every protocol.
//! The harness maps a channel to a byte before each message or to a SPDY stream of its own.

use super::{Check, Request};
use crate::pattern::{Pattern, TextPattern};
use crate::protocol::{Carrier, StreamKind};
use crate::template::Template;
use crate::yaml::Span;

/// Opens a stream, which stays open while later steps run.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The handshake. Without a method, the carrier decides.
    pub request: Request,
    /// The kind of its channels.
    pub kind: StreamKind,
    /// `None`: the carrier of the case's protocol.
    pub over: Option<Carrier>,
    /// What is offered, the best first; `None`: the case's protocol.
    pub offers: Option<Vec<Template>>,
    /// The remote ports of a port-forward.
    pub ports: Vec<u16>,
    /// The channels whose SPDY streams the client opens first; `None`: as the request asks.
    pub open: Option<Vec<String>>,
    /// The bearer token goes in the list of subprotocols, as browsers send it.
    pub token_in_protocols: bool,
}

impl Stream {
    /// Returns whether a check judges the status code of the handshake.
    pub fn judges_response(&self) -> bool {
        use super::Claim;
        fn judged(claims: &[Claim]) -> bool {
            claims.iter().any(|claim| match claim {
                Claim::Status(_) | Claim::Rejected(_) => true,
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
    /// The name of the new channel in later steps.
    pub channel: String,
    /// Its headers.
    pub headers: Vec<(String, Template)>,
    /// Nothing will be sent on it.
    pub end: bool,
    /// Its number, where it is not to be the next odd one.
    pub number: Option<u32>,
    /// Its place in the file.
    pub span: Span,
}

/// Sends something on an open stream.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The id of the stream.
    pub stream: String,
    /// What goes out.
    pub what: Outbound,
    /// Its place in the file.
    pub span: Span,
}

/// What a step sends.
#[derive(Clone, Debug)]
pub enum Outbound {
    /// Data of a channel.
    Data {
        /// Its name, or its number on the wire.
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
    /// A WebSocket frame with this payload, valid or not.
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
    /// Bytes below all framing.
    Raw(Vec<u8>),
}

/// Bytes that a step sends.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Text with variables.
    Text(Template),
    /// These.
    Bytes(Vec<u8>),
    /// This many bytes of a fixed sequence. It begins with all 256 byte values.
    Noise(usize),
}

/// The head of a WebSocket frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameHead {
    /// 0 to 15.
    pub opcode: u8,
    /// The last frame of its message.
    pub fin: bool,
    /// The payload is masked, as clients must.
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
    /// Its place in the file.
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
    /// A connection that ends without a close is valid.
    pub dropped: bool,
    /// Checks by CEL over the finished stream.
    pub expect: Vec<Check>,
    /// Its place in the file.
    pub span: Span,
}
