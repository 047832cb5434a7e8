//! The group `authorization.k8s.io/v1`: reviews of access, which are not stored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{BuiltinType, Hooks};
use crate::registry::strategy::{Review, ReviewStrategy};

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

const GROUP: &str = "authorization.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    let access = Hooks { validate, ..Hooks::NONE };
    let subject = Hooks { validate: validate_subject, ..Hooks::NONE };
    vec![
        BuiltinType {
            hooks: subject,
            strategy: || Arc::new(ReviewStrategy(Review::SubjectAccess)),
            ..BuiltinType::review(GROUP, "localsubjectaccessreviews")
        },
        BuiltinType {
            hooks: access,
            strategy: || Arc::new(ReviewStrategy(Review::SelfSubjectAccess)),
            ..BuiltinType::review(GROUP, "selfsubjectaccessreviews")
        },
        BuiltinType {
            strategy: || Arc::new(ReviewStrategy(Review::SelfSubjectRules)),
            ..BuiltinType::review(GROUP, "selfsubjectrulesreviews")
        },
        BuiltinType {
            hooks: subject,
            strategy: || Arc::new(ReviewStrategy(Review::SubjectAccess)),
            ..BuiltinType::review(GROUP, "subjectaccessreviews")
        },
    ]
}

fn validate(review: &Value) -> Vec<FieldError> {
    let spec = &review["spec"];
    if spec["resourceAttributes"].is_null() == spec["nonResourceAttributes"].is_null() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return vec![FieldError::invalid(
            "spec.resourceAttributes",
            &spec["resourceAttributes"],
            why,
        )];
    }
    let mut errors = Vec::new();
    for field in ["fieldSelector", "labelSelector"] {
        let selector = &spec["resourceAttributes"][field];
        if !selector.is_null() {
            let place = format!("spec.resourceAttributes.{field}");
            errors.extend(validate_selector(selector, &place, field == "labelSelector"));
        }
    }
    errors
}

/// A selector is a text or a list of requirements. Their operators may be unknown to the server.
fn validate_selector(selector: &Value, place: &str, is_of_labels: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let requirements = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    match (raw.is_empty(), requirements.is_empty()) {
        (true, true) => {
            let why = format!("when {place} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(format!("{place}.requirements"), &why));
        }
        (false, false) => {
            let why = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(format!("{place}.rawSelector"), &json!(raw), why));
        }
        _ => {}
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let place = format!("{place}.requirements[{index}]");
        let has_values = requirement["values"].as_array().is_some_and(|values| !values.is_empty());
        let key = requirement["key"].as_str().unwrap_or_default();
        if is_of_labels {
            errors.extend(Syntax::LabelKey.errors(key, Path::Root.field(&format!("{place}.key"))));
        } else if key.is_empty() {
            errors.push(FieldError::required(format!("{place}.key"), "must be specified"));
        }
        let place = format!("{place}.values");
        match requirement["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if !has_values => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(place, why));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(place, why));
            }
            _ => {}
        }
    }
    errors
}

fn validate_subject(review: &Value) -> Vec<FieldError> {
    let mut errors = validate(review);
    let spec = &review["spec"];
    if spec["user"].as_str().unwrap_or_default().is_empty()
        && spec["groups"].as_array().is_none_or(Vec::is_empty)
    {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(""), why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({}), &["spec.resourceAttributes", "spec.user"])]
    #[case(json!({"user": "jane", "resourceAttributes": {}}), &[])]
    #[case(
        json!({"user": "jane", "resourceAttributes": {
            "fieldSelector": {}, "labelSelector": {"rawSelector": "a", "requirements": [
                {"operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]},
            ]},
        }}),
        &[
            "spec.resourceAttributes.fieldSelector.requirements",
            "spec.resourceAttributes.labelSelector.rawSelector",
            "spec.resourceAttributes.labelSelector.requirements[0].key",
            "spec.resourceAttributes.labelSelector.requirements[0].key",
            "spec.resourceAttributes.labelSelector.requirements[0].values",
            "spec.resourceAttributes.labelSelector.requirements[1].values",
        ]
    )]
    #[case(
        json!({"groups": ["g"], "resourceAttributes": {}, "nonResourceAttributes": {}}),
        &["spec.resourceAttributes"]
    )]
    fn a_question_has_one_subject_and_one_object(#[case] spec: Value, #[case] expected: &[&str]) {
        let errors = validate_subject(&json!({ "spec": spec }));
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }
}
