//! Examples of each directive, on a schema with each merge strategy.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::schema::{PatchStrategy, Schema};

fn object(fields: &[(&str, Schema)]) -> Schema {
    let properties =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone().into())).collect();
    Schema { properties, ..Schema::default() }
}

fn list(items: Schema, merge_key: Option<&'static str>, merge: bool) -> Schema {
    let patch_strategy = PatchStrategy { merge, ..PatchStrategy::default() };
    Schema {
        items: Some(items.into()),
        patch_merge_key: merge_key,
        patch_strategy,
        ..Schema::default()
    }
}

fn schema() -> Schema {
    let replace = PatchStrategy { replace: true, ..PatchStrategy::default() };
    let scalars = |merge| list(Schema::default(), None, merge);
    let env = list(Schema::default(), Some("name"), true);
    let container = object(&[("env", env), ("command", scalars(false))]);
    object(&[
        ("containers", list(container, Some("name"), true)),
        ("finalizers", scalars(true)),
        ("tolerations", list(Schema::default(), None, false)),
        ("keyless", list(Schema::default(), None, true)),
        ("selector", Schema { patch_strategy: replace, ..Schema::default() }),
    ])
}

fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    apply(document, patch, &schema())
}

#[rstest]
#[case::new_items_follow_the_patch(
    json!({
        "containers": [
            {"name": "c", "image": "1", "env": [{"name": "A", "value": "a"}]}, {"name": "c2"},
        ],
    }),
    json!({"containers": [{"name": "c", "image": "2", "env": [{"name": "B"}]}, {"name": "c3"}]}),
    json!({"containers": [
        {"name": "c", "image": "2", "env": [{"name": "B"}, {"name": "A", "value": "a"}]},
        {"name": "c3"}, {"name": "c2"},
    ]}),
)]
#[case::atomic_lists_are_replaced(
    json!({"tolerations": [{"key": "a"}], "containers": [{"name": "c", "command": ["a", "b"]}]}),
    json!({"tolerations": [{"key": "b"}], "containers": [{"name": "c", "command": ["z"]}]}),
    json!({"tolerations": [{"key": "b"}], "containers": [{"name": "c", "command": ["z"]}]}),
)]
#[case::unknown_lists_are_replaced(json!({"x": [1]}), json!({"x": [2]}), json!({"x": [2]}))]
#[case::scalars_form_a_set(
    json!({"finalizers": ["a", "b"]}),
    json!({"finalizers": ["c", "b"]}),
    json!({"finalizers": ["c", "a", "b"]})
)]
#[case::null_removes(
    json!({"a": 1, "m": {"x": 1, "y": 2}}),
    json!({"a": null, "m": {"x": null}}),
    json!({"m": {"y": 2}})
)]
#[case::other_types_are_replaced(
    json!({"a": {"b": 1}, "l": 5}),
    json!({"a": "x", "l": [1]}),
    json!({"a": "x", "l": [1]})
)]
#[case::a_new_object_has_no_nulls(
    json!({}),
    json!({"m": {"x": null, "y": 1}}),
    json!({"m": {"y": 1}})
)]
#[case::a_new_list_has_no_nulls(
    json!({}),
    json!({"tolerations": [{"key": "a", "value": null}]}),
    json!({"tolerations": [{"key": "a"}]})
)]
#[case::a_replaced_list_keeps_nulls(
    json!({"tolerations": []}),
    json!({"tolerations": [{"key": "a", "m": {"x": null}}]}),
    json!({"tolerations": [{"key": "a", "m": {"x": null}}]})
)]
#[case::a_new_item_keeps_nulls(
    json!({"containers": [{"name": "a", "image": "1"}]}),
    json!({"containers": [{"name": "a", "image": null}, {"name": "b", "image": null}]}),
    json!({"containers": [{"name": "a"}, {"name": "b", "image": null}]})
)]
#[case::an_object_is_replaced(
    json!({"selector": {"a": 1}, "m": {"a": 1}}),
    json!({"selector": {"b": {}}, "m": {"b": {}}}),
    json!({"selector": {"b": {}}, "m": {"a": 1, "b": {}}})
)]
fn lists_are_merged_by_their_strategy(
    #[case] document: Value,
    #[case] patch: Value,
    #[case] expected: Value,
) {
    assert_eq!(patched(&document, &patch), Ok(expected));
}

