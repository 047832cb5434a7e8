//! Header blocks: names and values, compressed with a dictionary that both sides know.
//!
//! All blocks of one direction are one zlib stream. Reading it takes an inflater for each connection. Writing does not
//! compress: the only block that a server of these protocols sends is empty, four bytes, and a compressor would cost each
//! connection a quarter of a megabyte to make them more. Stored blocks are as good a zlib stream as any.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use flate2::{Decompress, FlushDecompress, Status};

use super::dictionary::{DICTIONARY, DICTIONARY_ID};
use crate::{Fault, Faults};

/// The longest block, uncompressed. A few bytes on the wire can stand for very many.
const MAX_BLOCK: usize = 64 * 1024;
const STEP: usize = 4 * 1024;
/// The most headers of a block. A name is kept with each of its values, and 64 KiB have room for very many values of a long name.
const MAX_HEADERS: usize = 64;

/// The headers of a stream. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value of a header; its name in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
pub(crate) fn headers(pairs: &[(&str, &str)]) -> Headers {
    Headers(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

/// The block cannot be read. The ones after it cannot be either, as they are one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockError {
    #[error("the header block is no zlib stream with the dictionary of SPDY/3")]
    Compression,
    #[error("the header block is longer than {MAX_BLOCK} bytes")]
    TooLong,
    #[error("the header block has more than {MAX_HEADERS} headers")]
    TooMany,
    #[error("the header block ends inside of a header")]
    Cut,
}

/// Reads the blocks of a connection, in order.
#[derive(Debug)]
pub(crate) struct Reader(Decompress);

impl Reader {
    pub(crate) fn new() -> Self {
        Self(Decompress::new(true))
    }

    pub(crate) fn read(&mut self, block: &[u8]) -> Result<Headers, BlockError> {
        parse(self.inflate(block)?)
    }

    fn inflate(&mut self, mut block: &[u8]) -> Result<Bytes, BlockError> {
        let mut plain = Vec::new();
        loop {
            plain.reserve(STEP);
            let before = self.0.total_in();
            let result = self.0.decompress_vec(block, &mut plain, FlushDecompress::Sync);
            let read = usize::try_from(self.0.total_in() - before).unwrap_or(block.len());
            block = &block[read..];
            match result {
                Err(error) if error.needs_dictionary() == Some(DICTIONARY_ID) => {
                    self.0.set_dictionary(DICTIONARY).map_err(|_| BlockError::Compression)?;
                }
                Err(_) | Ok(Status::StreamEnd) => return Err(BlockError::Compression),
                Ok(_) if plain.len() > MAX_BLOCK => return Err(BlockError::TooLong),
                // Room is left, so everything that the block stands for is there.
                Ok(_) if plain.len() < plain.capacity() && block.is_empty() => return Ok(plain.into()),
                Ok(Status::BufError) if plain.len() < plain.capacity() => {
                    return Err(BlockError::Compression);
                }
                Ok(_) => {}
            }
        }
    }
}

fn parse(mut block: Bytes) -> Result<Headers, BlockError> {
    let count = block.try_get_u32().map_err(|_| BlockError::Cut)?;
    let mut headers = Vec::new();
    let mut text = || {
        let length = block.try_get_u32().map_err(|_| BlockError::Cut)? as usize;
        if length > block.len() {
            return Err(BlockError::Cut);
        }
        Ok(String::from_utf8_lossy(&block.split_to(length)).into_owned())
    };
    for _ in 0..count {
        let (name, values) = (text()?.to_ascii_lowercase(), text()?);
        // Several values of one name stand behind each other, with a NUL between them.
        for value in values.split('\0') {
            if headers.len() == MAX_HEADERS {
                return Err(BlockError::TooMany);
            }
            headers.push((name.clone(), value.to_owned()));
        }
    }
    Ok(Headers(headers))
}

/// Writes the blocks of a connection, in order.
#[derive(Debug)]
pub(crate) struct Writer {
    begun: bool,
    faults: Faults,
}

impl Writer {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { begun: false, faults }
    }

    /// A block without headers.
    pub(crate) fn empty(&mut self) -> BytesMut {
        let plain = 0_u32.to_be_bytes();
        let mut block = BytesMut::new();
        let anew = self.faults.on(Fault::SpdyBlocksCompressedApart);
        if !std::mem::replace(&mut self.begun, true) || anew {
            if self.faults.on(Fault::SpdyDictionaryMissing) {
                block.put_slice(&[0x78, 0x9c]);
            } else {
                // Deflate with a window of 32 KiB, and the dictionary's flag and name.
                block.put_slice(&[0x78, 0xf9]);
                block.put_u32(DICTIONARY_ID);
            }
        }
        // A stored block and, as the reader may wait for it, the empty one of a flush.
        for content in [plain.as_slice(), &[]] {
            let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
            block.put_u8(0);
            block.put_u16_le(length);
            block.put_u16_le(!length);
            block.put_slice(content);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::testing::unhex;

    #[test]
    fn the_blocks_of_a_go_client_are_read() {
        // From the SYN_STREAM frames of an exec session.
        let mut reader = Reader::new();
        let blocks = [
            ("78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff", "error"),
            ("c22e555c02cc2e00000000ffff", "stdin"),
            ("c22a054ce729f9a52500000000ffff", "stdout"),
            ("c22e072c7e80f10d000000ffff", "resize"),
        ];
        for (block, kind) in blocks {
            assert_eq!(reader.read(&unhex(block)), Ok(headers(&[("streamtype", kind)])), "{kind}");
        }
    }

    #[test]
    fn the_blocks_of_a_port_forward_are_read() {
        let mut reader = Reader::new();
        let first = reader.read(&unhex(
            "78f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45a024cc680e24388b207198094adb8c0600000000ffff",
        ));
        assert_eq!(first, Ok(headers(&[("streamtype", "error"), ("port", "7"), ("requestid", "0")])));
        let second = reader.read(&unhex("c2aa1354082512d008000000ffff"));
        assert_eq!(second.as_ref().map(|headers| headers.get("streamtype")), Ok(Some("data")));
        assert_eq!(second.as_ref().map(|headers| headers.get("absent")), Ok(None));
    }

    #[test]
    fn the_blocks_of_a_go_server_and_ours_say_the_same() {
        let (mut theirs, mut ours) = (Reader::new(), Reader::new());
        let mut writer = Writer::new(Faults::none());
        for block in ["78f9e3c6a7c26260606000000000ffff", "026100000000ffff"] {
            assert_eq!(theirs.read(&unhex(block)), Ok(Headers::default()));
            assert_eq!(ours.read(&writer.empty()), Ok(Headers::default()));
        }
    }

    #[test]
    fn blocks_that_cannot_be_read_are_told_apart() {
        assert_eq!(Reader::new().read(b"plain text"), Err(BlockError::Compression));
        assert_eq!(parse(Bytes::from_static(&[0, 0, 0, 1, 0, 0, 0, 9, b'x'])), Err(BlockError::Cut));
        // A megabyte of zeroes.
        assert_eq!(Reader::new().read(&compressed(&vec![0; 1 << 20])), Err(BlockError::TooLong));
    }

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut compress = flate2::Compress::new(flate2::Compression::best(), true);
        compress.set_dictionary(DICTIONARY).expect("a dictionary");
        let mut block = Vec::with_capacity(8 * 1024);
        compress.compress_vec(plain, &mut block, flate2::FlushCompress::Sync).expect("compressed");
        block
    }

    /// Also where the last byte of the block stands for more than there is room at once.
    #[test]
    fn a_block_of_64_kibibytes_is_read_whole() {
        let block = |length: usize| {
            let value = u32::try_from(length - 13).expect("short").to_be_bytes();
            [b"\0\0\0\x01\0\0\0\x01n".as_slice(), &value, b"v".repeat(length - 13).as_slice()].concat()
        };
        for length in [STEP - 1, STEP, STEP + 1, 3 * STEP, MAX_BLOCK] {
            let read = Reader::new().read(&compressed(&block(length))).expect("a block");
            assert_eq!(read.get("n").map(str::len), Some(length - 13), "{length}");
        }
        assert_eq!(Reader::new().read(&compressed(&block(MAX_BLOCK + 1))), Err(BlockError::TooLong));
    }

    #[test]
    fn a_long_name_with_many_values_is_not_multiplied() {
        let long = |length: usize, fill: &[u8]| {
            [&u32::try_from(length).expect("short").to_be_bytes(), fill.repeat(length).as_slice()].concat()
        };
        let block = [b"\0\0\0\x01".as_slice(), &long(30_000, b"n"), &long(30_000, b"\0")].concat();
        assert_eq!(parse(block.into()), Err(BlockError::TooMany));
        let block = [b"\0\0\0\x01".as_slice(), &long(1, b"n"), &long(MAX_HEADERS - 1, b"\0")].concat();
        assert_eq!(parse(block.into()).map(|headers| headers.0.len()), Ok(MAX_HEADERS));
    }

    #[test]
    fn several_values_of_a_name_are_several_headers() {
        let block = [b"\0\0\0\x01".as_slice(), b"\0\0\0\x01A", b"\0\0\0\x03x\0y"].concat();
        assert_eq!(parse(block.into()), Ok(headers(&[("a", "x"), ("a", "y")])));
    }
}
