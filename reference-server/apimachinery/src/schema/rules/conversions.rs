//! Conversions that the crate `cel` does in another way than Kubernetes.

use cel::common::types::DYN_TYPE;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::format::{shortest, timestamp};
use super::library::{self, argument, give};

/// The name of `string` in evaluated expressions. It writes doubles like Go.
pub(super) const STRING: &str = "@string";
/// The name of `bool` in evaluated expressions. It knows the words of Go.
pub(super) const BOOL: &str = "@bool";

/// `@utc(value)` returns a time without its offset, and other values unchanged. The parts of a time
/// are those in UTC if there is no other zone.
pub(super) const UTC: &str = "@utc";

/// Declares the conversions.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(STRING, STRING, vec![DYN_TYPE], |arguments| {
        match argument(&arguments, 0)? {
            Cel::Float(number) => return give(shortest(number)),
            Cel::Timestamp(time) => return give(timestamp(&time)),
            _ => {}
        }
        let function = library::env().find_overload("string", &arguments);
        let types = || arguments.iter().map(|it| it.get_type().name().to_owned()).collect();
        let function =
            function.ok_or_else(|| ExecutionError::no_such_overload("string", types()))?;
        function(arguments)
    })?;
    env.add_overload(UTC, UTC, vec![DYN_TYPE], |mut arguments| match argument(&arguments, 0)? {
        Cel::Timestamp(time) => give(Cel::Timestamp(time.to_utc().fixed_offset())),
        _ => arguments.pop().ok_or_else(|| ExecutionError::invalid_argument_count(1, 0)),
    })?;
    env.add_overload(BOOL, BOOL, vec![DYN_TYPE], |arguments| {
        let known = match argument(&arguments, 0)? {
            Cel::Bool(value) => Some(value),
            Cel::String(text) => match text.as_str() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
                _ => None,
            },
            _ => {
                let types = arguments.iter().map(|it| it.get_type().name().to_owned());
                return Err(ExecutionError::no_such_overload("bool", types.collect()));
            }
        };
        let why = "type conversion error from 'string' to 'bool'";
        give(known.ok_or_else(|| ExecutionError::function_error("bool", why))?)
    })
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
    #[case("bool('T') && bool('1') && !bool('False') && bool(true)")]
    fn values_are_converted_like_in_kubernetes(#[case] text: &str) {
        let program = env().compile(text).expect("an expression");
        let result = Cel::resolve(&counted(program.expression()), &Context::with_env(env()));
        assert_eq!(result, Ok(Cel::Bool(true)));
    }

    #[test]
    fn other_words_are_no_conditions() {
        let program = env().compile("bool('yes')").expect("an expression");
        let result = Cel::resolve(&counted(program.expression()), &Context::with_env(env()));
        assert!(result.unwrap_err().to_string().contains("from 'string' to 'bool'"));
    }
}
