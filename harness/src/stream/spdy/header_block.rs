//! Header blocks: names and values with their lengths, in one zlib stream for each direction of a session, primed with
//! the dictionary of the specification.

use std::sync::LazyLock;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Words of the dictionary that stand behind their length.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language \
    accept-ranges age allow authorization cache-control connection content-base content-encoding content-language \
    content-length content-location content-md5 content-range content-type date etag expect expires from host if-match \
    if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma \
    proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade \
    user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie \
    keep-alive origin";

/// What follows the words.
const TAIL: &str = "1001012012022052063003023033043053063074024054064074084094104114124134144154164175025045052\
    03 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 \
    Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct \
    Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,\
    application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,\
    sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static DICTIONARY: LazyLock<Bytes> = LazyLock::new(|| {
    let mut bytes = BytesMut::new();
    for word in WORDS.split_ascii_whitespace() {
        let word = word.replace('_', " ");
        bytes.put_u32(u32::try_from(word.len()).unwrap_or_default());
        bytes.put_slice(word.as_bytes());
    }
    bytes.put_slice(TAIL.as_bytes());
    bytes.freeze()
});

/// More than the headers of any stream take.
const MAX_BLOCK: usize = 256 << 10;

/// Names and values, in order.
pub(super) type Headers = Vec<(String, String)>;

/// Writes the header blocks of one direction.
#[derive(Debug)]
pub(super) struct Encoder(Compress);

/// Reads the header blocks of one direction.
#[derive(Debug)]
pub(super) struct Decoder {
    inflate: Decompress,
    /// The dictionary has been asked for, as the first block must.
    primed: bool,
}

impl Encoder {
    pub(super) fn new() -> Result<Self, String> {
        let mut compress = Compress::new(Compression::default(), true);
        compress.set_dictionary(&DICTIONARY).map_err(|error| error.to_string())?;
        Ok(Self(compress))
    }

    pub(super) fn encode(&mut self, headers: &[(String, String)]) -> Result<Vec<u8>, String> {
        let mut plain = BytesMut::new();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        plain.put_u32(count(headers.len()));
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.put_u32(count(text.len()));
            plain.put_slice(text.as_bytes());
        }
        // A block that is flushed takes a little more than it holds, at worst.
        let mut block = Vec::with_capacity(plain.len() + 256);
        let before = self.0.total_in();
        self.0.compress_vec(&plain, &mut block, FlushCompress::Sync).map_err(|error| error.to_string())?;
        if self.0.total_in() - before == plain.len() as u64 {
            Ok(block)
        } else {
            Err("the headers do not fit their block".to_owned())
        }
    }
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new(true), primed: false }
    }

    pub(super) fn decode(&mut self, block: &[u8]) -> Result<Headers, String> {
        let mut plain = Vec::with_capacity(4096);
        let start = self.inflate.total_in();
        loop {
            let taken = usize::try_from(self.inflate.total_in() - start).unwrap_or(block.len());
            let rest = block.get(taken..).unwrap_or_default();
            let before = (self.inflate.total_in(), self.inflate.total_out());
            match self.inflate.decompress_vec(rest, &mut plain, FlushDecompress::Sync) {
                Err(error) if error.needs_dictionary().is_some() => {
                    self.primed = true;
                    self.inflate.set_dictionary(&DICTIONARY).map_err(|_| {
                        format!(
                            "a header block asks for another dictionary: {:08x}",
                            error.needs_dictionary().unwrap_or_default()
                        )
                    })?;
                }
                Err(error) => return Err(format!("a header block cannot be inflated: {error}")),
                Ok(Status::StreamEnd) => return Err("the stream of header blocks has ended".to_owned()),
                Ok(_) if plain.len() == plain.capacity() => {
                    if plain.len() >= MAX_BLOCK {
                        return Err(format!("a header block is longer than {MAX_BLOCK} bytes"));
                    }
                    plain.reserve(plain.len());
                }
                Ok(_)
                    if (self.inflate.total_in(), self.inflate.total_out()) == before
                        || taken == block.len() =>
                {
                    break;
                }
                Ok(_) => {}
            }
        }
        if self.primed {
            headers(&plain)
        } else {
            Err("a header block is compressed without the dictionary of SPDY/3".to_owned())
        }
    }
}

fn headers(plain: &[u8]) -> Result<Headers, String> {
    let mut rest = plain;
    let number = |rest: &mut &[u8]| {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or("a header block ends inside a length")?;
        *rest = tail;
        usize::try_from(u32::from_be_bytes(*head)).map_err(|_| "a length is too long")
    };
    let count = number(&mut rest)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let mut texts = [String::new(), String::new()];
        for text in &mut texts {
            let length = number(&mut rest)?;
            let (head, tail) = rest.split_at_checked(length).ok_or("a header block ends inside a text")?;
            *text = String::from_utf8_lossy(head).into_owned();
            rest = tail;
        }
        let [name, value] = texts;
        headers.push((name, value));
    }
    if rest.is_empty() {
        Ok(headers)
    } else {
        Err(format!("{} bytes follow the headers of a block", rest.len()))
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
    }

    #[test]
    fn the_dictionary_is_that_of_the_specification() {
        assert_eq!(DICTIONARY.len(), 1423);
        let digest = Sha256::digest(&DICTIONARY[..]);
        assert_eq!(digest[..8], bytes("51d27341373f923f"));
    }

    /// Blocks of a real server's replies: the first brings the dictionary's id, the second leans on the first.
    #[test]
    fn recorded_replies_hold_no_headers() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.decode(&bytes("78f9e3c6a7c26260606000000000ffff")), Ok(vec![]));
        assert_eq!(decoder.decode(&bytes("026100000000ffff")), Ok(vec![]));
    }

    /// Blocks that a real server took.
    #[test]
    fn recorded_requests_are_read() {
        let mut decoder = Decoder::new();
        let streams = [
            ("78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff", "error"),
            ("c22a054ccc29f9a52500000000ffff", "stdout"),
            ("c22907d409000000ffff", "stderr"),
        ];
        for (block, kind) in streams {
            let expected = vec![("streamtype".to_owned(), kind.to_owned())];
            assert_eq!(decoder.decode(&bytes(block)), Ok(expected));
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let (mut encoder, mut decoder) = (Encoder::new().expect("an encoder"), Decoder::new());
        for kind in ["error", "data", &"x".repeat(100_000)] {
            let headers =
                vec![("streamtype".to_owned(), kind.to_owned()), ("port".to_owned(), "7".to_owned())];
            let block = encoder.encode(&headers).expect("it fits");
            assert_eq!(decoder.decode(&block), Ok(headers));
        }
    }

    #[test]
    fn a_block_without_the_dictionary_is_no_header_block() {
        let mut block = Vec::with_capacity(64);
        Compress::new(Compression::default(), true)
            .compress_vec(&[0; 4], &mut block, FlushCompress::Sync)
            .expect("it can be compressed");
        let error = Decoder::new().decode(&block).expect_err("it has no dictionary");
        assert!(error.contains("dictionary"), "{error}");
        assert!(Decoder::new().decode(b"\0\0\0\0").is_err());
    }
}
