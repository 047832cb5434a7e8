use proptest::prelude::*;
use serde_json::json;

use super::*;

fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    apply(document, patch)
}

#[test]
fn each_operation_changes_the_document() {
    let patch = json!([
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "remove", "path": "/data/b"},
        {"op": "copy", "from": "/data/a", "path": "/data/d"},
        {"op": "move", "from": "/data/c", "path": "/data/x~1y~0"},
    ]);
    let result = patched(&json!({"data": {"a": "1", "b": "2"}}), &patch);
    assert_eq!(result, Ok(json!({"data": {"a": "9", "d": "9", "x/y~": "3"}})));
}

#[test]
fn an_absent_member_tests_equal_to_null() {
    let patch = json!([
        {"op": "test", "path": "/data/z", "value": null},
        {"op": "add", "path": "/data/z", "value": 1},
    ]);
    assert_eq!(patched(&json!({"data": {}}), &patch), Ok(json!({"data": {"z": 1}})));
}

#[test]
fn a_dash_appends_and_an_index_inserts() {
    let patch = json!([
        {"op": "add", "path": "/env/-", "value": "z"},
        {"op": "add", "path": "/env/0", "value": "f"},
        {"op": "add", "path": "/env/3", "value": "end"},
    ]);
    assert_eq!(patched(&json!({"env": ["a"]}), &patch), Ok(json!({"env": ["f", "a", "z", "end"]})));
}

#[rstest::rstest]
#[case::no_list(json!({"op": "add"}), 400)]
#[case::null(json!(null), 400)]
#[case::scalar_operation(json!([5]), 400)]
#[case::path_no_string(json!([{"op": "remove", "path": 1}]), 400)]
#[case::null_operation(json!([null]), 422)]
#[case::unknown_operation(json!([{"op": "frobnicate", "path": "/a"}]), 422)]
#[case::no_operation(json!([{"path": "/a", "value": 1}]), 422)]
#[case::no_path(json!([{"op": "add", "value": 1}]), 422)]
#[case::no_value(json!([{"op": "add", "path": "/a"}]), 422)]
#[case::no_slash(json!([{"op": "add", "path": "a", "value": 1}]), 422)]
#[case::test_differs(json!([{"op": "test", "path": "/a", "value": 2}]), 422)]
#[case::test_missing(json!([{"op": "test", "path": "/z", "value": 1}]), 422)]
#[case::test_below_missing(json!([{"op": "test", "path": "/z/y", "value": null}]), 422)]
#[case::remove_missing(json!([{"op": "remove", "path": "/z"}]), 422)]
#[case::replace_missing(json!([{"op": "replace", "path": "/z", "value": 1}]), 422)]
#[case::copy_missing(json!([{"op": "copy", "from": "/z", "path": "/y"}]), 422)]
#[case::parent_missing(json!([{"op": "add", "path": "/z/y", "value": 1}]), 422)]
#[case::beyond_the_end(json!([{"op": "add", "path": "/l/2", "value": 1}]), 422)]
#[case::leading_zero(json!([{"op": "replace", "path": "/l/00", "value": 1}]), 422)]
#[case::dash_is_no_element(json!([{"op": "replace", "path": "/l/-", "value": 1}]), 422)]
#[case::into_itself(json!([{"op": "move", "from": "/o", "path": "/o/p"}]), 422)]
fn invalid_operations_are_rejected(#[case] patch: Value, #[case] code: u16) {
    let document = json!({"a": 1, "l": [0], "o": {}});
    assert_eq!(patched(&document, &patch).map_err(|error| error.code()), Err(code));
}

#[test]
fn test_compares_numbers_by_value() {
    let document = json!({"a": [1.0, {"b": 2}]});
    let patch = json!([{"op": "test", "path": "/a", "value": [1, {"b": 2.0}]}]);
    assert_eq!(patched(&document, &patch), Ok(document));
}

#[test]
fn work_is_bounded() {
    let test = json!({"op": "test", "path": "/a", "value": 1});
    let many = |n: usize| Value::Array(vec![test.clone(); n]);
    assert!(patched(&json!({"a": 1}), &many(MAX_OPERATIONS)).is_ok());
    assert_eq!(
        patched(&json!({"a": 1}), &many(MAX_OPERATIONS + 1)).map_err(|e| e.code()),
        Err(413)
    );

    let double =
        (0..60).map(|n| json!({"op": "copy", "from": "", "path": format!("/{n}")})).collect();
    assert_eq!(patched(&json!({"a": "x".repeat(100)}), &double).map_err(|e| e.code()), Err(413));
    let long = json!({"l": vec![0; MAX_MOVED / 50], "m": []});
    let at_front = |n| (0..n).map(|_| json!({"op": "add", "path": "/l/0", "value": 0})).collect();
    assert!(patched(&long, &at_front(49)).is_ok());
    assert_eq!(patched(&long, &at_front(51)).map_err(|e| e.code()), Err(413));
    let from_front =
        (0..51).map(|_| json!({"op": "move", "from": "/l/0", "path": "/m/-"})).collect();
    assert_eq!(patched(&long, &from_front).map_err(|e| e.code()), Err(413));
    let deeper =
        (0..MAX_DEPTH).map(|n| json!({"op": "add", "path": "/a".repeat(n + 1), "value": {}}));
    assert_eq!(patched(&json!({}), &deeper.collect()).map_err(|e| e.code()), Err(422));
}

