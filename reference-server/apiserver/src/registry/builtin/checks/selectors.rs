//! Selectors of labels.

use serde_json::{Value, json};

use super::{Checks, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", selector),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement", requirement),
];

fn selector(selector: &Value, path: Path<'_>) -> Vec<FieldError> {
    let labels = path.field("matchLabels");
    let mut errors = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        errors.extend(Syntax::LabelKey.errors(key, labels));
        let value = value.as_str().unwrap_or_default();
        errors.extend(Syntax::LabelValue.errors(value, labels));
    }
    errors
}

fn requirement(requirement: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors =
        key_and_operator(requirement, path, |at| Some(wrong_operator(requirement, at)));
    errors.extend(label_values(requirement, path));
    errors
}

/// Checks the key and the operators that all selectors have. `other` checks the other operators.
pub(super) fn key_and_operator(
    requirement: &Value,
    path: Path<'_>,
    other: impl Fn(Path<'_>) -> Option<FieldError>,
) -> Vec<FieldError> {
    let has_values = !items(requirement, "values").is_empty();
    let place = path.field("values");
    let wrong = match text(requirement, "operator") {
        "In" | "NotIn" if !has_values => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            Some(FieldError::required(place, why))
        }
        "Exists" | "DoesNotExist" if has_values => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            Some(FieldError::forbidden(place, why))
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        _ => other(path),
    };
    let mut errors: Vec<FieldError> = wrong.into_iter().collect();
    errors.extend(Syntax::LabelKey.errors(text(requirement, "key"), path.field("key")));
    errors
}

pub(super) fn wrong_operator(requirement: &Value, path: Path<'_>) -> FieldError {
    let operator = json!(text(requirement, "operator"));
    let why = "not a valid selector operator";
    FieldError::invalid(path.field("operator"), &operator, why)
}

pub(super) fn label_values(requirement: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("values");
    let mut errors = Vec::new();
    for (index, value) in items(requirement, "values").iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(Syntax::LabelValue.errors(value, place.index(index)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("LabelSelector", json!({"matchLabels": {"a": "b"}}), &[])]
    #[case("LabelSelector", json!({"matchLabels": {"a b": "c d"}}),
           &["x.matchLabels", "x.matchLabels"])]
    #[case("LabelSelectorRequirement", json!({"key": "a", "operator": "In"}), &["x.values"])]
    #[case("LabelSelectorRequirement", json!({"key": "a", "operator": "Exists", "values": ["b"]}),
           &["x.values"])]
    #[case("LabelSelectorRequirement", json!({"key": "a", "operator": "Gt"}), &["x.operator"])]
    #[case("LabelSelectorRequirement", json!({"key": "a b", "operator": "Exists"}), &["x.key"])]
    #[case("LabelSelectorRequirement", json!({"key": "a", "operator": "In", "values": ["b c"]}),
           &["x.values[0]"])]
    fn selectors_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
