//! Embedded JSON, and durations in the notation of Go.

use std::fmt::Write as _;

use serde_json::Value;

use super::error::Problem;
use crate::serializer::json;

/// Parses embedded JSON. Empty bytes are an absent value.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Value>, Problem> {
    if bytes.is_empty() {
        return Ok(None);
    }
    json::parse(bytes).map(Some).map_err(|error| Problem::Json(error.to_string()))
}

/// The units of a duration in nanoseconds, the longest first.
const UNITS: [(&str, u64); 7] = [
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("s", 1_000_000_000),
];

/// Writes a duration as Go does: `1h0m0.5s`, `250ms`, `0s`.
pub(super) fn duration_text(nanos: i64) -> String {
    let mut text = String::from(if nanos < 0 { "-" } else { "" });
    let size = nanos.unsigned_abs();
    let fraction = |size: u64, unit: u64| {
        let (whole, rest) = (size / unit, size % unit);
        let width = unit.ilog10() as usize;
        let rest = format!("{rest:0width$}");
        let rest = rest.trim_end_matches('0');
        if rest.is_empty() { whole.to_string() } else { format!("{whole}.{rest}") }
    };
    let (seconds, hours, minutes) =
        (size % 60_000_000_000, size / 3_600_000_000_000, size / 60_000_000_000 % 60);
    // Writing to a string cannot fail.
    let _ = match size {
        0 => write!(text, "0s"),
        1..1_000 => write!(text, "{size}ns"),
        1_000..1_000_000 => write!(text, "{}µs", fraction(size, 1_000)),
        1_000_000..1_000_000_000 => write!(text, "{}ms", fraction(size, 1_000_000)),
        _ => {
            if hours > 0 {
                let _ = write!(text, "{hours}h");
            }
            if size >= 60_000_000_000 {
                let _ = write!(text, "{minutes}m");
            }
            write!(text, "{}s", fraction(seconds, 1_000_000_000))
        }
    };
    text
}

/// Reads a duration in nanoseconds: numbers with units, such as `1.5h` or `1m30s`.
pub(super) fn duration_nanos(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, after) = rest.split_at(digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        let unit = UNITS.iter().find_map(|(name, size)| {
            after.strip_prefix(name).map(|after| (i128::from(*size), after))
        });
        let (unit, after) = unit.filter(|_| !(whole.is_empty() && fraction.is_empty()))?;
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        let mut place = unit;
        for digit in fraction.bytes() {
            total = total.checked_add(i128::from(digit - b'0') * place / 10)?;
            place /= 10;
        }
        rest = after;
    }
    i64::try_from(total * sign).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("0s", 0)]
    #[case("1ns", 1)]
    #[case("1.5µs", 1_500)]
    #[case("250ms", 250_000_000)]
    #[case("1m30s", 90_000_000_000)]
    #[case("-1h0m0.5s", -3_600_500_000_000)]
    #[case("2562047h47m16.854775807s", i64::MAX)]
    fn durations_are_those_of_go(#[case] text: &str, #[case] nanos: i64) {
        assert_eq!(duration_text(nanos), text);
        assert_eq!(duration_nanos(text), Some(nanos));
    }

    #[rstest::rstest]
    #[case("1.5h", Some(5_400_000_000_000))]
    #[case("0", Some(0))]
    #[case(".5s", Some(500_000_000))]
    #[case("", None)]
    #[case("1", None)]
    #[case(".s", None)]
    #[case("1d", None)]
    #[case("9999999999999999999999999999999999999999h", None)]
    #[case("9999999h", None)]
    fn other_notations_are_read(#[case] text: &str, #[case] nanos: Option<i64>) {
        assert_eq!(duration_nanos(text), nanos);
    }
}
