//! The plugins that kube-apiserver enables by default: tolerations, runtime classes, volumes,
//! ingresses and nodes.

use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const NODES: &str = "/api/v1/nodes";

fn pod(name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["containers"] = json!([{"name": "c", "image": "image"}]);
    json!({"metadata": {"name": name}, "spec": spec})
}

fn claim(name: &str, class: &str) -> Value {
    let requests = json!({"storage": "1Gi"});
    json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": requests},
    }})
}

#[tokio::test]
async fn pods_tolerate_failed_nodes_for_some_time() {
    let server = TestServer::start().await;
    let own = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]);
    let created = server.post(PODS, &pod("a", &json!({"tolerations": own}))).await.expect(201);
    let tolerations = created.json["spec"]["tolerations"].as_array().expect("tolerations").clone();
    let added = json!({
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 300,
    });
    assert_eq!(tolerations, [own[0].clone(), added]);
}

#[tokio::test]
async fn a_runtime_class_completes_pods() {
    let server = TestServer::start().await;
    let named = json!({"runtimeClassName": "small"});
    let rejected = server.post(PODS, &pod("a", &named)).await.rejected(403, "Forbidden");
    let why = "pods \"a\" is forbidden: pod rejected: RuntimeClass \"small\" not found";
    assert_eq!(rejected.text_at("/message"), why);
    let class = json!({
        "metadata": {"name": "small"}, "handler": "small",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"runtime": "small"}},
    });
    server.post("/apis/node.k8s.io/v1/runtimeclasses", &class).await.expect(201);
    let created = server.post(PODS, &pod("a", &named)).await.expect(201);
    assert_eq!(created.json["spec"]["overhead"], json!({"cpu": "100m"}));
    assert_eq!(created.json["spec"]["nodeSelector"], json!({"runtime": "small"}));
    let other = json!({"overhead": {"cpu": "1"}});
    server.post(PODS, &pod("b", &other)).await.rejected(403, "Forbidden");
}

#[tokio::test]
async fn a_claim_stays_while_a_pod_uses_it() {
    let server = TestServer::start().await;
    let created = server.post(CLAIMS, &claim("a", "")).await.expect(201);
    let finalizers = &created.json["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["kubernetes.io/pvc-protection"]));
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "a"}});
    let user = pod("user", &json!({"volumes": [volume], "nodeName": "somewhere"}));
    server.post(PODS, &user).await.expect(201);
    let path = format!("{CLAIMS}/a");
    server.delete(&path, "").await.expect(200);
    // The controller processes the claims in their order, so it has seen the first one.
    server.post(CLAIMS, &claim("b", "")).await.expect(201);
    server.delete(&format!("{CLAIMS}/b"), "").await.expect(200);
    server.until(&format!("{CLAIMS}/b"), |reply| reply.status == 404).await;
    server.get(&path).await.expect(200);
    server.delete(&format!("{PODS}/user?gracePeriodSeconds=0"), "").await.expect(200);
    server.until(&path, |reply| reply.status == 404).await;
}

#[tokio::test]
async fn a_claim_grows_if_its_class_permits_it() {
    let server = TestServer::start().await;
    for (name, expands) in [("elastic", true), ("fixed", false)] {
        let class = json!({
            "metadata": {"name": name}, "provisioner": "example.com/disk",
            "allowVolumeExpansion": expands,
        });
        server.post("/apis/storage.k8s.io/v1/storageclasses", &class).await.expect(201);
        server.post(CLAIMS, &claim(name, name)).await.expect(201);
        let path = format!("{CLAIMS}/{name}");
        let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        server.merge(&path, &larger).await.rejected(422, "Invalid");
        let bound = json!({"status": {"phase": "Bound"}});
        server.merge(&format!("{path}/status"), &bound).await.expect(200);
        let reply = server.merge(&path, &larger).await;
        assert_eq!(reply.status, if expands { StatusCode::OK } else { StatusCode::FORBIDDEN });
    }
}

#[tokio::test]
async fn ingresses_get_the_default_class() {
    let server = TestServer::start().await;
    let annotations = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let class = json!({
        "metadata": {"name": "front", "annotations": annotations},
        "spec": {"controller": "example.com/front"},
    });
    server.post("/apis/networking.k8s.io/v1/ingressclasses", &class).await.expect(201);
    let service = json!({"name": "web", "port": {"number": 80}});
    let ingress = json!({
        "metadata": {"name": "a"}, "spec": {"defaultBackend": {"service": service}},
    });
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let created = server.post(ingresses, &ingress).await.expect(201);
    assert_eq!(created.text_at("/spec/ingressClassName"), "front");
}

#[tokio::test]
async fn a_new_node_has_a_taint_until_it_is_ready() {
    let server = TestServer::start().await;
    let labels = json!({"topology.kubernetes.io/zone": "west", "other": "label"});
    let node = json!({"metadata": {"name": "n", "labels": labels}});
    let created = server.post(NODES, &node).await.expect(201);
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    assert_eq!(created.json["spec"]["taints"], json!([taint]));
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    server.merge(&format!("{NODES}/n/status"), &ready).await.expect(200);
    let is_free = |reply: &Reply| reply.json["spec"].get("taints").is_none();
    server.until(&format!("{NODES}/n"), is_free).await;

    server.post(PODS, &pod("a", &json!({"schedulerName": "other"}))).await.expect(201);
    let binding = json!({
        "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"},
    });
    server.post(&format!("{PODS}/a/binding"), &binding).await.expect(201);
    let bound = server.get(&format!("{PODS}/a")).await.expect(200);
    let labels = json!({"topology.kubernetes.io/zone": "west"});
    assert_eq!(bound.json["metadata"]["labels"], labels);
}
