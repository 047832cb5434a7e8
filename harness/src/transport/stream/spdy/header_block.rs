//! Header blocks: names and values with lengths, in one zlib stream per direction, with the
//! dictionary of the specification.

use std::sync::LazyLock;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::exchange::SpdyError;

/// Dictionary entries that follow their length.
const WORDS: &str = "\
    options head post put delete trace accept accept-charset accept-encoding accept-language \
    accept-ranges age allow authorization cache-control connection content-base content-encoding \
    content-language content-length content-location content-md5 content-range content-type date \
    etag expect expires from host if-match if-modified-since if-none-match if-range \
    if-unmodified-since last-modified location max-forwards pragma proxy-authenticate \
    proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade \
    user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url \
    public set-cookie keep-alive origin";

/// The end of the dictionary.
const TAIL: &str = "\
    100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
    Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 \
    Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service \
    UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, \
    Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,\
    application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,\
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

/// Limit on a header block.
const MAX_BLOCK: usize = 256 << 10;

pub(super) type Headers = Vec<(String, String)>;

#[derive(Debug)]
pub(super) struct Encoder(Compress);

#[derive(Debug)]
pub(super) struct Decoder {
    inflate: Decompress,
    /// True after the first block requested the dictionary.
    primed: bool,
}

impl Encoder {
    pub(super) fn new() -> Result<Self, SpdyError> {
        let mut compress = Compress::new(Compression::default(), true);
        compress
            .set_dictionary(&DICTIONARY)
            .map_err(|error| SpdyError::Compression(error.to_string()))?;
        Ok(Self(compress))
    }

    pub(super) fn encode(&mut self, headers: &[(String, String)]) -> Result<Vec<u8>, SpdyError> {
        let mut plain = BytesMut::new();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        plain.put_u32(count(headers.len()));
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.put_u32(count(text.len()));
            plain.put_slice(text.as_bytes());
        }
        // Flushing adds a few bytes at most.
        let mut block = Vec::with_capacity(plain.len() + 256);
        let before = self.0.total_in();
        self.0
            .compress_vec(&plain, &mut block, FlushCompress::Sync)
            .map_err(|error| SpdyError::Compression(error.to_string()))?;
        if self.0.total_in() - before == plain.len() as u64 {
            Ok(block)
        } else {
            Err(SpdyError::Compression("they do not fit their block".to_owned()))
        }
    }
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new(true), primed: false }
    }

    pub(super) fn decode(&mut self, block: &[u8]) -> Result<Headers, SpdyError> {
        let mut plain = Vec::with_capacity(4096);
        let start = self.inflate.total_in();
        loop {
            let taken = usize::try_from(self.inflate.total_in() - start).unwrap_or(block.len());
            let rest = block.get(taken..).unwrap_or_default();
            let before = (self.inflate.total_in(), self.inflate.total_out());
            match self.inflate.decompress_vec(rest, &mut plain, FlushDecompress::Sync) {
                Err(error) if error.needs_dictionary().is_some() => {
                    self.primed = true;
                    let requested = error.needs_dictionary().unwrap_or_default();
                    self.inflate
                        .set_dictionary(&DICTIONARY)
                        .map_err(|_| SpdyError::ForeignDictionary(requested))?;
                }
                Err(error) => return Err(SpdyError::Decompression(error.to_string())),
                Ok(Status::StreamEnd) => return Err(SpdyError::CompressionEnded),
                Ok(_) if plain.len() == plain.capacity() => {
                    if plain.len() >= MAX_BLOCK {
                        return Err(SpdyError::HeaderBlockTooLong(MAX_BLOCK));
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
        if self.primed { headers(&plain) } else { Err(SpdyError::NoDictionary) }
    }
}

fn headers(plain: &[u8]) -> Result<Headers, SpdyError> {
    let mut rest = plain;
    let number = |rest: &mut &[u8]| {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or(SpdyError::HeaderBlockTruncated)?;
        *rest = tail;
        usize::try_from(u32::from_be_bytes(*head)).map_err(|_| SpdyError::HeaderBlockTruncated)
    };
    let count = number(&mut rest)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let mut texts = [String::new(), String::new()];
        for text in &mut texts {
            let length = number(&mut rest)?;
            let (head, tail) =
                rest.split_at_checked(length).ok_or(SpdyError::HeaderBlockTruncated)?;
            *text = String::from_utf8_lossy(head).into_owned();
            rest = tail;
        }
        let [name, value] = texts;
        headers.push((name, value));
    }
    if rest.is_empty() { Ok(headers) } else { Err(SpdyError::HeaderBlockTrailing(rest.len())) }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
            .collect()
    }

    #[test]
    fn the_dictionary_is_that_of_the_specification() {
        assert_eq!(DICTIONARY.len(), 1423);
        let digest = Sha256::digest(&DICTIONARY[..]);
        assert_eq!(digest[..8], bytes("51d27341373f923f"));
    }

    /// Recorded replies of a real server. The first contains the id of the dictionary, the second
    /// depends on the first.
    #[test]
    fn recorded_replies_hold_no_headers() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.decode(&bytes("78f9e3c6a7c26260606000000000ffff")), Ok(vec![]));
        assert_eq!(decoder.decode(&bytes("026100000000ffff")), Ok(vec![]));
    }

    /// Recorded requests that a real server accepted.
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
            let headers = vec![
                ("streamtype".to_owned(), kind.to_owned()),
                ("port".to_owned(), "7".to_owned()),
            ];
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
        assert_eq!(error, SpdyError::NoDictionary);
        assert!(Decoder::new().decode(b"\0\0\0\0").is_err());
    }
}
