//! What a case file may say of streams, key by key. As in [`crate::raw`], nothing is checked beyond the shape.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::case::Identity;
use crate::forms::{Entries, JsonText, RepeatableEntries, Texts};
use crate::raw::RawCheck;
use crate::stream::{Carrier, StreamKind};
use crate::syntax::Located;

/// A connection that is upgraded to WebSocket or SPDY, and stays open while later steps run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStream {
    /// The name of the stream in expressions.
    pub(crate) id: Located<String>,
    /// The subresource, as `${pod.path}/exec`.
    pub(crate) path: Located<String>,
    /// What its channels are; default `command`.
    #[serde(default)]
    pub(crate) kind: StreamKind,
    /// What it is upgraded to; default: as the case's protocol says.
    pub(crate) over: Option<Carrier>,
    /// What is offered, the best first; default: the case's protocol.
    pub(crate) protocols: Option<Vec<Located<String>>>,
    /// Default: GET for WebSocket, POST for SPDY.
    pub(crate) method: Option<Located<String>>,
    /// Parameters; a list repeats one.
    pub(crate) query: Option<Entries<Texts>>,
    /// Headers in place of the step's own; an empty one leaves it out.
    pub(crate) headers: Option<RepeatableEntries<String>>,
    /// The remote ports of a port-forward.
    pub(crate) ports: Option<Located<Vec<Located<u16>>>>,
    /// The SPDY streams that are created first; default: those that the request asks for.
    pub(crate) create: Option<Vec<Located<String>>>,
    /// Where a bearer token stands; default `header`.
    #[serde(default)]
    pub(crate) token: TokenPlace,
    /// Who opens it; default `admin`.
    #[serde(rename = "as", default)]
    pub(crate) identity: Identity,
    /// What must hold of the answer to the handshake.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// Where a bearer token stands.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenPlace {
    /// In Authorization.
    #[default]
    Header,
    /// In the list of subprotocols, as browsers must send it.
    Protocols,
}

/// A SPDY stream on an open connection.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCreate {
    /// The connection.
    pub(crate) stream: Located<String>,
    /// The name of the new channel.
    pub(crate) channel: Located<String>,
    /// Its headers.
    pub(crate) headers: Option<Entries<String>>,
    /// Nothing will be sent on it.
    #[serde(default)]
    pub(crate) end: bool,
    /// Its number; default: the next odd one.
    pub(crate) number: Option<u32>,
}

/// Something to send on an open stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSend {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The channel by name, or by its number on the wire.
    pub(crate) channel: Option<Located<String>>,
    /// Data: text.
    pub(crate) text: Option<Located<String>>,
    /// Data: bytes in hexadecimal; blanks between them are for the eye.
    pub(crate) hex: Option<Located<String>>,
    /// Data: so many bytes of a fixed sequence that begins with all 256 byte values.
    pub(crate) noise: Option<Located<u32>>,
    /// The most bytes of a message; default 32768.
    pub(crate) pieces: Option<Located<u32>>,
    /// Nothing follows on the channel.
    #[serde(default)]
    pub(crate) end: bool,
    /// The size of the terminal.
    pub(crate) resize: Option<RawSize>,
    /// A WebSocket frame, lawful or not, with `text`, `hex` or `noise` in it.
    pub(crate) frame: Option<Located<RawFrame>>,
    /// A ping: its payload, for SPDY its number.
    pub(crate) ping: Option<Located<String>>,
    /// `RST_STREAM` with this status.
    pub(crate) reset: Option<u32>,
    /// Bytes in hexadecimal, as they stand, below all framing.
    pub(crate) raw: Option<Located<String>>,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSize {
    /// Columns.
    pub(crate) width: u16,
    /// Rows.
    pub(crate) height: u16,
}

/// The head of a WebSocket frame.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFrame {
    /// `text`, `binary`, `continuation`, `close`, `ping`, `pong`, or 0 to 15.
    pub(crate) opcode: Located<String>,
    /// The last of its message; default true.
    pub(crate) fin: Option<bool>,
    /// Masked, as clients must; default true.
    pub(crate) masked: Option<bool>,
    /// The three reserved bits, 0 to 7; default 0.
    pub(crate) reserved: Option<Located<u8>>,
    /// The length that it claims; default: that of its payload.
    pub(crate) claims: Option<u64>,
}

/// What is waited for on an open stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReceive {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The id of the check.
    pub(crate) id: Located<String>,
    /// The channel; not with `frame`.
    pub(crate) channel: Option<Located<String>>,
    /// A regular expression that the channel's data so far match.
    pub(crate) text: Option<Located<String>>,
    /// So many bytes of the channel.
    pub(crate) bytes: Option<Located<u64>>,
    /// `true`: the end of the channel.
    pub(crate) ended: Option<Located<bool>>,
    /// A pattern for a frame of the server.
    pub(crate) frame: Option<JsonText>,
}

/// The end of a stream that the server makes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFinish {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The id of the check that the end comes; default `<stream>-finishes`.
    pub(crate) id: Option<Located<String>>,
    /// A connection that goes without a word is lawful, too.
    #[serde(default)]
    pub(crate) dropped: bool,
    /// Checks over the finished stream.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}
