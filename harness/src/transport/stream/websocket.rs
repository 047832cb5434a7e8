//! WebSocket frames.
//!
//! tungstenite reads and writes the frame header. Its message layer is not used, since it would
//! reply to frames, join and reject them, which is what cases test.

use std::io::Cursor;

use bytes::{Buf, Bytes, BytesMut};
use kubeproof_cases::case::FrameHead;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use crate::exchange::FrameError;

/// Limit on a frame or message.
pub(super) const MAX_MESSAGE: usize = 4 << 20;

/// The limit of RFC 6455 for control frames.
const MAX_CONTROL: usize = 125;

#[derive(Debug, Eq, PartialEq)]
pub(super) struct Frame {
    pub(super) opcode: OpCode,
    pub(super) fin: bool,
    pub(super) payload: Bytes,
    /// Violations of the protocol.
    pub(super) faults: Vec<String>,
}

/// Removes the next complete frame from the buffer. An error ends the connection.
pub(super) fn next(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    let mut cursor = Cursor::new(&buffer[..]);
    let parsed = FrameHeader::parse(&mut cursor)
        .map_err(|error| FrameError::Malformed(error.to_string()))?;
    let Some((head, length)) = parsed else { return Ok(None) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        return Err(FrameError::FrameTooLong { length, limit: MAX_MESSAGE });
    }
    let is_control = matches!(head.opcode, OpCode::Control(_));
    if is_control && length > MAX_CONTROL {
        return Err(FrameError::ControlFrameTooLong { length, limit: MAX_CONTROL });
    }
    let start = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
    if buffer.len() < start + length {
        return Ok(None);
    }
    buffer.advance(start);
    let mut payload = buffer.split_to(length);
    let mut faults = Vec::new();
    if let Some(mask) = head.mask {
        faults.push("a frame of the server is masked".to_owned());
        apply(&mut payload, mask);
    }
    if head.rsv1 || head.rsv2 || head.rsv3 {
        faults.push("a frame has reserved bits set".to_owned());
    }
    if is_control && !head.is_final {
        faults.push("a control frame is fragmented".to_owned());
    }
    Ok(Some(Frame { opcode: head.opcode, fin: head.is_final, payload: payload.freeze(), faults }))
}

/// Encodes a valid client frame.
pub(super) fn frame(opcode: u8, payload: &[u8]) -> Bytes {
    write(FrameHead { opcode, fin: true, masked: true, reserved: 0, claims: None }, payload)
}

/// Encodes a frame with any header, which cases need and libraries do not offer.
pub(super) fn write(head: FrameHead, payload: &[u8]) -> Bytes {
    let length = head.claims.unwrap_or(payload.len() as u64);
    let mut bytes = Vec::with_capacity(payload.len() + 14);
    bytes.push(u8::from(head.fin) << 7 | (head.reserved & 7) << 4 | head.opcode & 15);
    let mask_bit = u8::from(head.masked) << 7;
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => bytes.push(mask_bit | short),
        (_, Ok(medium)) => {
            bytes.push(mask_bit | 0x7e);
            bytes.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            bytes.push(mask_bit | 0x7f);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
    }
    let start = bytes.len();
    if head.masked {
        let mask: [u8; 4] = rand::random();
        bytes.extend_from_slice(&mask);
        bytes.extend_from_slice(payload);
        apply(&mut bytes[start + 4..], mask);
    } else {
        bytes.extend_from_slice(payload);
    }
    bytes.into()
}

fn apply(payload: &mut [u8], mask: [u8; 4]) {
    for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

pub(super) fn name(opcode: u8) -> String {
    match OpCode::from(opcode) {
        OpCode::Data(Data::Continue) => "continuation".to_owned(),
        OpCode::Data(Data::Text) => "text".to_owned(),
        OpCode::Data(Data::Binary) => "binary".to_owned(),
        OpCode::Control(Control::Close) => "close".to_owned(),
        OpCode::Control(Control::Ping) => "ping".to_owned(),
        OpCode::Control(Control::Pong) => "pong".to_owned(),
        OpCode::Data(Data::Reserved(_)) | OpCode::Control(Control::Reserved(_)) => {
            format!("opcode {opcode}")
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Recorded from a real server.
    #[rstest]
    #[case::empty_stdout(&[0x82, 0x01, 0x01], OpCode::Data(Data::Binary), &[1])]
    #[case::close(&[0x88, 0x02, 0x03, 0xe8], OpCode::Control(Control::Close), &[3, 0xe8])]
    #[case::base64(b"\x81\x051aGkK", OpCode::Data(Data::Text), b"1aGkK")]
    fn frames_are_read(#[case] bytes: &[u8], #[case] opcode: OpCode, #[case] payload: &[u8]) {
        let mut buffer = BytesMut::from(&[bytes, b"rest"].concat()[..]);
        let frame = next(&mut buffer).expect("it is a frame").expect("it is complete");
        assert_eq!((frame.opcode, &frame.payload[..], frame.faults.len()), (opcode, payload, 0));
        assert_eq!(&buffer[..], b"rest");
    }

    #[test]
    fn a_frame_that_is_not_complete_is_left_alone() {
        for cut in 0..5 {
            let mut buffer = BytesMut::from(&b"\x82\x031hi"[..cut]);
            assert_eq!(next(&mut buffer), Ok(None));
            assert_eq!(buffer.len(), cut);
        }
    }

    #[rstest]
    #[case::masked(b"\x82\x81\0\0\0\0\x01")]
    #[case::reserved(b"\xc2\x01\x01")]
    #[case::fragmented_control(b"\x08\x02\x03\xe8")]
    fn what_a_server_may_not_send_is_recorded(#[case] bytes: &[u8]) {
        let frame =
            next(&mut BytesMut::from(bytes)).expect("it can be read").expect("it is complete");
        assert_eq!(frame.faults.len(), 1);
    }

    #[rstest]
    #[case(0)]
    #[case(125)]
    #[case(126)]
    #[case(65_535)]
    #[case(65_536)]
    fn what_is_written_is_read(#[case] length: usize) {
        let payload = vec![0xa5; length];
        let mut buffer = BytesMut::from(&frame(2, &payload)[..]);
        let read = next(&mut buffer).expect("it is a frame").expect("it is complete");
        assert_eq!(&read.payload[..], &payload[..]);
        assert_eq!(read.faults, ["a frame of the server is masked"]);
    }
}
