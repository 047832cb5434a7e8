//! Subresources that write a part of a pod, bindings, and the statuses of components.

use kubeproof_reference_server::Config;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BINDINGS: &str = "/api/v1/namespaces/default/bindings";

fn pod(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    })
}

/// Sends a strategic merge patch.
async fn patch(server: &TestServer, path: &str, body: &Value) -> Reply {
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    server.send("PATCH", path, &headers, &body.to_string()).await
}

#[tokio::test]
async fn a_part_is_written_alone() {
    let server = TestServer::start().await;
    server.post(PODS, &pod("p")).await.expect(201);
    let path = format!("{PODS}/p/ephemeralcontainers?fieldManager=debug");
    let body = json!({
        "metadata": {"labels": {"x": "y"}},
        "spec": {"nodeName": "n", "ephemeralContainers": [{"name": "e", "image": "i"}]},
        "status": {"phase": "Failed"},
    });
    let added = patch(&server, &path, &body).await.expect(200).json;
    assert_eq!(added["spec"]["ephemeralContainers"][0]["imagePullPolicy"], "Always");
    assert_eq!(added["spec"].get("nodeName"), None);
    assert_eq!(added["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(added["metadata"]["generation"], 2);
    assert_eq!(added["status"]["phase"], "Pending");
    let owners = added["metadata"]["managedFields"].as_array().expect("owners");
    let owner = owners.iter().find(|owner| owner["manager"] == "debug").expect("an owner");
    assert_eq!(owner["subresource"], "ephemeralcontainers");
    let fields: Vec<&String> =
        owner["fieldsV1"]["f:spec"].as_object().into_iter().flat_map(|spec| spec.keys()).collect();
    assert_eq!(fields, ["f:ephemeralContainers"]);

    let same = server.get(&format!("{PODS}/p/ephemeralcontainers")).await.expect(200).json;
    assert_eq!(same, server.get(&format!("{PODS}/p")).await.expect(200).json);
    let again = patch(&server, &path, &body).await.expect(200).json;
    assert_eq!(again["metadata"]["resourceVersion"], same["metadata"]["resourceVersion"]);
    for path in ["ephemeralcontainers", "resize"] {
        let path = format!("{PODS}/p/{path}");
        server.post(&path, &json!({})).await.rejected(405, "MethodNotAllowed");
        server.delete(&path, "").await.rejected(405, "MethodNotAllowed");
    }
}

#[tokio::test]
async fn a_part_is_applied() {
    let server = TestServer::start().await;
    server.post(PODS, &pod("p")).await.expect(201);
    let path = format!("{PODS}/p/resize?fieldManager=autoscaler&force=true");
    let config = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]},
    });
    let headers = [("content-type", "application/apply-patch+yaml")];
    let reply = server.send("PATCH", &path, &headers, &config.to_string()).await.expect(200);
    let container = &reply.json["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"]["cpu"], "150m");
    let owners = reply.json["metadata"]["managedFields"].as_array().expect("owners");
    let owner = owners.iter().find(|owner| owner["manager"] == "autoscaler").expect("an owner");
    let container = &owner["fieldsV1"]["f:spec"]["f:containers"][r#"k:{"name":"c"}"#];
    assert_eq!(container, &json!({"f:resources": {"f:requests": {"f:cpu": {}}}}));
}

#[tokio::test]
async fn the_whole_pod_and_its_parts_have_different_rules() {
    let server = TestServer::start().await;
    let mut with_ephemeral = pod("q");
    with_ephemeral["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
    server.post(PODS, &with_ephemeral).await.rejected(422, "Invalid");
    server.post(PODS, &pod("p")).await.expect(201);
    let path = format!("{PODS}/p");
    let resources = json!({"requests": {"cpu": "150m"}});
    for spec in [
        json!({"ephemeralContainers": [{"name": "e", "image": "i"}]}),
        json!({"containers": [{"name": "c", "resources": resources}]}),
    ] {
        patch(&server, &path, &json!({ "spec": spec })).await.rejected(422, "Invalid");
    }
    let renamed = json!([{"op": "replace", "path": "/spec/containers/0/name", "value": "d"}]);
    let headers = [("content-type", "application/json-patch+json")];
    let resize = format!("{path}/resize");
    let reply = server.send("PATCH", &resize, &headers, &renamed.to_string()).await;
    let reply = reply.rejected(422, "Invalid");
    assert_eq!(reply.json["details"]["causes"][0]["field"], "spec.containers[0].name");
}

/// The kubelet reports resources, so the server permits the resize of a running pod.
#[tokio::test]
async fn a_running_pod_is_resized() {
    let server = TestServer::with(Config { node: true, ..Config::default() }).await;
    server.post(PODS, &pod("p")).await.expect(201);
    let running = |reply: &Reply| reply.json["status"]["phase"] == "Running";
    server.until(&format!("{PODS}/p"), running).await;
    let body = json!({"spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "150m"}}},
    ]}});
    patch(&server, &format!("{PODS}/p/resize"), &body).await.expect(200);
    let resized = |reply: &Reply| {
        let status = &reply.json["status"]["containerStatuses"][0];
        status["resources"]["requests"]["cpu"] == "150m"
            && status["allocatedResources"]["cpu"] == "150m"
    };
    server.until(&format!("{PODS}/p"), resized).await;
}

#[tokio::test]
async fn a_binding_names_its_pod() {
    let server = TestServer::start().await;
    server.post(PODS, &pod("p")).await.expect(201);
    let binding = json!({
        "metadata": {"name": "p", "annotations": {"c": "d"}, "labels": {"e": "f"}},
        "target": {"kind": "Node", "name": "n"},
    });
    assert_eq!(server.post(BINDINGS, &binding).await.expect(201).json["status"], "Success");
    let bound = server.get(&format!("{PODS}/p")).await.expect(200).json;
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(bound["metadata"]["annotations"], json!({"c": "d"}));
    assert_eq!(bound["metadata"]["labels"], json!({"a": "b", "e": "f"}));

    server.post(BINDINGS, &binding).await.rejected(409, "Conflict");
    server.get(BINDINGS).await.rejected(405, "MethodNotAllowed");
    for (name, code, reason) in [("none", 404, "NotFound"), ("", 400, "BadRequest")] {
        let binding = json!({"metadata": {"name": name}, "target": {"name": "n"}});
        server.post(BINDINGS, &binding).await.rejected(code, reason);
    }
    let other = json!({"metadata": {"name": "x"}, "target": {"name": "n"}});
    server.post(&format!("{PODS}/p/binding"), &other).await.rejected(400, "BadRequest");
    server.post(BINDINGS, &pod("p")).await.rejected(400, "BadRequest");
}

#[tokio::test]
async fn components_have_a_status() {
    let server = TestServer::start().await;
    let path = "/api/v1/componentstatuses";
    let list = server.get(path).await.expect(200);
    assert!(list.headers["warning"].to_str().is_ok_and(|text| text.contains("v1.19+")));
    assert_eq!(list.json["items"].as_array().map(Vec::len), Some(3));
    let etcd = server.get(&format!("{path}/etcd-0")).await.expect(200).json;
    assert_eq!(etcd["conditions"][0]["status"], "True");
    server.get(&format!("{path}/none")).await.rejected(404, "NotFound");
    server.post(path, &json!({})).await.rejected(405, "MethodNotAllowed");
}
