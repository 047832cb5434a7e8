//! Patches that lead from one object to another.

use serde_json::{Map, Value, json};

use super::schema::{Schema, escaped};

/// Returns the merge patch. `None` if a new value has null, which no merge patch can express.
pub(super) fn merge(from: &Value, to: &Value) -> Option<Value> {
    match (from, to) {
        (Value::Object(old), Value::Object(new)) => {
            members(old, new, |_, [old, new]| merge(old, new))
        }
        // An object replaces another type member by member.
        (_, Value::Object(_)) if has_null_member(to) => None,
        (_, Value::Null) => None,
        _ => Some(to.clone()),
    }
}

/// Returns a patch that removes the members without a new value. `change` patches those that differ
/// from their old value, which may be null.
fn members(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    change: impl Fn(&str, [&Value; 2]) -> Option<Value>,
) -> Option<Value> {
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    let removed = removed.map(|name| Some((name.clone(), Value::Null)));
    let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let changed = changed.map(|(name, value)| {
        let before = old.get(name).unwrap_or(&Value::Null);
        Some((name.clone(), change(name, [before, value])?))
    });
    removed.chain(changed).collect()
}

fn has_null_member(value: &Value) -> bool {
    let members = value.as_object().into_iter().flatten();
    members.into_iter().any(|(_, member)| member.is_null() || has_null_member(member))
}

/// Returns the strategic merge patch. Lists with a merge key are merged item by item.
pub(super) fn strategic(schema: &Schema, from: &Value, to: &Value) -> Option<Value> {
    // Without a schema, the merge keys are unknown.
    schema.root()["properties"].as_object()?;
    strategic_below(schema, schema.root(), from, to)
}

fn strategic_below(schema: &Schema, node: &Value, from: &Value, to: &Value) -> Option<Value> {
    let node = schema.resolve(node);
    match (from, to) {
        (Value::Object(old), Value::Object(new)) => members(old, new, |name, change| {
            let declared = &node["properties"][name];
            let merges = strategy(declared).contains("merge");
            match declared["x-kubernetes-patch-merge-key"].as_str() {
                Some(key) if merges => keyed(schema, declared, change, key),
                // A patch of a list of texts only adds.
                _ if merges => None,
                _ => {
                    let member = schema.member(node, name).unwrap_or(&Value::Null);
                    strategic_below(schema, member, change[0], change[1])
                }
            }
        }),
        (_, Value::Object(_)) if has_null_member(to) => None,
        (_, Value::Null) => None,
        _ => Some(to.clone()),
    }
}

fn strategy(declared: &Value) -> &str {
    declared["x-kubernetes-patch-strategy"].as_str().unwrap_or_default()
}

