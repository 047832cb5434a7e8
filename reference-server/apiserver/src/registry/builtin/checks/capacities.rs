//! Capacities of devices, and how claims can request parts of them.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{has, items, text};
use kubeproof_apimachinery::schema::quantity::{Quantity, UNIT, nanos};
use kubeproof_apimachinery::schema::{FieldError, Path};

/// The maximum number of valid values of a capacity.
const VALUES: u64 = 10;

/// Returns the errors in a capacity. `is_shared` permits several allocations of the device.
pub(super) fn capacity(capacity: &Value, is_shared: bool, path: Path<'_>) -> Vec<FieldError> {
    let (policy, place) = (&capacity["requestPolicy"], path.field("requestPolicy"));
    if policy.is_null() {
        return Vec::new();
    }
    if !is_shared {
        return vec![FieldError::forbidden(place, "allowMultipleAllocations must be true")];
    }
    let has_values = !items(policy, "validValues").is_empty();
    let given = match (has_values, has(policy, "validRange")) {
        (true, true) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \
                       \"validRange\" at the same time";
            return vec![FieldError::forbidden(place, why)];
        }
        (false, false) => return Vec::new(),
        (true, false) => "validValues",
        (false, true) => "validRange",
    };
    if !has(policy, "default") {
        let why = format!("required when {given} is defined");
        return vec![FieldError::required(place.field("default"), &why)];
    }
    let (default, most) = (text(policy, "default"), text(capacity, "value"));
    if has_values {
        values(items(policy, "validValues"), (default, most), place.field(given))
    } else {
        range(&policy["validRange"], (default, most), place.field(given))
    }
}

fn compare(one: &str, other: &str) -> Ordering {
    amount(one).cmp(&amount(other))
}

/// Returns an amount in billionths. The schema has checked its syntax.
fn amount(text: &str) -> i128 {
    nanos(text).unwrap_or_default()
}

/// Returns an amount, rounded up.
fn whole(text: &str) -> i128 {
    let amount = amount(text);
    amount.div_euclid(UNIT) + i128::from(amount.rem_euclid(UNIT) != 0)
}

fn values(list: &[Value], (default, most): (&str, &str), path: Path<'_>) -> Vec<FieldError> {
    let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    let mut errors = Vec::new();
    for (index, pair) in texts.windows(2).enumerate() {
        if compare(pair[0], pair[1]) == Ordering::Greater {
            let why = "values must be sorted in ascending order";
            errors.push(FieldError::invalid(path.index(index + 1), &json!(pair[1]), why));
        }
    }
    let mut has_default = false;
    if texts.len() as u64 > VALUES {
        errors.push(FieldError::too_many(path, texts.len(), VALUES));
    } else {
        for (index, text) in texts.iter().enumerate() {
            if compare(text, most) == Ordering::Greater {
                let why = format!("option is larger than capacity value: {most}");
                errors.push(FieldError::invalid(path.index(index), &json!(text), &why));
            }
            has_default |= compare(text, default) == Ordering::Equal;
            if texts[..index].iter().any(|other| whole(other) == whole(text)) {
                let value = json!(whole(text).to_string());
                errors.push(FieldError::duplicate(path.index(index), &value));
            }
        }
    }
    if !has_default {
        let why = "default value is not valid according to the requestPolicy";
        errors.push(FieldError::invalid(path, &json!(default), why));
    }
    errors
}

fn range(range: &Value, (default, most): (&str, &str), path: Path<'_>) -> Vec<FieldError> {
    let [at_min, at_max, at_step] = ["min", "max", "step"].map(|field| path.field(field));
    if !has(range, "min") {
        return vec![FieldError::required(at_min, "required when validRange is defined")];
    }
    let (min, max, step) = (text(range, "min"), text(range, "max"), text(range, "step"));
    let mut errors = Vec::new();
    errors.extend(larger((min, most), "min is larger than capacity value", at_min));
    if compare(default, min) == Ordering::Less {
        let why = format!("default is less than min: {min}");
        errors.push(FieldError::invalid(at_min, &json!(default), &why));
    }
    if has(range, "max") {
        errors.extend(larger((min, max), "min is larger than max", at_max));
        errors.extend(larger((max, most), "max is larger than capacity value", at_max));
        errors.extend(larger((default, max), "default is more than max", at_max));
    }
    if has(range, "step") {
        let first = sum(min, step);
        if compare(&first, most) == Ordering::Greater {
            let why = format!("one step {first} is larger than capacity value: {most}");
            errors.push(FieldError::invalid(at_step, &json!(step), &why));
        }
        let ends = [Some(default), has(range, "max").then_some(max)];
        for end in ends.into_iter().flatten() {
            let rest = (whole(end) - whole(min)).checked_rem(whole(step));
            if rest.is_none_or(|rest| rest != 0) {
                let why = format!("value is not a multiple of a given step ({step}) from ({min})");
                errors.push(FieldError::invalid(at_step, &json!(end), &why));
            }
        }
    }
    errors
}

/// Returns the sum of two amounts.
fn sum(one: &str, other: &str) -> String {
    let [one, other] = [one, other].map(Quantity::parse);
    one.zip(other).map(|(one, other)| one.plus(other).to_string()).unwrap_or_default()
}

/// Returns an error if the first amount is larger than the second.
fn larger((one, other): (&str, &str), why: &str, path: Path<'_>) -> Option<FieldError> {
    let error = || FieldError::invalid(path, &json!(one), &format!("{why}: {other}"));
    (compare(one, other) == Ordering::Greater).then(error)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"validValues": ["1", "2"], "default": "1"}), &[])]
    #[case(json!({"validValues": ["1"]}), &["default"])]
    #[case(json!({"validValues": ["1"], "validRange": {}}), &[""])]
    #[case(json!({"validValues": ["2", "1"], "default": "1"}), &["validValues[1]"])]
    #[case(json!({"validValues": ["1", "1", "20"], "default": "1"}),
           &["validValues[1]", "validValues[2]"])]
    #[case(json!({"validValues": ["1"], "default": "2"}), &["validValues"])]
    #[case(json!({"validValues": vec!["1"; 11], "default": "1"}),
           &["validValues", "validValues"])]
    #[case(json!({"validRange": {"min": "1", "max": "9", "step": "2"}, "default": "3"}), &[])]
    #[case(json!({"validRange": {}, "default": "3"}), &["validRange.min"])]
    #[case(json!({"validRange": {"min": "4"}, "default": "3"}), &["validRange.min"])]
    #[case(json!({"validRange": {"min": "1", "max": "20"}, "default": "30"}),
           &["validRange.max", "validRange.max"])]
    #[case(json!({"validRange": {"min": "1", "step": "10"}, "default": "2"}),
           &["validRange.step", "validRange.step"])]
    fn policies_are_checked(#[case] policy: Value, #[case] expected: &[&str]) {
        let value = json!({"value": "10", "requestPolicy": policy});
        let errors = capacity(&value, true, Path::Root);
        let field = |error: &FieldError| {
            let place = error.field.strip_prefix("requestPolicy").unwrap_or_default();
            place.trim_start_matches('.').to_owned()
        };
        assert_eq!(errors.iter().map(field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn only_shared_devices_have_policies() {
        let value = json!({"value": "10", "requestPolicy": {}});
        assert_eq!(capacity(&value, true, Path::Root), []);
        assert_eq!(capacity(&value, false, Path::Root)[0].field, "requestPolicy");
        assert_eq!(capacity(&json!({"value": "1"}), false, Path::Root), []);
    }
}
