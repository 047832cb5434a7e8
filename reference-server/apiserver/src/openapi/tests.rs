//! Tests with a built-in resource that has every kind of reference, and a custom resource.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::config::KubernetesVersion;
use crate::config::disabled::DisabledCapabilities;
use crate::discovery::Subresource;
use crate::registry::ResourceType;

use crate::registry::{BODY_TYPES, PATCH_TYPES};
use kubeproof_apimachinery::schema::build::{
    anything, int_or_string, int32, list, map, object, string,
};
use kubeproof_apimachinery::schema::{PatchStrategy, Schema, meta};

fn resource(group: &str, kind: &str, schema: Schema) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: format!("{}s", kind.to_lowercase()),
        singular: kind.to_lowercase(),
        namespaced: true,
        verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
            .map(str::to_owned)
            .into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: vec![Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: vec!["get".into(), "update".into(), "patch".into()],
        }],
        schema: Arc::new(schema).into(),
        table: group.into(),
        custom: group == "example.com",
        deletion_returns_object: false,
        selectable_fields: Vec::new(),
        body_types: BODY_TYPES.to_vec(),
        patch_types: PATCH_TYPES
            .into_iter()
            .filter(|media_type| group != "example.com" || !media_type.contains("strategic"))
            .collect(),
    }
}

fn catalogue() -> Vec<Arc<Resource>> {
    let port =
        object("io.k8s.api.core.v1.Port").need("port", int32()).field("target", int_or_string());
    let mut strategy = object("io.k8s.api.apps.v1.Strategy").field("type", string());
    strategy.patch_strategy = PatchStrategy { retain_keys: true, ..PatchStrategy::default() };
    let spec = object("io.k8s.api.apps.v1.ReleaseSpec")
        .field("ports", list(port).merge_by("port"))
        .field("strategy", strategy)
        .field("labels", map(string()))
        .field("raw", anything());
    let release = meta::with_type_meta(object("io.k8s.api.apps.v1.Release")).field("spec", spec);
    let widget = Schema::from_openapi(
        &json!({"type": "object", "properties": {"size": {"type": "integer", "nullable": true}}}),
    );
    let widget = resource("example.com", "Widget", widget.unwrap());
    [resource("apps", "Release", release), widget].map(Arc::new).into()
}

fn v3_of(path: &str) -> Value {
    let document = v3(path, &by_path(&catalogue())[path], KubernetesVersion::default());
    serde_json::from_slice(&document.bytes).unwrap()
}

fn v2_document() -> Value {
    v2(&catalogue(), KubernetesVersion::default())
}

#[test]
fn the_index_names_every_document_with_its_hash() {
    let documents: BTreeMap<_, _> = by_path(&catalogue())
        .into_iter()
        .map(|(path, resources)| {
            let document = v3(&path, &resources, KubernetesVersion::default());
            (path, document)
        })
        .collect();
    let index = v3_index(documents.iter());
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    assert_eq!(
        url,
        format!("/openapi/v3/apis/example.com/v1?hash={}", documents["apis/example.com/v1"].hash)
    );
    let expected = [
        ".well-known/openid-configuration",
        "apis",
        "apis/apps",
        "apis/apps/v1",
        "apis/example.com/v1",
        "openid/v1/jwks",
        "version",
    ];
    assert_eq!(documents.keys().collect::<Vec<_>>(), expected);
}

