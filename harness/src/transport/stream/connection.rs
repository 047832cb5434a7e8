//! The framing of a connection without I/O: bytes in, bytes out, with a transcript.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kubeproof_cases::case::FrameHead;
use kubeproof_cases::protocol::{Carrier, StreamKind};
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::framing::Framing;
use super::spdy::Session;
use super::websocket::{self, MAX_MESSAGE};
use crate::exchange::{Close, Frame, FrameError, Transcript};

const BINARY: u8 = 2;
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The transcript, and the time of the data.
pub(super) type Record<'a> = (&'a mut Transcript, Duration);

#[derive(Debug)]
pub(super) struct Connection {
    over: Carrier,
    framing: Framing,
    ports: Vec<u16>,
    session: Option<Session>,
    pending: BytesMut,
    /// The message whose fragments are arriving.
    message: Option<(OpCode, BytesMut)>,
    said_goodbye: bool,
}

impl Connection {
    pub(super) fn new(
        over: Carrier,
        kind: StreamKind,
        protocol: &str,
        ports: Vec<u16>,
    ) -> Result<Self, FrameError> {
        let framing = Framing::of(kind, protocol);
        let is_spdy = over == Carrier::Spdy || framing == Framing::Tunnel;
        Ok(Self {
            over,
            framing,
            ports,
            session: if is_spdy { Some(Session::new()?) } else { None },
            pending: BytesMut::new(),
            message: None,
            said_goodbye: false,
        })
    }

    pub(super) fn is_spdy(&self) -> bool {
        self.session.is_some()
    }

    /// Reports whether the connection ended inside a frame.
    pub(super) fn is_inside_frame(&self) -> bool {
        !self.pending.is_empty() || self.session.as_ref().is_some_and(Session::is_inside_frame)
    }

