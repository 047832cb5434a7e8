//! Conversions that the crate `cel` does in another way than Kubernetes.

use cel::common::types::{DYN_TYPE, INT_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use chrono::{DateTime, FixedOffset, TimeDelta};

use super::format::{seconds, shortest, timestamp};
use super::go;
use super::library::{self, Result, argument, give};

/// The name of `string` in evaluated expressions. It writes doubles like Go.
pub(super) const STRING: &str = "@string";
/// `@utc(value)` returns a time without its offset, and other values unchanged. The parts of a time
/// are those in UTC if there is no other zone.
pub(super) const UTC: &str = "@utc";
/// `@durationOf(seconds, nanoseconds)` returns a duration.
pub(super) const DURATION_OF: &str = "@durationOf";
/// `@timestampOf(seconds, nanoseconds)` returns a time.
pub(super) const TIMESTAMP_OF: &str = "@timestampOf";

/// The seconds of the first and of the last time.
const TIMES: [i64; 2] = [-62_135_596_800, 253_402_300_799];
const OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";
const TIME_OVERFLOW: &str = "timestamp overflow";

type Conversion = fn(&Cel) -> Option<std::result::Result<Cel, String>>;

/// The conversions of a value to a type. The result is `None` for values of other types.
const CONVERSIONS: [(&str, &str, Conversion); 6] = [
    ("bool", "@bool", bool),
    ("int", "@int", int),
    ("uint", "@uint", uint),
    ("double", "@double", double),
    ("duration", "@duration", duration),
    ("timestamp", "@timestamp", time),
];

/// Returns the name of a conversion in evaluated expressions.
pub(super) fn evaluated_name(function: &str) -> Option<&'static str> {
    let known = CONVERSIONS.iter().find(|(name, ..)| *name == function);
    known.map(|(_, evaluated, _)| *evaluated).or((function == "string").then_some(STRING))
}

/// Declares the conversions.
pub(super) fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_overload(STRING, STRING, vec![DYN_TYPE], |arguments| {
        match argument(&arguments, 0)? {
            Cel::Float(number) => return give(shortest(number)),
            Cel::Timestamp(time) => return give(timestamp(&time)),
            Cel::Duration(duration) => {
                return give(seconds(duration.num_nanoseconds().unwrap_or(i64::MAX)));
            }
            Cel::Bytes(bytes) => {
                let why = "invalid UTF-8 in bytes, cannot convert to string";
                let text = String::from_utf8(bytes.to_vec());
                return give(text.map_err(|_| ExecutionError::function_error(STRING, why))?);
            }
            _ => {}
        }
        let function = library::env().find_overload("string", &arguments);
        let function = function.ok_or_else(|| no_overload("string", &arguments))?;
        function(arguments)
    })?;
    env.add_overload(UTC, UTC, vec![DYN_TYPE], |mut arguments| match argument(&arguments, 0)? {
        Cel::Timestamp(time) => give(Cel::Timestamp(time.to_utc().fixed_offset())),
        _ => arguments.pop().ok_or_else(|| ExecutionError::invalid_argument_count(1, 0)),
    })?;
    env.add_overload("@bool", "@bool", vec![DYN_TYPE], |it| converted(0, &it))?;
    env.add_overload("@int", "@int", vec![DYN_TYPE], |it| converted(1, &it))?;
    env.add_overload("@uint", "@uint", vec![DYN_TYPE], |it| converted(2, &it))?;
    env.add_overload("@double", "@double", vec![DYN_TYPE], |it| converted(3, &it))?;
    env.add_overload("@duration", "@duration", vec![DYN_TYPE], |it| converted(4, &it))?;
    env.add_overload("@timestamp", "@timestamp", vec![DYN_TYPE], |it| converted(5, &it))?;
    let two = || vec![INT_TYPE, INT_TYPE];
    env.add_overload(DURATION_OF, DURATION_OF, two(), |arguments| {
        let (seconds, nanoseconds) = parts(&arguments)?;
        let duration = TimeDelta::try_seconds(seconds)
            .and_then(|time| time.checked_add(&TimeDelta::nanoseconds(nanoseconds)));
        let duration = duration.filter(|duration| duration.num_nanoseconds().is_some());
        give(Cel::Duration(duration.ok_or_else(|| failed(OVERFLOW))?))
    })?;
    env.add_overload(TIMESTAMP_OF, TIMESTAMP_OF, two(), |arguments| {
        let (seconds, nanoseconds) = parts(&arguments)?;
        let time = DateTime::from_timestamp(seconds, 0)
            .and_then(|time| time.checked_add_signed(TimeDelta::nanoseconds(nanoseconds)));
        let time = time.map(|time| time.fixed_offset()).filter(is_in_range);
        give(Cel::Timestamp(time.ok_or_else(|| failed(TIME_OVERFLOW))?))
    })
}

