//! Texts of numbers, durations and times in the syntax of the standard library of Go.

use chrono::{DateTime, FixedOffset, NaiveDate};

/// The units of durations, in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a number such as `1.5e3`, `0x1p-2` or `1_000`. Numbers that are too large are mistakes.
pub(super) fn double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = if text.contains('_') { without_underscores(text)? } else { text.to_owned() };
    if unsigned.starts_with(['i', 'I', 'n', 'N']) {
        let is_signed_nan = unsigned.len() < text.len() && unsigned.starts_with(['n', 'N']);
        return text.parse().ok().filter(|_| !is_signed_nan);
    }
    let number = if unsigned.len() > 1 && unsigned[1..].starts_with(['x', 'X']) {
        hexadecimal(&plain)?
    } else {
        plain.parse::<f64>().ok()?
    };
    number.is_finite().then_some(number)
}

/// Removes the underscores between digits.
fn without_underscores(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let has_base = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    let mut before = if has_base { '0' } else { '^' };
    let digits = if has_base { &unsigned[2..] } else { unsigned };
    for character in digits.chars() {
        let is_digit = character.is_ascii_digit() || has_base && character.is_ascii_hexdigit();
        match character {
            '_' if before != '0' => return None,
            _ if before == '_' && !is_digit => return None,
            _ => {}
        }
        before = if is_digit {
            '0'
        } else if character == '_' {
            '_'
        } else {
            '!'
        };
    }
    (before != '_').then(|| text.replace('_', ""))
}

/// Parses a hexadecimal number, which has an exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = unsigned.get(2..)?.split_once(['p', 'P'])?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)) {
        return None;
    }
    let exponent: i32 =
        exponent.parse().unwrap_or(if exponent.starts_with('-') { -100_000 } else { 100_000 });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (mut value, mut scale) = (0_u128, exponent.clamp(-100_000, 100_000));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    for (index, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u128::from(digit.to_digit(16)?);
        let is_fraction = index >= whole.len();
        if value >> 120 == 0 {
            value = value << 4 | digit;
            scale -= if is_fraction { 4 } else { 0 };
        } else {
            // Only one thing matters about further digits: whether the rest is zero.
            value |= u128::from(digit != 0);
            scale += if is_fraction { 0 } else { 4 };
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "the nearest double")]
    let value = value as f64;
    Some(sign * scaled(value, scale))
}

/// Multiplies by a power of two, in steps that do not overflow early.
fn scaled(mut value: f64, mut power: i32) -> f64 {
    while power > 1000 && value.is_finite() && value != 0.0 {
        value *= 2_f64.powi(1000);
        power -= 1000;
    }
    while power < -1000 && value != 0.0 {
        value *= 2_f64.powi(-1000);
        power += 1000;
    }
    value * 2_f64.powi(power.clamp(-1000, 1000))
}

/// Parses a duration such as `1h30m` or `-1.5s`. Returns nanoseconds.
pub(super) fn duration(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (amount, after) = amount(rest)?;
        total = total.checked_add(amount).filter(|total| *total <= 1 << 63)?;
        rest = after;
    }
    if is_negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

/// Parses a number with its unit. Returns nanoseconds.
fn amount(text: &str) -> Option<(u64, &str)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let whole = whole.checked_mul(*unit).filter(|whole| *whole <= 1 << 63)?;
    Some((whole.checked_add(part(fraction, *unit))?, rest))
}

/// Returns a fraction of a unit.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go computes the fraction in this way"
)]
fn part(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        let next = value.checked_mul(10).and_then(|it| it.checked_add(u64::from(digit - b'0')));
        let Some(next) = next.filter(|next| *next <= 1 << 63) else { break };
        (value, scale) = (next, scale * 10.0);
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Parses a time of RFC 3339. Like Go, it accepts hours of one digit and a comma before fractions.
pub(super) fn time(text: &str) -> Option<DateTime<FixedOffset>> {
    let mut rest = text;
    let mut number = |digits: usize, end: &str| {
        let (digits, after) = rest.split_at_checked(digits)?;
        rest = after.strip_prefix(end)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| is_number)
    };
    let date = (number(4, "-")?, number(2, "-")?, number(2, "T")?);
    let hour = number(2, ":").or_else(|| number(1, ":"))?;
    let (minute, second) = (number(2, ":")?, number(2, "")?);
    let date = NaiveDate::from_ymd_opt(i32::try_from(date.0).ok()?, date.1, date.2)?;
    let mut nanoseconds = 0;
    if let Some(after) = rest.strip_prefix(['.', ',']) {
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (digits, after) = after.split_at(end);
        if digits.is_empty() {
            return None;
        }
        nanoseconds = format!("{digits:0<9}")[..9].parse().ok()?;
        rest = after;
    }
    let time =
        (second < 60).then(|| date.and_hms_nano_opt(hour, minute, second, nanoseconds))??;
    time.and_local_timezone(offset(rest)?).single()
}

/// Parses the offset of a time: `Z` or `+01:00`.
fn offset(text: &str) -> Option<FixedOffset> {
    if text == "Z" {
        return FixedOffset::east_opt(0);
    }
    let sign = match text.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i32| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_number && *number <= most)
    };
    FixedOffset::east_opt(sign * (number(hours, 24)? * 60 + number(minutes, 60)?) * 60)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1.5", Some(1.5))]
    #[case("0x1p-2", Some(0.25))]
    #[case("-0X1.8P1", Some(-3.0))]
    #[case("0x1", None)]
    #[case("1_0", Some(10.0))]
    #[case("1__0", None)]
    #[case("_1", None)]
    #[case("1e400", None)]
    #[case("-Inf", Some(f64::NEG_INFINITY))]
    #[case("infinity", Some(f64::INFINITY))]
    #[case(" 1", None)]
    #[case("1f", None)]
    #[case("", None)]
    fn doubles(#[case] text: &str, #[case] expected: Option<f64>) {
        assert_eq!(double(text), expected);
    }

    #[rstest]
    #[case("1h30m", Some(5_400_000_000_000))]
    #[case("-1.5s", Some(-1_500_000_000))]
    #[case("1\u{b5}s", Some(1_000))]
    #[case("0", Some(0))]
    #[case(".5m", Some(30_000_000_000))]
    #[case("1e3s", None)]
    #[case("9223372036854775808ns", None)]
    #[case("-9223372036854775808ns", Some(i64::MIN))]
    #[case("1m1", None)]
    #[case("1d", None)]
    #[case("", None)]
    #[case("+", None)]
    fn durations(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(duration(text), expected);
    }

    #[rstest]
    #[case("2024-02-29T23:59:59.5Z", Some("2024-02-29T23:59:59.500+00:00"))]
    #[case("2024-01-01T00:00:00,5Z", Some("2024-01-01T00:00:00.500+00:00"))]
    #[case("2024-01-01T0:00:00Z", Some("2024-01-01T00:00:00+00:00"))]
    #[case("2024-01-01T00:00:00+00:60", Some("2024-01-01T00:00:00+01:00"))]
    #[case("2024-01-01 00:00:00Z", None)]
    #[case("2024-01-01t00:00:00z", None)]
    #[case("2024-01-01T23:59:60Z", None)]
    #[case("2023-02-29T00:00:00Z", None)]
    #[case("2024-01-01T00:00:00", None)]
    fn times(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(time(text).map(|time| time.to_rfc3339()).as_deref(), expected);
    }
}
