//! JSON patches whose operations have another effect, given the object that they apply to.

use serde_json::{Value, json};

use super::results::{JSON, is_patch, operations};
use crate::behaviours::Fault;
use crate::middleware::{Middleware, around};
use crate::patch;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::JsonPatchVersionTestsIgnored => operations(|operations| {
            operations.retain(|operation| {
                operation["op"] != "test" || operation["path"] != "/metadata/resourceVersion"
            });
        }),
        Fault::JsonPatchAddsParents => replaced(with_parents),
        Fault::JsonPatchClampsIndexes => replaced(clamped),
        _ => return None,
    })
}

/// Replaces each operation of a JSON patch by others, which depend on the object so far.
fn replaced(replacement: fn(&Value, &Value) -> Vec<Value>) -> Box<dyn Middleware> {
    around(move |mut request, next| {
        Box::pin(async move {
            if is_patch(&request, JSON)
                && let Some(Value::Array(operations)) = request.json()
                && let Some(mut object) = next.server.read(&request.path).await
            {
                let mut sent = Vec::new();
                for operation in &operations {
                    for operation in replacement(&object, operation) {
                        if let Some(patched) = patch::json_patch(&object, &json!([operation])) {
                            object = patched;
                        }
                        sent.push(operation);
                    }
                }
                if sent != operations {
                    request.set_json(&Value::Array(sent));
                }
            }
            next.send(request).await
        })
    })
}

/// Adds the missing objects on the path of an operation that adds.
fn with_parents(object: &Value, operation: &Value) -> Vec<Value> {
    let mut operations = vec![operation.clone()];
    let mut place = operation["path"].as_str().filter(|_| operation["op"] == "add");
    while let Some((parent, _)) = place.and_then(|place| place.rsplit_once('/')) {
        if object.pointer(parent).is_some() {
            break;
        }
        operations.insert(0, json!({ "op": "add", "path": parent, "value": {} }));
        place = Some(parent);
    }
    operations
}

/// Appends where an operation adds beyond the end of a list.
fn clamped(object: &Value, operation: &Value) -> Vec<Value> {
    let mut clamped = operation.clone();
    let place = operation["path"].as_str().filter(|_| operation["op"] == "add");
    if let Some((list, index)) = place.and_then(|place| place.rsplit_once('/'))
        && let Some(items) = object.pointer(list).and_then(Value::as_array)
        && index.parse::<usize>().is_ok_and(|index| index > items.len())
    {
        clamped["path"] = format!("{list}/-").into();
    }
    vec![clamped]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parents_are_added_from_the_outside() {
        let add = json!({ "op": "add", "path": "/a/b/c", "value": 1 });
        let paths: Vec<_> = with_parents(&json!({}), &add)
            .into_iter()
            .map(|operation| operation["path"].clone())
            .collect();
        assert_eq!(paths, ["/a", "/a/b", "/a/b/c"]);
        assert_eq!(with_parents(&json!({ "a": { "b": {} } }), &add), std::slice::from_ref(&add));
    }

    #[test]
    fn only_indexes_beyond_the_end_are_clamped() {
        let add = |path: &str| json!({ "op": "add", "path": path, "value": 1 });
        let object = json!({ "l": [1] });
        assert_eq!(clamped(&object, &add("/l/2")), [add("/l/-")]);
        assert_eq!(clamped(&object, &add("/l/1")), [add("/l/1")]);
    }
}