#[rstest]
#[case::delete_item(
    json!({"containers": [{"name": "a"}, {"name": "b"}]}),
    json!({"containers": [{"name": "a", "$patch": "delete"}]}),
    json!({"containers": [{"name": "b"}]}),
)]
#[case::delete_item_of_a_new_list(
    json!({}),
    json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b"}]}),
    json!({"containers": [{"name": "b"}]})
)]
#[case::delete_map(
    json!({"m": {"x": 1}, "n": 1}),
    json!({"m": {"$patch": "delete"}}),
    json!({"n": 1})
)]
#[case::replace_list(
    json!({"containers": [{"name": "a"}]}),
    json!({"containers": [{"name": "only"}, {"$patch": "replace"}]}),
    json!({"containers": [{"name": "only"}]}),
)]
#[case::replace_map(
    json!({"m": {"x": 1}}),
    json!({"m": {"z": {"$patch": "replace", "y": 1}, "$patch": "replace"}}),
    json!({"m": {"z": {"y": 1}}})
)]
#[case::merge_is_the_default(
    json!({"m": {"x": 1}}),
    json!({"m": {"$patch": "merge", "y": 1}}),
    json!({"m": {"x": 1, "y": 1}})
)]
#[case::delete_scalars(
    json!({"finalizers": ["a", "b"]}),
    json!({"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}),
    json!({"finalizers": ["c", "b"]}),
)]
#[case::delete_scalars_only(
    json!({"finalizers": ["a", "b"]}),
    json!({"$deleteFromPrimitiveList/finalizers": ["a", "x"]}),
    json!({"finalizers": ["b"]})
)]
#[case::order_scalars(
    json!({"finalizers": ["a", "b", "c"]}),
    json!({"finalizers": ["d"], "$setElementOrder/finalizers": ["d", "c", "a"]}),
    json!({"finalizers": ["d", "b", "c", "a"]}),
)]
#[case::order_items(
    json!({"containers": [{"name": "a"}, {"name": "b"}]}),
    json!({
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "containers": [{"name": "a", "image": "9"}],
    }),
    json!({"containers": [{"name": "b"}, {"name": "a", "image": "9"}]}),
)]
#[case::order_alone(
    json!({"finalizers": ["a", "b"]}),
    json!({"$setElementOrder/finalizers": ["b", "a"]}),
    json!({"finalizers": ["b", "a"]})
)]
#[case::retain_keys(
    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
    json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
    json!({"strategy": {"type": "Recreate"}}),
)]
#[case::directives_about_nothing(
    json!({}),
    json!({"$setElementOrder/containers": [], "$deleteFromPrimitiveList/finalizers": ["a"]}),
    json!({})
)]
fn directives_are_applied(#[case] document: Value, #[case] patch: Value, #[case] expected: Value) {
    assert_eq!(patched(&document, &patch), Ok(expected));
}

#[rstest]
#[case::no_object(json!([]))]
#[case::no_merge_key(json!({"containers": [{"image": "x"}]}))]
#[case::delete_without_key(json!({"containers": [{"$patch": "delete"}]}))]
#[case::unknown_directive(json!({"m": {"$patch": "bogus"}}))]
#[case::directive_no_string(json!({"m": {"$patch": 1}}))]
#[case::retains_less_than_it_sets(json!({"m": {"$retainKeys": ["a"], "b": 1}}))]
#[case::retain_keys_no_list(json!({"m": {"$retainKeys": "a"}}))]
#[case::order_no_list(json!({"$setElementOrder/containers": {}}))]
#[case::order_leaves_out_an_item(json!({
    "$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}],
}))]
#[case::mixed_items(json!({"containers": ["a"]}))]
#[case::keyless_objects(json!({"keyless": [{"a": 1}]}))]
fn invalid_patches_are_rejected(#[case] patch: Value) {
    let document = json!({"containers": [{"name": "a"}, {"name": "b"}], "keyless": [{}]});
    assert_eq!(patched(&document, &patch).map_err(|error| error.code()), Err(400));
}
