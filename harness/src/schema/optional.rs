//! Optional and required, defaults, nullable, unions.

use serde_json::Value;

use super::fields::Field;
use super::model::TypeSchema;

/// Fields that admission sets, by the name suffix of their type.
const BY_ADMISSION: [(&str, &str); 6] = [
    (".core.v1.PodSpec", "serviceAccountName"),
    (".core.v1.PodSpec", "priority"),
    (".core.v1.PodSpec", "runtimeClassName"),
    (".core.v1.PodSpec", "tolerations"),
    (".core.v1.PersistentVolumeClaimSpec", "storageClassName"),
    (".networking.v1.IngressSpec", "ingressClassName"),
];

pub(super) fn nullable(field: &Field<'_>) -> Option<String> {
    (field.used["nullable"] == true)
        .then(|| "the field may be null, which clients cannot distinguish from unset".to_owned())
}

pub(super) fn defaults(field: &Field<'_>) -> Option<String> {
    let both = field.required && field.used.get("default").is_some();
    both.then(|| "the field is required and has a default".to_owned())
}

pub(super) fn union_members_optional(field: &Field<'_>) -> Option<String> {
    (is_member(field) && field.required).then(|| "a member of a union is required".to_owned())
}

pub(super) fn union_members_without_default(field: &Field<'_>) -> Option<String> {
    (is_member(field) && field.used.get("default").is_some())
        .then(|| "a member of a union has a default".to_owned())
}

pub(super) fn admission(ty: &TypeSchema, field: &Field<'_>) -> Option<String> {
    let filled =
        BY_ADMISSION.iter().any(|(name, member)| ty.name.ends_with(name) && field.path == *member);
    (filled && field.required)
        .then(|| "admission fills the field in, and it is required".to_owned())
}

/// Reports whether an object must have the member.
pub(super) fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

/// Reports whether the field is a member of a union.
fn is_member(field: &Field<'_>) -> bool {
    let choices = field.parent["oneOf"].as_array();
    choices.into_iter().flatten().any(|choice| {
        let required = choice["required"].as_array();
        required.is_some_and(|names| {
            names.len() == 1 && names[0] == field.name && !field.name.is_empty()
        })
    })
}
