//! The lifecycle of pods on a server with a node.

use kubeproof_reference_server::Config;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn start() -> TestServer {
    TestServer::with(Config { node: true, ..Config::default() }).await
}

fn pod(name: &str, spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "example.com/any:1"}]},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn command(script: &str, policy: &str) -> Value {
    let container = json!({"name": "c", "image": "i", "command": ["sh", "-c", script]});
    json!({"containers": [container], "restartPolicy": policy})
}

fn in_phase(phase: &'static str) -> impl Fn(&Reply) -> bool {
    move |reply| reply.text_at("/status/phase") == phase
}

fn condition<'r>(reply: &'r Reply, kind: &str) -> &'r Value {
    let conditions = reply.json["status"]["conditions"].as_array().expect("conditions");
    conditions.iter().find(|condition| condition["type"] == kind).expect("this condition")
}

#[tokio::test]
async fn a_pod_is_bound_and_becomes_ready() {
    let server = start().await;
    server.post(PODS, &pod("p", &json!({}))).await.expect(201);
    let reply = server.until(&format!("{PODS}/p"), in_phase("Running")).await;
    assert_eq!(reply.text_at("/spec/nodeName"), "kubeproof");
    for kind in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
        assert_eq!(condition(&reply, kind)["status"], "True", "{}", reply.text);
    }
    assert_eq!(reply.json["status"]["containerStatuses"][0]["ready"], true);
    assert!(reply.text_at("/status/podIP").starts_with("10.244."), "{}", reply.text);
    let managers = reply.json["metadata"]["managedFields"].as_array().expect("owners");
    assert!(
        managers.iter().any(|one| one["manager"] == "kubelet" && one["subresource"] == "status")
    );
}

#[tokio::test]
async fn the_phase_of_a_pod_follows_its_exit_code() {
    let server = start().await;
    server.post(PODS, &pod("good", &command("exit 0", "Never"))).await.expect(201);
    server.post(PODS, &pod("bad", &command("exit 3", "Never"))).await.expect(201);
    let good = server.until(&format!("{PODS}/good"), in_phase("Succeeded")).await;
    assert_eq!(condition(&good, "Ready")["reason"], "PodCompleted");
    let bad = server.until(&format!("{PODS}/bad"), in_phase("Failed")).await;
    let state = &bad.json["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(
        (&state["exitCode"], &state["reason"]),
        (&json!(3), &json!("Error")),
        "{}",
        bad.text
    );
}

#[tokio::test]
async fn a_pod_without_a_fitting_node_stays_pending_with_a_reason() {
    let server = start().await;
    server.post(PODS, &pod("p", &json!({"nodeSelector": {"disk": "ssd"}}))).await.expect(201);
    let scheduled = |reply: &Reply| reply.json["status"]["conditions"].is_array();
    let reply = server.until(&format!("{PODS}/p"), scheduled).await;
    assert_eq!(condition(&reply, "PodScheduled")["reason"], "Unschedulable");
    assert_eq!(reply.text_at("/status/phase"), "Pending");
    let labels = json!({"metadata": {"labels": {"disk": "ssd"}}});
    server.merge("/api/v1/nodes/kubeproof", &labels).await.expect(200);
    server.until(&format!("{PODS}/p"), in_phase("Running")).await;
}

#[tokio::test]
async fn scheduling_gates_and_other_schedulers_keep_a_pod_pending() {
    let server = start().await;
    server
        .post(PODS, &pod("gated", &json!({"schedulingGates": [{"name": "example.com/g"}]})))
        .await
        .expect(201);
    server.post(PODS, &pod("other", &json!({"schedulerName": "other"}))).await.expect(201);
    // The later pod runs, so the scheduler has already seen the earlier ones.
    server.post(PODS, &pod("later", &json!({}))).await.expect(201);
    server.until(&format!("{PODS}/later"), in_phase("Running")).await;
    for name in ["gated", "other"] {
        let reply = server.get(&format!("{PODS}/{name}")).await.expect(200);
        assert_eq!(reply.json["spec"].get("nodeName"), None, "{}", reply.text);
    }
    let binding =
        json!({"metadata": {"name": "other"}, "target": {"kind": "Node", "name": "kubeproof"}});
    server.post(&format!("{PODS}/other/binding"), &binding).await.expect(201);
    server.until(&format!("{PODS}/other"), in_phase("Running")).await;
}

#[tokio::test]
async fn a_deleted_pod_disappears_after_its_containers() {
    let server = start().await;
    server.post(PODS, &pod("p", &json!({}))).await.expect(201);
    let running = server.until(&format!("{PODS}/p"), in_phase("Running")).await;
    let mut watch =
        server.watch(&format!("{PODS}?watch=1&resourceVersion={}", running.version())).await;
    let deleted = server.delete(&format!("{PODS}/p"), "").await.expect(200);
    assert_eq!(deleted.json["metadata"]["deletionGracePeriodSeconds"], 30);
    let last = loop {
        let event = watch.next().await.expect("the end of the pod");
        if event["type"] == "DELETED" {
            break event;
        }
    };
    assert!(
        last["object"]["status"]["containerStatuses"][0]["state"]["terminated"].is_object(),
        "{last}"
    );
}

#[tokio::test]
async fn a_namespace_with_running_pods_can_be_deleted() {
    let server = start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    server.post("/api/v1/namespaces", &namespace).await.expect(201);
    server.post("/api/v1/namespaces/n/pods", &pod("p", &json!({}))).await.expect(201);
    server.until("/api/v1/namespaces/n/pods/p", in_phase("Running")).await;
    server.delete("/api/v1/namespaces/n", "").await.expect(200);
    server.until("/api/v1/namespaces/n", |reply| reply.status == 404).await;
}

#[tokio::test]
async fn the_kubelet_keeps_conditions_of_other_clients() {
    let server = start().await;
    let gates = json!({"readinessGates": [{"conditionType": "example.com/open"}]});
    server.post(PODS, &pod("p", &gates)).await.expect(201);
    let running = server.until(&format!("{PODS}/p"), in_phase("Running")).await;
    assert_eq!(condition(&running, "Ready")["reason"], "ReadinessGatesNotReady");
    let open = json!({
        "status": {
            "message": "hello", "conditions": [{"type": "example.com/open", "status": "True"}],
        },
    });
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    server
        .send("PATCH", &format!("{PODS}/p/status"), &headers, &open.to_string())
        .await
        .expect(200);
    let ready = |reply: &Reply| condition(reply, "Ready")["status"] == "True";
    let reply = server.until(&format!("{PODS}/p"), ready).await;
    assert_eq!(reply.text_at("/status/message"), "hello");
}
