//! Parses bytes for comparison.

use std::time::Duration;

use bytes::BytesMut;
use kubeproof_cases::case::FrameHead;
use kubeproof_cases::protocol::{Carrier, StreamKind};
use serde_json::{Value, json};

use super::connection::Connection;
use super::websocket;
use crate::exchange::{Flow, Frame, FrameError, Transcript};

/// The result of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) kept: usize,
    pub(crate) frames: usize,
    value: Value,
    error: Option<FrameError>,
}

/// Feeds the pieces to a connection, up to the first error.
pub(crate) fn fed(over: Carrier, kind: StreamKind, protocol: &str, pieces: &[&[u8]]) -> Seen {
    let mut transcript = Transcript::default();
    let mut connection =
        Connection::new(over, kind, protocol, vec![7, 8080]).expect("a connection");
    if connection.is_spdy() {
        for name in ["error", "data"] {
            let headers = [("streamtype".to_owned(), name.to_owned())];
            let record = (&mut transcript, Duration::ZERO);
            connection.create((name, None), &headers, false, record).expect("a stream");
        }
    }
    let feed = |piece: &&[u8]| connection.feed(piece, (&mut transcript, Duration::ZERO)).err();
    let error = pieces.iter().find_map(feed);
    let flows = transcript.channels.values().flat_map(|channel| [&channel.received, &channel.sent]);
    let kept = flows.map(|flow| flow.kept.len()).sum();
    Seen { kept, frames: transcript.frames.len(), value: value(&transcript), error }
}

fn value(transcript: &Transcript) -> Value {
    let flow = |flow: &Flow| json!([flow.parts(), flow.size, flow.messages, flow.sha256()]);
    let channels: Vec<Value> = transcript
        .channels
        .iter()
        .map(|(name, channel)| {
            let ended = transcript.has_ended(name);
            json!([name, flow(&channel.received), flow(&channel.sent), ended, channel.port])
        })
        .collect();
    let frames: Vec<Value> = transcript.frames.iter().map(Frame::value).collect();
    let close = transcript.close.as_ref().map(|close| json!([close.code, close.reason]));
    json!([channels, frames, close, transcript.violations, transcript.is_ended_by_server()])
}

/// Writes a frame and reads it again.
pub(crate) fn websocket_frame(head: FrameHead, payload: &[u8]) -> Vec<u8> {
    let bytes = websocket::write(head, payload);
    if let Ok(Some(read)) = websocket::next(&mut BytesMut::from(&bytes[..])) {
        assert_eq!(&read.payload[..], payload);
        assert_eq!((u8::from(read.opcode), read.fin), (head.opcode, head.fin));
    } else {
        let valid =
            matches!(head.opcode, 0..=2 | 8..=10) && (head.opcode < 8 || payload.len() <= 125);
        assert!(!valid, "a valid frame is not read");
    }
    bytes.to_vec()
}
