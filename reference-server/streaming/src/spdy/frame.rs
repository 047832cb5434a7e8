//! SPDY/3.1 frames, in both directions.
//!
//! A data frame may have 16 MiB, so [`Decoder`] returns it in pieces as they arrive. It buffers at
//! most one control frame. Header blocks stay compressed; see
//! [`header_block`](super::header_block).

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The longest control frame that [`Decoder`] accepts, which is many times what a stream needs.
pub const MAX_CONTROL: usize = 64 * 1024;
/// The length of the header of every frame.
pub(crate) const HEAD: usize = 8;
const VERSION: u16 = 3;
const CONTROL: u16 = 0x8000;
const FIN: u8 = 1;
/// Stream ids have 31 bits. The bit above marks control frames.
const ID_MASK: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;

/// The status codes of `RST_STREAM` that this crate sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ResetStatus {
    /// `PROTOCOL_ERROR`
    ProtocolError = 1,
    /// `INVALID_STREAM`
    InvalidStream = 2,
    /// `REFUSED_STREAM`
    RefusedStream = 3,
    /// `CANCEL`
    Cancel = 5,
}

/// One frame, or one piece of a data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Opens a stream.
    SynStream {
        /// The id of the new stream.
        stream: u32,
        /// True if the sender has already ended its direction.
        fin: bool,
        /// The stream id, priority and slot that follow the id on the wire.
        associated: [u8; 6],
        /// The compressed headers.
        block: Bytes,
    },
    /// Accepts a stream.
    SynReply {
        /// The stream.
        stream: u32,
        /// True if the sender has already ended its direction.
        fin: bool,
        /// The compressed headers.
        block: Bytes,
    },
    /// A piece of the data of a stream.
    Data {
        /// The stream.
        stream: u32,
        /// True if the sender ends its direction with this piece.
        fin: bool,
        /// The content.
        bytes: Bytes,
    },
    /// Ends both directions of a stream.
    RstStream {
        /// The stream.
        stream: u32,
        /// The status code, such as [`ResetStatus::Cancel`].
        status: u32,
    },
    /// Asks the peer to send the same number back, or sends it back.
    Ping(u32),
    /// The sender accepts no more streams.
    GoAway {
        /// The last stream that the sender accepted.
        last: u32,
        /// The status code. 0 means no error.
        status: u32,
    },
    /// Further headers of a stream.
    Headers {
        /// The stream.
        stream: u32,
        /// True if the sender ends its direction.
        fin: bool,
        /// The compressed headers.
        block: Bytes,
    },
    /// Any other control frame, such as `SETTINGS` and `WINDOW_UPDATE`.
    Other {
        /// The type of the frame.
        kind: u16,
        /// The flags of the frame.
        flags: u8,
        /// The content of the frame.
        payload: Bytes,
    },
}

impl Frame {
    /// Appends the frame to `wire`. Data of 16 MiB or more becomes several frames.
    pub fn encode(&self, wire: &mut BytesMut) {
        match self {
            Self::SynStream { stream, fin, associated, block } => {
                put_control(wire, SYN_STREAM, u8::from(*fin), 10 + block.len());
                wire.put_u32(*stream);
                wire.put_slice(associated);
                wire.put_slice(block);
            }
            Self::SynReply { stream, fin, block } | Self::Headers { stream, fin, block } => {
                let kind = if matches!(self, Self::SynReply { .. }) { SYN_REPLY } else { HEADERS };
                put_control(wire, kind, u8::from(*fin), 4 + block.len());
                wire.put_u32(*stream);
                wire.put_slice(block);
            }
            Self::Data { stream, fin, bytes } => {
                let mut rest = bytes.as_ref();
                loop {
                    let (piece, after) = rest.split_at(rest.len().min(0x00ff_ffff));
                    let last = after.is_empty();
                    wire.put_slice(&data_head(*stream, *fin && last, piece.len()));
                    wire.put_slice(piece);
                    if last {
                        return;
                    }
                    rest = after;
                }
            }
            Self::RstStream { stream, status } => {
                put_control(wire, RST_STREAM, 0, 8);
                wire.put_u32(*stream);
                wire.put_u32(*status);
            }
            Self::Ping(id) => {
                put_control(wire, PING, 0, 4);
                wire.put_u32(*id);
            }
            Self::GoAway { last, status } => {
                put_control(wire, GOAWAY, 0, 8);
                wire.put_u32(*last);
                wire.put_u32(*status);
            }
            Self::Other { kind, flags, payload } => {
                put_control(wire, *kind, *flags, payload.len());
                wire.put_slice(payload);
            }
        }
    }

    /// Returns the bytes of the frame.
    pub fn to_bytes(&self) -> BytesMut {
        let mut wire = BytesMut::new();
        self.encode(&mut wire);
        wire
    }
}

