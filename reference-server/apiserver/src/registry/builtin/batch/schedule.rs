//! Cron schedules, time zones and durations.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use kubeproof_apimachinery::schema::go_duration;
use kubeproof_apimachinery::table::human_duration;

/// The fields of a schedule: the lowest and the highest value, and the names from the lowest value.
const FIELDS: [(u32, u32, &[&str]); 5] =
    [(0, 59, &[]), (0, 23, &[]), (1, 31, &[]), (1, 12, &MONTHS), (0, 6, &DAYS)];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The length of a part of a time zone.
const MAX_ZONE_PART: usize = 14;

/// The descriptors in place of five fields.
const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Returns the mistake of a schedule.
pub(super) fn mistake(schedule: &str) -> Option<String> {
    if schedule.contains("TZ") {
        return Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    }
    if let Some(duration) = schedule.strip_prefix("@every ") {
        let is_valid = go_duration(duration).is_some();
        return (!is_valid).then(|| format!("failed to parse duration {schedule}"));
    }
    if schedule.starts_with('@') {
        let is_known = DESCRIPTORS.contains(&schedule);
        return (!is_known).then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Some(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    fields.iter().zip(FIELDS).find_map(|(field, (low, high, names))| {
        field.split(',').find_map(|range| range_mistake(range, (low, high), names))
    })
}

/// Checks `*`, `?`, `N`, `N-M`, and any of them with `/STEP`.
fn range_mistake(range: &str, (low, high): (u32, u32), names: &[&str]) -> Option<String> {
    let (range_text, step) = match range.split_once('/') {
        Some((text, step)) => (text, Some(step)),
        None => (range, None),
    };
    if let Some(step) = step {
        match step.parse::<u32>() {
            Ok(0) => return Some(format!("step of range should be a positive number: {range}")),
            Ok(_) => {}
            Err(_) => return Some(format!("failed to parse int from {step}")),
        }
    }
    if matches!(range_text, "*" | "?") {
        return None;
    }
    let value = |text: &str| {
        let position = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let position = position.and_then(|index| u32::try_from(index).ok());
        position.map(|index| index + low).or_else(|| text.parse().ok())
    };
    let (first, last) = range_text.split_once('-').unwrap_or((range_text, range_text));
    let (Some(start), Some(end)) = (value(first), value(last)) else {
        return Some(format!("failed to parse int from {range_text}"));
    };
    if start < low {
        Some(format!("beginning of range ({start}) below minimum ({low}): {range}"))
    } else if end > high {
        Some(format!("end of range ({end}) above maximum ({high}): {range}"))
    } else if start > end {
        Some(format!("beginning of range ({start}) beyond end of range ({end}): {range}"))
    } else {
        None
    }
}

/// Returns the mistakes of a time zone. Its case matters.
pub(super) fn zone_mistakes(zone: &str) -> Vec<String> {
    if zone.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let unknown = format!("unknown time zone {zone}");
    if !zone.split('/').all(is_zone_part) {
        return vec![unknown];
    }
    let mut mistakes = Vec::new();
    if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in \
                   https://www.iana.org/time-zones";
        mistakes.push(why.to_owned());
    }
    let is_known = TimeZone::get(zone).is_ok_and(|found| found.iana_name() == Some(zone));
    mistakes.extend((!is_known && zone != "Local").then_some(unknown));
    mistakes
}

fn is_zone_part(part: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    (1..=MAX_ZONE_PART).contains(&part.len())
        && !matches!(part, "." | "..")
        && !part.starts_with('-')
        && part.chars().all(is_valid)
}

/// Returns the time between two timestamps, or until now.
pub(super) fn between(start: &str, end: Option<&str>) -> Value {
    let end = end.map_or_else(|| Ok(Timestamp::now()), str::parse);
    match (start.parse::<Timestamp>(), end) {
        (Ok(start), Ok(end)) => json!(human_duration(end.as_second() - start.as_second())),
        _ => json!("<invalid>"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("*/5 * * * *", None)]
    #[case("0 0 1 jan mon-FRI", None)]
    #[case("@daily", None)]
    #[case("@every 1h30m", None)]
    #[case("0,15,30 1-5/2 ? * 0", None)]
    #[case("* * * *", Some("expected exactly 5 fields, found 4: [* * * *]"))]
    #[case("60 * * * *", Some("end of range (60) above maximum (59): 60"))]
    #[case("* * 0 * *", Some("beginning of range (0) below minimum (1): 0"))]
    #[case("* 5-2 * * *", Some("beginning of range (5) beyond end of range (2): 5-2"))]
    #[case("x * * * *", Some("failed to parse int from x"))]
    #[case("*/0 * * * *", Some("step of range should be a positive number: */0"))]
    #[case("@never", Some("unrecognized descriptor: @never"))]
    #[case("@every hour", Some("failed to parse duration @every hour"))]
    #[case("@every 1.2.3h", Some("failed to parse duration @every 1.2.3h"))]
    fn schedules_are_checked(#[case] schedule: &str, #[case] expected: Option<&str>) {
        assert_eq!(mistake(schedule).as_deref(), expected);
    }

    #[test]
    fn zones_are_names_of_the_database() {
        assert!(zone_mistakes("Europe/Berlin").is_empty());
        assert!(zone_mistakes("Etc/UTC").is_empty());
        assert!(zone_mistakes("UTC").is_empty());
        assert_eq!(zone_mistakes("EUROPE/BERLIN"), ["unknown time zone EUROPE/BERLIN"]);
        assert_eq!(zone_mistakes("Mars/Base").len(), 1);
        assert_eq!(zone_mistakes("../UTC").len(), 1);
        assert_eq!(zone_mistakes("Local").len(), 1);
        assert_eq!(zone_mistakes("local").len(), 2);
        assert_eq!(zone_mistakes("").len(), 1);
    }

    #[test]
    fn a_duration_has_an_end() {
        let end = Some("2026-01-01T00:01:05Z");
        assert_eq!(between("2026-01-01T00:00:00Z", end), "65s");
    }
}
