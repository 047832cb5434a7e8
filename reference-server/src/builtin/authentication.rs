//! The group `authentication.k8s.io/v1`: who is asking? Answered and not stored.

use std::sync::Arc;

use super::BuiltinType;
use crate::schema::Schema;
use crate::schema::build::{boolean, definitions, list, map, object, string};
use crate::schema::meta::with_type_meta;

definitions! {
    "io.k8s.api.authentication.v1"

    token_review_spec TokenReviewSpec { audiences: list(string()), token: string() }
    token_review_status TokenReviewStatus {
        audiences: list(string()), authenticated: boolean(), error: string(), user: user_info(),
    }
    user_info UserInfo {
        extra: map(list(string())), groups: list(string()), uid: string(), username: string(),
    }
    self_subject_review_status SelfSubjectReviewStatus { userInfo: user_info() }
}

/// The types of the group.
pub(super) fn types() -> Vec<BuiltinType> {
    let own = with_type_meta(object("io.k8s.api.authentication.v1.SelfSubjectReview"))
        .field("status", self_subject_review_status());
    let token = with_type_meta(object("io.k8s.api.authentication.v1.TokenReview"))
        .field("spec", token_review_spec().or_empty())
        .field("status", token_review_status());
    vec![
        BuiltinType::review(
            "authentication.k8s.io",
            "SelfSubjectReview",
            "selfsubjectreviews",
            Arc::new(own),
        ),
        BuiltinType::review("authentication.k8s.io", "TokenReview", "tokenreviews", Arc::new(token)),
    ]
}
