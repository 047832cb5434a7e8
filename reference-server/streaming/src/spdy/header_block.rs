//! Header blocks: names and values, compressed with the dictionary of SPDY/3.
//!
//! All blocks of one direction form one zlib stream. Decode them in order, and encode all of them
//! again if one changes.
//!
//! [`Encoder`] writes stored blocks, which any zlib reader accepts. A server sends only empty
//! blocks of four bytes, and a compressor would use a quarter of a megabyte per connection.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use flate2::{Decompress, FlushDecompress, Status};

use super::dictionary::{DICTIONARY, DICTIONARY_ID};

/// The longest block after decompression. A few bytes on the wire can expand to very many.
pub const MAX_BLOCK: usize = 64 * 1024;
/// The most headers in a block. Each value is stored with a copy of its name.
pub const MAX_HEADERS: usize = 64;
const STEP: usize = 4 * 1024;

/// The headers of a stream. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Returns the first value of a header, whose name is given in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Sets a header and removes its other values.
    pub fn set(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        match self.0.iter().position(|(known, _)| *known == name) {
            Some(first) => {
                let mut index = 0;
                self.0.retain(|(known, _)| {
                    index += 1;
                    index - 1 <= first || *known != name
                });
                value.clone_into(&mut self.0[first].1);
            }
            None => self.0.push((name, value.to_owned())),
        }
    }

    /// Removes all values of a header.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
        )
    }
}

/// Why a block is unreadable. The blocks after it are unreadable too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The block is not zlib with the dictionary of SPDY/3.
    #[error("expected a zlib stream with the dictionary of SPDY/3")]
    Compression,
    /// The block exceeds [`MAX_BLOCK`].
    #[error("expected a header block of at most {MAX_BLOCK} bytes")]
    TooLong,
    /// The block exceeds [`MAX_HEADERS`].
    #[error("expected at most {MAX_HEADERS} headers")]
    TooMany,
    /// The block ends inside of a header.
    #[error("expected as many headers as the block announces, got a shorter block")]
    Truncated,
}

impl BlockError {
    /// Returns the stable code of this error.
    pub fn code(self) -> &'static str {
        match self {
            Self::Compression => "spdy-block-compression",
            Self::TooLong => "spdy-block-too-long",
            Self::TooMany => "spdy-block-too-many",
            Self::Truncated => "spdy-block-truncated",
        }
    }
}

/// Reads the blocks of one direction in order.
#[derive(Debug)]
pub struct Decoder(Decompress);

impl Default for Decoder {
    fn default() -> Self {
        Self(Decompress::new(true))
    }
}

impl Decoder {
    /// Decompresses and parses the next block.
    pub fn decode(&mut self, block: &[u8]) -> Result<Headers, BlockError> {
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
                // The buffer has space left, so zlib has no more output for this block.
                Ok(_) if plain.len() < plain.capacity() && block.is_empty() => {
                    return Ok(plain.into());
                }
                Ok(Status::BufError) if plain.len() < plain.capacity() => {
                    return Err(BlockError::Compression);
                }
                Ok(_) => {}
            }
        }
    }
}

fn parse(mut block: Bytes) -> Result<Headers, BlockError> {
    let count = block.try_get_u32().map_err(|_| BlockError::Truncated)?;
    let mut headers = Vec::new();
    let mut text = || {
        let length = block.try_get_u32().map_err(|_| BlockError::Truncated)? as usize;
        if length > block.len() {
            return Err(BlockError::Truncated);
        }
        Ok(String::from_utf8_lossy(&block.split_to(length)).into_owned())
    };
    for _ in 0..count {
        let (name, values) = (text()?.to_ascii_lowercase(), text()?);
        // NUL separates several values of one name.
        for value in values.split('\0') {
            if headers.len() == MAX_HEADERS {
                return Err(BlockError::TooMany);
            }
            headers.push((name.clone(), value.to_owned()));
        }
    }
    Ok(Headers(headers))
}

/// Writes the blocks of one direction in order.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    started: bool,
}

impl Encoder {
    /// Returns the next block. The first one starts with the zlib header: `78 f9` and four bytes
    /// that identify the dictionary.
    pub fn encode(&mut self, headers: &Headers) -> BytesMut {
        let plain = render(headers);
        let mut block = BytesMut::new();
        if !std::mem::replace(&mut self.started, true) {
            // Deflate with a window of 32 KiB and the flag of a dictionary.
            block.put_slice(&[0x78, 0xf9]);
            block.put_u32(DICTIONARY_ID);
        }
        // The empty block at the end is a flush, which some readers wait for.
        let pieces = plain.chunks(usize::from(u16::MAX)).chain([[].as_slice()]);
        for piece in pieces {
            let length = u16::try_from(piece.len()).unwrap_or(u16::MAX);
            block.put_u8(0);
            block.put_u16_le(length);
            block.put_u16_le(!length);
            block.put_slice(piece);
        }
        block
    }
}

