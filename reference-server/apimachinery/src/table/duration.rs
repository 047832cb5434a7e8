//! Human-readable durations with at most two units.

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age in the form of kubectl. Clocks may differ by a second. Larger negative values
/// are not an age.
pub fn human_duration(seconds: i64) -> String {
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s, MINUTE, 'm', 1, 's'),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s, HOUR, 'h', MINUTE, 'm'),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s, DAY, 'd', HOUR, 'h'),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s, YEAR, 'y', DAY, 'd'),
        s => format!("{}y", s / YEAR),
    }
}

/// Formats a large unit, and the remainder in a small one unless it is zero.
fn two(seconds: i64, large: i64, large_name: char, small: i64, small_name: char) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    if rest == 0 {
        format!("{whole}{large_name}")
    } else {
        format!("{whole}{large_name}{rest}{small_name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(-2, "<invalid>")]
    #[case(-1, "0s")]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(120, "2m")]
    #[case(599, "9m59s")]
    #[case(600, "10m")]
    #[case(3 * HOUR - 1, "179m")]
    #[case(3 * HOUR, "3h")]
    #[case(7 * HOUR + 5 * MINUTE, "7h5m")]
    #[case(8 * HOUR, "8h")]
    #[case(47 * HOUR, "47h")]
    #[case(2 * DAY, "2d")]
    #[case(7 * DAY + 3 * HOUR, "7d3h")]
    #[case(8 * DAY, "8d")]
    #[case(2 * YEAR - 1, "729d")]
    #[case(2 * YEAR + 3 * DAY, "2y3d")]
    #[case(8 * YEAR, "8y")]
    fn ages_have_the_format_of_kubectl(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(human_duration(seconds), expected);
    }
}