fn converted<'b, 'v>(index: usize, arguments: &[CowVal<'b, 'v>]) -> Result<CowVal<'b, 'v>> {
    let (name, _, convert) = CONVERSIONS[index];
    match convert(&argument(arguments, 0)?) {
        Some(Ok(value)) => give(value),
        Some(Err(why)) => Err(failed(&why)),
        None => Err(no_overload(name, arguments)),
    }
}

fn no_overload(name: &str, arguments: &[CowVal<'_, '_>]) -> ExecutionError {
    let types = arguments.iter().map(|it| it.get_type().name().to_owned());
    ExecutionError::no_such_overload(name, types.collect())
}

fn failed(why: &str) -> ExecutionError {
    ExecutionError::function_error("@convert", why)
}

/// Returns the seconds and nanoseconds of a message.
fn parts(arguments: &[CowVal<'_, '_>]) -> Result<(i64, i64)> {
    match (argument(arguments, 0)?, argument(arguments, 1)?) {
        (Cel::Int(seconds), Cel::Int(nanoseconds)) => Ok((seconds, nanoseconds)),
        _ => Err(failed("unsupported field type")),
    }
}

fn of_text<T>(
    target: &str,
    parsed: Option<T>,
    value: fn(T) -> Cel,
) -> std::result::Result<Cel, String> {
    let why = || format!("type conversion error from 'string' to '{target}'");
    parsed.map(value).ok_or_else(why)
}

fn bool(value: &Cel) -> Option<std::result::Result<Cel, String>> {
    match value {
        Cel::Bool(_) => Some(Ok(value.clone())),
        Cel::String(text) => {
            let known = match text.as_str() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
                _ => None,
            };
            Some(of_text("bool", known, Cel::Bool))
        }
        _ => None,
    }
}

fn int(value: &Cel) -> Option<std::result::Result<Cel, String>> {
    let checked = |number: Option<i64>| number.map(Cel::Int).ok_or(OVERFLOW.to_owned());
    match value {
        Cel::Int(_) => Some(Ok(value.clone())),
        Cel::UInt(number) => Some(checked(i64::try_from(*number).ok())),
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        Cel::Float(number) => {
            let is_in_range = *number > -(2_f64.powi(63)) && *number < 2_f64.powi(63);
            Some(checked(is_in_range.then_some(*number as i64)))
        }
        Cel::String(text) => Some(of_text("int", text.parse().ok(), Cel::Int)),
        Cel::Timestamp(time) => Some(Ok(Cel::Int(time.timestamp()))),
        Cel::Duration(duration) => Some(checked(duration.num_nanoseconds())),
        _ => None,
    }
}

fn uint(value: &Cel) -> Option<std::result::Result<Cel, String>> {
    let checked = |number: Option<u64>| number.map(Cel::UInt).ok_or(UNSIGNED_OVERFLOW.to_owned());
    match value {
        Cel::UInt(_) => Some(Ok(value.clone())),
        Cel::Int(number) => Some(checked(u64::try_from(*number).ok())),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked"
        )]
        Cel::Float(number) => {
            let is_in_range = *number >= 0.0 && *number < 2_f64.powi(64);
            Some(checked(is_in_range.then_some(*number as u64)))
        }
        Cel::String(text) => {
            let number = text.parse().ok().filter(|_| !text.starts_with('+'));
            Some(of_text("uint", number, Cel::UInt))
        }
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double")]
fn double(value: &Cel) -> Option<std::result::Result<Cel, String>> {
    match value {
        Cel::Float(_) => Some(Ok(value.clone())),
        Cel::Int(number) => Some(Ok(Cel::Float(*number as f64))),
        Cel::UInt(number) => Some(Ok(Cel::Float(*number as f64))),
        Cel::String(text) => Some(of_text("double", go::double(text), Cel::Float)),
        _ => None,
    }
}

