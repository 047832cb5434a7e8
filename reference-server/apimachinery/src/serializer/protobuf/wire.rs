//! The wire format: fields with a number, and a value of one of a few wire types.

use prost::bytes::Buf as _;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};

use super::error::Problem;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire<'a> {
    /// A number or boolean.
    Varint(u64),
    /// The 64 bits of a floating point number.
    Fixed64(u64),
    /// 32 bits. No Kubernetes type has such a field.
    Fixed32,
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message, in the order of the bytes.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Returns the next field with its number, or none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Problem> {
        while !self.rest.is_empty() {
            let before = self.rest;
            let (number, wire_type) =
                decode_key(&mut self.rest).map_err(|error| problem(before, &error))?;
            let wire = match wire_type {
                WireType::Varint => Wire::Varint(self.varint()?),
                WireType::SixtyFourBit => {
                    Wire::Fixed64(self.rest.try_get_u64_le().map_err(|_| Problem::UnexpectedEnd)?)
                }
                WireType::ThirtyTwoBit => {
                    self.take(4)?;
                    Wire::Fixed32
                }
                WireType::LengthDelimited => {
                    let length = self.varint()?;
                    Wire::Bytes(self.take(length)?)
                }
                // Kubernetes has no groups. Old decoders skip them.
                WireType::StartGroup | WireType::EndGroup => {
                    skip_field(wire_type, number, &mut self.rest, DecodeContext::default())
                        .map_err(|error| Problem::Malformed(error.to_string()))?;
                    continue;
                }
            };
            return Ok(Some((number, wire)));
        }
        Ok(None)
    }

    /// Returns the next number of packed numbers, or none at the end.
    pub(super) fn packed(&mut self, double: bool) -> Result<Option<Wire<'a>>, Problem> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        if double {
            let bits = self.rest.try_get_u64_le().map_err(|_| Problem::UnexpectedEnd)?;
            return Ok(Some(Wire::Fixed64(bits)));
        }
        self.varint().map(|number| Some(Wire::Varint(number)))
    }

    fn varint(&mut self) -> Result<u64, Problem> {
        let before = self.rest;
        decode_varint(&mut self.rest).map_err(|error| problem(before, &error))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Problem> {
        let length = usize::try_from(length).map_err(|_| Problem::UnexpectedEnd)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Problem::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Returns the problem of a number at the start of `rest`, which may end too early.
fn problem(rest: &[u8], error: &prost::DecodeError) -> Problem {
    let incomplete = rest.len() < 10 && rest.iter().all(|byte| *byte >= 0x80);
    if incomplete { Problem::UnexpectedEnd } else { Problem::Malformed(error.to_string()) }
}

/// Writes a number or boolean.
pub(super) fn varint(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

/// Writes a floating point number.
pub(super) fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    encode_key(number, WireType::SixtyFourBit, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a string, bytes or a message.
pub(super) fn bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u32, Wire<'_>)>, Problem> {
        let (mut fields, mut found) = (Fields::of(message), Vec::new());
        while let Some(field) = fields.next()? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn fields_have_a_number_and_a_value() {
        let mut message = Vec::new();
        varint(&mut message, 1, u64::MAX);
        bytes(&mut message, 2, b"ab");
        double(&mut message, 300, 0.5);
        let expected = vec![
            (1, Wire::Varint(u64::MAX)),
            (2, Wire::Bytes(b"ab")),
            (300, Wire::Fixed64(0.5_f64.to_bits())),
        ];
        assert_eq!(all(&message), Ok(expected));
        for end in 1..message.len() {
            match all(&message[..end]) {
                Ok(fields) => assert!(fields.len() < 3, "{end}"),
                Err(problem) => assert_eq!(problem, Problem::UnexpectedEnd, "{end}"),
            }
        }
    }

    #[test]
    fn groups_are_skipped() {
        assert_eq!(all(&[0x0b, 0x08, 1, 0x0c, 0x10, 7]), Ok(vec![(2, Wire::Varint(7))]));
    }

    #[rstest::rstest]
    #[case::field_zero(&[0x00, 0x01])]
    #[case::wire_type_six(&[0x0e])]
    #[case::long_number(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1])]
    #[case::end_of_no_group(&[0x0c])]
    #[case::nested_groups(&[0x0b; 1000])]
    fn malformed_fields_are_errors(#[case] message: &[u8]) {
        assert!(matches!(all(message), Err(Problem::Malformed(_))), "{:?}", all(message));
    }
}
