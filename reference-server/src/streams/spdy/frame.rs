//! Frames: what stands on the wire of a SPDY/3.1 connection.
//!
//! A data frame may be 16 MiB long, so it is handed out in the pieces in which it arrives; nothing here holds more than one
//! control frame. The peers of a Kubernetes server (moby/spdystream in kubectl, and what was written after it) do no
//! flow control: they never send `WINDOW_UPDATE` nor `SETTINGS`, and would wait for ever for a sender that heeds windows.
//! Both frames are read and dropped, and the brake on a sender is that of TCP.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The longest control frame that is read: many times what the headers of a stream need.
const MAX_CONTROL: usize = 64 * 1024;
/// What stands in front of every frame.
const HEAD: usize = 8;
const VERSION: u16 = 3;
const CONTROL: u16 = 0x8000;
/// The flag of the last frame that a side sends on a stream.
const FIN: u8 = 1;
/// Stream ids are 31 bits wide; the bit above is reserved, or tells control frames from data.
const ID_MASK: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

/// Why a stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ResetStatus {
    ProtocolError = 1,
    InvalidStream = 2,
    RefusedStream = 3,
    Cancel = 5,
}

/// What a peer sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The peer opens a stream.
    SynStream { stream: u32, fin: bool, block: Bytes },
    /// A piece of the data of a stream; `fin` with the last one that there will ever be.
    Data { stream: u32, fin: bool, bytes: Bytes },
    /// The peer gives a stream up.
    RstStream { stream: u32 },
    /// The peer wants its number back.
    Ping(u32),
    /// The peer opens no more streams.
    GoAway,
    /// Headers that nobody needs. Still a block, and the blocks of a connection are one compressed stream.
    Headers { block: Bytes },
    /// A frame that means nothing here: `SETTINGS`, `WINDOW_UPDATE`, and what the protocol does not know.
    Other(u16),
}

/// The bytes are no SPDY/3.1; there is no way to find the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("expected a control frame of version 3, got version {0}")]
    Version(u16),
    #[error("a control frame of type {kind} has {length} bytes; at most {MAX_CONTROL} are read")]
    TooLong { kind: u16, length: usize },
    #[error("a control frame of type {0} is too short for its fields")]
    TooShort(u16),
}

/// Cuts the bytes of a connection into frames.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The data frame whose end has not come.
    rest: Option<Rest>,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    stream: u32,
    fin: bool,
    length: usize,
}

impl Decoder {
    /// Takes one frame, or one piece of a data frame, from the front of `buffer`; none when it needs more bytes.
    pub(crate) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        if let Some(rest) = self.rest {
            return Ok(self.piece(rest, buffer));
        }
        let Some((mut head, _)) = buffer.split_at_checked(HEAD) else { return Ok(None) };
        let first = head.get_u32();
        let flags = head.get_u8();
        let length = usize::try_from(head.get_uint(3)).unwrap_or(usize::MAX);
        let fin = flags & FIN != 0;
        if first & !ID_MASK == 0 {
            buffer.advance(HEAD);
            return Ok(self.piece(Rest { stream: first, fin, length }, buffer));
        }
        let [version, kind] = [(first >> 16) as u16 & !CONTROL, (first & 0xffff) as u16];
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        if length > MAX_CONTROL {
            return Err(FrameError::TooLong { kind, length });
        }
        if buffer.len() < HEAD + length {
            return Ok(None);
        }
        buffer.advance(HEAD);
        control(kind, fin, buffer.split_to(length).freeze()).map(Some)
    }

    fn piece(&mut self, rest: Rest, buffer: &mut BytesMut) -> Option<Frame> {
        let here = rest.length.min(buffer.len());
        let left = rest.length - here;
        if here == 0 && left > 0 {
            self.rest = Some(rest);
            return None;
        }
        self.rest = (left > 0).then_some(Rest { length: left, ..rest });
        let bytes = buffer.split_to(here).freeze();
        Some(Frame::Data { stream: rest.stream, fin: rest.fin && left == 0, bytes })
    }
}

fn control(kind: u16, fin: bool, mut body: Bytes) -> Result<Frame, FrameError> {
    let mut word = |skip: usize| {
        let short = FrameError::TooShort(kind);
        let word = body.try_get_u32().map_err(|_| short)? & ID_MASK;
        (body.remaining() >= skip).then(|| body.advance(skip)).ok_or(short)?;
        Ok(word)
    };
    Ok(match kind {
        // Behind the id: the stream that it belongs to, its priority and its slot. No peer uses them.
        SYN_STREAM => Frame::SynStream { stream: word(6)?, fin, block: body },
        RST_STREAM => Frame::RstStream { stream: word(4)? },
        PING => Frame::Ping(body.try_get_u32().map_err(|_| FrameError::TooShort(kind))?),
        GOAWAY => Frame::GoAway,
        // SYN_REPLY, and HEADERS: this side opens no streams, but it must go on reading their blocks.
        SYN_REPLY | 8 => {
            word(0)?;
            Frame::Headers { block: body }
        }
        other => Frame::Other(other),
    })
}

/// The bytes in front of the data of a stream.
pub(super) fn data_head(stream: u32, fin: bool, length: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&(stream & ID_MASK).to_be_bytes());
    // No piece that this server sends comes near the 24 bits.
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    head[4..].copy_from_slice(&length);
    head[4] = if fin { FIN } else { 0 };
    head
}

