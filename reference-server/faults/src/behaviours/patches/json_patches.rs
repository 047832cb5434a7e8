//! JSON patches: wrong effects of operations, and wrong pointers.

use http::StatusCode;
use serde_json::{Value, json};

use super::media_types::{JSON, is_patch};
use crate::behaviours::Fault;
use crate::behaviours::support::objects::is_deleting;
use crate::behaviours::support::requests::STRATEGIC_PATCH;
use crate::behaviours::support::server::wait_for_a_change;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};
use crate::patch;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::JsonPatchTestIgnored => operations(|operations| {
            operations.retain(|operation| operation["op"] != "test");
        }),
        Fault::JsonPatchTestsCompareScalarsOnly => operations(|operations| {
            operations.retain(|operation| {
                let value = &operation["value"];
                operation["op"] != "test" || !(value.is_object() || value.is_array())
            });
        }),
        Fault::JsonPatchVersionTestsIgnored => operations(|operations| {
            operations.retain(|operation| {
                operation["op"] != "test" || operation["path"] != "/metadata/resourceVersion"
            });
        }),
        Fault::JsonPatchMoveCopies => operations(|operations| {
            for operation in operations.iter_mut().filter(|operation| operation["op"] == "move") {
                operation["op"] = "copy".into();
            }
        }),
        Fault::JsonPatchDashPrepends => operations(|operations| {
            for operation in operations.iter_mut().filter(|operation| operation["op"] == "add") {
                let list = operation["path"].as_str().and_then(|path| path.strip_suffix("/-"));
                if let Some(first) = list.map(|list| format!("{list}/0")) {
                    operation["path"] = first.into();
                }
            }
        }),
        Fault::JsonPatchVersionIgnored => operations(|operations| {
            operations.retain(|operation| operation["path"] != "/metadata/resourceVersion");
        }),
        Fault::JsonPointersDecodedInWrongOrder => pointers(|text| text.replace("~01", "~1")),
        Fault::JsonPointerTildesKept => pointers(|text| text.replace("~0", "~00")),
        Fault::JsonPatchTestsCompareTexts => around(|mut request, next| {
            Box::pin(async move {
                if is_patch(&request, JSON)
                    && let Some(current) = next.server.read(&request.path).await
                {
                    request.edit_json(|patch| equal_as_texts(patch, &current));
                }
                next.send(request).await
            })
        }),
        Fault::PatchesReleaseNothing => {
            around(|request, next| Box::pin(release_nothing(request, next)))
        }
        Fault::JsonPatchTestsBeforeTheWrite => {
            around(|request, next| Box::pin(test_first(request, next)))
        }
        Fault::JsonPatchNotAtomic => not_atomic(),
        Fault::JsonPatchAddsParents => replaced(with_parents),
        Fault::JsonPatchRemovesMissing => replaced(without_missing),
        Fault::JsonPatchClampsIndexes => replaced(clamped),
        _ => return None,
    })
}

/// Sends the tests of a patch alone, and the rest when other clients had time to write.
async fn test_first(mut request: Request, next: Next<'_>) -> Response {
    let operations = request.json().unwrap_or_default();
    let (tests, rest): (Vec<_>, Vec<_>) = (operations.as_array().into_iter().flatten().cloned())
        .partition(|operation| operation["op"] == "test");
    if !is_patch(&request, JSON) || tests.is_empty() || rest.is_empty() {
        return next.send(request).await;
    }
    let mut checked = request.clone();
    checked.set_json(&tests.into());
    let response = next.send(checked).await;
    if response.status != StatusCode::OK {
        return response;
    }
    wait_for_a_change(&request, next).await;
    request.set_json(&rest.into());
    next.send(request).await
}

/// Lets tests expect the current value where it has the same text.
fn equal_as_texts(patch: &mut Value, current: &Value) {
    let text = |value: &Value| match value {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    };
    for operation in patch.as_array_mut().into_iter().flatten() {
        let value = operation["path"].as_str().and_then(|path| current.pointer(path));
        if let Some(value) = value.filter(|value| !value.is_object() && !value.is_array())
            && operation["op"] == "test"
            && text(value) == text(&operation["value"])
        {
            operation["value"] = value.clone();
        }
    }
}

/// Edits the operations of JSON patches.
fn operations(edit: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_patch(request, JSON) {
            request.edit_json(|patch| {
                if let Some(operations) = patch.as_array_mut() {
                    edit(operations);
                }
            });
        }
    })
}

/// Edits the pointers of JSON patches.
fn pointers(edit: fn(&str) -> String) -> Box<dyn Middleware> {
    operations(move |operations| {
        for operation in operations {
            for field in ["path", "from"] {
                if let Some(text) = operation[field].as_str() {
                    operation[field] = edit(text).into();
                }
            }
        }
    })
}

/// Stores what the operations before a failed one did.
fn not_atomic() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if !is_patch(&request, JSON) || !response.status.is_client_error() {
                return response;
            }
            let Some(Value::Array(mut operations)) = request.json() else { return response };
            while operations.pop().is_some() && !operations.is_empty() {
                let mut shorter = request.clone();
                shorter.set_json(&Value::Array(operations.clone()));
                if next.send(shorter).await.status.is_success() {
                    break;
                }
            }
            response
        })
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

/// Leaves out the removal of a member that does not exist.
fn without_missing(object: &Value, operation: &Value) -> Vec<Value> {
    let place = operation["path"].as_str().filter(|_| operation["op"] == "remove");
    if place.is_some_and(|place| object.pointer(place).is_none()) {
        Vec::new()
    } else {
        vec![operation.clone()]
    }
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

/// Tries JSON patches and strategic merge patches of objects that are being deleted.
async fn release_nothing(mut request: Request, next: Next<'_>) -> Response {
    let is_strategic = request.media_type() == STRATEGIC_PATCH;
    if (is_strategic || is_patch(&request, JSON))
        && next.server.read(&request.path).await.is_some_and(|object| is_deleting(&object))
    {
        request.edit_query(|query| query.set("dryRun", "All"));
    }
    next.send(request).await
}

#[cfg(test)]
mod tests {
    use http::Method;
    use rstest::rstest;

    use super::*;
    use crate::exchange::Request;

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

    #[rstest]
    #[case(Fault::JsonPointersDecodedInWrongOrder, "/a~01b", "/a~1b")]
    #[case(Fault::JsonPointerTildesKept, "/a~0b", "/a~00b")]
    #[case(Fault::JsonPointerTildesKept, "/a~1b", "/a~1b")]
    #[tokio::test]
    async fn pointers_are_edited(#[case] fault: Fault, #[case] path: &str, #[case] expected: &str) {
        let patch = json!([{ "op": "remove", "path": path }]);
        let request = Request::new(Method::PATCH, "/api/v1/namespaces/a/configmaps/c")
            .with_json(JSON, &patch);
        let seen = crate::behaviours::sent(of(fault), request).await.expect("a fault of this file");
        assert_eq!(seen.json().expect("a patch")[0]["path"], expected);
    }
}
