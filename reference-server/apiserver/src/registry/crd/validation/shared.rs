//! Fields that all versions share.
//!
//! kube-apiserver checks definitions in an internal form. A field that is the same in all versions
//! belongs to the definition there, and errors name it so: `spec.validation`, and not
//! `spec.versions[0].schema`.

use serde_json::{Map, Value};

/// The fields of a version, and their names in the specification of the internal form.
const FIELDS: [(&str, &str); 4] = [
    ("subresources", "subresources"),
    ("schema", "validation"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Returns the internal form of a specification.
pub(super) fn internal(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else { return spec };
    let mut versions = match fields.remove("versions") {
        Some(Value::Array(versions)) => versions,
        _ => Vec::new(),
    };
    for (name, shared) in FIELDS {
        if let Some(value) = move_out(&mut versions, name) {
            fields.insert(shared.to_owned(), value);
        }
    }
    if let Some(first) = versions.first() {
        fields.insert("version".to_owned(), first["name"].clone());
    }
    fields.insert("versions".to_owned(), Value::Array(versions));
    spec
}

/// Removes a field from the versions if it is the same in all of them.
fn move_out(versions: &mut [Value], name: &str) -> Option<Value> {
    let mut values = versions.iter().map(|version| given(version, name));
    let first = values.next()??.clone();
    if !values.all(|value| value == Some(&first)) {
        return None;
    }
    for version in versions.iter_mut().filter_map(Value::as_object_mut) {
        version.remove(name);
    }
    Some(first)
}

fn given<'v>(version: &'v Value, name: &str) -> Option<&'v Value> {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || (name == "schema" && value.as_object().is_some_and(Map::is_empty))
    };
    version.get(name).filter(|value| !is_empty(value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::one_version(
        json!([{"name": "v1", "schema": {"a": 1}, "selectableFields": []}]),
        json!({"version": "v1", "validation": {"a": 1},
               "versions": [{"name": "v1", "selectableFields": []}]}),
    )]
    #[case::same_in_two(
        json!([{"name": "v1", "subresources": {}}, {"name": "v2", "subresources": {}}]),
        json!({"version": "v1", "subresources": {}, "versions": [{"name": "v1"}, {"name": "v2"}]}),
    )]
    #[case::different_in_two(
        json!([{"name": "v1", "schema": {"a": 1}}, {"name": "v2", "schema": {"a": 2}}]),
        json!({"version": "v1", "versions": [
            {"name": "v1", "schema": {"a": 1}}, {"name": "v2", "schema": {"a": 2}},
        ]}),
    )]
    #[case::only_in_one(
        json!([{"name": "v1"}, {"name": "v2", "schema": {"a": 2}}]),
        json!({"version": "v1", "versions": [
            {"name": "v1"}, {"name": "v2", "schema": {"a": 2}},
        ]}),
    )]
    #[case::no_versions(json!([]), json!({"versions": []}))]
    fn equal_fields_move(#[case] versions: Value, #[case] expected: Value) {
        assert_eq!(internal(&json!({ "versions": versions })), expected);
    }
}
