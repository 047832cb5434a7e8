//! The group `authentication.k8s.io/v1`: reviews of the current user, which are not stored.

use std::sync::Arc;

use super::BuiltinType;
use crate::registry::strategy::{Review, ReviewStrategy};
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{boolean, definitions, list, map, object, string};
use kubeproof_apimachinery::schema::meta::with_type_meta;

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

const GROUP: &str = "authentication.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    let own = with_type_meta(object("io.k8s.api.authentication.v1.SelfSubjectReview"))
        .field("status", self_subject_review_status());
    let token = with_type_meta(object("io.k8s.api.authentication.v1.TokenReview"))
        .field("spec", token_review_spec().or_empty())
        .field("status", token_review_status());
    vec![
        BuiltinType {
            strategy: || Arc::new(ReviewStrategy(Review::SelfSubject)),
            ..BuiltinType::review(GROUP, "SelfSubjectReview", "selfsubjectreviews", Arc::new(own))
        },
        BuiltinType {
            strategy: || Arc::new(ReviewStrategy(Review::Token)),
            ..BuiltinType::review(GROUP, "TokenReview", "tokenreviews", Arc::new(token))
        },
    ]
}
