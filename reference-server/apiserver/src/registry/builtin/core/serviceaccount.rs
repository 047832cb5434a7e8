//! `serviceaccounts`.

use std::sync::Arc;

use super::event::object_reference;
use super::pod::local_object_reference;
use crate::registry::builtin::{BuiltinType, CREATE_ONLY, Subresource};
use kubeproof_apimachinery::schema::build::{boolean, list, object};
use kubeproof_apimachinery::schema::meta::with_type_meta;

pub(super) fn service_accounts() -> BuiltinType {
    let schema = with_type_meta(object("io.k8s.api.core.v1.ServiceAccount"))
        .field("automountServiceAccountToken", boolean())
        .field("imagePullSecrets", list(local_object_reference()))
        .field("secrets", list(object_reference()).merge_by("name"));
    BuiltinType {
        subresources: &[Subresource {
            name: "token",
            verbs: CREATE_ONLY,
            group: "authentication.k8s.io",
            version: "v1",
            kind: "TokenRequest",
            part: None,
        }],
        ..BuiltinType::namespaced("", "v1", "ServiceAccount", "serviceaccounts", Arc::new(schema))
    }
}