    /// Parses received bytes. Returns replies; an error ends the connection.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        (transcript, at): Record<'_>,
    ) -> Result<Vec<Bytes>, FrameError> {
        if self.over == Carrier::Spdy
            && let Some(session) = &mut self.session
        {
            return Ok(session.feed(bytes, (transcript, at))?);
        }
        if self.over == Carrier::Http {
            self.framing.receive(bytes, &self.ports, transcript);
            return Ok(Vec::new());
        }
        self.pending.extend_from_slice(bytes);
        let mut replies = Vec::new();
        while let Some(frame) = websocket::next(&mut self.pending)? {
            replies.extend(self.frame(frame, (&mut *transcript, at))?);
        }
        Ok(replies)
    }

    fn frame(
        &mut self,
        frame: websocket::Frame,
        (transcript, at): Record<'_>,
    ) -> Result<Vec<Bytes>, FrameError> {
        let opcode: u8 = frame.opcode.into();
        // A second close is valid. Servers send it after a read error.
        if transcript.close.is_some() && matches!(frame.opcode, OpCode::Data(_)) {
            transcript
                .violation(format!("a {} frame comes after the close", websocket::name(opcode)));
        }
        for fault in frame.faults {
            transcript.violation(fault);
        }
        let mut listed = Frame {
            from_server: true,
            kind: websocket::name(opcode),
            fin: frame.fin,
            at,
            ..Frame::default()
        };
        match frame.opcode {
            OpCode::Control(control) => {
                if let (Control::Close, Some(code)) = (control, frame.payload.first_chunk::<2>()) {
                    listed.detail.insert("code".to_owned(), json!(u16::from_be_bytes(*code)));
                }
                transcript.frame(listed, &frame.payload);
                Ok(self.control(control, &frame.payload, (transcript, at)))
            }
            OpCode::Data(data) => {
                if data != Data::Continue {
                    listed.channel = self.framing.channel(&frame.payload);
                }
                transcript.frame(listed, &frame.payload);
                self.fragment(data, frame.fin, &frame.payload, (transcript, at))
            }
        }
    }

    fn control(
        &mut self,
        control: Control,
        payload: &[u8],
        (transcript, at): Record<'_>,
    ) -> Vec<Bytes> {
        match control {
            Control::Ping => vec![self.listed(PONG, payload, (transcript, at))],
            Control::Close => {
                let code =
                    payload.first_chunk::<2>().map(|code| u32::from(u16::from_be_bytes(*code)));
                let reason =
                    String::from_utf8_lossy(payload.get(2..).unwrap_or_default()).into_owned();
                transcript.close.get_or_insert(Close { code, reason });
                if self.said_goodbye {
                    return Vec::new();
                }
                self.said_goodbye = true;
                vec![self.listed(CLOSE, payload.get(..2).unwrap_or_default(), (transcript, at))]
            }
            Control::Pong | Control::Reserved(_) => Vec::new(),
        }
    }

    /// Joins fragments, and passes whole messages to their channel.
    fn fragment(
        &mut self,
        data: Data,
        fin: bool,
        payload: &[u8],
        record: Record<'_>,
    ) -> Result<Vec<Bytes>, FrameError> {
        match (data, &mut self.message) {
            (Data::Continue, None) => {
                record.0.violation("a continuation frame continues nothing");
                Ok(Vec::new())
            }
            (Data::Continue, Some((_, message))) => {
                if message.len() + payload.len() > MAX_MESSAGE {
                    return Err(FrameError::MessageTooLong(MAX_MESSAGE));
                }
                message.extend_from_slice(payload);
                let whole = if fin { self.message.take() } else { None };
                whole.map_or(Ok(Vec::new()), |(opcode, message)| {
                    self.message(opcode, &message, record)
                })
            }
            (_, Some(_)) => {
                record.0.violation("a new message begins before the last has ended");
                self.message = None;
                Ok(Vec::new())
            }
            (_, None) if fin => self.message(OpCode::Data(data), payload, record),
            (_, None) => {
                self.message = Some((OpCode::Data(data), BytesMut::from(payload)));
                Ok(Vec::new())
            }
        }
    }

    fn message(
        &mut self,
        opcode: OpCode,
        message: &[u8],
        (transcript, at): Record<'_>,
    ) -> Result<Vec<Bytes>, FrameError> {
        let is_text = opcode == OpCode::Data(Data::Text);
        // Watches and proxied servers may send either type.
        if self.framing != Framing::Plain && is_text != self.framing.is_text() {
            let asked = if self.framing.is_text() { "text" } else { "binary" };
            transcript.violation(format!(
                "a message is not {asked}, as the negotiated protocol asks for"
            ));
        }
        if let Some(session) = &mut self.session {
            let replies = session.feed(message, (transcript, at))?;
            return Ok(replies.iter().map(|reply| websocket::frame(BINARY, reply)).collect());
        }
        self.framing.receive(message, &self.ports, transcript);
        Ok(Vec::new())
    }

    /// Returns the bytes that carry data of a channel, or its end.
    pub(super) fn data(
        &mut self,
        channel: &str,
        bytes: Bytes,
        end: bool,
        (transcript, at): Record<'_>,
    ) -> Result<Bytes, FrameError> {
        if let Some(session) = &mut self.session {
            let sent = session.data(channel, bytes, end, (transcript, at))?;
            return Ok(self.carried(sent));
        }
        if end {
            let message = self.framing.end(channel)?;
            return Ok(self.listed(BINARY, &message, (transcript, at)));
        }
        let message = self.framing.encode(channel, &bytes)?;
        let name =
            if channel.parse::<u8>().is_ok() { self.framing.channel(&message) } else { None };
        transcript.channel(name.as_deref().unwrap_or(channel)).sent.push(&bytes);
        Ok(self.listed(
            if self.framing.is_text() { TEXT } else { BINARY },
            &message,
            (transcript, at),
        ))
    }

    /// Reports whether the last data can carry the end.
    pub(super) fn ends_with_data(&self) -> bool {
        self.session.is_some()
    }

    /// Reports whether one side of a channel can be closed.
    pub(super) fn half_closes(&self) -> bool {
        self.session.is_some() || self.framing.closes()
    }

    /// Returns a frame with any header.
    pub(super) fn exact(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        (transcript, at): Record<'_>,
    ) -> Bytes {
        self.said_goodbye |= head.opcode == CLOSE;
        let listed =
            Frame { kind: websocket::name(head.opcode), fin: head.fin, at, ..Frame::default() };
        transcript.frame(listed, payload);
        websocket::write(head, payload)
    }

    /// Returns bytes without framing.
    pub(super) fn raw(bytes: Vec<u8>, (transcript, at): Record<'_>) -> Bytes {
        let listed = Frame { kind: "raw".to_owned(), at, ..Frame::default() };
        transcript.frame(listed, &bytes);
        bytes.into()
    }

    pub(super) fn ping(
        &mut self,
        payload: &str,
        (transcript, at): Record<'_>,
    ) -> Result<Bytes, FrameError> {
        if self.session.is_none() {
            return Ok(self.listed(PING, payload.as_bytes(), (transcript, at)));
        }
        let number = payload.parse().map_err(|_| FrameError::PingPayload(payload.to_owned()))?;
        let sent = Session::ping(number, (transcript, at));
        Ok(self.carried(sent))
    }

    pub(super) fn reset(
        &mut self,
        channel: &str,
        status: u32,
        record: Record<'_>,
    ) -> Result<Bytes, FrameError> {
        let session = self.session.as_mut().ok_or(FrameError::NotSpdy)?;
        let sent = session.reset(channel, status, record)?;
        Ok(self.carried(sent))
    }

    pub(super) fn create(
        &mut self,
        name: (&str, Option<u32>),
        headers: &[(String, String)],
        end: bool,
        record: Record<'_>,
    ) -> Result<Bytes, FrameError> {
        let session = self.session.as_mut().ok_or(FrameError::NotSpdy)?;
        let sent = session.create(name, headers, end, record)?;
        Ok(self.carried(sent))
    }

    /// Wraps SPDY in a message if tunnelled.
    fn carried(&self, spdy: Bytes) -> Bytes {
        if self.over == Carrier::Spdy { spdy } else { websocket::frame(BINARY, &spdy) }
    }

    fn listed(&self, opcode: u8, payload: &[u8], (transcript, at): Record<'_>) -> Bytes {
        let channel = if opcode < CLOSE { self.framing.channel(payload) } else { None };
        let kind = websocket::name(opcode);
        transcript.frame(Frame { kind, channel, fin: true, at, ..Frame::default() }, payload);
        websocket::frame(opcode, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::ZERO;

    fn command() -> Connection {
        Connection::new(Carrier::Websocket, StreamKind::Command, "v5.channel.k8s.io", vec![])
            .expect("a connection")
    }

    #[test]
    fn a_recorded_connection_is_parsed_however_it_is_cut() {
        let recorded =
            b"\x82\x01\x01\x82\x04\x01hi\n\x82\x15\x03{\"status\":\"Success\"}\x88\x02\x03\xe8";
        let (mut connection, mut transcript) = (command(), Transcript::default());
        let mut replies = Vec::new();
        for piece in recorded.chunks(3) {
            replies
                .extend(connection.feed(piece, (&mut transcript, AT)).expect("it is well formed"));
        }
        assert_eq!(transcript.channels["stdout"].received.text(), "hi\n");
        assert_eq!(transcript.close, Some(Close { code: Some(1000), reason: String::new() }));
        assert!(transcript.violations.is_empty(), "{:?}", transcript.violations);
        // The reply has the code of the close.
        assert_eq!(replies.len(), 1);
        assert!(!connection.is_inside_frame());
    }

    #[test]
    fn fragments_are_one_message() {
        let (mut connection, mut transcript) = (command(), Transcript::default());
        let sent = b"\x02\x02\x01h\x89\x01p\x80\x02i\n";
        let replies = connection.feed(sent, (&mut transcript, AT)).expect("it is well formed");
        assert_eq!(transcript.channels["stdout"].received.text(), "hi\n");
        assert_eq!((transcript.channels["stdout"].received.messages, replies.len()), (1, 1));
    }

    #[test]
    fn fragments_without_end_end_the_connection() {
        let (mut connection, mut transcript) = (command(), Transcript::default());
        let more = [&b"\x00\x7e\x40\x00"[..], &[b'x'; 0x4000]].concat();
        connection.feed(b"\x02\x01\x01", (&mut transcript, AT)).expect("a message begins");
        let error = (0..=MAX_MESSAGE / 0x4000)
            .find_map(|_| connection.feed(&more, (&mut transcript, AT)).err());
        assert_eq!(error, Some(FrameError::MessageTooLong(MAX_MESSAGE)));
        let length = [&b"\x89\x7e\x40\x00"[..], &[b'x'; 0x4000]].concat();
        let error = command().feed(&length, (&mut transcript, AT)).expect_err("a ping is short");
        assert_eq!(error.to_string(), "a control frame has 16384 bytes, more than 125");
    }

    #[test]
    fn data_after_the_close_are_recorded() {
        let (mut connection, mut transcript) = (command(), Transcript::default());
        connection
            .feed(b"\x88\x02\x03\xe8\x82\x02\x01x", (&mut transcript, AT))
            .expect("it can be read");
        assert_eq!(transcript.violations.len(), 1);
    }

    #[test]
    fn the_body_of_a_response_has_no_frames() {
        let mut connection =
            Connection::new(Carrier::Http, StreamKind::Plain, "", vec![]).expect("a connection");
        let mut transcript = Transcript::default();
        for piece in [&b"\x82\x01"[..], b"one\n"] {
            let replies = connection.feed(piece, (&mut transcript, AT)).expect("it has no form");
            assert!(replies.is_empty());
        }
        assert_eq!(transcript.channels["data"].received.messages, 2);
        assert_eq!(transcript.channels["data"].received.size, 6);
        assert!(!connection.is_inside_frame());
    }

    #[test]
    fn text_is_no_binary() {
        let (mut connection, mut transcript) = (command(), Transcript::default());
        connection.feed(b"\x81\x02\x01x", (&mut transcript, AT)).expect("it can be read");
        assert_eq!(transcript.violations.len(), 1);
    }
}
