//! Streams and the steps that use them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check::RawCheck;
use super::forms::{Entries, RepeatableEntries, Texts, Yaml};
use crate::case::Identity;
use crate::protocol::{Carrier, StreamKind};
use crate::yaml::Located;

/// A connection that is upgraded to WebSocket or SPDY, or the body of a response while it arrives.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStream {
    /// The name of the stream in expressions.
    pub(crate) id: Located<String>,
    /// The subresource, such as `${pod.path}/exec`.
    pub(crate) path: Located<String>,
    /// The kind of its channels. The default is `command`.
    #[serde(default)]
    pub(crate) kind: StreamKind,
    /// The carrier of the connection. `http` is the body of a response, and needs `kind: plain`.
    /// The default is the carrier of the case's protocol.
    pub(crate) over: Option<Carrier>,
    /// The subprotocols that the client offers, the best first; `[]` offers none. The default is
    /// the case's protocol.
    pub(crate) protocols: Option<Vec<Located<String>>>,
    /// The default is POST for SPDY, and GET for the others.
    pub(crate) method: Option<Located<String>>,
    /// Query parameters. A list repeats a parameter.
    pub(crate) query: Option<Entries<Texts>>,
    /// Headers that replace those of the handshake. An empty value leaves a header out.
    pub(crate) headers: Option<RepeatableEntries<String>>,
    /// The remote ports of a port-forward. Streams of `kind: ports` need this key.
    pub(crate) ports: Option<Located<Vec<Located<u16>>>>,
    /// The channels whose SPDY streams the client opens first, in this order. By default, the
    /// request decides, in the order error, stdin, stdout, stderr, resize.
    pub(crate) open: Option<Vec<Located<String>>>,
    /// The place of the bearer token. The default is `header`.
    #[serde(default)]
    pub(crate) token: TokenPlace,
    /// The credential. The default is `admin`.
    #[serde(rename = "as", default)]
    pub(crate) identity: Identity,
    /// Checks of the response to the handshake. Without `status` or `rejected` in it, the response
    /// must be a valid 101, or a 200 over HTTP.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// The place of a bearer token.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenPlace {
    /// In Authorization.
    #[default]
    Header,
    /// In the list of subprotocols, as browsers send it.
    Protocols,
}

/// One more SPDY stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOpenStream {
    /// The connection.
    pub(crate) stream: Located<String>,
    /// The name of the new channel.
    pub(crate) channel: Located<String>,
    /// Its headers.
    pub(crate) headers: Option<Entries<String>>,
    /// The client sends nothing on it.
    #[serde(default)]
    pub(crate) end: bool,
    /// Its number. The default is the next odd one.
    pub(crate) number: Option<u32>,
}

/// Data of a channel: one of `text`, `hex` and `noise`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSend {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The channel by name, or by its number on the wire.
    pub(crate) channel: Located<String>,
    /// Text. An empty text is an empty message.
    pub(crate) text: Option<Located<String>>,
    /// Bytes in hexadecimal, such as `00 ff`.
    pub(crate) hex: Option<Located<String>>,
    /// This many bytes of a fixed sequence that begins with all 256 byte values.
    pub(crate) noise: Option<Located<u32>>,
    /// The most bytes of a message. The default is 32768.
    pub(crate) pieces: Option<Located<u32>>,
    /// End the channel after the data, or without data.
    #[serde(default)]
    pub(crate) end: bool,
}

/// The size of the terminal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawResize {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// Columns.
    pub(crate) width: u16,
    /// Rows.
    pub(crate) height: u16,
}

/// A ping.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPing {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// Its payload. Over SPDY, its number.
    pub(crate) payload: Located<String>,
}

/// `RST_STREAM` for a channel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReset {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The channel.
    pub(crate) channel: Located<String>,
    /// The status, such as 5 to cancel.
    pub(crate) status: u32,
}

/// One WebSocket frame, with at most one of `text`, `hex` and `noise` as its payload.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFrame {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// `text`, `binary`, `continuation`, `close`, `ping`, `pong`, or 0 to 15.
    pub(crate) opcode: Located<String>,
    /// The last frame of its message. The default is true.
    pub(crate) fin: Option<bool>,
    /// Masked, as clients must. The default is true.
    pub(crate) masked: Option<bool>,
    /// The three reserved bits, 0 to 7. The default is 0.
    pub(crate) reserved: Option<Located<u8>>,
    /// The length in the head. The default is the length of the payload.
    pub(crate) claims: Option<u64>,
    /// Payload: text.
    pub(crate) text: Option<Located<String>>,
    /// Payload: bytes in hexadecimal.
    pub(crate) hex: Option<Located<String>>,
    /// Payload: this many bytes of a fixed sequence.
    pub(crate) noise: Option<Located<u32>>,
}

/// Bytes below all framing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRaw {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The bytes in hexadecimal.
    pub(crate) hex: Located<String>,
}

/// What must arrive: a `channel` with one of `text`, `bytes` and `ended: true`, or a `frame`. If
/// the stream ends first, the check fails and the case ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReceive {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The id of the check.
    pub(crate) id: Located<String>,
    /// The channel; not with `frame`.
    pub(crate) channel: Option<Located<String>>,
    /// A regular expression that the channel's data match so far.
    pub(crate) text: Option<Located<String>>,
    /// This many bytes of the channel.
    pub(crate) bytes: Option<Located<u64>>,
    /// `true`: the server ends the channel.
    pub(crate) ended: Option<Located<bool>>,
    /// A pattern for a frame of the server. Each frame matches once.
    pub(crate) frame: Option<Yaml>,
}

/// The end of a stream, which the server makes: a close and the end of the connection. Over SPDY,
/// the end of all streams that the server writes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFinish {
    /// The stream.
    pub(crate) stream: Located<String>,
    /// The id of the check that the server ends the stream. The default is `STREAM-finishes`.
    pub(crate) id: Option<Located<String>>,
    /// Accept a connection that ends without a close.
    #[serde(default)]
    pub(crate) dropped: bool,
    /// Checks of the finished stream, by CEL.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}
