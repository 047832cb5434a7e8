//! OpenAPI documents that do not describe what the server does, or break rules of API design.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, documents, only, uncompressed};
use crate::patch;

const KINDS: &str = "x-kubernetes-group-version-kind";

/// A part of the paths and definitions of the custom resources of the suite.
const CUSTOM: &str = "kubeproof";

/// The definitions that a fault changes: the end of their name, and a merge patch.
const DEFINITIONS: [(Fault, &str, &str); 14] = [
    (
        Fault::OpenApiSnakeCase,
        ".core.v1.PodSpec",
        r#"{"properties":{"host_users":{"type":"boolean"}}}"#,
    ),
    (
        Fault::OpenApiFloat,
        ".core.v1.PodSpec",
        r#"{"properties":{"priority":{"type":"number","format":"double"}}}"#,
    ),
    (
        Fault::OpenApiIntegersUnsized,
        ".core.v1.PodSpec",
        r#"{"properties":{"terminationGracePeriodSeconds":{"format":null}}}"#,
    ),
    (
        Fault::OpenApiBooleansWithIs,
        ".core.v1.ConfigMap",
        r#"{"properties":{"isImmutable":{"type":"boolean"}}}"#,
    ),
    (
        Fault::OpenApiAdmissionRequired,
        ".core.v1.PodSpec",
        r#"{"required":["containers","serviceAccountName","tolerations"]}"#,
    ),
    (
        Fault::OpenApiOwnersAnywhere,
        ".meta.v1.OwnerReference",
        r#"{"properties":{"namespace":{"type":"string"}}}"#,
    ),
    (
        Fault::OpenApiStatusHasObjectMetadata,
        ".meta.v1.Status",
        r##"{"properties": {
            "metadata": {"$ref": "#/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
        }}"##,
    ),
    (
        Fault::OpenApiWithoutMergeKeys,
        ".core.v1.PodSpec",
        r#"{"properties":{
            "containers":{"x-kubernetes-patch-strategy":null,"x-kubernetes-patch-merge-key":null},
            "volumes":{"x-kubernetes-patch-strategy":null,"x-kubernetes-patch-merge-key":null}}}"#,
    ),
    (
        Fault::OpenApiWithoutMergeKeys,
        ".core.v1.ServiceSpec",
        r#"{"properties":{
            "ports":{"x-kubernetes-patch-strategy":null,"x-kubernetes-patch-merge-key":null}}}"#,
    ),
    (
        Fault::OpenApiAllRequired,
        ".core.v1.Container",
        r#"{"required":["name","image","command","args","env","ports","resources"]}"#,
    ),
    (Fault::OpenApiNothingRequired, ".core.v1.Container", r#"{"required":null}"#),
    (
        Fault::OpenApiItemsElsewhere,
        ".core.v1.ConfigMap",
        r#"{"properties":{"items":{"type":"array","items":{"type":"string"}}}}"#,
    ),
    (
        Fault::OpenApiDeleteOptionsOfCore,
        ".meta.v1.DeleteOptions",
        r#"{"x-kubernetes-group-version-kind":[
            {"group":"","kind":"DeleteOptions","version":"v1"}]}"#,
    ),
    (Fault::OpenApiNodesWithoutStatus, ".core.v1.Node", r#"{"properties":{"status":null}}"#),
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let patches: Vec<_> = DEFINITIONS
        .iter()
        .filter(|(known, ..)| *known == fault)
        .map(|(_, end, patch)| (*end, *patch))
        .collect();
    if !patches.is_empty() {
        return Some(only(
            |request| request.path.starts_with("/openapi/"),
            documents(move |_, document| patch_definitions(document, &patches)),
        ));
    }
    let (path, edit): (&str, fn(&mut Value)) = match fault {
        Fault::OpenApiWithoutKinds => ("/openapi/", remove_kinds),
        Fault::OpenApiLosesListTypes => ("/openapi/v3/", |document| {
            remove_fields(document, &["x-kubernetes-list-type", "x-kubernetes-list-map-keys"]);
        }),
        Fault::OpenApiLosesNullable => {
            ("/openapi/v3/", |document| remove_fields(document, &["nullable"]))
        }
        Fault::OpenApiLosesRules => {
            ("/openapi/v3/", |document| remove_fields(document, &["x-kubernetes-validations"]))
        }
        Fault::OpenApiHashIsConstant => ("/openapi/v3", set_hashes),
        Fault::OpenApiScaleOfParent => ("/openapi/v3/", |document| {
            for (path, operations) in paths(document) {
                if path.ends_with("/scale") {
                    let operations = operations.values_mut().filter(|value| value.is_object());
                    operations.for_each(|operation| operation[KINDS]["group"] = "apps".into());
                }
            }
        }),
        Fault::OpenApiPromisesOperations => ("/openapi/v3/", promise_operations),
        Fault::OpenApiKeepsDeletedDefinitions => return Some(keeping_paths()),
        Fault::OpenApiIndexWithoutCore => ("/openapi/v3", |document| {
            if let Some(paths) = document["paths"].as_object_mut() {
                paths.remove("api/v1");
            }
        }),
        Fault::OpenApiIndexIncomplete => ("/openapi/v3", |document| {
            if let Some(paths) = document["paths"].as_object_mut() {
                paths.remove("apis/apps/v1");
            }
        }),
        Fault::OpenapiProtobufFallsBehind => {
            return Some(around(|request, next| Box::pin(protobuf_falls_behind(request, next))));
        }
        _ => ("/openapi/v2", v2_edit(fault)?),
    };
    let applies = move |request: &Request| {
        if path.ends_with('/') { request.path.starts_with(path) } else { request.path == path }
    };
    Some(only(applies, documents(move |_, document| edit(document))))
}

