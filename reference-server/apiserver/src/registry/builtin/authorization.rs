//! The group `authorization.k8s.io/v1`: reviews of access, which are not stored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{BuiltinType, Hooks};
use crate::registry::strategy::{Review, ReviewStrategy};

use kubeproof_apimachinery::schema::FieldError;

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
    Vec::new()
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
        json!({"groups": ["g"], "resourceAttributes": {}, "nonResourceAttributes": {}}),
        &["spec.resourceAttributes"]
    )]
    fn a_question_has_one_subject_and_one_object(#[case] spec: Value, #[case] expected: &[&str]) {
        let errors = validate_subject(&json!({ "spec": spec }));
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }
}
