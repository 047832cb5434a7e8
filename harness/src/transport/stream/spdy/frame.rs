//! SPDY/3.1 frames: a head of 8 bytes and a payload.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::exchange::SpdyError;

/// Far below the limit of the format. No peer sends larger frames.
const MAX_PAYLOAD: usize = 4 << 20;

const VERSION: u16 = 3;

/// The flag on the last frame of one side.
pub(super) const FIN: u8 = 1;

pub(super) mod kind {
    pub(in super::super) const SYN_STREAM: u16 = 1;
    pub(in super::super) const SYN_REPLY: u16 = 2;
    pub(in super::super) const RST_STREAM: u16 = 3;
    pub(in super::super) const SETTINGS: u16 = 4;
    pub(in super::super) const PING: u16 = 6;
    pub(in super::super) const GOAWAY: u16 = 7;
    pub(in super::super) const HEADERS: u16 = 8;
    pub(in super::super) const WINDOW_UPDATE: u16 = 9;
}

pub(super) fn name(kind: u16) -> String {
    match kind {
        kind::SYN_STREAM => "SYN_STREAM".to_owned(),
        kind::SYN_REPLY => "SYN_REPLY".to_owned(),
        kind::RST_STREAM => "RST_STREAM".to_owned(),
        kind::SETTINGS => "SETTINGS".to_owned(),
        kind::PING => "PING".to_owned(),
        kind::GOAWAY => "GOAWAY".to_owned(),
        kind::HEADERS => "HEADERS".to_owned(),
        kind::WINDOW_UPDATE => "WINDOW_UPDATE".to_owned(),
        other => format!("type {other}"),
    }
}

/// A frame.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Frame {
    /// A control frame of a stream or the session.
    Control { kind: u16, flags: u8, payload: Bytes },
    /// Data of a stream.
    Data { stream: u32, flags: u8, payload: Bytes },
}

/// Removes the next complete frame from the buffer. An error ends the connection.
pub(super) fn next(buffer: &mut BytesMut) -> Result<Option<Frame>, SpdyError> {
    let Some(head) = buffer.first_chunk::<8>() else { return Ok(None) };
    let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let flags = head[4];
    let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
    let is_control = first >> 31 == 1;
    let version = u16::from_be_bytes([head[0] & 0x7f, head[1]]);
    let kind = u16::from_be_bytes([head[2], head[3]]);
    if is_control && version != VERSION {
        return Err(SpdyError::Version { found: version, expected: VERSION });
    }
    if length >= MAX_PAYLOAD {
        return Err(SpdyError::FrameTooLong { length, limit: MAX_PAYLOAD });
    }
    if buffer.len() < 8 + length {
        return Ok(None);
    }
    buffer.advance(8);
    let payload = buffer.split_to(length).freeze();
    Ok(Some(if is_control {
        Frame::Control { kind, flags, payload }
    } else {
        Frame::Data { stream: first, flags, payload }
    }))
}

impl Frame {
    /// Returns the encoded frame.
    pub(super) fn bytes(&self) -> Bytes {
        let (first, flags, payload) = match self {
            Self::Control { kind, flags, payload } => {
                ((0x8000 | u32::from(VERSION)) << 16 | u32::from(*kind), *flags, payload)
            }
            Self::Data { stream, flags, payload } => (*stream, *flags, payload),
        };
        let mut bytes = BytesMut::with_capacity(8 + payload.len());
        bytes.put_u32(first);
        // Callers split data, so the length always fits into 24 bits.
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX) & 0x00ff_ffff;
        bytes.put_u32(u32::from(flags) << 24 | length);
        bytes.put_slice(payload);
        bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn control(kind: u16, payload: &'static [u8]) -> Frame {
        Frame::Control { kind, flags: 0, payload: Bytes::from_static(payload) }
    }

    /// Recorded from a real server.
    #[rstest]
    #[case::data(
        b"\0\0\0\x03\0\0\0\x04out\n",
        Frame::Data { stream: 3, flags: 0, payload: Bytes::from_static(b"out\n") }
    )]
    #[case::fin(
        b"\0\0\0\x03\x01\0\0\0",
        Frame::Data { stream: 3, flags: FIN, payload: Bytes::new() }
    )]
    #[case::reset(
        b"\x80\x03\0\x03\0\0\0\x08\0\0\0\x01\0\0\0\x05",
        control(kind::RST_STREAM, b"\0\0\0\x01\0\0\0\x05")
    )]
    #[case::ping(b"\x80\x03\0\x06\0\0\0\x04\0\0\0\x01", control(kind::PING, b"\0\0\0\x01"))]
    fn frames_are_read_and_written(#[case] bytes: &'static [u8], #[case] frame: Frame) {
        assert_eq!(next(&mut BytesMut::from(bytes)), Ok(Some(frame.clone())));
        assert_eq!(frame.bytes(), bytes);
        for cut in 0..bytes.len() {
            assert_eq!(next(&mut BytesMut::from(&bytes[..cut])), Ok(None));
        }
    }

    #[test]
    fn another_version_is_not_spoken() {
        assert!(next(&mut BytesMut::from(&b"\x80\x02\0\x06\0\0\0\x04\0\0\0\x01"[..])).is_err());
    }
}
