//! The group `authorization.k8s.io/v1`: reviews of access, which are not stored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{BuiltinType, Hooks};
use crate::registry::strategy::{Review, ReviewStrategy};

use kubeproof_apimachinery::schema::build::{boolean, definitions, list, map, object, string};
use kubeproof_apimachinery::schema::meta::{
    field_selector_requirement, label_selector_requirement, with_type_meta,
};
use kubeproof_apimachinery::schema::{FieldError, Schema};

definitions! {
    "io.k8s.api.authorization.v1"

    self_subject_access_review_spec SelfSubjectAccessReviewSpec {
        nonResourceAttributes: non_resource_attributes(), resourceAttributes: resource_attributes(),
    }
    non_resource_attributes NonResourceAttributes { path: string(), verb: string() }
    resource_attributes ResourceAttributes {
        fieldSelector: field_selector_attributes(), group: string(),
        labelSelector: label_selector_attributes(), name: string(), namespace: string(),
        resource: string(), subresource: string(), verb: string(), version: string(),
    }
    field_selector_attributes FieldSelectorAttributes {
        rawSelector: string(), requirements: list(field_selector_requirement()),
    }
    label_selector_attributes LabelSelectorAttributes {
        rawSelector: string(), requirements: list(label_selector_requirement()),
    }
    subject_access_review_status SubjectAccessReviewStatus {
        always allowed: boolean(), denied: boolean(), evaluationError: string(), reason: string(),
    }
    subject_access_review_spec SubjectAccessReviewSpec {
        extra: map(list(string())), groups: list(string()),
        nonResourceAttributes: non_resource_attributes(), resourceAttributes: resource_attributes(),
        uid: string(), user: string(),
    }
    self_subject_rules_review_spec SelfSubjectRulesReviewSpec { namespace: string() }
    subject_rules_review_status SubjectRulesReviewStatus {
        evaluationError: string(), always incomplete: boolean(),
        nonResourceRules: list(non_resource_rule()), resourceRules: list(resource_rule()),
    }
    non_resource_rule NonResourceRule { nonResourceURLs: list(string()), verbs: list(string()) }
    resource_rule ResourceRule {
        apiGroups: list(string()), resourceNames: list(string()), resources: list(string()),
        verbs: list(string()),
    }
}

const GROUP: &str = "authorization.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    let review = |name: &'static str, spec: Schema, status: Schema| {
        Arc::new(
            with_type_meta(object(name)).field("spec", spec.or_empty()).field("status", status),
        )
    };
    let own = review(
        "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        self_subject_access_review_spec(),
        subject_access_review_status(),
    );
    let any = review(
        "io.k8s.api.authorization.v1.SubjectAccessReview",
        subject_access_review_spec(),
        subject_access_review_status(),
    );
    let local = review(
        "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
        subject_access_review_spec(),
        subject_access_review_status(),
    );
    let rules = review(
        "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
        self_subject_rules_review_spec(),
        subject_rules_review_status(),
    );
    let access = Hooks { validate, ..Hooks::NONE };
    let subject = Hooks { validate: validate_subject, ..Hooks::NONE };
    vec![
        BuiltinType {
            namespaced: true,
            hooks: subject,
            strategy: || Arc::new(ReviewStrategy(Review::SubjectAccess)),
            ..BuiltinType::review(
                GROUP,
                "LocalSubjectAccessReview",
                "localsubjectaccessreviews",
                local,
            )
        },
        BuiltinType {
            hooks: access,
            strategy: || Arc::new(ReviewStrategy(Review::SelfSubjectAccess)),
            ..BuiltinType::review(GROUP, "SelfSubjectAccessReview", "selfsubjectaccessreviews", own)
        },
        BuiltinType {
            strategy: || Arc::new(ReviewStrategy(Review::SelfSubjectRules)),
            ..BuiltinType::review(GROUP, "SelfSubjectRulesReview", "selfsubjectrulesreviews", rules)
        },
        BuiltinType {
            hooks: subject,
            strategy: || Arc::new(ReviewStrategy(Review::SubjectAccess)),
            ..BuiltinType::review(GROUP, "SubjectAccessReview", "subjectaccessreviews", any)
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
