//! Rules of single types: status, scale, generation, custom resources, pods, leases.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::TestServer;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn deployment(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "c", "image": "i:1" }] },
            },
        },
        "status": { "replicas": 9 },
    })
}

fn widgets() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": { "type": "integer", "minimum": 1 },
                    "color": { "type": "string", "default": "red" },
                    "replicas": { "type": "integer" },
                },
            },
            "status": {
                "type": "object",
                "properties": { "phase": { "type": "string" }, "replicas": { "type": "integer" } },
            },
        },
    });
    let version = |name: &str, storage: bool| {
        json!({
            "name": name,
            "served": true,
            "storage": storage,
            "schema": { "openAPIV3Schema": schema },
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                },
            },
            "selectableFields": [{ "jsonPath": ".spec.color" }],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"],
            },
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

fn widget(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name },
        "spec": { "size": 1 },
    })
}

async fn with_widgets() -> TestServer {
    let server = TestServer::start().await;
    server.post(CRDS, &widgets()).await.expect(201);
    server
}

#[rstest]
#[case::custom(WIDGETS, widget("a"), &[])]
#[case::deployment(DEPLOYMENTS, deployment("a"), &["annotations", "finalizers"])]
#[case::namespace(
    "/api/v1/namespaces",
    json!({ "metadata": { "name": "a" } }),
    &["labels", "annotations", "finalizers"],
)]
#[tokio::test]
async fn a_status_write_changes_the_metadata_of_built_in_types(
    #[case] collection: &str,
    #[case] object: Value,
    #[case] kept: &[&str],
) {
    let server = with_widgets().await;
    server.post(collection, &object).await.expect(201);
    let status = format!("{collection}/a/status");
    let metadata = json!({
        "labels": { "x.io/a": "1" }, "annotations": { "x.io/a": "1" }, "finalizers": ["x.io/a"],
    });
    let after = server.merge(&status, &json!({ "metadata": metadata })).await.expect(200);
    for field in ["labels", "annotations", "finalizers"] {
        let text = after.json["metadata"][field].to_string();
        assert_eq!(text.contains("x.io/a"), kept.contains(&field), "{field}: {text}");
    }
}

#[tokio::test]
async fn a_node_keeps_the_status_of_its_creation() {
    let server = TestServer::start().await;
    let node = json!({ "metadata": { "name": "n" }, "status": { "capacity": { "cpu": "4" } } });
    let created = server.post("/api/v1/nodes", &node).await.expect(201);
    assert_eq!(created.json["status"]["capacity"]["cpu"], "4");
}

