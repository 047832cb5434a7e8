//! The group `coordination.k8s.io/v1`: leases.

use serde_json::Value;

use super::data::resource;
use super::{BuiltinType, Hooks};
use kubeproof_apimachinery::table::column::{Cell, age, column};

use kubeproof_apimachinery::schema::FieldError;

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
        allows_create_on_update: true,
        allows_unconditional_update: false,
        columns: vec![column("Holder", "string", Cell::Pointer("/spec/holderIdentity")), age()],
        hooks: Hooks { validate, is_new_generation: |_, _| false, ..Hooks::NONE },
        has_generation: false,
        ..resource("coordination.k8s.io", "v1", "leases")
    }]
}

fn validate(lease: &Value) -> Vec<FieldError> {
    let spec = &lease["spec"];
    let mut errors = Vec::new();
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        let value = &spec["leaseDurationSeconds"];
        errors.push(FieldError::invalid(
            "spec.leaseDurationSeconds",
            value,
            "must be greater than 0",
        ));
    }
    if spec["preferredHolder"].is_string()
        && spec["strategy"].as_str().unwrap_or_default().is_empty()
    {
        let why = "can only be specified when `strategy` is defined";
        errors.push(FieldError::forbidden("spec.preferredHolder", why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_have_microseconds_and_become_utc() {
        let leases = &types()[0];
        let lease = |time: &str| json!({"spec": {"renewTime": time}});
        assert!(leases.schema().check_types(&lease("2024-01-02T03:04:05Z")).is_err());
        let mut body = lease("2024-01-02T03:04:05.000000+02:00");
        leases.schema().check_types(&body).unwrap();
        leases.schema().prune(&mut body);
        assert_eq!(body, lease("2024-01-02T01:04:05.000000Z"));
    }

    #[test]
    fn a_lease_lasts() {
        let errors = validate(&json!({"spec": {"leaseDurationSeconds": 0}}));
        assert_eq!(errors[0].field, "spec.leaseDurationSeconds");
    }
}