fn duration(value: &Cel) -> Option<std::result::Result<Cel, String>> {
    const NAME: &str = "google.protobuf.Duration";
    match value {
        Cel::Duration(_) => Some(Ok(value.clone())),
        Cel::Int(_) => Some(Err(format!("type conversion error from 'int' to '{NAME}'"))),
        Cel::String(text) => {
            let value = |nanoseconds| Cel::Duration(TimeDelta::nanoseconds(nanoseconds));
            Some(of_text(NAME, go::duration(text), value))
        }
        _ => None,
    }
}

fn time(value: &Cel) -> Option<std::result::Result<Cel, String>> {
    match value {
        Cel::Timestamp(_) => Some(Ok(value.clone())),
        Cel::Int(seconds) => {
            let time = DateTime::from_timestamp(*seconds, 0).map(|time| time.fixed_offset());
            let time = time.filter(is_in_range);
            Some(time.map(Cel::Timestamp).ok_or(TIME_OVERFLOW.to_owned()))
        }
        Cel::String(text) => match go::time(text) {
            Some(time) if !is_in_range(&time) => Some(Err(TIME_OVERFLOW.to_owned())),
            time => Some(of_text("google.protobuf.Timestamp", time, Cel::Timestamp)),
        },
        _ => None,
    }
}

fn is_in_range(time: &DateTime<FixedOffset>) -> bool {
    let [first, last] = TIMES;
    (first..=last).contains(&time.timestamp())
}

#[cfg(test)]
mod tests {
    use cel::Context;
    use rstest::rstest;

    use super::super::counted::counted;
    use super::super::library::env;
    use super::*;

    #[rstest]
    #[case("string(1e6) == '1e+06' && string(1234567.5) == '1.2345675e+06'")]
    #[case("string(0.00001) == '1e-05' && string(0.0001) == '0.0001' && string(-1.5) == '-1.5'")]
    #[case("string(1) == '1' && string(true) == 'true' && string(duration('90s')) == '90s'")]
    #[case("string(quantity('1Gi').isInteger()) == 'true' && string(ip('::1')) == '::1'")]
    #[case("timestamp(86400) == timestamp('1970-01-02T00:00:00Z') && int(timestamp(-1)) == -1")]
    #[case("timestamp('2026-01-01T01:00:00+02:00').getHours() == 23")]
    #[case("timestamp('2026-01-01T01:00:00+02:00').getFullYear() == 2025")]
    #[case("timestamp('2026-01-01T01:00:00+02:00').getHours('+03:00') == 2")]
    #[case("string(timestamp('2026-01-01T01:00:00.50+02:00')) == '2026-01-01T01:00:00.5+02:00'")]
    #[case("duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90")]
    #[case("int(duration('1s')) == 1000000000 && int('+5') == 5 && uint(1.9) == 1u")]
    #[case("double('0x1p-2') == 0.25 && double('Inf') > 1.0 && double(1u) == 1.0")]
    #[case("bool('T') && bool('1') && !bool('False') && bool(true)")]
    fn values_are_converted_like_in_kubernetes(#[case] text: &str) {
        let program = env().compile(text).expect("an expression");
        let result = Cel::resolve(&counted(program.expression()), &Context::with_env(env()));
        assert_eq!(result, Ok(Cel::Bool(true)));
    }

    #[rstest]
    #[case("bool('yes')", "from 'string' to 'bool'")]
    #[case("uint('+1')", "from 'string' to 'uint'")]
    #[case("uint(-1)", "unsigned integer overflow")]
    #[case("int(9223372036854775807.0)", "integer overflow")]
    #[case("double('1e400')", "from 'string' to 'double'")]
    #[case("duration('1e3s')", "from 'string' to 'google.protobuf.Duration'")]
    #[case("duration(dyn(1))", "from 'int' to 'google.protobuf.Duration'")]
    #[case("timestamp(253402300800)", "timestamp overflow")]
    #[case("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string")]
    fn other_values_are_not_converted(#[case] text: &str, #[case] expected: &str) {
        let program = env().compile(text).expect("an expression");
        let result = Cel::resolve(&counted(program.expression()), &Context::with_env(env()));
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
