//! The envelope of an object: the magic prefix and the message `runtime.Unknown`.

use super::error::{DecodeError, Problem};
use super::wire::{self, Fields, Wire};

/// The prefix of an enveloped object.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// An object that is not decoded yet.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Unknown<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    /// The message of the object.
    pub(super) raw: &'a [u8],
}

impl<'a> Unknown<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Err(DecodeError::Empty);
        }
        let message = bytes.strip_prefix(&MAGIC).ok_or(DecodeError::NoPrefix)?;
        if message.is_empty() {
            return Err(DecodeError::NoBody);
        }
        let mut unknown = Self::default();
        let mut fields = Fields::of(message);
        while let Some((number, wire)) = fields.next()? {
            match (number, wire) {
                (1, Wire::Bytes(type_meta)) => unknown.read_type_meta(type_meta)?,
                (2, Wire::Bytes(raw)) => unknown.raw = raw,
                (1 | 2, _) => return Err(Problem::WireType.into()),
                _ => {}
            }
        }
        Ok(unknown)
    }

    fn read_type_meta(&mut self, message: &'a [u8]) -> Result<(), Problem> {
        let mut fields = Fields::of(message);
        while let Some((number, wire)) = fields.next()? {
            let place = match number {
                1 => &mut self.api_version,
                2 => &mut self.kind,
                _ => continue,
            };
            let Wire::Bytes(text) = wire else { return Err(Problem::WireType) };
            *place = std::str::from_utf8(text).map_err(|_| Problem::Utf8)?;
        }
        Ok(())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut type_meta = Vec::new();
        wire::bytes(&mut type_meta, 1, self.api_version.as_bytes());
        wire::bytes(&mut type_meta, 2, self.kind.as_bytes());
        let mut out = Vec::with_capacity(self.raw.len() + type_meta.len() + 32);
        out.extend_from_slice(&MAGIC);
        wire::bytes(&mut out, 1, &type_meta);
        wire::bytes(&mut out, 2, self.raw);
        // Content encoding and type: kube-apiserver writes them empty.
        wire::bytes(&mut out, 3, b"");
        wire::bytes(&mut out, 4, b"");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_names_the_kind() {
        let unknown = Unknown { api_version: "v1", kind: "Pod", raw: b"raw" };
        let bytes = unknown.to_bytes();
        assert_eq!(bytes, b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x03raw\x1a\0\x22\0");
        assert_eq!(Unknown::parse(&bytes), Ok(unknown));
    }

    #[rstest::rstest]
    #[case(b"", DecodeError::Empty)]
    #[case(b"k8s", DecodeError::NoPrefix)]
    #[case(b"{}", DecodeError::NoPrefix)]
    #[case(b"k8s\0", DecodeError::NoBody)]
    #[case(b"k8s\0\x0a\x05\x0a", Problem::UnexpectedEnd.into())]
    #[case(b"k8s\0\x08\x05", Problem::WireType.into())]
    #[case(b"k8s\0\x0a\x03\x0a\x01\xff", Problem::Utf8.into())]
    fn broken_envelopes_are_errors(#[case] bytes: &[u8], #[case] expected: DecodeError) {
        assert_eq!(Unknown::parse(bytes), Err(expected));
    }
}