/// Edits of OpenAPI v2 alone.
fn v2_edit(fault: Fault) -> Option<fn(&mut Value)> {
    Some(match fault {
        Fault::OpenApiV2WithoutMergeKeys => {
            |document| remove_fields(document, &["x-kubernetes-patch-merge-key"])
        }
        Fault::OpenApiV2WithoutCustomResources => |document| {
            for part in ["paths", "definitions"] {
                if let Some(entries) = document[part].as_object_mut() {
                    entries.retain(|name, _| !name.contains(CUSTOM));
                }
            }
        },
        Fault::OpenApiV2FallsBehind => |document| {
            for (_, operations) in paths(document) {
                operations.remove("patch");
            }
        },
        _ => return None,
    })
}

/// Applies merge patches to the definitions whose names have these ends.
fn patch_definitions(document: &mut Value, patches: &[(&str, &str)]) {
    let (place, prefix) = if document.get("swagger").is_some() {
        ("/definitions", "#/definitions/")
    } else {
        ("/components/schemas", "#/components/schemas/")
    };
    let Some(definitions) = document.pointer_mut(place).and_then(Value::as_object_mut) else {
        return;
    };
    for (end, patch) in patches {
        let Ok(patch) = serde_json::from_str(&patch.replace("#/", prefix)) else { continue };
        for (_, definition) in definitions.iter_mut().filter(|(name, _)| name.ends_with(end)) {
            patch::merge(definition, &patch);
        }
    }
}

/// Shows each path of a custom resource that OpenAPI v2 ever had.
fn keeping_paths() -> Box<dyn Middleware> {
    let seen: Mutex<Map<String, Value>> = Mutex::default();
    let applies = |request: &Request| request.path == "/openapi/v2";
    let edit = move |_: &Request, document: &mut Value| {
        let Some(paths) = document["paths"].as_object_mut() else { return };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, operations) in paths.iter().filter(|(path, _)| path.contains(CUSTOM)) {
            seen.entry(path).or_insert_with(|| operations.clone());
        }
        for (path, operations) in seen.iter() {
            paths.entry(path).or_insert_with(|| operations.clone());
        }
    };
    only(applies, documents(edit))
}

fn remove_kinds(document: &mut Value) {
    remove_fields(document, &[KINDS]);
}

