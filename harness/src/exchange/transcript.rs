//! The record of a stream, which verdicts, traces and reports read.
//!
//! Its size has a limit. It keeps the beginning of each channel and a digest of the rest. It lists
//! frames up to a limit, each with its first bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::stream_error::FrameError;

/// Bytes kept per channel and direction.
const KEPT: usize = 64 << 10;

/// Messages per channel whose boundaries are kept.
const PARTS: usize = 1000;

/// Limit on listed frames.
const FRAMES: usize = 2200;

/// Bytes kept per frame.
const START: usize = 128;

/// Bytes of headers kept over all frames. Compressed headers may be large.
const HEADERS: usize = 256 << 10;

/// Limit on recorded framing violations.
const VIOLATIONS: usize = 16;

/// Everything that happened on a stream.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The negotiated subprotocol; empty for none.
    pub protocol: String,
    /// In order, up to a limit.
    pub frames: Vec<Frame>,
    /// Number of frames beyond the limit.
    pub omitted: usize,
    /// By name.
    pub channels: BTreeMap<String, Channel>,
    /// The close of the server.
    pub close: Option<Close>,
    /// How the stream ended; `None` while it is open.
    pub end: Option<StreamEnd>,
    /// Violations of the framing by the server.
    pub violations: Vec<String>,
    /// How long the headers are that are listed.
    headers: usize,
}

/// One frame, with the beginning of its payload.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// True if the server sent it.
    pub from_server: bool,
    /// Such as `binary` or `SYN_REPLY`.
    pub kind: String,
    /// The channel of the frame.
    pub channel: Option<String>,
    /// True for the last frame of its message or stream.
    pub fin: bool,
    /// Bytes of the payload.
    pub size: usize,
    /// The first bytes of the payload.
    pub start: Vec<u8>,
    /// Members that depend on the kind: a status, headers, a number.
    pub detail: Map<String, Value>,
    /// Time since the start of the run.
    pub at: Duration,
}

/// A channel, in both directions.
#[derive(Clone, Debug, Default)]
pub struct Channel {
    /// Data from the server.
    pub received: Flow,
    /// Data from the client.
    pub sent: Flow,
    /// True once the server ended its side.
    pub ended: bool,
    /// The port that the server announced.
    pub port: Option<u16>,
}

/// The data of one direction.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The beginning of the data.
    pub kept: Vec<u8>,
    /// Bytes in total.
    pub size: u64,
    /// Number of messages, including empty ones.
    pub messages: u64,
    parts: Vec<usize>,
    digest: Sha256,
}

/// How the server closed the stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Close {
    /// The code of a WebSocket close, or the status of a GOAWAY.
    pub code: Option<u32>,
    /// The reason text.
    pub reason: String,
}

/// How a stream ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StreamEnd {
    /// The server ended it properly.
    Server,
    /// The connection ended without a close.
    Dropped(String),
    /// The data could not be parsed any further.
    Broken(FrameError),
    /// The client closed it.
    Client,
}

/// Returns the hexadecimal SHA-256 digest of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

impl Flow {
    /// Records a message.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = KEPT - self.kept.len();
        let fits = bytes.len().min(room);
        if fits == bytes.len() && self.parts.len() < PARTS {
            self.parts.push(fits);
        }
        self.kept.extend_from_slice(&bytes[..fits]);
        self.size += bytes.len() as u64;
        self.messages += 1;
        self.digest.update(bytes);
    }

    /// Returns the hexadecimal digest of all data.
    pub fn sha256(&self) -> String {
        hex(&self.digest.clone().finalize())
    }

    /// Returns the beginning as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }

    /// Returns the data as JSON; `null` if it is none, or if only its beginning is kept.
    pub fn json(&self) -> Value {
        let whole = self.size == self.kept.len() as u64;
        let value = if whole { serde_json::from_slice(&self.kept).ok() } else { None };
        value.unwrap_or_default()
    }

    /// Returns the messages that are kept whole, as texts.
    pub fn parts(&self) -> Value {
        let mut from = 0;
        let text = |length: &usize| {
            let part = self.kept.get(from..from + length).unwrap_or_default();
            from += length;
            json!(String::from_utf8_lossy(part))
        };
        self.parts.iter().map(text).collect()
    }
}