#[tokio::test]
async fn spec_and_status_have_separate_endpoints() {
    let server = TestServer::start().await;
    let created = server.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    assert_eq!(created.json["status"].get("replicas"), None);
    assert_eq!(created.json["metadata"]["generation"], 1);
    let path = format!("{DEPLOYMENTS}/d");
    let status = json!({ "spec": { "replicas": 7 }, "status": { "replicas": 2 } });
    let after = server.merge(&format!("{path}/status"), &status).await.expect(200);
    assert_eq!(
        (&after.json["spec"]["replicas"], &after.json["status"]["replicas"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(after.json["metadata"]["generation"], 1);
    let ignored = server.merge(&path, &json!({ "status": { "replicas": 5 } })).await.expect(200);
    assert_eq!(
        ignored.version(),
        after.version(),
        "the status in there is ignored, so nothing changed"
    );
    let spec = server.merge(&path, &json!({ "spec": { "replicas": 3 } })).await.expect(200);
    assert_eq!(
        (&spec.json["metadata"]["generation"], &spec.json["status"]["replicas"]),
        (&json!(2), &json!(2))
    );
    let labels =
        server.merge(&path, &json!({ "metadata": { "labels": { "a": "b" } } })).await.expect(200);
    assert_eq!(labels.json["metadata"]["generation"], 2);
    let other = json!({ "spec": { "selector": { "matchLabels": { "app": "other" } } } });
    server.merge(&path, &other).await.rejected(422, "Invalid");
}

#[tokio::test]
async fn a_scale_shows_and_sets_the_replicas_of_its_object() {
    let server = TestServer::start().await;
    server.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let mut scale = server.get(&path).await.expect(200).json;
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["status"]["selector"], "app=d");
    let outdated = scale.clone();
    scale["spec"]["replicas"] = 5.into();
    server.put(&path, &scale).await.expect(200);
    let object = server.get(&format!("{DEPLOYMENTS}/d")).await;
    assert_eq!(
        (&object.json["spec"]["replicas"], &object.json["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
    server.put(&path, &outdated).await.rejected(409, "Conflict");
    let negative = json!({ "metadata": { "name": "d" }, "spec": { "replicas": -1 } });
    let rejected = server.put(&path, &negative).await.rejected(422, "Invalid");
    assert_eq!(rejected.text_at("/details/kind"), "Scale");
    let merged = server.merge(&path, &json!({ "spec": { "replicas": 6 } })).await.expect(200);
    assert_eq!(merged.json["spec"]["replicas"], 6);
    server
        .put(&path, &json!({ "metadata": { "name": "other" }, "spec": { "replicas": 1 } }))
        .await
        .rejected(400, "BadRequest");
    server.delete(&path, "").await.rejected(405, "MethodNotAllowed");
}

#[tokio::test]
async fn a_crd_is_served_at_once_and_validates_its_objects() {
    let server = TestServer::start().await;
    server.get(WIDGETS).await.expect(404);
    let crd = server.post(CRDS, &widgets()).await.expect(201);
    let conditions = crd.json["status"]["conditions"].as_array().unwrap();
    assert!(["NamesAccepted", "Established"].iter().all(|name| {
        conditions
            .iter()
            .any(|condition| condition["type"] == *name && condition["status"] == "True")
    }));
    let mut object = widget("w");
    object["spec"]["bogus"] = 1.into();
    object["status"] = json!({ "phase": "x" });
    let created = server.post(WIDGETS, &object).await.expect(201);
    assert_eq!(created.json["spec"], json!({ "size": 1, "color": "red" }));
    assert_eq!(created.json["status"], Value::Null);
    assert_eq!(created.json["metadata"]["generation"], 1);
    assert_eq!(server.get(WIDGETS).await.json["items"][0]["kind"], "Widget");
    object["metadata"]["name"] = "bad".into();
    object["spec"]["size"] = 0.into();
    let rejected = server.post(WIDGETS, &object).await.rejected(422, "Invalid");
    assert_eq!(rejected.text_at("/details/causes/0/field"), "spec.size");
    server.put(&format!("{WIDGETS}/w"), &widget("w")).await.rejected(422, "Invalid");
    server.post(WIDGETS, &json!({ "metadata": { "name": "x" } })).await.rejected(400, "BadRequest");
}

#[tokio::test]
async fn a_custom_resource_has_status_and_scale() {
    let server = with_widgets().await;
    server.post(WIDGETS, &widget("w")).await.expect(201);
    let path = format!("{WIDGETS}/w");
    let status = json!({
        "status": { "phase": "Up" }, "spec": { "size": 9 }, "metadata": { "labels": { "a": "b" } },
    });
    let after = server.merge(&format!("{path}/status"), &status).await.expect(200);
    assert_eq!(
        (&after.json["status"]["phase"], &after.json["spec"]["size"]),
        (&json!("Up"), &json!(1))
    );
    assert_eq!(after.json["metadata"]["labels"], Value::Null);
    assert_eq!(after.json["metadata"]["generation"], 1);
    server.merge(&format!("{path}/scale"), &json!({ "spec": { "replicas": 4 } })).await.expect(200);
    let scaled = server.get(&path).await;
    assert_eq!(
        (&scaled.json["spec"]["replicas"], &scaled.json["metadata"]["generation"]),
        (&json!(4), &json!(2))
    );
    let selected =
        server.get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dred")).await.expect(200);
    assert_eq!(selected.names(), ["w"]);
    server.get(&format!("{WIDGETS}?fieldSelector=spec.size%3D1")).await.rejected(400, "BadRequest");
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    server.send("PATCH", &path, &strategic, "{}").await.rejected(415, "UnsupportedMediaType");
}

#[tokio::test]
async fn every_version_shows_the_same_object() {
    let server = with_widgets().await;
    let created = server.post(WIDGETS, &widget("w")).await.expect(201);
    let other = WIDGETS.replace("/v1/", "/v2/");
    let read = server.get(&format!("{other}/w")).await.expect(200);
    assert_eq!(read.json["apiVersion"], "example.com/v2");
    assert_eq!(read.text_at("/metadata/uid"), created.text_at("/metadata/uid"));
    assert_eq!(server.get(&other).await.json["items"][0]["apiVersion"], "example.com/v2");
    let mut watch = server.watch(&format!("{other}?watch=1")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["apiVersion"], "example.com/v2");
    let changed =
        server.merge(&format!("{other}/w"), &json!({ "spec": { "size": 2 } })).await.expect(200);
    assert_eq!(changed.json["apiVersion"], "example.com/v2");
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["size"], 2);
    assert_eq!(server.get(&format!("{WIDGETS}/w")).await.json["apiVersion"], "example.com/v1");
}

#[tokio::test]
async fn a_crd_is_deleted_with_its_objects() {
    let server = with_widgets().await;
    server.post(WIDGETS, &widget("w")).await.expect(201);
    server.delete(&format!("{CRDS}/widgets.example.com"), "").await.expect(200);
    server.until(&format!("{CRDS}/widgets.example.com"), |reply| reply.status == 404).await;
    server.get(WIDGETS).await.expect(404);
    server.post(CRDS, &widgets()).await.expect(201);
    assert!(server.get(WIDGETS).await.expect(200).names().is_empty());
}

#[tokio::test]
async fn a_crd_with_a_taken_kind_is_not_established() {
    let server = with_widgets().await;
    let mut other = widgets();
    other["metadata"]["name"] = "gadgets.example.com".into();
    other["spec"]["names"] = json!({
        "plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList",
    });
    let created = server.post(CRDS, &other).await.expect(201);
    assert_eq!(created.json["status"]["conditions"][0]["reason"], "KindConflict");
    server.get("/apis/example.com/v1/gadgets").await.expect(404);
}

#[rstest]
#[case(json!({ "spec": { "names": { "plural": "others" } } }))]
#[case(json!({ "spec": { "scope": "Everywhere" } }))]
#[tokio::test]
async fn an_invalid_crd_is_rejected(#[case] mistake: Value) {
    let server = TestServer::start().await;
    let mut crd = widgets();
    for (pointer, value) in [
        ("/spec/names/plural", &mistake["spec"]["names"]["plural"]),
        ("/spec/scope", &mistake["spec"]["scope"]),
    ] {
        if !value.is_null() {
            *crd.pointer_mut(pointer).unwrap() = value.clone();
        }
    }
    server.post(CRDS, &crd).await.rejected(422, "Invalid");
}

#[tokio::test]
async fn a_deletion_of_a_bound_pod_has_a_grace_period() {
    let server = TestServer::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    server.post(pods, &pod).await.expect(201);
    let path = format!("{pods}/p");
    let binding =
        json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "n1" } });
    server.post(&format!("{path}/binding"), &binding).await.expect(201);
    assert_eq!(server.get(&path).await.json["spec"]["nodeName"], "n1");
    server.post(&format!("{path}/binding"), &binding).await.rejected(409, "Conflict");
    let stopping = server.delete(&path, "").await.expect(200);
    assert_eq!(stopping.json["metadata"]["deletionGracePeriodSeconds"], 30);
    let shorter = server.delete(&path, r#"{"gracePeriodSeconds":5}"#).await.expect(200);
    assert_eq!(shorter.json["metadata"]["deletionGracePeriodSeconds"], 5);
    let longer = server.delete(&path, r#"{"gracePeriodSeconds":50}"#).await.expect(200);
    assert_eq!(longer.version(), shorter.version());
    assert_eq!(
        server.delete(&format!("{path}?gracePeriodSeconds=0"), "").await.expect(200).json["kind"],
        "Pod"
    );
    server.get(&path).await.expect(404);
}

#[tokio::test]
async fn a_put_creates_a_lease_and_later_requires_its_version() {
    let server = TestServer::start().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "a" } });
    let created = server.put(path, &lease).await.expect(201);
    server.put(path, &lease).await.rejected(422, "Invalid");
    let mut former = created.json.clone();
    server.delete(path, "").await.expect(200);
    server.put(path, &former).await.rejected(409, "Conflict");
    former["metadata"].as_object_mut().unwrap().remove("uid");
    let created = server.put(path, &former).await.expect(201);
    let mut held = created.json.clone();
    held["spec"]["holderIdentity"] = "b".into();
    server.put(path, &held).await.expect(200);
}

