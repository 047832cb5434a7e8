//! WebSocket frames, in both directions: clients mask what they send, servers do not.
//!
//! The codec keeps what a frame looks like on the wire (mask, reserved bits, fragmentation), so a
//! decoded frame encodes to the same bytes. It does not enforce the rules of RFC 6455 for a
//! sequence of frames.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The longest payload that [`Decoder`] accepts by default.
pub const MAX_PAYLOAD: usize = 32 * 1024 * 1024;

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const SHORT: usize = 125;
/// A length of 16 bits follows.
const LENGTH_16: u8 = 0x7e;
/// A length of 64 bits follows.
const LENGTH_64: u8 = 0x7f;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A message of UTF-8 text, or its first fragment.
    Text,
    /// A message of bytes, or its first fragment.
    Binary,
    /// The end of the connection.
    Close,
    /// A request for a pong with the same payload.
    Ping,
    /// The response to a ping.
    Pong,
    /// An opcode that RFC 6455 reserves.
    Reserved(u8),
}

impl Opcode {
    fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            other => Self::Reserved(other),
        }
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
            Self::Reserved(bits) => bits & 0x0f,
        }
    }

    /// Returns true for types that may arrive between the fragments of a message.
    pub fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// True for the last fragment of a message.
    pub fin: bool,
    /// The three reserved bits, which are 0 without extensions.
    pub reserved: u8,
    /// The type of the frame.
    pub opcode: Opcode,
    /// The key of a masked frame.
    pub mask: Option<[u8; 4]>,
    /// The content, without the mask.
    pub payload: Bytes,
}

impl Frame {
    /// Returns an unmasked frame that is a whole message.
    pub fn new(opcode: Opcode, payload: impl Into<Bytes>) -> Self {
        Self { fin: true, reserved: 0, opcode, mask: None, payload: payload.into() }
    }

    /// Returns a message of bytes.
    pub fn binary(payload: impl Into<Bytes>) -> Self {
        Self::new(Opcode::Binary, payload)
    }

    /// Returns a message of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Opcode::Text, text.into())
    }

    /// Returns a close frame.
    pub fn close(code: u16, reason: &str) -> Self {
        Self::new(Opcode::Close, [&code.to_be_bytes(), reason.as_bytes()].concat())
    }

    /// Masks the frame with this key, as clients must.
    #[must_use]
    pub fn masked(mut self, key: [u8; 4]) -> Self {
        self.mask = Some(key);
        self
    }

    /// Returns the code of a close frame, if it has one.
    pub fn close_code(&self) -> Option<u16> {
        match (self.opcode, self.payload.as_ref()) {
            (Opcode::Close, [high, low, ..]) => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }

    /// Appends the frame to `wire`.
    pub fn encode(&self, wire: &mut BytesMut) {
        let fin = if self.fin { FIN } else { 0 };
        wire.put_u8(fin | (self.reserved & 7) << 4 | self.opcode.bits());
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        let length = self.payload.len();
        if length <= SHORT {
            wire.put_u8(masked | u8::try_from(length).unwrap_or_default());
        } else if let Ok(length) = u16::try_from(length) {
            wire.put_u8(masked | LENGTH_16);
            wire.put_u16(length);
        } else {
            wire.put_u8(masked | LENGTH_64);
            wire.put_u64(length as u64);
        }
        let start = wire.len() + if self.mask.is_some() { 4 } else { 0 };
        wire.put_slice(self.mask.as_ref().map_or(&[], <[u8; 4]>::as_slice));
        wire.put_slice(&self.payload);
        if let Some(key) = self.mask {
            apply_mask(&mut wire[start..], key);
        }
    }
}

fn apply_mask(bytes: &mut [u8], key: [u8; 4]) {
    for (byte, key) in bytes.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

/// Why bytes or frames are not WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The payload, or a message of several fragments, exceeds the limit.
    #[error("expected at most {limit} bytes in a message, got {length}")]
    TooLong {
        /// The length in bytes.
        length: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// A continuation frame arrived outside of a message.
    #[error("expected the first frame of a message, got a continuation frame")]
    UnexpectedContinuation,
    /// A new message started inside of a fragmented one.
    #[error("expected a continuation frame, got the first frame of another message")]
    MissingContinuation,
}

impl FrameError {
    /// Returns the stable code of this error.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLong { .. } => "websocket-too-long",
            Self::UnexpectedContinuation => "websocket-unexpected-continuation",
            Self::MissingContinuation => "websocket-missing-continuation",
        }
    }
}

/// Splits the bytes of one direction into frames.
#[derive(Clone, Debug)]
pub struct Decoder {
    limit: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_limit(MAX_PAYLOAD)
    }
}

