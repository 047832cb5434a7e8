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
    let mut errors = Vec::new();
    let values = items(requirement, "values");
    let place = path.field("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(place, why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(place, why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let why = "not a valid selector operator";
            errors.push(FieldError::invalid(path.field("operator"), &json!(other), why));
        }
    }
    errors.extend(Syntax::LabelKey.errors(text(requirement, "key"), path.field("key")));
    for (index, value) in values.iter().enumerate() {
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
