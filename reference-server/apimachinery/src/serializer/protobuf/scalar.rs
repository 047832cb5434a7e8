//! Values without fields in JSON: strings, numbers, and messages such as `Time` and `Quantity`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Number, Value};

use super::error::{EncodeError, Problem};
use super::text;
use super::wire::{self, Fields, Wire};
use crate::schema::definitions::Type;

/// The seconds of the years 0 to 9999.
const YEARS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// Returns whether a value of the type is packed in a list.
pub(super) const fn packs(ty: &Type) -> bool {
    matches!(ty, Type::Boolean | Type::Int32 | Type::Int64 | Type::Double)
}

/// Decodes the value of a field. None means that the field is absent in JSON.
pub(super) fn decode(ty: &Type, wire: Wire<'_>) -> Result<Option<Value>, Problem> {
    let value = match (ty, wire) {
        (Type::Boolean, Wire::Varint(bit)) => Value::Bool(bit != 0),
        (Type::Int32, Wire::Varint(bits)) => int32(bits).into(),
        (Type::Int64, Wire::Varint(bits)) => bits.cast_signed().into(),
        (Type::Double, Wire::Fixed64(bits)) => {
            Number::from_f64(f64::from_bits(bits)).map(Value::Number).ok_or(Problem::Range)?
        }
        (Type::String, Wire::Bytes(text)) => utf8(text)?.into(),
        (Type::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Type::Time, Wire::Bytes(message)) => return time(message, None),
        (Type::MicroTime, Wire::Bytes(message)) => return time(message, Some(6)),
        (Type::Duration, Wire::Bytes(message)) => text::duration_text(number(message, 1)?).into(),
        (Type::Quantity, Wire::Bytes(message)) => utf8(bytes(message)?)?.into(),
        (Type::IntOrString, Wire::Bytes(message)) => int_or_string(message)?,
        (Type::Json | Type::FieldsV1, Wire::Bytes(message)) => return text::parse(bytes(message)?),
        _ => return Err(Problem::WireType),
    };
    Ok(Some(value))
}

/// Encodes the value of a field.
pub(super) fn encode(
    ty: &Type,
    number: u32,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let expected = EncodeError::expected;
    let text = || value.as_str().ok_or(expected("a string"));
    match ty {
        Type::Boolean => {
            let bit = value.as_bool().ok_or(expected("a boolean"))?;
            wire::varint(out, number, bit.into());
        }
        Type::Int32 => {
            let value = integer(value).and_then(|value| i32::try_from(value).ok());
            let value = value.ok_or(expected("an integer of 32 bits"))?;
            wire::varint(out, number, i64::from(value).cast_unsigned());
        }
        Type::Int64 => {
            let value = integer(value).ok_or(expected("an integer of 64 bits"))?;
            wire::varint(out, number, value.cast_unsigned());
        }
        Type::Double => {
            wire::double(out, number, value.as_f64().ok_or(expected("a number"))?);
        }
        Type::String => wire::bytes(out, number, text()?.as_bytes()),
        Type::Bytes => {
            let bytes = STANDARD.decode(text()?).map_err(|_| expected("base64"))?;
            wire::bytes(out, number, &bytes);
        }
        _ => wire::bytes(out, number, &message(ty, value)?),
    }
    Ok(())
}

/// Encodes a value that is a message on the wire.
fn message(ty: &Type, value: &Value) -> Result<Vec<u8>, EncodeError> {
    let expected = EncodeError::expected;
    let text = || value.as_str().ok_or(expected("a string"));
    let mut out = Vec::new();
    match ty {
        Type::Time | Type::MicroTime => {
            let time: Timestamp = text()?.parse().map_err(|_| expected("a time"))?;
            // The seconds of a time before 1970 are rounded down, so that the rest is positive.
            let rest = time.subsec_nanosecond();
            let second = time.as_second() - i64::from(rest < 0);
            wire::varint(&mut out, 1, second.cast_unsigned());
            let nanos = if rest < 0 { rest + 1_000_000_000 } else { rest };
            let nanos = if *ty == Type::Time { 0 } else { nanos - nanos % 1000 };
            wire::varint(&mut out, 2, i64::from(nanos).cast_unsigned());
        }
        Type::Duration => {
            let nanos = text::duration_nanos(text()?).ok_or(expected("a duration"))?;
            wire::varint(&mut out, 1, nanos.cast_unsigned());
        }
        Type::Quantity => match value {
            Value::Number(number) => wire::bytes(&mut out, 1, number.to_string().as_bytes()),
            _ => wire::bytes(&mut out, 1, text()?.as_bytes()),
        },
        Type::IntOrString => {
            let number = integer(value).and_then(|value| i32::try_from(value).ok());
            if !value.is_string() && number.is_none() {
                return Err(expected("an integer of 32 bits or a string"));
            }
            wire::varint(&mut out, 1, value.is_string().into());
            wire::varint(&mut out, 2, i64::from(number.unwrap_or_default()).cast_unsigned());
            wire::bytes(&mut out, 3, value.as_str().unwrap_or_default().as_bytes());
        }
        _ => wire::bytes(&mut out, 1, value.to_string().as_bytes()),
    }
    Ok(out)
}

/// Returns whether Go omits the value from JSON.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(bit) => !bit,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Returns the value of an absent field.
pub(super) fn zero(ty: &Type) -> Value {
    match ty {
        Type::Boolean => false.into(),
        Type::Int32 | Type::Int64 | Type::Double | Type::IntOrString => 0.into(),
        Type::String | Type::Bytes => "".into(),
        Type::Quantity => "0".into(),
        Type::Duration => "0s".into(),
        _ => Value::Null,
    }
}