impl Decoder {
    /// Returns a decoder for payloads of at most `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { limit }
    }

    /// Takes one frame from the front of `buffer`. Returns none when the frame is incomplete.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let mut head = buffer.as_ref();
        let (Ok(first), Ok(second)) = (head.try_get_u8(), head.try_get_u8()) else {
            return Ok(None);
        };
        let length = match second & !MASKED {
            LENGTH_16 => head.try_get_u16().map(u64::from),
            LENGTH_64 => head.try_get_u64(),
            short => Ok(u64::from(short)),
        };
        let Ok(length) = length else { return Ok(None) };
        let limit = self.limit;
        let size = usize::try_from(length).ok().filter(|size| *size <= limit);
        let size = size.ok_or(FrameError::TooLong { length, limit })?;
        let mask = if second & MASKED == 0 {
            None
        } else {
            match head.try_get_u32() {
                Ok(key) => Some(key.to_be_bytes()),
                Err(_) => return Ok(None),
            }
        };
        if head.len() < size {
            return Ok(None);
        }
        buffer.advance(buffer.len() - head.len());
        let mut payload = buffer.split_to(size);
        if let Some(key) = mask {
            apply_mask(&mut payload, key);
        }
        Ok(Some(Frame {
            fin: first & FIN != 0,
            reserved: first >> 4 & 7,
            opcode: Opcode::from_bits(first & 0x0f),
            mask,
            payload: payload.freeze(),
        }))
    }
}

/// Joins the fragments of messages.
#[derive(Clone, Debug)]
pub struct Defragmenter {
    limit: usize,
    /// The first frame of the message, and the content so far.
    open: Option<(Frame, BytesMut)>,
}

impl Default for Defragmenter {
    fn default() -> Self {
        Self { limit: MAX_PAYLOAD, open: None }
    }
}

impl Defragmenter {
    /// Adds a frame. Returns a whole message as one frame, or a control frame as it is.
    pub fn push(&mut self, frame: Frame) -> Result<Option<Frame>, FrameError> {
        if frame.opcode.is_control() {
            return Ok(Some(frame));
        }
        let (first, mut content) = match (self.open.take(), frame.opcode) {
            (None, Opcode::Continuation) => return Err(FrameError::UnexpectedContinuation),
            (None, _) if frame.fin => return Ok(Some(frame)),
            (None, _) => {
                let content = BytesMut::from(frame.payload.as_ref());
                self.open = Some((frame, content));
                return Ok(None);
            }
            (Some(open), Opcode::Continuation) => open,
            (Some(_), _) => return Err(FrameError::MissingContinuation),
        };
        let length = content.len() + frame.payload.len();
        if length > self.limit {
            return Err(FrameError::TooLong { length: length as u64, limit: self.limit });
        }
        content.put_slice(&frame.payload);
        if frame.fin {
            return Ok(Some(Frame { fin: true, payload: content.freeze(), ..first }));
        }
        self.open = Some((first, content));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::testing::unhex;

    /// The examples of RFC 6455, section 5.7.
    #[rstest]
    #[case("810548656c6c6f", Frame::text("Hello"))]
    #[case("818537fa213d7f9f4d5158", Frame::text("Hello").masked([0x37, 0xfa, 0x21, 0x3d]))]
    #[case("890548656c6c6f", Frame::new(Opcode::Ping, "Hello"))]
    #[case(
        "8a8537fa213d7f9f4d5158",
        Frame::new(Opcode::Pong, "Hello").masked([0x37, 0xfa, 0x21, 0x3d])
    )]
    #[case("880203e8", Frame::close(1000, ""))]
    fn frames_of_the_rfc_decode_and_encode(#[case] hex: &str, #[case] frame: Frame) {
        let mut wire = BytesMut::from(unhex(hex).as_slice());
        assert_eq!(Decoder::default().decode(&mut wire), Ok(Some(frame.clone())));
        assert!(wire.is_empty());
        frame.encode(&mut wire);
        assert_eq!(wire, unhex(hex));
    }

    #[rstest]
    #[case(125)]
    #[case(126)]
    #[case(65_535)]
    #[case(65_536)]
    fn each_form_of_the_length_round_trips(#[case] length: usize) {
        let frame = Frame::binary(vec![b'x'; length]).masked([1, 2, 3, 4]);
        let mut wire = BytesMut::new();
        frame.encode(&mut wire);
        // Every prefix is incomplete.
        let mut prefix = BytesMut::from(&wire[..wire.len() - 1]);
        assert_eq!(Decoder::default().decode(&mut prefix), Ok(None));
        assert_eq!(Decoder::default().decode(&mut wire), Ok(Some(frame)));
    }

    #[test]
    fn a_payload_above_the_limit_is_an_error() {
        let mut wire = BytesMut::from(unhex("827e0005").as_slice());
        let error = FrameError::TooLong { length: 5, limit: 4 };
        assert_eq!(Decoder::with_limit(4).decode(&mut wire), Err(error));
    }

    #[test]
    fn fragments_become_one_message_around_control_frames() {
        let mut messages = Defragmenter::default();
        let start = Frame { fin: false, ..Frame::text("Hel") };
        let ping = Frame::new(Opcode::Ping, "");
        assert_eq!(messages.push(start.clone()), Ok(None));
        assert_eq!(messages.push(ping.clone()), Ok(Some(ping)));
        let end = Frame::new(Opcode::Continuation, "lo");
        assert_eq!(messages.push(end.clone()), Ok(Some(Frame::text("Hello"))));
        assert_eq!(messages.push(end), Err(FrameError::UnexpectedContinuation));
        assert_eq!(messages.push(start), Ok(None));
        assert_eq!(messages.push(Frame::text("x")), Err(FrameError::MissingContinuation));
    }

    #[test]
    fn close_codes_are_read_from_the_payload() {
        assert_eq!(Frame::close(1001, "bye").close_code(), Some(1001));
        assert_eq!(Frame::new(Opcode::Close, "").close_code(), None);
        assert_eq!(Frame::binary("ab").close_code(), None);
    }
}
