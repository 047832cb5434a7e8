//! Lengths of time and other quantities with units.

use super::fields::Field;

/// Name suffixes of durations.
const LENGTHS: [&str; 6] = ["timeout", "interval", "duration", "delay", "period", "ttl"];

/// Name suffixes with a time unit.
const UNITS: [&str; 5] = ["Milliseconds", "Seconds", "Minutes", "Hours", "Days"];

pub(super) fn in_names(field: &Field<'_>) -> Option<String> {
    let number = field.is("integer") || field.is("number");
    (number && is_length(field.name))
        .then(|| format!("neither the name `{}` nor its value has a unit", field.name))
}

pub(super) fn integers(field: &Field<'_>) -> Option<String> {
    let named = UNITS.iter().any(|unit| field.name.ends_with(unit));
    let is_text =
        field.is("string") && (is_length(field.name) || field.schema["format"] == "duration");
    let is_other = named && !(field.is("integer") || field.is("array") || field.is("object"));
    (is_text || is_other)
        .then(|| "the length of time is no integer with its unit in the name".to_owned())
}

pub(super) fn suffixes(field: &Field<'_>) -> Option<String> {
    let other = ["IntervalSeconds", "FrequencySeconds", "intervalSeconds", "frequencySeconds"];
    let other = other.iter().any(|suffix| field.name.ends_with(suffix));
    other.then(|| format!("the period `{}` is not called `fooPeriodSeconds`", field.name))
}

fn is_length(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LENGTHS.iter().any(|length| name.ends_with(length))
}