#[test]
fn schemas_refer_to_each_other_by_name() {
    let schemas = v3_of("apis/apps/v1")["components"]["schemas"].clone();
    let spec = &schemas["io.k8s.api.apps.v1.ReleaseSpec"]["properties"];
    assert_eq!(
        spec["ports"]["items"],
        json!({"$ref": "#/components/schemas/io.k8s.api.core.v1.Port"})
    );
    assert_eq!(spec["ports"]["x-kubernetes-patch-merge-key"], "port");
    assert_eq!(spec["ports"]["x-kubernetes-patch-strategy"], "merge");
    let strategy = json!({
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.Strategy"}],
        "x-kubernetes-patch-strategy": "retainKeys",
    });
    assert_eq!(spec["strategy"], strategy);
    assert_eq!(schemas["io.k8s.api.apps.v1.Strategy"].get("x-kubernetes-patch-strategy"), None);
    let target = &schemas["io.k8s.api.core.v1.Port"]["properties"]["target"];
    assert_eq!(target["anyOf"], json!([{"type": "integer"}, {"type": "string"}]));
    let list = &schemas["io.k8s.api.apps.v1.ReleaseList"];
    assert_eq!(
        list["properties"]["items"]["items"]["$ref"],
        "#/components/schemas/io.k8s.api.apps.v1.Release"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str));
                object.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let newest = |ty| ResourceType::built_in(ty, KubernetesVersion::default());
    let types = crate::registry::builtin::types().into_iter().filter_map(newest);
    let builtin = types.map(|ty| Resource {
        schema: ty.schema,
        version: ty.version,
        plural: ty.plural,
        namespaced: ty.namespaced,
        list_kind: ty.list_kind,
        verbs: ty.verbs,
        ..resource(&ty.group, &ty.kind, Schema::default())
    });
    let resources: Vec<_> = builtin.map(Arc::new).chain(catalogue()).collect();
    let mut documents: Vec<Value> = by_path(&resources)
        .iter()
        .map(|(path, resources)| v3(path, resources, KubernetesVersion::default()))
        .map(|document| serde_json::from_slice(&document.bytes).unwrap())
        .collect();
    documents.push(v2(&resources, KubernetesVersion::default()));
    for document in documents {
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    }
}

#[test]
fn kinds_stand_at_schemas_and_operations() {
    let document = v3_of("apis/example.com/v1");
    let kind = json!({"group": "example.com", "version": "v1", "kind": "Widget"});
    let widget = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(widget["x-kubernetes-group-version-kind"], json!([kind]));
    let patch =
        &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    assert_eq!(patch["x-kubernetes-action"], "patch");
    let query: Vec<_> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(query, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let media_types: Vec<_> = patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(
        media_types,
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json"
        ]
    );
}

#[test]
fn operation_ids_are_unique() {
    let document = v2_document();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
    let mut ids: Vec<_> =
        operations.filter_map(|(_, operation)| operation.get("operationId")?.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert!(ids.contains(&"listAppsV1ReleaseForAllNamespaces"), "{ids:?}");
    assert!(ids.contains(&"patchAppsV1NamespacedReleaseScale"), "{ids:?}");
    assert!(ids.contains(&"deleteAppsV1CollectionNamespacedRelease"), "{ids:?}");
    assert!(ids.contains(&"watchAppsV1NamespacedReleaseList"), "{ids:?}");
}

#[test]
fn v2_leaves_out_what_its_readers_do_not_know() {
    let definitions = v2_document()["definitions"].clone();
    assert_eq!(definitions["com.example.v1.Widget"]["properties"]["size"], json!({}));
    let spec = &definitions["io.k8s.api.apps.v1.ReleaseSpec"]["properties"];
    assert_eq!(spec["raw"].get("type"), None);
    assert_eq!(spec["strategy"]["$ref"], "#/definitions/io.k8s.api.apps.v1.Strategy");
    assert_eq!(spec["strategy"]["x-kubernetes-patch-strategy"], "retainKeys");
    let target = &definitions["io.k8s.api.core.v1.Port"]["properties"]["target"];
    assert_eq!((target.get("type"), target.get("format")), (None, None));
}

fn operations(path: &str) -> Value {
    let version = KubernetesVersion::default();
    let resources = crate::registry::Registry::new(version, DisabledCapabilities::default());
    let resources = crate::discovery::Documents::default().resources(&resources);
    let document = v3("api/v1", &by_path(&resources)["api/v1"], version);
    let document: Value = serde_json::from_slice(&document.bytes).unwrap();
    document["paths"][format!("/api/v1{path}")].clone()
}

#[test]
fn connections_have_all_methods_and_their_options() {
    let proxy = operations("/nodes/{name}/proxy/{path}");
    let methods: Vec<_> = proxy.as_object().unwrap().keys().collect();
    let expected = ["delete", "get", "head", "options", "parameters", "patch", "post", "put"];
    assert_eq!(methods, expected);
    assert_eq!(proxy["head"]["operationId"], "connectCoreV1HeadNodeProxyWithPath");
    let exec = operations("/namespaces/{namespace}/pods/{name}/exec");
    assert_eq!(exec["get"]["x-kubernetes-action"], "connect");
    let names: Vec<_> =
        exec["parameters"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    let options = ["command", "container", "name", "namespace", "stderr", "stdin", "stdout", "tty"];
    assert_eq!(names, options);
}

#[test]
fn some_deletions_return_the_object() {
    let returned = |path: &str| {
        let content = &operations(path)["delete"]["responses"]["200"]["content"];
        content["application/json"]["schema"]["$ref"].as_str().unwrap().to_owned()
    };
    assert!(returned("/namespaces/{namespace}/pods/{name}").ends_with(".core.v1.Pod"));
    assert!(returned("/namespaces/{name}").ends_with(".meta.v1.Status"));
}

/// Returns the fields of a protobuf message: numbers and length-delimited values.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
        let value =
            bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
        *bytes = &bytes[end + 1..];
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1,
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            other => panic!("wire type {other}"),
        };
        let (value, rest) = bytes.split_at(length);
        found.push((tag >> 3, value));
        bytes = rest;
    }
    found
}

