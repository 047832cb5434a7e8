//! Errors of the framing of streams, with stable codes.

/// Why a WebSocket stream cannot be read or written.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// The header of a frame is invalid.
    #[error("a frame is malformed: {0}")]
    Malformed(String),
    /// A frame exceeds the limit.
    #[error("a frame has {length} bytes, more than {limit}")]
    FrameTooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A control frame exceeds the limit of RFC 6455.
    #[error("a control frame has {length} bytes, more than {limit}")]
    ControlFrameTooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The fragments of a message exceed the limit.
    #[error("a message is longer than {0} bytes")]
    MessageTooLong(usize),
    /// The server sent more data than any case needs.
    #[error("the server sent more than {0} bytes")]
    StreamTooLong(u64),
    /// The protocol has no such channel.
    #[error("the protocol has no channel {0}")]
    UnknownChannel(String),
    /// A base64 protocol has only channels of one digit.
    #[error("the channel {0} has more than one digit")]
    ChannelWithoutDigit(String),
    /// The protocol has no message that ends a channel.
    #[error("the negotiated protocol cannot end a channel")]
    NoHalfClose,
    /// The step needs SPDY streams.
    #[error("only SPDY connections have streams to create or reset")]
    NotSpdy,
    /// The payload of a SPDY ping is not a number.
    #[error("the payload of a SPDY ping is a number, got {0:?}")]
    PingPayload(String),
    /// The SPDY session failed.
    #[error(transparent)]
    Spdy(#[from] SpdyError),
}

/// Why a SPDY session cannot be read or written.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SpdyError {
    /// A control frame has another version than SPDY/3.
    #[error("a control frame has version {found}, expected {expected}")]
    Version {
        /// The version of the frame.
        found: u16,
        /// The version of SPDY/3.
        expected: u16,
    },
    /// A frame exceeds the limit.
    #[error("a frame has {length} bytes, expected less than {limit}")]
    FrameTooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A control frame lacks required members.
    #[error("{0} is too short")]
    FrameTooShort(String),
    /// No stream has this name or number.
    #[error("no SPDY stream carries {0}")]
    UnknownStream(String),
    /// Headers cannot be compressed.
    #[error("the headers cannot be compressed: {0}")]
    Compression(String),
    /// A header block cannot be decompressed.
    #[error("a header block cannot be decompressed: {0}")]
    Decompression(String),
    /// A header block requests another dictionary.
    #[error("a header block requests another dictionary: {0:08x}")]
    ForeignDictionary(u32),
    /// A header block does not use the dictionary.
    #[error("a header block is compressed without the dictionary of SPDY/3")]
    NoDictionary,
    /// The compressed stream of header blocks ended.
    #[error("the compressed stream of header blocks has ended")]
    CompressionEnded,
    /// A header block exceeds the limit.
    #[error("a header block is longer than {0} bytes")]
    HeaderBlockTooLong(usize),
    /// A header block ends inside a length or a text.
    #[error("a header block is truncated")]
    HeaderBlockTruncated,
    /// Bytes follow the last header.
    #[error("{0} bytes follow the headers of a block")]
    HeaderBlockTrailing(usize),
}

impl FrameError {
    /// Returns the stable code, such as `frame-too-long`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed-frame",
            Self::FrameTooLong { .. } => "frame-too-long",
            Self::ControlFrameTooLong { .. } => "control-frame-too-long",
            Self::MessageTooLong(_) => "message-too-long",
            Self::StreamTooLong(_) => "stream-too-long",
            Self::UnknownChannel(_) => "unknown-channel",
            Self::ChannelWithoutDigit(_) => "channel-without-digit",
            Self::NoHalfClose => "no-half-close",
            Self::NotSpdy => "not-spdy",
            Self::PingPayload(_) => "ping-payload",
            Self::Spdy(error) => error.code(),
        }
    }
}

impl SpdyError {
    /// Returns the stable code, such as `spdy-version`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Version { .. } => "spdy-version",
            Self::FrameTooLong { .. } => "spdy-frame-too-long",
            Self::FrameTooShort(_) => "spdy-frame-too-short",
            Self::UnknownStream(_) => "spdy-unknown-stream",
            Self::Compression(_) => "spdy-compression",
            Self::Decompression(_) => "spdy-decompression",
            Self::ForeignDictionary(_) => "spdy-foreign-dictionary",
            Self::NoDictionary => "spdy-no-dictionary",
            Self::CompressionEnded => "spdy-compression-ended",
            Self::HeaderBlockTooLong(_) => "spdy-header-block-too-long",
            Self::HeaderBlockTruncated => "spdy-header-block-truncated",
            Self::HeaderBlockTrailing(_) => "spdy-header-block-trailing",
        }
    }
}