/// Returns the patch of a list with a merge key: removed items, then new and changed ones.
fn keyed(schema: &Schema, declared: &Value, [old, new]: [&Value; 2], key: &str) -> Option<Value> {
    let (old, new) = (items(old), items(new));
    let with_key =
        |all: &'_ [Value], item: &Value| all.iter().find(|other| other[key] == item[key]).cloned();
    let removed = old.iter().filter(|item| with_key(new, item).is_none());
    let removed = removed.map(|item| json!({"$patch": "delete", key: item[key]}));
    let mut patch: Vec<Value> = removed.collect();
    for item in new.iter().filter(|item| !old.contains(item)) {
        patch.push(match with_key(old, item) {
            Some(before) => {
                let node = &schema.resolve(declared)["items"];
                let mut change = strategic_below(schema, node, &before, item)?;
                change[key] = item[key].clone();
                change
            }
            None => item.clone(),
        });
    }
    Some(Value::Array(patch))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the JSON patch. It tests the values that it removes.
pub(super) fn json_patch(from: &Value, to: &Value) -> Value {
    let mut operations = Vec::new();
    operations_below(from, to, "", &mut operations);
    Value::Array(operations)
}

fn operations_below(from: &Value, to: &Value, at: &str, all: &mut Vec<Value>) {
    match (from, to) {
        (Value::Object(old), Value::Object(new)) => {
            let mut gone: Vec<&String> = old.keys().filter(|k| !new.contains_key(*k)).collect();
            for (name, value) in new {
                let path = format!("{at}/{}", escaped(name));
                match old.get(name) {
                    Some(before) if before == value => {}
                    Some(before) => operations_below(before, value, &path, all),
                    None => {
                        let source = gone.iter().position(|other| old[*other] == *value);
                        all.push(match source.map(|source| gone.remove(source)) {
                            Some(source) => {
                                let from = format!("{at}/{}", escaped(source));
                                json!({"op": "move", "from": from, "path": path})
                            }
                            None => json!({"op": "add", "path": path, "value": value}),
                        });
                    }
                }
            }
            for name in gone {
                let path = format!("{at}/{}", escaped(name));
                if is_comparable(&old[name]) {
                    all.push(json!({"op": "test", "path": path, "value": old[name]}));
                }
                all.push(json!({"op": "remove", "path": path}));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
            for _ in same..old.len() {
                all.push(json!({"op": "remove", "path": format!("{at}/{same}")}));
            }
            for item in &new[same..] {
                all.push(json!({"op": "add", "path": format!("{at}/-"), "value": item}));
            }
        }
        _ if from == to => {}
        _ => all.push(json!({"op": "replace", "path": at, "value": to})),
    }
}

/// kube-apiserver compares the escaped text of strings in a test, so it finds other texts unequal.
/// The request panics when both sides have a null inside.
fn is_comparable(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => is_unescaped(text),
        Value::Array(items) => items.iter().all(is_comparable),
        Value::Object(members) => {
            members.iter().all(|(name, member)| is_unescaped(name) && is_comparable(member))
        }
        Value::Bool(_) | Value::Number(_) => true,
    }
}

fn is_unescaped(text: &str) -> bool {
    !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}'])
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null})))]
    #[case(json!({"a": {"x": 1}}), json!({"a": {"y": [1]}}),
        Some(json!({"a": {"x": null, "y": [1]}})))]
    #[case(json!({"a": 1}), json!({"a": null}), None)]
    fn a_merge_patch_has_only_the_changes(
        #[case] from: Value,
        #[case] to: Value,
        #[case] expected: Option<Value>,
    ) {
        assert_eq!(merge(&from, &to), expected);
    }

    #[test]
    fn a_json_patch_moves_tests_and_appends() {
        let (from, to) = (json!({"a": "x", "l": [1, 2], "z": 0}), json!({"b": "x", "l": [1, 3]}));
        let expected = json!([
            {"op": "move", "from": "/a", "path": "/b"},
            {"op": "remove", "path": "/l/1"},
            {"op": "add", "path": "/l/-", "value": 3},
            {"op": "test", "path": "/z", "value": 0},
            {"op": "remove", "path": "/z"},
        ]);
        assert_eq!(json_patch(&from, &to), expected);
    }

    #[rstest]
    #[case(json!("a < b"))]
    #[case(json!({"a&b": 1}))]
    #[case(json!([{"a": null}]))]
    fn a_json_patch_tests_no_value_that_kube_apiserver_cannot_compare(#[case] value: Value) {
        let patch = json_patch(&json!({"a": value}), &json!({}));
        assert_eq!(patch, json!([{"op": "remove", "path": "/a"}]));
    }

    #[test]
    fn a_strategic_patch_merges_items_by_key() {
        let list = json!({
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
            "type": "array", "items": {"type": "object"},
        });
        let schema = Schema::complete(json!({"properties": {"env": list}}));
        let from = json!({"env": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]});
        let to = json!({"env": [{"name": "b"}, {"name": "c", "value": "3"}]});
        let expected = json!({"env": [
            {"$patch": "delete", "name": "a"},
            {"name": "b", "value": null},
            {"name": "c", "value": "3"},
        ]});
        assert_eq!(strategic(&schema, &from, &to), Some(expected));
    }
}