fn utf8(text: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(text).map_err(|_| Problem::Utf8)
}

/// The type is int32, and decoders keep its lower 32 bits.
fn int32(bits: u64) -> i32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

fn integer(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else { return None };
    number.as_i64().or_else(|| {
        let double = number.as_f64().filter(|double| double.fract() == 0.0)?;
        // A number without a fraction prints as an integer.
        format!("{double:.0}").parse().ok()
    })
}

/// Returns the bytes in field 1 of a message.
pub(super) fn bytes(message: &[u8]) -> Result<&[u8], Problem> {
    let (mut fields, mut found) = (Fields::of(message), [].as_slice());
    while let Some((number, wire)) = fields.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => found = bytes,
            (1, _) => return Err(Problem::WireType),
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the number in a field of a message.
fn number(message: &[u8], wanted: u32) -> Result<i64, Problem> {
    let (mut fields, mut found) = (Fields::of(message), 0);
    while let Some((number, wire)) = fields.next()? {
        match wire {
            Wire::Varint(bits) if number == wanted => found = bits,
            _ if number == wanted => return Err(Problem::WireType),
            _ => {}
        }
    }
    Ok(found.cast_signed())
}

/// An empty message is the zero time, which is absent in JSON.
fn time(message: &[u8], precision: Option<u8>) -> Result<Option<Value>, Problem> {
    if message.is_empty() {
        return Ok(None);
    }
    let second = number(message, 1)?;
    let nanos = if precision.is_some() { number(message, 2)? } else { 0 };
    let nanos = i32::try_from(nanos - nanos % 1000).map_err(|_| Problem::Range)?;
    let time = Timestamp::new(second, nanos).map_err(|_| Problem::Range)?;
    if !YEARS.contains(&time.as_second()) {
        return Err(Problem::Range);
    }
    let printer = DateTimePrinter::new().precision(Some(precision.unwrap_or(0)));
    Ok(Some(printer.timestamp_to_string(&time).into()))
}

fn int_or_string(message: &[u8]) -> Result<Value, Problem> {
    let mut fields = Fields::of(message);
    let (mut is_text, mut number, mut text) = (false, 0, "");
    while let Some((field, wire)) = fields.next()? {
        match (field, wire) {
            (1, Wire::Varint(bits)) => is_text = bits != 0,
            (2, Wire::Varint(bits)) => number = int32(bits),
            (3, Wire::Bytes(bytes)) => text = utf8(bytes)?,
            (1..=3, _) => return Err(Problem::WireType),
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn round_trip(ty: &Type, value: &Value) -> Option<Value> {
        let mut message = Vec::new();
        encode(ty, 1, value, &mut message).expect("a value of the type");
        let (_, wire) = Fields::of(&message).next().expect("a field").expect("one field");
        decode(ty, wire).expect("what was written can be read")
    }

    #[rstest::rstest]
    #[case(Type::Int32, json!(-1))]
    #[case(Type::Int64, json!(i64::MIN))]
    #[case(Type::Double, json!(0.25))]
    #[case(Type::Bytes, json!("AP8="))]
    #[case(Type::Time, json!("2026-11-22T21:54:47Z"))]
    #[case(Type::Time, json!("1969-12-31T23:59:59Z"))]
    #[case(Type::MicroTime, json!("2026-11-22T21:54:47.000123Z"))]
    #[case(Type::MicroTime, json!("1969-12-31T23:59:59.999999Z"))]
    #[case(Type::Duration, json!("1h0m0.5s"))]
    #[case(Type::Quantity, json!("100m"))]
    #[case(Type::IntOrString, json!(-8080))]
    #[case(Type::IntOrString, json!("http"))]
    #[case(Type::Json, json!({"a": [1, null]}))]
    #[case(Type::FieldsV1, json!({"f:a": {}}))]
    fn values_survive_a_round_trip(#[case] ty: Type, #[case] value: Value) {
        assert_eq!(round_trip(&ty, &value), Some(value));
    }

    #[test]
    fn a_time_has_no_fraction_and_its_zero_is_absent() {
        let value = json!("2026-11-22T21:54:47.9+01:00");
        assert_eq!(round_trip(&Type::Time, &value), Some(json!("2026-11-22T20:54:47Z")));
        assert_eq!(decode(&Type::Time, Wire::Bytes(b"")), Ok(None));
    }

    #[test]
    fn values_outside_the_range_are_errors() {
        let mut late = Vec::new();
        wire::varint(&mut late, 1, 253_402_300_800);
        assert_eq!(decode(&Type::Time, Wire::Bytes(&late)), Err(Problem::Range));
        let nan = Wire::Fixed64(f64::NAN.to_bits());
        assert_eq!(decode(&Type::Double, nan), Err(Problem::Range));
        for (ty, value) in [
            (Type::Int32, json!(1_i64 << 31)),
            (Type::Int64, json!(0.5)),
            (Type::IntOrString, json!(null)),
            (Type::Bytes, json!("?")),
            (Type::Time, json!("today")),
        ] {
            assert!(encode(&ty, 1, &value, &mut Vec::new()).is_err(), "{value}");
        }
    }

    #[test]
    fn a_field_needs_the_wire_type_of_its_type() {
        for ty in [Type::String, Type::Time, Type::IntOrString, Type::Json] {
            assert_eq!(decode(&ty, Wire::Varint(1)), Err(Problem::WireType), "{ty:?}");
        }
        assert_eq!(decode(&Type::Int64, Wire::Bytes(b"")), Err(Problem::WireType));
    }
}