/// Accepts a stream.
pub(super) fn syn_reply(stream: u32, block: &[u8]) -> BytesMut {
    let mut frame = control_head(SYN_REPLY, 4 + block.len());
    frame.put_u32(stream);
    frame.put_slice(block);
    frame
}

pub(super) fn rst_stream(stream: u32, status: ResetStatus) -> BytesMut {
    let mut frame = control_head(RST_STREAM, 8);
    frame.put_u32(stream);
    frame.put_u32(status as u32);
    frame
}

pub(super) fn ping(id: u32) -> BytesMut {
    let mut frame = control_head(PING, 4);
    frame.put_u32(id);
    frame
}

/// Says that the connection ends, all being well, and which stream was the last one that this side took.
pub(super) fn go_away(last: u32) -> BytesMut {
    let mut frame = control_head(GOAWAY, 8);
    frame.put_u32(last);
    frame.put_u32(0);
    frame
}

fn control_head(kind: u16, length: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(HEAD + length);
    frame.put_u16(CONTROL | VERSION);
    frame.put_u16(kind);
    // No flags: this side ends streams with data frames.
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::streams::testing::unhex;

    fn frames(decoder: &mut Decoder, buffer: &mut BytesMut) -> Vec<Frame> {
        std::iter::from_fn(|| decoder.decode(buffer).expect("frames")).collect()
    }

    fn data(stream: u32, fin: bool, text: &'static str) -> Frame {
        Frame::Data { stream, fin, bytes: Bytes::from_static(text.as_bytes()) }
    }

    #[rstest]
    #[case("000000030000000473706479", vec![data(3, false, "spdy")])]
    #[case("0000000301000000", vec![data(3, true, "")])]
    #[case("800300060000000400000001", vec![Frame::Ping(1)])]
    #[case("80030003000000080000000300000005", vec![Frame::RstStream { stream: 3 }])]
    #[case("80030007000000080000000500000000", vec![Frame::GoAway])]
    // SETTINGS with an initial window, and a WINDOW_UPDATE.
    #[case("800300040000000c000000010000000700010000", vec![Frame::Other(4)])]
    #[case("80030009000000080000000000010000", vec![Frame::Other(9)])]
    fn frames_as_peers_send_them(#[case] bytes: &str, #[case] expected: Vec<Frame>) {
        let mut buffer = BytesMut::from(unhex(bytes).as_slice());
        assert_eq!(frames(&mut Decoder::default(), &mut buffer), expected);
        assert!(buffer.is_empty());
    }

    #[test]
    fn frames_come_out_the_same_however_the_bytes_arrive() {
        let bytes = unhex(
            "80030006000000040000000100000003000000046f75740a0000000301000001788003000700000008\
                           0000000500000000",
        );
        let (mut decoder, mut buffer, mut seen) = (Decoder::default(), BytesMut::new(), Vec::new());
        for byte in bytes {
            buffer.put_u8(byte);
            seen.extend(frames(&mut decoder, &mut buffer));
        }
        let pieces = ["o", "u", "t", "\n"].map(|piece| data(3, false, piece));
        let expected: Vec<_> = [Frame::Ping(1)].into_iter().chain(pieces).collect();
        assert_eq!(seen[..5], expected);
        assert_eq!(seen[5..], [data(3, true, "x"), Frame::GoAway]);
    }

    #[test]
    fn a_long_data_frame_is_not_waited_for() {
        let mut buffer = BytesMut::from(&data_head(5, true, 16_000_000)[..]);
        buffer.put_bytes(b'x', 10);
        let mut decoder = Decoder::default();
        let first = decoder.decode(&mut buffer).expect("a piece");
        assert_eq!(first, Some(data(5, false, "xxxxxxxxxx")));
        assert_eq!(decoder.decode(&mut buffer), Ok(None));
    }

    #[rstest]
    #[case("8002000600000004", FrameError::Version(2))]
    #[case("8003000100ffffff", FrameError::TooLong { kind: 1, length: 0x00ff_ffff })]
    #[case("8003000100010001", FrameError::TooLong { kind: 1, length: 0x0001_0001 })]
    #[case("80030001000000020000", FrameError::TooShort(1))]
    #[case("800300030000000400000001", FrameError::TooShort(3))]
    fn what_is_no_frame(#[case] bytes: &str, #[case] error: FrameError) {
        let mut buffer = BytesMut::from(unhex(bytes).as_slice());
        assert_eq!(Decoder::default().decode(&mut buffer), Err(error));
    }

    #[test]
    fn a_control_frame_of_64_kibibytes_is_waited_for() {
        let mut buffer = BytesMut::from(unhex("8003000400010000").as_slice());
        assert_eq!(Decoder::default().decode(&mut buffer), Ok(None));
        buffer.put_bytes(0, 0x0001_0000);
        assert_eq!(Decoder::default().decode(&mut buffer), Ok(Some(Frame::Other(4))));
    }

    #[rstest]
    #[case(ping(1), "800300060000000400000001")]
    #[case(rst_stream(3, ResetStatus::Cancel), "80030003000000080000000300000005")]
    #[case(go_away(5), "80030007000000080000000500000000")]
    #[case(BytesMut::from(&data_head(1, true, 0)[..]), "0000000101000000")]
    #[case(syn_reply(5, &unhex("026100000000ffff")), "800300020000000c00000005026100000000ffff")]
    fn frames_as_a_real_server_sends_them(#[case] frame: BytesMut, #[case] bytes: &str) {
        assert_eq!(frame, unhex(bytes));
    }
}