impl Transcript {
    /// Returns an empty transcript of a negotiated protocol.
    pub fn new(protocol: String) -> Self {
        Self { protocol, ..Self::default() }
    }

    /// Lists a frame.
    pub fn frame(&mut self, mut frame: Frame, payload: &[u8]) {
        if self.frames.len() >= FRAMES {
            self.omitted += 1;
            return;
        }
        if let Some(headers) = frame.detail.get("headers") {
            self.headers = self.headers.saturating_add(headers.to_string().len());
            if self.headers > HEADERS {
                frame.detail.remove("headers");
            }
        }
        frame.size = payload.len();
        frame.start = payload[..payload.len().min(START)].to_vec();
        self.frames.push(frame);
    }

    /// Records a violation.
    pub fn violation(&mut self, what: impl Into<String>) {
        if self.violations.len() < VIOLATIONS {
            self.violations.push(what.into());
        }
    }

    /// Returns a channel by its name, and creates it if necessary.
    pub fn channel(&mut self, name: &str) -> &mut Channel {
        self.channels.entry(name.to_owned()).or_default()
    }

    /// Reports whether the server ended the channel.
    pub fn has_ended(&self, channel: &str) -> bool {
        self.end.is_some()
            || self.close.is_some()
            || self.channels.get(channel).is_some_and(|channel| channel.ended)
    }

    /// Reports whether the server ended the stream properly.
    pub fn is_ended_by_server(&self) -> bool {
        self.end == Some(StreamEnd::Server)
    }
}

