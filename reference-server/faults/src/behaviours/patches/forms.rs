//! Patches in unusual forms: pointers with escapes, keys of lists, media types with parameters.

use http::{Method, header};
use serde_json::{Map, Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::{MERGE_PATCH, is_apply, set_media_type};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Maps of texts in which the fault creates empty values.
const MAPS: [&str; 2] = ["/data", "/spec/labels"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::JsonPatchVersionIgnored => json_patches(|operations| {
            operations.retain(|operation| operation["path"] != "/metadata/resourceVersion");
        }),
        Fault::JsonPointersDecodedInWrongOrder => pointers(|text| text.replace("~01", "~1")),
        Fault::JsonPointerTildesKept => pointers(|text| text.replace("~0", "~00")),
        Fault::NullCreatesEmptyKeys => {
            around(|request, next| Box::pin(null_creates_keys(request, next)))
        }
        Fault::StrategicReplacesServicePorts => strategic(|request, patch| {
            if request.target().is_core("services") {
                replace_list(patch.pointer_mut("/spec/ports"));
            }
        }),
        Fault::StrategicReplacesOwners => strategic(|_, patch| {
            replace_list(patch.pointer_mut("/metadata/ownerReferences"));
        }),
        Fault::StrategicReplacesMounts => strategic(|_, patch| {
            everywhere(patch, &mut |value| replace_list(value.get_mut("volumeMounts")));
        }),
        Fault::PatchParametersRejected => around(|request, next| {
            Box::pin(async move {
                let has_parameters = request.header(header::CONTENT_TYPE.as_str()).contains(';');
                if request.method == Method::PATCH && has_parameters {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::UntypedPatchIsAMergePatch => requests(|request| {
            if request.method == Method::PATCH && request.media_type().is_empty() {
                set_media_type(request, MERGE_PATCH);
            }
        }),
        Fault::ForceOfPatchesIgnored => requests(|request| {
            if request.method == Method::PATCH && !is_apply(request) {
                request.edit_query(|query| drop(query.remove("force")));
            }
        }),
        _ => return None,
    })
}

/// Edits the operations of JSON patches.
fn json_patches(edit: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if request.method == Method::PATCH && request.media_type() == JSON {
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
    json_patches(move |operations| {
        for operation in operations {
            for field in ["path", "from"] {
                if let Some(text) = operation[field].as_str() {
                    operation[field] = edit(text).into();
                }
            }
        }
    })
}

/// Edits strategic merge patches.
fn strategic(edit: fn(&Request, &mut Value)) -> Box<dyn Middleware> {
    requests(move |request| {
        if request.method == Method::PATCH && request.media_type() == STRATEGIC {
            let copy = request.clone();
            request.edit_json(|patch| edit(&copy, patch));
        }
    })
}

/// Lets a list of a strategic merge patch replace that of the object.
fn replace_list(list: Option<&mut Value>) {
    if let Some(items) = list.and_then(Value::as_array_mut) {
        items.push(json!({ "$patch": "replace" }));
    }
}

/// Sets the absent keys that a merge patch sets to null to an empty text.
async fn null_creates_keys(mut request: Request, next: Next<'_>) -> Response {
    if request.method == Method::PATCH
        && request.media_type() == MERGE_PATCH
        && let Some(current) = next.server.read(&request.path).await
    {
        request.edit_json(|patch| {
            for map in MAPS {
                let present = current.pointer(map);
                let named = patch.pointer_mut(map).and_then(Value::as_object_mut);
                for (key, value) in named.into_iter().flat_map(Map::iter_mut) {
                    if value.is_null() && present.and_then(|map| map.get(key)).is_none() {
                        *value = "".into();
                    }
                }
            }
        });
    }
    next.send(request).await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