/// Follows a path of field numbers, and takes the first of each.
fn at<'b>(bytes: &'b [u8], path: &[u64]) -> &'b [u8] {
    path.iter().fold(bytes, |bytes, number| {
        fields(bytes)
            .into_iter()
            .find(|(field, _)| field == number)
            .unwrap_or_else(|| panic!("no field {number}"))
            .1
    })
}

/// Returns the value of an entry in the map with the field `number`.
fn entry<'b>(bytes: &'b [u8], number: u64, name: &str) -> &'b [u8] {
    let entries =
        fields(bytes).into_iter().filter(|(field, _)| *field == number).map(|(_, entry)| entry);
    let mut found = entries.filter(|entry| at(entry, &[1]) == name.as_bytes());
    at(found.next().unwrap_or_else(|| panic!("no entry {name}")), &[2])
}

#[test]
fn the_protobuf_form_says_the_same() {
    let bytes = v2_protobuf(&v2_document());
    assert_eq!(at(&bytes, &[1]), b"2.0");
    let definitions = at(&bytes, &[9]);
    let spec = at(entry(definitions, 1, "io.k8s.api.apps.v1.ReleaseSpec"), &[25]);
    let ports = entry(spec, 1, "ports");
    assert_eq!(at(ports, &[22, 1]), b"array");
    assert_eq!(at(ports, &[23, 1, 1]), b"#/definitions/io.k8s.api.core.v1.Port");
    assert_eq!(at(entry(ports, 31, "x-kubernetes-patch-merge-key"), &[2]), b"\"port\"");
    assert_eq!(at(entry(spec, 1, "labels"), &[21, 1, 22, 1]), b"string");

    let widget = entry(definitions, 1, "com.example.v1.Widget");
    let kinds: Value =
        serde_json::from_slice(at(entry(widget, 31, "x-kubernetes-group-version-kind"), &[2]))
            .unwrap();
    assert_eq!(kinds[0]["kind"], "Widget");

    let item = entry(at(&bytes, &[8]), 2, "/apis/apps/v1/namespaces/{namespace}/releases/{name}");
    let first_path_parameter = at(item, &[9, 1, 2, 4]);
    assert_eq!(at(first_path_parameter, &[4]), b"name");
    let body_of_patch = at(item, &[8, 8, 1, 1]);
    assert_eq!(at(body_of_patch, &[2]), b"body");
    assert_eq!(
        at(entry(at(item, &[2, 9]), 1, "200"), &[1, 2, 1, 1]),
        b"#/definitions/io.k8s.api.apps.v1.Release"
    );
}