/// Removes the fields with these names at any depth.
fn remove_fields(document: &mut Value, names: &[&str]) {
    match document {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|field| remove_fields(field, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_fields(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives the links to all documents the same hash.
fn set_hashes(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, entry) in paths {
        let link = entry["serverRelativeURL"].as_str().unwrap_or_default();
        let link = link.split('?').next().unwrap_or_default();
        entry["serverRelativeURL"] = format!("{link}?hash=0").into();
    }
}

/// Describes a PUT of each collection that can be deleted.
fn promise_operations(document: &mut Value) {
    for (_, operations) in paths(document) {
        if let Some(delete) = operations.get("delete")
            && delete["x-kubernetes-action"] == "deletecollection"
        {
            operations.insert("put".to_owned(), delete.clone());
        }
    }
}

/// The operations of each path of a document.
fn paths(document: &mut Value) -> impl Iterator<Item = (&String, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.filter_map(|(path, operations)| Some((path, operations.as_object_mut()?)))
}

async fn protobuf_falls_behind(mut request: Request, next: Next<'_>) -> Response {
    if request.path != "/openapi/v2" {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let mut response = next.send(request).await;
    let media_type = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if media_type.is_some_and(|media_type| media_type.contains("protobuf"))
        && let Some(document) = without_definitions(response.bytes(), "io.k8s.api.apps.")
    {
        response.set_bytes(document);
    }
    response
}

/// The field of `Document` (package openapi.v2 of gnostic) that holds the definitions.
const DEFINITIONS_FIELD: u64 = 9;

/// An OpenAPI v2 document in protobuf without the definitions whose names have this prefix.
fn without_definitions(document: &[u8], prefix: &str) -> Option<Bytes> {
    let mut kept = Vec::new();
    for field in fields(document)? {
        if field.number != DEFINITIONS_FIELD {
            kept.extend_from_slice(field.bytes);
            continue;
        }
        let mut definitions = Vec::new();
        for definition in fields(field.content)? {
            let name =
                fields(definition.content)?.into_iter().find(|field| field.number == 1)?.content;
            if !name.starts_with(prefix.as_bytes()) {
                definitions.extend_from_slice(definition.bytes);
            }
        }
        kept.extend(varint(DEFINITIONS_FIELD << 3 | 2));
        kept.extend(varint(definitions.len() as u64));
        kept.extend(definitions);
    }
    Some(kept.into())
}

/// A field of a protobuf message.
struct Field<'a> {
    number: u64,
    /// All of it, with number and length.
    bytes: &'a [u8],
    /// The content of a length-delimited field; empty for numbers.
    content: &'a [u8],
}

fn fields(message: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut found = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let (key, after) = read_varint(rest)?;
        let (content, after) = match key & 7 {
            0 => (&[][..], read_varint(after)?.1),
            1 => (&[][..], after.get(8..)?),
            2 => {
                let (length, after) = read_varint(after)?;
                after.split_at_checked(usize::try_from(length).ok()?)?
            }
            5 => (&[][..], after.get(4..)?),
            _ => return None,
        };
        let bytes = rest.get(..rest.len() - after.len())?;
        found.push(Field { number: key >> 3, bytes, content });
        rest = after;
    }
    Some(found)
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_patch_of_a_definition_is_an_object() {
        for (fault, _, patch) in DEFINITIONS {
            let patch: Result<Value, _> = serde_json::from_str(patch);
            assert!(patch.is_ok_and(|patch| patch.is_object()), "{fault}");
        }
    }

    #[test]
    fn references_point_into_the_document() {
        let patches = [(".Status", r##"{"$ref":"#/x"}"##)];
        let mut two = json!({ "swagger": "2.0", "definitions": { "v1.Status": {} } });
        patch_definitions(&mut two, &patches);
        assert_eq!(two["definitions"]["v1.Status"], json!({ "$ref": "#/definitions/x" }));
        let mut three = json!({ "components": { "schemas": { "v1.Status": {} } } });
        patch_definitions(&mut three, &patches);
        let expected = json!({ "$ref": "#/components/schemas/x" });
        assert_eq!(three["components"]["schemas"]["v1.Status"], expected);
    }

    #[test]
    fn definitions_are_removed_from_protobuf() {
        let text = |number: u8, text: &[u8]| {
            let length = u8::try_from(text.len()).expect("a short text");
            [&[number << 3 | 2, length], text].concat()
        };
        let definition = |name: &str| text(1, &text(1, name.as_bytes()));
        let document = |definitions: &[u8]| [text(1, b"2.0"), text(9, definitions)].concat();
        let all = document(&[definition("a.x"), definition("b.y")].concat());
        let expected = document(&definition("b.y"));
        assert_eq!(without_definitions(&all, "a.").as_deref(), Some(expected.as_slice()));
        assert_eq!(without_definitions(&all[..4], "a."), None);
    }

    #[test]
    fn varints_are_read_as_they_are_written() {
        for value in [0, 127, 128, 300, u64::MAX] {
            assert_eq!(read_varint(&varint(value)), Some((value, &[][..])));
        }
    }
}