impl Frame {
    /// Returns the value that patterns and CEL see.
    pub fn value(&self) -> Value {
        let mut value = json!({
            "from": if self.from_server { "server" } else { "client" },
            "type": self.kind, "size": self.size, "fin": self.fin,
            "text": String::from_utf8_lossy(&self.start),
        });
        if let (Some(channel), Some(members)) = (&self.channel, value.as_object_mut()) {
            members.insert("channel".to_owned(), json!(channel));
        }
        if let Some(members) = value.as_object_mut() {
            members.extend(self.detail.clone());
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_flow_keeps_its_beginning_and_digests_the_whole() {
        let (mut pieces, mut whole) = (Flow::default(), Flow::default());
        let block = vec![7_u8; 100_000];
        for _ in 0..10 {
            pieces.push(&block);
        }
        whole.push(&vec![7; 1_000_000]);
        assert_eq!((pieces.size, pieces.messages, pieces.kept.len()), (1_000_000, 10, KEPT));
        assert_eq!(pieces.sha256(), whole.sha256());
    }

    #[test]
    fn what_is_listed_does_not_grow_with_what_comes() {
        let mut transcript = Transcript::default();
        let headers = json!({"headers": {"x": "y".repeat(100_000)}});
        for _ in 0..3 * FRAMES {
            let detail = headers.as_object().cloned().unwrap_or_default();
            transcript.frame(Frame { detail, ..Frame::default() }, &[0; 1000]);
        }
        let listed: usize =
            transcript.frames.iter().map(|frame| frame.value().to_string().len()).sum();
        assert_eq!((transcript.frames.len(), transcript.omitted), (FRAMES, 2 * FRAMES));
        // JSON writes a zero byte as `\u0000`.
        let most = HEADERS + FRAMES * (6 * START + 100);
        assert!(listed < most, "{listed}");
        assert_eq!(transcript.frames[0].detail, *headers.as_object().unwrap());
    }

    #[test]
    fn messages_keep_their_borders() {
        let mut flow = Flow::default();
        for part in ["", "a", "{}"] {
            flow.push(part.as_bytes());
        }
        assert_eq!(flow.parts(), json!(["", "a", "{}"]));
        assert_eq!(flow.json(), Value::Null);
    }
    #[test]
    fn headers_are_listed_up_to_a_length() {
        let listed = |length: usize| {
            let mut transcript = Transcript::default();
            let detail = Map::from_iter([("headers".to_owned(), json!("x".repeat(length - 2)))]);
            transcript.frame(Frame { detail, ..Frame::default() }, b"");
            !transcript.frames[0].detail.is_empty()
        };
        assert_eq!([HEADERS, HEADERS + 1].map(listed), [true, false]);
    }

    #[test]
    fn borders_are_kept_of_whole_messages_up_to_a_number() {
        let parts = |messages: &[&[u8]]| {
            let mut flow = Flow::default();
            for message in messages {
                flow.push(message);
            }
            flow.parts().as_array().unwrap().len()
        };
        assert_eq!(parts(&vec![&b"a"[..]; PARTS]), PARTS);
        assert_eq!(parts(&vec![&b"a"[..]; PARTS + 1]), PARTS);
        let most = vec![b'a'; KEPT - 1];
        assert_eq!(parts(&[&most, b"b"]), 2);
        assert_eq!(parts(&[&most, b"bc"]), 1, "its end is not kept");
    }

    #[test]
    fn a_flow_is_json_when_all_of_it_is_kept() {
        let json = |text: &str| {
            let mut flow = Flow::default();
            flow.push(text.as_bytes());
            flow.json()
        };
        assert_eq!(json(r#"{"a": 1}"#), json!({"a": 1}));
        assert_eq!(json(&format!("[]{}", " ".repeat(KEPT - 2))), json!([]));
        assert_eq!(json(&format!("[]{}", " ".repeat(KEPT - 1))), Value::Null);
    }

    #[test]
    fn the_digest_is_the_one_that_others_know() {
        let mut flow = Flow::default();
        flow.push(b"abc");
        assert_eq!(
            flow.sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(flow.text(), "abc");
    }

    #[test]
    fn a_channel_ends_by_itself_or_with_the_stream() {
        let mut transcript = Transcript::new("v5".to_owned());
        transcript.channel("stdout").ended = true;
        transcript.channel("stderr");
        assert_eq!(
            ["stdout", "stderr", "none"].map(|name| transcript.has_ended(name)),
            [true, false, false]
        );
        assert!(!transcript.is_ended_by_server());
        let closed = Transcript {
            close: Some(Close { code: None, reason: String::new() }),
            ..transcript.clone()
        };
        assert!(closed.has_ended("stderr"));
        let dropped = Transcript { end: Some(StreamEnd::Client), ..transcript.clone() };
        assert!(dropped.has_ended("stderr"));
        assert!(!dropped.is_ended_by_server());
        let ended = Transcript { end: Some(StreamEnd::Server), ..transcript };
        assert!(ended.is_ended_by_server() && ended.has_ended("stdout"));
    }

    #[test]
    fn of_violations_the_first_are_reported() {
        let mut transcript = Transcript::default();
        (0..=VIOLATIONS).for_each(|number| transcript.violation(number.to_string()));
        assert_eq!(
            (transcript.violations.len(), transcript.violations[0].as_str()),
            (VIOLATIONS, "0")
        );
    }
    #[test]
    fn a_frame_is_shown_with_what_its_kind_carries() {
        let mut transcript = Transcript::default();
        let detail = Map::from_iter([("status".to_owned(), json!(5))]);
        let frame =
            Frame { from_server: true, kind: "RST_STREAM".to_owned(), detail, ..Frame::default() };
        transcript.frame(frame, b"");
        let sent = Frame {
            kind: "binary".to_owned(),
            fin: true,
            channel: Some("stdin".to_owned()),
            ..Frame::default()
        };
        transcript.frame(sent, b"abc");
        let shown: Vec<Value> = transcript.frames.iter().map(Frame::value).collect();
        assert_eq!(
            json!(shown),
            json!([
                {
                    "from": "server", "type": "RST_STREAM", "size": 0, "fin": false, "text": "",
                    "status": 5,
                },
                {
                    "from": "client", "type": "binary", "size": 3, "fin": true, "text": "abc",
                    "channel": "stdin",
                },
            ])
        );
    }
}
