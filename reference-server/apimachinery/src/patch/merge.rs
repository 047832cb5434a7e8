//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

use super::{PatchError, type_name};

/// Merges `patch` into `document`. Objects merge field by field, null removes a field, and any
/// other value replaces. Unlike in the RFC, objects in a new list lose their nulls, as in
/// kube-apiserver.
///
/// The RFC permits a patch that replaces the whole document with a scalar or list. Every resource
/// is an object, so such a patch is rejected as malformed.
pub fn apply(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed(format!(
            "error decoding patch: a merge patch is an object, not {}",
            type_name(patch)
        )));
    };
    let mut result = document.clone();
    merge(&mut result, patch);
    Ok(result)
}

fn merge(target: &mut Value, patch: &Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(object) = target else { return };
    for (name, value) in patch {
        match value {
            Value::Null => {
                object.remove(name);
            }
            Value::Object(patch) => merge(object.entry(name).or_insert(Value::Null), patch),
            other => {
                let mut new = other.clone();
                if object.get(name).is_none_or(|old| !old.is_object()) {
                    prune_nulls(&mut new);
                }
                object.insert(name.clone(), new);
            }
        }
    }
}

/// Removes the fields with null from each object in a value. Null stays an item of a list.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            for field in fields.values_mut() {
                prune_nulls(field);
            }
        }
        Value::Array(items) => {
            for item in items {
                prune_nulls(item);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    // The examples of RFC 7386, appendix A, with an object as the patch.
    #[rstest::rstest]
    #[case(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}))]
    #[case(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}))]
    #[case(json!({"a": "b"}), json!({"a": null}), json!({}))]
    #[case(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}))]
    #[case(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}))]
    #[case(json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]}))]
    #[case(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}))]
    #[case(json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]}))]
    #[case(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}))]
    #[case(json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"}))]
    #[case(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}))]
    // kube-apiserver also removes nulls in new lists.
    #[case(json!({"a": [1]}), json!({"a": [null, {"b": null}]}), json!({"a": [null, {}]}))]
    fn the_examples_of_the_rfc_hold(
        #[case] document: Value,
        #[case] patch: Value,
        #[case] expected: Value,
    ) {
        assert_eq!(apply(&document, &patch), Ok(expected));
    }

    #[rstest::rstest]
    #[case(json!(5))]
    #[case(json!([]))]
    #[case(json!(null))]
    #[case(json!(""))]
    fn a_patch_that_is_not_an_object_is_malformed(#[case] patch: Value) {
        assert_eq!(apply(&json!({}), &patch).map_err(|error| error.code()), Err(400));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(null)), (0..3).prop_map(Value::from), Just(json!(["x"]))];
        leaf.prop_recursive(3, 24, 3, |inner| {
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| map.into_iter().collect())
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_json_patch_crate(
            document in value(),
            patch in value().prop_filter("object", Value::is_object),
        ) {
            let mut expected = document.clone();
            json_patch::merge(&mut expected, &patch);
            prop_assert_eq!(apply(&document, &patch), Ok(expected));
        }
    }
}
