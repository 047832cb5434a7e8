//! The group `authentication.k8s.io/v1`: reviews of the current user, which are not stored.

use std::sync::Arc;

use super::BuiltinType;
use crate::registry::strategy::{Review, ReviewStrategy};

const GROUP: &str = "authentication.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![
        BuiltinType {
            strategy: || Arc::new(ReviewStrategy(Review::SelfSubject)),
            ..BuiltinType::review(GROUP, "selfsubjectreviews")
        },
        BuiltinType {
            strategy: || Arc::new(ReviewStrategy(Review::Token)),
            ..BuiltinType::review(GROUP, "tokenreviews")
        },
    ]
}