#[rstest::rstest]
#[case::other_number(json!([1, 2]), json!([1, 2.5]))]
#[case::neighbouring_numbers(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64))]
#[case::other_item(json!(["a"]), json!(["b"]))]
#[case::one_item_more(json!(["a"]), json!(["a", "b"]))]
#[case::other_member(json!({"a": 1}), json!({"a": 2}))]
#[case::one_member_more(json!({"a": 1}), json!({"a": 1, "b": 2}))]
#[case::other_type(json!({}), json!([]))]
fn test_distinguishes_values(#[case] one: Value, #[case] other: Value) {
    for (document, value) in [(&one, &other), (&other, &one)] {
        let patch = json!([{"op": "test", "path": "", "value": value}]);
        assert_eq!(patched(document, &patch).map_err(|error| error.code()), Err(422));
    }
}

#[test]
fn moving_a_value_onto_itself_is_a_no_op_and_into_itself_an_error() {
    let document = json!({"a": [1]});
    assert_eq!(
        patched(&document, &json!([{"op": "move", "from": "", "path": ""}])),
        Ok(document.clone())
    );
    let error =
        patched(&document, &json!([{"op": "move", "from": "/a", "path": "/a/0"}])).unwrap_err();
    assert_eq!(error.to_string(), "operation 0 (move): a value cannot be moved into itself");
}

#[rstest::rstest]
#[case("add")]
#[case("replace")]
fn the_limit_on_depth_is_exact(#[case] op: &str) {
    let nest = |depth: usize| (0..depth).fold(json!(0), |inner, _| json!([inner]));
    let put =
        |depth| patched(&json!({"a": 0}), &json!([{"op": op, "path": "/a", "value": nest(depth)}]));
    assert!(put(MAX_DEPTH - 1).is_ok());
    for depth in [MAX_DEPTH, MAX_DEPTH + 1] {
        assert_eq!(put(depth).map_err(|error| error.code()), Err(422));
    }
}

#[test]
fn the_limit_on_copies_is_exact() {
    let copied = |bytes: usize| {
        let document = json!({"a": "x".repeat(bytes - 2)});
        patched(&document, &json!([{"op": "copy", "from": "/a", "path": "/b"}]))
            .map_err(|error| error.code())
    };
    assert!(copied(3_145_728).is_ok());
    assert_eq!(copied(3_145_729), Err(413));
}

/// Inserting after the last item shifts nothing.
#[test]
fn the_limit_on_moves_is_exact() {
    let mut target =
        Target { document: json!({"l": [0, 1, 2, 3]}), copied: 0, moved: MAX_MOVED - 3 };
    let at = |place: &str| Pointer::parse(place).unwrap();
    assert!(target.add(&at("/l/-"), json!(4)).is_ok() && target.moved == MAX_MOVED - 3);
    assert!(target.add(&at("/l/4"), json!(5)).is_ok() && target.moved == MAX_MOVED - 2);
    assert!(target.remove(&at("/l/4")).is_ok_and(|item| item == 5) && target.moved == MAX_MOVED);
    assert!(matches!(target.remove(&at("/l/4")), Err(Failure::MovesTooMuch)));
    target.moved = MAX_MOVED - 2;
    assert!(target.add(&at("/l/3"), json!(6)).is_ok() && target.moved == MAX_MOVED);
    assert!(matches!(target.add(&at("/l/4"), json!(7)), Err(Failure::MovesTooMuch)));
    target.moved = MAX_MOVED - 1;
    assert!(matches!(target.remove(&at("/l/0")), Err(Failure::MovesTooMuch)));
}

/// Small documents with few names, so that paths often match.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-c]|[0-2]|-|01", 1..4)
        .prop_map(|steps| format!("/{}", steps.join("/")))
}

fn operation() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (name, path(), path(), document())
        .prop_map(
            |(op, from, path, value)| json!({"op": op, "from": from, "path": path, "value": value}),
        )
        // The reference crate moves a value onto itself and into itself. The RFC makes the
        // first a no-op and forbids the second.
        .prop_filter("moves stay apart", |op| {
            let at = |name: &str| op[name].as_str().unwrap_or_default().to_owned();
            op["op"] != "move" || !at("path").starts_with(&at("from"))
        })
        // The reference crate does not treat an absent member as null.
        .prop_filter("tests look for something", |op| op["op"] != "test" || !op["value"].is_null())
}

proptest! {
    #[test]
    fn agrees_with_the_json_patch_crate(
        document in document(),
        ops in prop::collection::vec(operation(), 0..4),
    ) {
        let patch = Value::Array(ops);
        let mut expected = document.clone();
        let parsed: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
        // The state after a failed patch does not matter. The safe variant panics on indexes
        // like 01 when it rolls back.
        match (json_patch::patch_unsafe(&mut expected, &parsed), apply(&document, &patch)) {
            (Ok(()), Ok(actual)) => prop_assert_eq!(actual, expected),
            (Err(_), Err(_)) => {}
            (theirs, ours) => prop_assert!(false, "theirs {theirs:?}, ours {ours:?}"),
        }
    }
}