/// Returns the header of a data frame. No frame of this crate comes near the 24 bits of the length.
pub(crate) fn data_head(stream: u32, fin: bool, length: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&(stream & ID_MASK).to_be_bytes());
    head[4..].copy_from_slice(&flags_and_length(u8::from(fin), length).to_be_bytes());
    head
}

fn put_control(wire: &mut BytesMut, kind: u16, flags: u8, length: usize) {
    wire.reserve(HEAD + length);
    wire.put_u16(CONTROL | VERSION);
    wire.put_u16(kind);
    wire.put_u32(flags_and_length(flags, length));
}

fn flags_and_length(flags: u8, length: usize) -> u32 {
    let length = u32::try_from(length).unwrap_or(u32::MAX) & 0x00ff_ffff;
    u32::from(flags) << 24 | length
}

/// Why bytes are not SPDY/3.1. The next frame cannot be found after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The control frame has another version of SPDY.
    #[error("expected a control frame of version 3, got version {0}")]
    Version(u16),
    /// The control frame exceeds [`MAX_CONTROL`].
    #[error(
        "expected a control frame of at most {MAX_CONTROL} bytes, got type {kind} with {length} \
         bytes"
    )]
    TooLong {
        /// The type of the frame.
        kind: u16,
        /// Its length in bytes.
        length: usize,
    },
    /// The control frame ends before its fields do.
    #[error("expected all fields of a control frame of type {0}, got a shorter frame")]
    TooShort(u16),
}

impl FrameError {
    /// Returns the stable code of this error.
    pub fn code(self) -> &'static str {
        match self {
            Self::Version(_) => "spdy-version",
            Self::TooLong { .. } => "spdy-too-long",
            Self::TooShort(_) => "spdy-too-short",
        }
    }
}

/// Splits the bytes of one direction into frames.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// The data frame that is incomplete.
    open: Option<OpenData>,
}

#[derive(Clone, Copy, Debug)]
struct OpenData {
    stream: u32,
    fin: bool,
    remaining: usize,
}

impl Decoder {
    /// Takes one frame, or one piece of a data frame, from the front of `buffer`. Returns none when
    /// it needs more bytes.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        if let Some(open) = self.open {
            return Ok(self.piece(open, buffer));
        }
        let Some((mut head, _)) = buffer.split_at_checked(HEAD) else { return Ok(None) };
        let first = head.get_u32();
        let flags = head.get_u8();
        let length = usize::try_from(head.get_uint(3)).unwrap_or(usize::MAX);
        if first & !ID_MASK == 0 {
            buffer.advance(HEAD);
            let open = OpenData { stream: first, fin: flags & FIN != 0, remaining: length };
            return Ok(self.piece(open, buffer));
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
        control(kind, flags, buffer.split_to(length).freeze()).map(Some)
    }

    fn piece(&mut self, open: OpenData, buffer: &mut BytesMut) -> Option<Frame> {
        let available = open.remaining.min(buffer.len());
        let remaining = open.remaining - available;
        if available == 0 && remaining > 0 {
            self.open = Some(open);
            return None;
        }
        self.open = (remaining > 0).then_some(OpenData { remaining, ..open });
        let bytes = buffer.split_to(available).freeze();
        Some(Frame::Data { stream: open.stream, fin: open.fin && remaining == 0, bytes })
    }
}

fn control(kind: u16, flags: u8, mut body: Bytes) -> Result<Frame, FrameError> {
    let short = FrameError::TooShort(kind);
    let fin = flags & FIN != 0;
    let id = |body: &mut Bytes| body.try_get_u32().map(|id| id & ID_MASK).map_err(|_| short);
    Ok(match kind {
        SYN_STREAM => {
            let stream = id(&mut body)?;
            let mut associated = [0; 6];
            body.try_copy_to_slice(&mut associated).map_err(|_| short)?;
            Frame::SynStream { stream, fin, associated, block: body }
        }
        SYN_REPLY => Frame::SynReply { stream: id(&mut body)?, fin, block: body },
        HEADERS => Frame::Headers { stream: id(&mut body)?, fin, block: body },
        RST_STREAM => {
            let stream = id(&mut body)?;
            Frame::RstStream { stream, status: body.try_get_u32().map_err(|_| short)? }
        }
        PING => Frame::Ping(body.try_get_u32().map_err(|_| short)?),
        // Old peers send no status.
        GOAWAY => Frame::GoAway {
            last: id(&mut body).unwrap_or_default(),
            status: body.try_get_u32().unwrap_or_default(),
        },
        kind => Frame::Other { kind, flags, payload: body },
    })
}

#[cfg(test)]
mod tests;
