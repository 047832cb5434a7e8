//! `configmaps`: keys with texts or bytes, which can be immutable.

use serde_json::{Value, json};

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, Hooks};
use kubeproof_apimachinery::object::validation::names::config_key;
use kubeproof_apimachinery::table::column::{Cell, age, column, count};

use kubeproof_apimachinery::schema::FieldError;

/// The most bytes of all values in one object.
const DATA_LIMIT: usize = 1024 * 1024;

pub(super) fn configmaps() -> BuiltinType {
    BuiltinType {
        columns: vec![column("Data", "string", Cell::Computed(entries)), age()],
        hooks: Hooks { validate, validate_update, checks_prefix: true, ..Hooks::NONE },
        ..resource("", "v1", "configmaps")
    }
}

fn entries(object: &Value) -> Value {
    json!(count(object, "/data") + count(object, "/binaryData"))
}

fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in object.get(field).and_then(Value::as_object).into_iter().flatten() {
            let place = format!("{field}[{key}]");
            errors.extend(
                config_key(key).iter().map(|why| FieldError::invalid(&place, &json!(key), why)),
            );
            if field == "data" && object["binaryData"].get(key).is_some() {
                errors.push(FieldError::invalid(
                    &place,
                    &json!(key),
                    "duplicate of key present in binaryData",
                ));
            }
            let length = value.as_str().map_or(0, str::len);
            size += if field == "data" { length } else { length / 4 * 3 };
        }
    }
    if size > DATA_LIMIT {
        errors.push(FieldError::too_long("[]", DATA_LIMIT as u64));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    sealed(new, old, &["data", "binaryData"])
}

/// Returns an error for each change of an immutable object: `immutable` and the fields must stay.
pub(super) fn sealed(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    if old.get("immutable") != Some(&json!(true)) {
        return Vec::new();
    }
    let unset = (new.get("immutable") != Some(&json!(true))).then_some("immutable");
    let changed = fields.iter().copied().filter(|field| new.get(field) != old.get(field));
    let why = "field is immutable when `immutable` is set";
    unset.into_iter().chain(changed).map(|field| FieldError::forbidden(field, why)).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"data": {"a/b": "x"}}), "data[a/b]")]
    #[case(json!({"data": {"..": "x"}}), "data[..]")]
    #[case(json!({"data": {"a": "x"}, "binaryData": {"a": "eA=="}}), "data[a]")]
    #[case(json!({"data": {"a": "x".repeat(DATA_LIMIT + 1)}}), "[]")]
    fn bad_keys_are_named(#[case] object: Value, #[case] field: &str) {
        let errors = validate(&object);
        assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), [field]);
    }

    #[rstest]
    #[case(json!({"data": {"a": "2"}, "immutable": true}), &["data"])]
    #[case(json!({"data": {"a": "1"}}), &["immutable"])]
    #[case(json!({"data": {"a": "1"}, "immutable": true, "metadata": {"labels": {"x": "y"}}}), &[])]
    fn a_sealed_object_keeps_its_data(#[case] new: Value, #[case] expected: &[&str]) {
        let old = json!({"data": {"a": "1"}, "immutable": true});
        let fields: Vec<_> = validate_update(&new, &old).into_iter().map(|e| e.field).collect();
        assert_eq!(fields, expected);
    }
}
