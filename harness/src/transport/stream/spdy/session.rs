//! A session: numbered streams, which cases address by channel name.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value, json};

use super::frame::{self, FIN, Frame, kind};
use super::header_block::{Decoder, Encoder};
use crate::exchange::{self, Close, SpdyError, Transcript};

/// Limits on listed headers and their length.
const LISTED_HEADERS: usize = 32;
const LISTED_CHARACTERS: usize = 256;

#[derive(Debug)]
pub(in crate::transport::stream) struct Session {
    encoder: Encoder,
    decoder: Decoder,
    next: u32,
    streams: BTreeMap<u32, Stream>,
    names: BTreeMap<String, u32>,
    pending: BytesMut,
}

#[derive(Debug)]
struct Stream {
    name: String,
    replied: bool,
    /// True after FIN. A reset does not count, because servers of the first protocol version send
    /// data after it.
    finished: bool,
}

impl Session {
    pub(in crate::transport::stream) fn new() -> Result<Self, SpdyError> {
        Ok(Self {
            encoder: Encoder::new()?,
            decoder: Decoder::new(),
            next: 1,
            streams: BTreeMap::new(),
            names: BTreeMap::new(),
            pending: BytesMut::new(),
        })
    }

    /// Creates a stream for a channel.
    pub(in crate::transport::stream) fn create(
        &mut self,
        (name, number): (&str, Option<u32>),
        headers: &[(String, String)],
        end: bool,
        (transcript, at): (&mut Transcript, Duration),
    ) -> Result<Bytes, SpdyError> {
        let number = number.unwrap_or(self.next);
        self.next = self.next.max(number.saturating_add(2));
        let block = self.encoder.encode(headers)?;
        let mut payload = BytesMut::with_capacity(10 + block.len());
        payload.put_u32(number);
        payload.put_u32(0);
        // The highest priority, no certificate slot.
        payload.put_u16(0);
        payload.put_slice(&block);
        self.streams
            .insert(number, Stream { name: name.to_owned(), replied: false, finished: false });
        self.names.insert(name.to_owned(), number);
        transcript.channel(name).ended = false;
        let headers = (name, headers);
        let detail = detail(number, Some(headers.1));
        self.list(transcript, at, (false, frame::name(kind::SYN_STREAM), number, end, detail), &[]);
        Ok(Frame::Control {
            kind: kind::SYN_STREAM,
            flags: u8::from(end),
            payload: payload.freeze(),
        }
        .bytes())
    }

    /// Returns data of a channel, by name or number.
    pub(in crate::transport::stream) fn data(
        &mut self,
        channel: &str,
        bytes: Bytes,
        end: bool,
        (transcript, at): (&mut Transcript, Duration),
    ) -> Result<Bytes, SpdyError> {
        let number = self.number(channel)?;
        if let Some(stream) = self.streams.get(&number) {
            transcript.channel(&stream.name).sent.push(&bytes);
        }
        self.list(
            transcript,
            at,
            (false, "DATA".to_owned(), number, end, detail(number, None)),
            &bytes,
        );
        Ok(Frame::Data { stream: number, flags: u8::from(end), payload: bytes }.bytes())
    }

    pub(in crate::transport::stream) fn reset(
        &mut self,
        channel: &str,
        status: u32,
        (transcript, at): (&mut Transcript, Duration),
    ) -> Result<Bytes, SpdyError> {
        let number = self.number(channel)?;
        let mut detail = detail(number, None);
        detail.insert("status".to_owned(), json!(status));
        self.list(
            transcript,
            at,
            (false, frame::name(kind::RST_STREAM), number, true, detail),
            &[],
        );
        Ok(control(kind::RST_STREAM, &[number, status]))
    }

    pub(in crate::transport::stream) fn ping(
        number: u32,
        (transcript, at): (&mut Transcript, Duration),
    ) -> Bytes {
        transcript.frame(ping_frame(false, number, at), &[]);
        control(kind::PING, &[number])
    }

    /// Parses received bytes. Returns replies; an error ends the connection.
    pub(in crate::transport::stream) fn feed(
        &mut self,
        bytes: &[u8],
        (transcript, at): (&mut Transcript, Duration),
    ) -> Result<Vec<Bytes>, SpdyError> {
        self.pending.extend_from_slice(bytes);
        let mut replies = Vec::new();
        while let Some(frame) = frame::next(&mut self.pending)? {
            match frame {
                Frame::Data { stream, flags, payload } => {
                    self.received(stream, flags & FIN != 0, &payload, (&mut *transcript, at));
                }
                Frame::Control { kind, flags, payload } => {
                    replies.extend(self.control(
                        (kind, flags & FIN != 0),
                        &payload,
                        (&mut *transcript, at),
                    )?);
                }
            }
        }
        Ok(replies)
    }

    /// Reports whether an incomplete frame is pending.
    pub(in crate::transport::stream) fn is_inside_frame(&self) -> bool {
        !self.pending.is_empty()
    }

    fn number(&self, channel: &str) -> Result<u32, SpdyError> {
        let named = self.names.get(channel).copied();
        named
            .or_else(|| channel.parse().ok())
            .ok_or_else(|| SpdyError::UnknownStream(channel.to_owned()))
    }

