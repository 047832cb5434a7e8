//! JSON encoders: compact and indented.

use std::io;

use bytes::Bytes;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

/// Returns one line with a newline at its end. This is the default form of a response body.
pub fn compact<T: Serialize>(value: &T) -> Result<Bytes, serde_json::Error> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text.into())
}

/// Returns JSON that is indented by two spaces and has no newline at its end. Requests select it
/// with `?pretty`. Returns an error if the text exceeds `most` bytes.
pub fn pretty<T: Serialize>(value: &T, most: usize) -> Result<Bytes, serde_json::Error> {
    let mut text = Bounded::new(most);
    value.serialize(&mut Serializer::with_formatter(
        &mut text,
        PrettyFormatter::with_indent(b"  "),
    ))?;
    Ok(text.bytes.into())
}

/// A buffer with a maximum size. An indented document can be as long as its length times its depth.
#[derive(Debug)]
pub struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Bounded {
    /// Creates a buffer for at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// Returns the written bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.bytes.len() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the text is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn compact_ends_with_a_newline_and_pretty_does_not() {
        let value = json!({"kind": "Status", "metadata": {}});
        assert_eq!(compact(&value).unwrap(), "{\"kind\":\"Status\",\"metadata\":{}}\n");
        let text = "{\n  \"kind\": \"Status\",\n  \"metadata\": {}\n}";
        assert_eq!(pretty(&value, text.len()).unwrap(), text);
        assert!(pretty(&value, text.len() - 1).is_err());
    }

    #[test]
    fn a_buffer_rejects_writes_beyond_its_limit() {
        let mut buffer = Bounded::new(3);
        assert!(buffer.write(b"abcd").is_err());
        assert_eq!(buffer.write(b"abc").unwrap(), 3);
        assert!(buffer.write(b"d").is_err());
        assert_eq!(buffer.into_bytes(), b"abc");
    }
}
