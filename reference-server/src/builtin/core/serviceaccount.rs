//! `serviceaccounts`.

use std::sync::Arc;

use serde_json::json;

use super::event::object_reference;
use super::pod::local_object_reference;
use crate::builtin::BuiltinType;
use crate::builtin::columns::{Cell, age, column, count};
use crate::schema::build::{boolean, list, object};
use crate::schema::meta::with_type_meta;

pub(super) fn service_accounts() -> BuiltinType {
    let schema = with_type_meta(object("io.k8s.api.core.v1.ServiceAccount"))
        .field("automountServiceAccountToken", boolean())
        .field("imagePullSecrets", list(local_object_reference()))
        .field("secrets", list(object_reference()).merge_by("name"));
    BuiltinType {
        short_names: &["sa"],
        columns: vec![
            column("Secrets", "integer", Cell::Computed(|account| json!(count(account, "/secrets")))),
            age(),
        ],
        ..BuiltinType::namespaced("", "v1", "ServiceAccount", "serviceaccounts", Arc::new(schema))
    }
}