    fn received(
        &mut self,
        number: u32,
        end: bool,
        payload: &[u8],
        (transcript, at): (&mut Transcript, Duration),
    ) {
        self.list(
            transcript,
            at,
            (true, "DATA".to_owned(), number, end, detail(number, None)),
            payload,
        );
        let Some(stream) = self.streams.get_mut(&number) else {
            transcript.violation(format!(
                "data arrives on stream {number}, which the client did not create"
            ));
            return;
        };
        if !stream.replied {
            transcript.violation(format!("data arrives on stream {number} before its SYN_REPLY"));
        }
        if stream.finished {
            transcript.violation(format!("data arrives on stream {number} after its end"));
        }
        stream.finished |= end;
        let channel = transcript.channel(&stream.name);
        // A frame that only ends the stream is no message.
        if !(end && payload.is_empty()) {
            channel.received.push(payload);
        }
        channel.ended |= end;
    }

    fn control(
        &mut self,
        (kind, end): (u16, bool),
        payload: &[u8],
        (transcript, at): (&mut Transcript, Duration),
    ) -> Result<Option<Bytes>, SpdyError> {
        let name = frame::name(kind);
        let word = |at: usize| {
            let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
            bytes
                .map(|bytes| u32::from_be_bytes(*bytes))
                .ok_or_else(|| SpdyError::FrameTooShort(name.clone()))
        };
        match kind {
            kind::SYN_REPLY | kind::HEADERS | kind::SYN_STREAM => {
                let number = word(0)? & 0x7fff_ffff;
                let start = if kind == kind::SYN_STREAM { 10 } else { 4 };
                let headers = self.decoder.decode(payload.get(start..).unwrap_or_default())?;
                let detail = detail(number, Some(&headers));
                self.list(transcript, at, (true, name.clone(), number, end, detail), &[]);
                self.headers_received((kind, end), number, transcript);
            }
            kind::RST_STREAM => {
                let (number, status) = (word(0)?, word(4)?);
                let mut detail = detail(number, None);
                detail.insert("status".to_owned(), json!(status));
                self.list(transcript, at, (true, name, number, true, detail), &[]);
                match self.streams.get(&number) {
                    Some(stream) => transcript.channel(&stream.name).ended = true,
                    None => transcript.violation(format!(
                        "stream {number} is reset, which the client did not create"
                    )),
                }
            }
            kind::PING => {
                let number = word(0)?;
                transcript.frame(ping_frame(true, number, at), &[]);
                // Odd numbers are replies to our own pings.
                return Ok((number % 2 == 0).then(|| control(kind::PING, &[number])));
            }
            kind::GOAWAY => {
                let (last, status) = (word(0)?, word(4).unwrap_or_default());
                let detail = [("last", json!(last)), ("status", json!(status))];
                transcript.frame(listed(true, name, at, &detail), &[]);
                transcript.close = Some(Close { code: Some(status), reason: "GOAWAY".to_owned() });
            }
            // The specification requires to ignore unknown frames.
            _ => transcript.frame(listed(true, name, at, &[]), payload),
        }
        Ok(None)
    }

    fn headers_received(
        &mut self,
        (kind, end): (u16, bool),
        number: u32,
        transcript: &mut Transcript,
    ) {
        let name = frame::name(kind);
        match (kind, self.streams.get_mut(&number)) {
            (kind::SYN_STREAM, _) => {
                if !number.is_multiple_of(2) {
                    transcript.violation(format!("the server creates stream {number}, an odd one"));
                }
            }
            (_, None) => {
                transcript.violation(format!(
                    "{name} is for stream {number}, which the client did not create"
                ));
            }
            (kind::SYN_REPLY, Some(stream)) => {
                if stream.replied {
                    transcript.violation(format!("stream {number} has two replies"));
                }
                stream.replied = true;
                stream.finished |= end;
                transcript.channel(&stream.name).ended |= end;
            }
            (_, Some(stream)) => transcript.channel(&stream.name).ended |= end,
        }
    }

    fn list(
        &self,
        transcript: &mut Transcript,
        at: Duration,
        (from_server, kind, number, fin, detail): (bool, String, u32, bool, Map<String, Value>),
        payload: &[u8],
    ) {
        let channel = self.streams.get(&number).map(|stream| stream.name.clone());
        let frame =
            exchange::Frame { from_server, kind, channel, fin, detail, at, ..Default::default() };
        transcript.frame(frame, payload);
    }
}

/// Limits the length of a header.
fn shortened(text: &str) -> String {
    text.chars().take(LISTED_CHARACTERS).collect()
}

fn control(kind: u16, words: &[u32]) -> Bytes {
    let payload: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    Frame::Control { kind, flags: 0, payload: payload.into() }.bytes()
}

fn detail(number: u32, headers: Option<&[(String, String)]>) -> Map<String, Value> {
    let mut detail = Map::new();
    detail.insert("stream".to_owned(), json!(number));
    if let Some(headers) = headers {
        let listed = headers.iter().take(LISTED_HEADERS);
        let headers: Map<String, Value> =
            listed.map(|(name, value)| (shortened(name), json!(shortened(value)))).collect();
        detail.insert("headers".to_owned(), Value::Object(headers));
    }
    detail
}

fn ping_frame(from_server: bool, number: u32, at: Duration) -> exchange::Frame {
    listed(from_server, "PING".to_owned(), at, &[("number", json!(number))])
}

fn listed(
    from_server: bool,
    kind: String,
    at: Duration,
    detail: &[(&str, Value)],
) -> exchange::Frame {
    let detail = detail.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    exchange::Frame { from_server, kind, fin: true, detail, at, ..Default::default() }
}

#[cfg(test)]
mod tests;
