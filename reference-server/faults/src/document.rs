//! Documents of requests and responses: JSON or YAML, and the objects inside of them.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

/// Kinds that describe the API and are no objects of it.
const NOT_OBJECTS: [&str; 6] = [
    "Status",
    "APIResourceList",
    "APIGroupList",
    "APIGroup",
    "APIVersions",
    "APIGroupDiscoveryList",
];

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a body, without parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reports whether a body is protobuf. A newline does not end its events.
pub(crate) fn is_protobuf(headers: &HeaderMap) -> bool {
    media_type(headers) == PROTOBUF
}

/// Reads a body as JSON, or as YAML where its media type says so.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Option<Value> {
    if is_yaml(headers) {
        return serde_saphyr::from_slice(body).ok();
    }
    serde_json::from_slice(body).ok()
}

/// Writes a body in the media type of its headers.
pub(crate) fn write(headers: &HeaderMap, value: &Value, pretty: bool) -> Option<Bytes> {
    if is_yaml(headers) {
        return serde_saphyr::to_string(value).ok().map(Bytes::from);
    }
    Some(if pretty { format!("{value:#}\n") } else { format!("{value}\n") }.into())
}

fn is_yaml(headers: &HeaderMap) -> bool {
    media_type(headers).ends_with("yaml")
}

/// Returns whether a document is an object of the API, not a list, a table or a description of the
/// API.
pub(crate) fn is_object(document: &Value) -> bool {
    let kind = document["kind"].as_str().unwrap_or_default();
    document["metadata"].is_object()
        && !NOT_OBJECTS.contains(&kind)
        && !is_list(document)
        && kind != "Table"
}

/// Returns whether a document is a list of objects.
pub(crate) fn is_list(document: &Value) -> bool {
    document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
        && document.get("items").is_some()
}

/// Returns whether a document is a `Status` that reports a failure.
pub(crate) fn is_failure(document: &Value) -> bool {
    document["kind"] == "Status" && document["status"] == "Failure"
}

/// Calls `edit` for the object that a document is, or for each object of a list or table.
pub(crate) fn edit_objects(document: &mut Value, edit: &mut dyn FnMut(&mut Value)) {
    if is_list(document) {
        document["items"].as_array_mut().into_iter().flatten().for_each(edit);
    } else if document["kind"] == "Table" {
        let rows = document["rows"].as_array_mut().into_iter().flatten();
        rows.filter_map(|row| row.get_mut("object"))
            .filter(|object| object.is_object())
            .for_each(edit);
    } else if is_object(document) {
        edit(document);
    }
}

/// Returns whether an event is the bookmark that ends the initial events. In a Table, its object is
/// in a row.
pub(crate) fn ends_initial_events(event: &Value) -> bool {
    event["type"] == "BOOKMARK"
        && ["/object", "/object/rows/0/object"].iter().any(|at| {
            let annotation = format!("{at}/metadata/annotations/k8s.io~1initial-events-end");
            event.pointer(&annotation).is_some()
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_found_in_lists_tables_and_alone() {
        let documents = [
            (json!({ "kind": "ConfigMap", "metadata": {} }), 1),
            (json!({ "kind": "ConfigMapList", "metadata": {}, "items": [{}, {}] }), 2),
            (json!({ "kind": "Table", "metadata": {}, "rows": [{ "object": {} }, {}] }), 1),
            (json!({ "kind": "Status", "metadata": {}, "status": "Failure" }), 0),
            (json!({ "kind": "APIResourceList", "resources": [] }), 0),
        ];
        for (mut document, expected) in documents {
            let mut seen = 0;
            edit_objects(&mut document, &mut |_| seen += 1);
            assert_eq!(seen, expected, "{document}");
        }
    }
}