#[tokio::test]
async fn services_allocate_and_release_addresses() {
    let server = TestServer::start().await;
    let services = "/api/v1/namespaces/default/services";
    let service =
        |name: &str| json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
    let first = server.post(services, &service("a")).await.expect(201);
    let address = first.text_at("/spec/clusterIP").to_owned();
    assert!(!address.is_empty());
    let mut same = service("b");
    same["spec"]["clusterIP"] = address.as_str().into();
    server.post(services, &same).await.rejected(422, "Invalid");
    server.delete(&format!("{services}/a"), "").await.expect(200);
    server.post(services, &same).await.expect(201);
}

#[tokio::test]
async fn namespace_finalizers_change_only_through_the_finalize_subresource() {
    let server = TestServer::start().await;
    let mut namespace = server
        .post("/api/v1/namespaces", &json!({ "metadata": { "name": "n" } }))
        .await
        .expect(201)
        .json;
    namespace["spec"]["finalizers"] = json!([]);
    let kept = server.put("/api/v1/namespaces/n", &namespace).await.expect(200);
    assert_eq!(kept.json["spec"]["finalizers"], json!(["kubernetes"]));
    let dropped = server.put("/api/v1/namespaces/n/finalize", &namespace).await.expect(200);
    assert_eq!(dropped.json["spec"].get("finalizers"), None);
}