/// The block before compression. Values of one name are joined with NUL.
fn render(headers: &Headers) -> BytesMut {
    let mut joined: Vec<(&str, String)> = Vec::new();
    for (name, value) in headers.iter() {
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push('\0');
                values.push_str(value);
            }
            None => joined.push((name, value.to_owned())),
        }
    }
    let mut plain = BytesMut::new();
    let length = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
    plain.put_u32(u32::try_from(joined.len()).unwrap_or(u32::MAX));
    for (name, values) in joined {
        plain.put_u32(length(name));
        plain.put_slice(name.as_bytes());
        plain.put_u32(length(&values));
        plain.put_slice(values.as_bytes());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unhex;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        pairs.iter().copied().collect()
    }

    #[test]
    fn the_blocks_of_a_go_client_decode() {
        // From the SYN_STREAM frames of an exec session.
        let mut decoder = Decoder::default();
        let blocks = [
            ("78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff", "error"),
            ("c22e555c02cc2e00000000ffff", "stdin"),
            ("c22a054ce729f9a52500000000ffff", "stdout"),
            ("c22e072c7e80f10d000000ffff", "resize"),
        ];
        for (block, kind) in blocks {
            assert_eq!(
                decoder.decode(&unhex(block)),
                Ok(headers(&[("streamtype", kind)])),
                "{kind}"
            );
        }
    }

    #[test]
    fn the_blocks_of_a_port_forward_decode() {
        let mut decoder = Decoder::default();
        let first = decoder.decode(&unhex(
            "78f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45a024cc680e24388b207198094adb8c06\
             00000000ffff",
        ));
        assert_eq!(
            first,
            Ok(headers(&[("streamtype", "error"), ("port", "7"), ("requestid", "0")]))
        );
        let second = decoder.decode(&unhex("c2aa1354082512d008000000ffff"));
        assert_eq!(second.as_ref().map(|headers| headers.get("streamtype")), Ok(Some("data")));
        assert_eq!(second.as_ref().map(|headers| headers.get("absent")), Ok(None));
    }

    #[test]
    fn empty_blocks_equal_those_of_a_go_server() {
        let (mut theirs, mut ours) = (Decoder::default(), Decoder::default());
        let mut encoder = Encoder::default();
        for block in ["78f9e3c6a7c26260606000000000ffff", "026100000000ffff"] {
            assert_eq!(theirs.decode(&unhex(block)), Ok(Headers::default()));
            assert_eq!(ours.decode(&encoder.encode(&Headers::default())), Ok(Headers::default()));
        }
    }

    #[test]
    fn encoded_blocks_decode_to_the_same_headers() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let long = "v".repeat(MAX_BLOCK - 100);
        let blocks = [
            headers(&[("streamtype", "data"), ("port", "7"), ("requestid", "0")]),
            headers(&[("a", "x"), ("a", "y"), ("b", "")]),
            headers(&[("long", &long)]),
            Headers::default(),
        ];
        for block in blocks {
            assert_eq!(decoder.decode(&encoder.encode(&block)), Ok(block));
        }
    }

    #[test]
    fn headers_can_be_changed() {
        let mut changed = headers(&[("a", "x"), ("b", "1"), ("A", "y")]);
        changed.set("A", "z");
        assert_eq!(changed, headers(&[("a", "z"), ("b", "1")]));
        changed.set("c", "2");
        changed.remove("B");
        assert_eq!(changed, headers(&[("a", "z"), ("c", "2")]));
    }

    #[test]
    fn unreadable_blocks_have_different_errors() {
        assert_eq!(Decoder::default().decode(b"plain text"), Err(BlockError::Compression));
        assert_eq!(
            parse(Bytes::from_static(&[0, 0, 0, 1, 0, 0, 0, 9, b'x'])),
            Err(BlockError::Truncated)
        );
        // A megabyte of zeroes.
        assert_eq!(
            Decoder::default().decode(&compressed(&vec![0; 1 << 20])),
            Err(BlockError::TooLong)
        );
    }

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut compress = flate2::Compress::new(flate2::Compression::best(), true);
        compress.set_dictionary(DICTIONARY).expect("a dictionary");
        let mut block = Vec::with_capacity(8 * 1024);
        compress.compress_vec(plain, &mut block, flate2::FlushCompress::Sync).expect("compressed");
        block
    }

    /// The lengths include one where the last byte of the block expands beyond the buffer.
    #[test]
    fn blocks_may_have_64_kib() {
        let block = |length: usize| {
            let value = u32::try_from(length - 13).expect("short").to_be_bytes();
            [b"\0\0\0\x01\0\0\0\x01n".as_slice(), &value, b"v".repeat(length - 13).as_slice()]
                .concat()
        };
        for length in [STEP - 1, STEP, STEP + 1, 3 * STEP, MAX_BLOCK] {
            let read = Decoder::default().decode(&compressed(&block(length))).expect("a block");
            assert_eq!(read.get("n").map(str::len), Some(length - 13), "{length}");
        }
        assert_eq!(
            Decoder::default().decode(&compressed(&block(MAX_BLOCK + 1))),
            Err(BlockError::TooLong)
        );
    }

    #[test]
    fn the_number_of_headers_is_limited() {
        let long = |length: usize, fill: &[u8]| {
            [&u32::try_from(length).expect("short").to_be_bytes(), fill.repeat(length).as_slice()]
                .concat()
        };
        let block = [b"\0\0\0\x01".as_slice(), &long(30_000, b"n"), &long(30_000, b"\0")].concat();
        assert_eq!(parse(block.into()), Err(BlockError::TooMany));
        let block =
            [b"\0\0\0\x01".as_slice(), &long(1, b"n"), &long(MAX_HEADERS - 1, b"\0")].concat();
        assert_eq!(parse(block.into()).map(|headers| headers.0.len()), Ok(MAX_HEADERS));
    }

    #[test]
    fn several_values_of_a_name_are_several_headers() {
        let block = [b"\0\0\0\x01".as_slice(), b"\0\0\0\x01A", b"\0\0\0\x03x\0y"].concat();
        assert_eq!(parse(block.into()), Ok(headers(&[("a", "x"), ("a", "y")])));
    }
}
