//! The deletion of namespaces with objects of extension servers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::aggregation::{condition, register};
use crate::https::{HttpsServer, Received};
use crate::support::{Reply, TestServer};

const GROUP: &str = "/apis/farm.example.com/v1";
const BARNS: &str = "/apis/farm.example.com/v1/namespaces/gone/barns";
const NAMESPACE: &str = "/api/v1/namespaces/gone";
const FARM: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.farm.example.com";

/// The barns of the namespace `gone`.
type Barns = Arc<Mutex<BTreeSet<String>>>;

fn barns(names: &[&str]) -> Barns {
    Arc::new(Mutex::new(names.iter().map(|name| (*name).to_owned()).collect()))
}

/// Responds as an extension server that has barns in one namespace. `stays` cannot be deleted.
fn farm(barns: &Barns, request: &Received) -> (u16, Value) {
    let mut barns = barns.lock().expect("the barns");
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        (_, GROUP) => {
            let barn = json!({
                "name": "barns", "singularName": "barn", "namespaced": true, "kind": "Barn",
                "verbs": ["list", "delete"],
            });
            let document = json!({
                "kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": "farm.example.com/v1", "resources": [barn],
            });
            (200, document)
        }
        ("GET", BARNS) => {
            let items: Vec<Value> =
                barns.iter().map(|name| json!({"metadata": {"name": name}})).collect();
            (200, json!({"kind": "BarnList", "items": items}))
        }
        ("DELETE", path) => {
            let name = path.rsplit('/').next().unwrap_or_default();
            (if name == "stays" || barns.remove(name) { 200 } else { 404 }, json!({}))
        }
        _ => (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})),
    }
}

/// Starts a server and an extension server with barns in the namespace `gone`.
async fn with_farm(barns: &Barns) -> (TestServer, HttpsServer) {
    let server = TestServer::start().await;
    let known = Arc::clone(barns);
    let extension = HttpsServer::start(move |request| farm(&known, request)).await;
    register(&server, extension.port(), &json!({"caBundle": extension.ca_bundle()})).await;
    condition(&server, "Passed").await;
    // The documents of the extension server follow its check.
    server.until("/", |reply| reply.text.contains(GROUP)).await;
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "gone"}})).await.expect(201);
    (server, extension)
}

fn has_condition(reply: &Reply, reason: &str) -> bool {
    let conditions = reply.json["status"]["conditions"].as_array();
    conditions
        .is_some_and(|all| all.iter().any(|one| one["reason"] == reason && one["status"] == "True"))
}

#[tokio::test]
async fn a_deleted_namespace_loses_the_objects_of_extension_servers() {
    let barns = barns(&["red", "blue"]);
    let (server, _extension) = with_farm(&barns).await;
    server.delete(NAMESPACE, "").await.expect(200);
    server.until(NAMESPACE, |reply| reply.status == 404).await;
    assert_eq!(*barns.lock().expect("the barns"), BTreeSet::new());
}

#[tokio::test]
async fn a_namespace_waits_for_the_objects_of_extension_servers() {
    let barns = barns(&["red", "stays"]);
    let (server, _extension) = with_farm(&barns).await;
    server.delete(NAMESPACE, "").await.expect(200);
    let waiting =
        server.until(NAMESPACE, |reply| has_condition(reply, "SomeResourcesRemain")).await;
    assert!(waiting.text.contains("barns.farm.example.com has 1 resource instances"));
    barns.lock().expect("the barns").clear();
    server.until(NAMESPACE, |reply| reply.status == 404).await;
}

#[tokio::test]
async fn a_broken_group_holds_the_deletion_of_namespaces() {
    let server = TestServer::start().await;
    let service = json!({"namespace": "default", "name": "absent"});
    register(&server, 443, &json!({"service": service})).await;
    condition(&server, "ServiceNotFound").await;
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "gone"}})).await.expect(201);
    server.delete(NAMESPACE, "").await.expect(200);
    server.until(NAMESPACE, |reply| has_condition(reply, "DiscoveryFailed")).await;
    server.delete(FARM, "").await.expect(200);
    server.until(NAMESPACE, |reply| reply.status == 404).await;
}