#[tokio::test]
async fn events_can_be_selected_and_watched_in_both_groups() {
    let server = TestServer::start().await;
    let (core, group) =
        ("/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events");
    let event = json!({
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"}, "note": "n",
        "eventTime": "2024-05-06T07:08:09.123456Z", "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "Act", "reason": "Because", "type": "Normal",
    });
    let created = server.post(group, &event).await.expect(201);
    let select = |field: &str, name: &str| format!("?fieldSelector={field}%3D{name}");
    for (path, field) in [(core, "involvedObject.name"), (group, "regarding.name")] {
        let found = server.get(&format!("{path}{}", select(field, "p"))).await.expect(200);
        assert_eq!(found.names(), ["e"], "{path}");
        assert!(
            server
                .get(&format!("{path}{}", select(field, "q")))
                .await
                .expect(200)
                .names()
                .is_empty()
        );
    }
    server
        .get(&format!("{core}{}", select("regarding.name", "p")))
        .await
        .rejected(400, "BadRequest");
    server
        .get(&format!("{group}{}", select("involvedObject.name", "p")))
        .await
        .rejected(400, "BadRequest");

    let changed = server.merge(&format!("{core}/e"), &json!({"message": "m"})).await.expect(200);
    assert!(changed.version() > created.version());
    let watch = format!("{group}?watch=1&resourceVersion={}", created.version());
    let seen = server.watch(&watch).await.next().await.expect("an event");
    assert_eq!(seen["object"]["note"], "m");
    assert_eq!(seen["object"]["apiVersion"], "events.k8s.io/v1");
    assert_eq!(seen["object"]["metadata"]["uid"], created.json["metadata"]["uid"]);
}
