//! Durations in the syntax of Go (`1h30m`) or of Scala (`90 minutes`).

use std::sync::LazyLock;

use regex::Regex;

/// The units. A word of the second column may have an ending: `5 days`.
const UNITS: [(&[&str], &str, i64); 8] = [
    (&["ns"], "nano", 1),
    (&["us", "µs"], "micro", 1_000),
    (&["ms"], "milli", 1_000_000),
    (&["s"], "sec", 1_000_000_000),
    (&["m"], "min", 60_000_000_000),
    (&["h", "hr"], "hour", 3_600_000_000_000),
    (&["d"], "day", 86_400_000_000_000),
    (&["w", "wk"], "week", 604_800_000_000_000),
];

static AMOUNTS: LazyLock<Regex> = LazyLock::new(|| super::regex(r"([0-9]+)\s*([A-Za-zµ]+)"));

/// Returns the nanoseconds of a duration, or `None` for another text.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    go_duration(text).or_else(|| of_scala(text))
}

/// Returns the nanoseconds of a duration in the syntax of Go, or `None` for another text.
pub fn go_duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i64;
    loop {
        let (amount, tail) = rest.split_at(rest.find(|c: char| c != '.' && !c.is_ascii_digit())?);
        let (unit, tail) = tail
            .split_at(tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len()));
        total = total.checked_add(part(amount, unit)?)?;
        if tail.is_empty() {
            return Some(sign * total);
        }
        rest = tail;
    }
}

/// Adds up all amounts with a unit, and skips the text between them.
fn of_scala(text: &str) -> Option<i64> {
    let mut total: Option<i64> = None;
    for amount in AMOUNTS.captures_iter(text) {
        let count: i64 = amount[1].parse().ok()?;
        let unit = amount[2].to_lowercase();
        let known =
            UNITS.iter().find(|(names, word, _)| names.contains(&&*unit) || unit.starts_with(word));
        if let Some((_, _, nanoseconds)) = known {
            total = Some(total.unwrap_or(0).wrapping_add(count.wrapping_mul(*nanoseconds)));
        }
    }
    total
}

/// Returns the nanoseconds of an amount with a fraction.
fn part(amount: &str, unit: &str) -> Option<i64> {
    // The Greek letter and the sign for micro are two characters.
    let unit = if unit == "μs" { "us" } else { unit };
    let short = UNITS.iter().take(6).find(|(names, ..)| names.contains(&unit) && unit != "hr");
    let (_, _, nanoseconds) = short?;
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let count = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    let mut part = count.checked_mul(*nanoseconds)?;
    let mut place = *nanoseconds;
    for digit in fraction.chars().filter_map(|digit| digit.to_digit(10)) {
        place /= 10;
        part = part.checked_add(i64::from(digit) * place)?;
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1h30m", Some(5_400_000_000_000))]
    #[case("-1.5s", Some(-1_500_000_000))]
    #[case("+.5ms", Some(500_000))]
    #[case("250ms", Some(250_000_000))]
    #[case("0", Some(0))]
    #[case("0s", Some(0))]
    #[case("1μs", Some(1_000))]
    #[case("5 days", Some(432_000_000_000_000))]
    #[case("1 h and 30 Minutes", Some(5_400_000_000_000))]
    #[case("P1D", Some(86_400_000_000_000))]
    #[case("1", None)]
    #[case("", None)]
    #[case("1 parsec", None)]
    #[case("10000000000000000000s", None)]
    fn a_duration_has_nanoseconds(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(nanoseconds(text), expected, "{text}");
    }
}
