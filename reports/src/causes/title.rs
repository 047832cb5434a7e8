//! The title of a cause in plain words.

use kubeproof_harness::event::{Symptom, Verdict};

use super::deciding_check;
use super::key::{Key, codes, first_violation, value_at, without_indexes};
use crate::document::{CheckRecord, Record};

/// The field of the symptom if a rejection has no Status.
const STATUS_BODY: &str = "body";

/// Returns one line that names the bug. `results` are all results of the cause.
pub(super) fn of(
    key: &Key<'_>,
    example: &Record,
    check: Option<&CheckRecord>,
    results: &[&Record],
) -> String {
    let is_one_case = results.iter().all(|record| record.id == example.id);
    let title = match key {
        Key::Surprise(surprise) => (*surprise).to_owned(),
        Key::Reason(_) => example.reason.clone(),
        Key::Undecided(_) => check.map(|check| check.message.clone()).unwrap_or_default(),
        // A case explains its own check better than a symptom does.
        _ if is_one_case && check.is_some_and(|check| check.means.is_some()) => {
            check.and_then(|check| check.means.clone()).unwrap_or_default()
        }
        Key::MissingField(field) if field == STATUS_BODY => {
            "a rejection has no Status body".to_owned()
        }
        Key::MissingField(field) => {
            let path = only(symptoms(results).filter_map(missing_path));
            format!("`{}` is missing", path.as_ref().unwrap_or(field))
        }
        Key::WrongField { field, value } => match only(wanted_values(results)) {
            Some(expected) if !expected.is_empty() => {
                format!("`{field}` is {value}, expected {expected}")
            }
            _ => format!("`{field}` is {value}"),
        },
        Key::Status { request, got } => match only(symptoms(results).filter_map(expected_codes)) {
            Some(expected) => format!("{request} returns HTTP {got}, expected {expected}"),
            None => format!("{request} returns HTTP {got}"),
        },
        Key::Rejection { request, expected, got } => {
            format!("{request} is rejected with HTTP {got}, expected {}", codes(expected))
        }
        Key::NoResponse { request: "watch" } => {
            "a watch lacks an expected event, or does not end".to_owned()
        }
        Key::NoResponse { request } => format!("{request} gets no valid response"),
        Key::NoData { subresource } => {
            format!("{subresource} streams lack expected data, or do not end")
        }
        Key::BrokenFraming(violation) => {
            check.and_then(first_violation).unwrap_or(violation).to_owned()
        }
        Key::Meaning(means) => means.clone(),
        Key::Check { .. } if example.summary.is_empty() => example.reason.clone(),
        Key::Check { .. } => format!("broken rule: {}", example.summary),
    };
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    match example.verdict {
        Verdict::Error => format!("not decided: {title}"),
        _ => title,
    }
}

fn symptoms<'a>(results: &'a [&Record]) -> impl Iterator<Item = &'a Symptom> {
    results.iter().filter_map(|record| deciding_check(record)?.symptom.as_ref())
}

fn missing_path(symptom: &Symptom) -> Option<String> {
    match symptom {
        Symptom::MissingField { field } => Some(without_indexes(field)),
        _ => None,
    }
}

/// Returns the value that each result expects in place of the wrong one. It is empty text where the
/// expectation is no plain value.
fn wanted_values(results: &[&Record]) -> impl Iterator<Item = String> {
    results.iter().filter_map(|record| {
        let check = deciding_check(record)?;
        let Some(Symptom::WrongField { field }) = &check.symptom else { return None };
        let wanted = value_at(&check.expected, field).filter(|value| !value.is_object());
        Some(wanted.map(ToString::to_string).unwrap_or_default())
    })
}

fn expected_codes(symptom: &Symptom) -> Option<String> {
    match symptom {
        Symptom::StatusCode { expected, .. } => Some(codes(expected)),
        _ => None,
    }
}

/// Returns the value that all results share.
fn only(mut values: impl Iterator<Item = String>) -> Option<String> {
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}
