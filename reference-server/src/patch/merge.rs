//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

use super::{PatchError, type_name};
use crate::faults::{Fault, Faults};

/// Merges `patch` into `document`: objects field by field, null removes, anything else replaces.
///
/// The RFC would let a patch that is no object replace the whole document. No resource is anything but an object, so
/// that is refused as malformed.
pub fn apply(document: &Value, patch: &Value, faults: Faults) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed(format!(
            "error decoding patch: a merge patch is an object, not {}",
            type_name(patch)
        )));
    };
    let mut result = document.clone();
    merge(&mut result, patch, faults);
    Ok(result)
}

fn merge(target: &mut Value, patch: &Map<String, Value>, faults: Faults) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(object) = target else { return };
    for (name, value) in patch {
        match value {
            Value::Null if !faults.on(Fault::MergePatchKeepsNull) => {
                object.remove(name);
            }
            Value::Object(patch) => merge(object.entry(name).or_insert(Value::Null), patch, faults),
            Value::Array(items) if faults.on(Fault::MergePatchAppendsLists) => {
                match object.get_mut(name).and_then(Value::as_array_mut) {
                    Some(list) => list.extend(items.iter().cloned()),
                    None => drop(object.insert(name.clone(), value.clone())),
                }
            }
            other => {
                object.insert(name.clone(), other.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    // The examples of RFC 7386, appendix A, whose patch is an object.
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
    fn merges_as_the_rfc_shows(#[case] document: Value, #[case] patch: Value, #[case] expected: Value) {
        assert_eq!(apply(&document, &patch, Faults::none()), Ok(expected));
    }

    #[rstest::rstest]
    #[case(json!(5))]
    #[case(json!([]))]
    #[case(json!(null))]
    #[case(json!(""))]
    fn a_patch_that_is_no_object_is_malformed(#[case] patch: Value) {
        assert_eq!(apply(&json!({}), &patch, Faults::none()).map_err(|error| error.code()), Err(400));
    }

    #[test]
    fn faults_bend_one_rule_each() {
        let (document, patch) = (json!({"a": 1, "l": [1]}), json!({"a": null, "l": [2]}));
        let with = |fault: Fault| apply(&document, &patch, fault.into());
        assert_eq!(with(Fault::MergePatchKeepsNull), Ok(json!({"a": null, "l": [2]})));
        assert_eq!(with(Fault::MergePatchAppendsLists), Ok(json!({"l": [1, 2]})));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(null)), (0..3).prop_map(Value::from), Just(json!(["x"]))];
        leaf.prop_recursive(3, 24, 3, |inner| {
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| map.into_iter().collect())
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_json_patch_crate(document in value(), patch in value().prop_filter("object", Value::is_object)) {
            let mut expected = document.clone();
            json_patch::merge(&mut expected, &patch);
            prop_assert_eq!(apply(&document, &patch, Faults::none()), Ok(expected));
        }
    }
}
