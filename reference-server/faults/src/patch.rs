//! JSON merge patch (RFC 7386), JSON patch (RFC 6902) and overlays, for faults that compute an
//! object themselves.

use serde_json::{Map, Value};

/// Applies a merge patch.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Replaces values by those of another document, which keeps its nulls.
pub(crate) fn overlay(target: &mut Value, other: &Value) {
    match (target, other) {
        (Value::Object(target), Value::Object(other)) => {
            for (name, value) in other {
                overlay(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, other) => *target = other.clone(),
    }
}

/// Applies a JSON patch. Returns `None` if an operation fails.
pub(crate) fn json_patch(target: &Value, operations: &Value) -> Option<Value> {
    let mut result = target.clone();
    for operation in operations.as_array()? {
        let path = operation["path"].as_str()?;
        match operation["op"].as_str()? {
            "add" => add(&mut result, path, operation.get("value")?.clone())?,
            "remove" => drop(remove(&mut result, path)?),
            "replace" => *result.pointer_mut(path)? = operation.get("value")?.clone(),
            "move" => {
                let moved = remove(&mut result, operation["from"].as_str()?)?;
                add(&mut result, path, moved)?;
            }
            "copy" => {
                let copied = result.pointer(operation["from"].as_str()?)?.clone();
                add(&mut result, path, copied)?;
            }
            "test" if result.pointer(path) == operation.get("value") => {}
            _ => return None,
        }
    }
    Some(result)
}

/// Sets the value at a JSON pointer, or removes it. Missing objects on the way are created.
pub(crate) fn set(target: &mut Value, pointer: &str, value: Option<Value>) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    let name = unescape(name);
    if target.pointer(parent).is_none() {
        match value {
            Some(_) => set(target, parent, Some(Value::Object(Map::new()))),
            None => return,
        }
    }
    let Some(fields) = target.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
    match value {
        Some(value) => drop(fields.insert(name, value)),
        None => drop(fields.remove(&name)),
    }
}

fn add(target: &mut Value, path: &str, value: Value) -> Option<()> {
    let Some((parent, name)) = path.rsplit_once('/') else {
        *target = value;
        return Some(());
    };
    match target.pointer_mut(parent)? {
        Value::Object(fields) => drop(fields.insert(unescape(name), value)),
        Value::Array(items) if name == "-" => items.push(value),
        Value::Array(items) => {
            let index = name.parse().ok().filter(|index| *index <= items.len())?;
            items.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(target: &mut Value, path: &str) -> Option<Value> {
    let (parent, name) = path.rsplit_once('/')?;
    match target.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(&unescape(name)),
        Value::Array(items) => {
            let index = name.parse().ok().filter(|index| *index < items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_sets_and_removes_members() {
        let mut target = json!({ "a": 1, "b": { "c": 2, "d": [3] } });
        merge(&mut target, &json!({ "a": null, "b": { "d": [4] }, "e": { "f": null } }));
        assert_eq!(target, json!({ "b": { "c": 2, "d": [4] }, "e": {} }));
    }

    #[test]
    fn an_overlay_keeps_nulls() {
        let mut target = json!({ "a": 1, "b": { "c": 2 } });
        overlay(&mut target, &json!({ "a": null, "b": { "d": [3] } }));
        assert_eq!(target, json!({ "a": null, "b": { "c": 2, "d": [3] } }));
    }

    #[rstest]
    #[case(
        json!([{ "op": "add", "path": "/a/x~1y", "value": 1 }]),
        Some(json!({ "a": { "x/y": 1 }, "l": [1, 2] }))
    )]
    #[case(
        json!([{ "op": "add", "path": "/l/0", "value": 0 }]),
        Some(json!({ "a": {}, "l": [0, 1, 2] }))
    )]
    #[case(json!([{ "op": "remove", "path": "/l/1" }]), Some(json!({ "a": {}, "l": [1] })))]
    #[case(
        json!([{ "op": "move", "from": "/l", "path": "/a/l" }]),
        Some(json!({ "a": { "l": [1, 2] } }))
    )]
    #[case(json!([{ "op": "replace", "path": "/none", "value": 0 }]), None)]
    #[case(json!([{ "op": "test", "path": "/l/0", "value": 2 }]), None)]
    fn operations_apply_in_order(#[case] operations: Value, #[case] expected: Option<Value>) {
        assert_eq!(json_patch(&json!({ "a": {}, "l": [1, 2] }), &operations), expected);
    }

    #[test]
    fn a_pointer_is_set_through_missing_objects() {
        let mut target = json!({});
        set(&mut target, "/a/b~1c", Some(json!(1)));
        assert_eq!(target, json!({ "a": { "b/c": 1 } }));
        set(&mut target, "/a/b~1c", None);
        assert_eq!(target, json!({ "a": {} }));
    }
}
