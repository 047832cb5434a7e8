//! Groups of extension servers.

use http::HeaderMap;
use rstest::rstest;
use serde_json::{Value, json};

use crate::https::{HttpsServer, Received};
use crate::support::TestServer;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FARM: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.farm.example.com";
const GROUP: &str = "/apis/farm.example.com/v1";
const BARNS: &str = "/apis/farm.example.com/v1/namespaces/default/barns";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Responds as an extension server with one resource.
fn farm(request: &Received) -> (u16, Value) {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        GROUP => {
            let barn = json!({
                "name": "barns", "singularName": "barn", "namespaced": true, "kind": "Barn",
                "verbs": ["get", "list", "create"],
            });
            let document = json!({
                "kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": "farm.example.com/v1", "resources": [barn],
            });
            (200, document)
        }
        "/openapi/v3" => {
            let url = "/openapi/v3/apis/farm.example.com/v1?hash=A";
            let entry = json!({"serverRelativeURL": url});
            (200, json!({"paths": {"apis/farm.example.com/v1": entry}}))
        }
        "/openapi/v3/apis/farm.example.com/v1" => (200, json!({"openapi": "3.0.0"})),
        "/openapi/v2" => {
            let barn = json!({"type": "object", "properties": {"meta": {"type": "string"}}});
            let get = json!({"schema": {"$ref": "#/definitions/com.example.Barn"}});
            let paths = json!({BARNS: {"get": get}, "/version": {}});
            (200, json!({"paths": paths, "definitions": {"com.example.Barn": barn}}))
        }
        BARNS if request.method == "POST" => (201, request.body.clone()),
        BARNS => (200, json!({"kind": "BarnList", "path": request.path})),
        _ => (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})),
    }
}

/// Registers an extension server behind a service with an external name.
pub(crate) async fn register(server: &TestServer, port: u16, changes: &Value) {
    let service = json!({
        "metadata": {"name": "farm"}, "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    server.post(SERVICES, &service).await.expect(201);
    let mut spec = json!({
        "group": "farm.example.com", "version": "v1", "groupPriorityMinimum": 100,
        "versionPriority": 10, "service": {"namespace": "default", "name": "farm", "port": port},
    });
    for (field, value) in changes.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    let object = json!({"metadata": {"name": "v1.farm.example.com"}, "spec": spec});
    server.post(API_SERVICES, &object).await.expect(201);
}

async fn registered() -> (TestServer, HttpsServer) {
    let server = TestServer::start().await;
    let map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let map = server.get(map).await.expect(200);
    assert_eq!(map.text_at("/data/requestheader-allowed-names"), r#"["front-proxy-client"]"#);
    let authority = map.text_at("/data/requestheader-client-ca-file");
    let extension = HttpsServer::trusting(authority, farm).await;
    let bundle = json!({"caBundle": extension.ca_bundle()});
    register(&server, extension.port(), &bundle).await;
    condition(&server, "Passed").await;
    (server, extension)
}

/// Waits for the reason of the condition, and returns the condition.
pub(crate) async fn condition(server: &TestServer, reason: &str) -> Value {
    let pointer = "/status/conditions/0/reason";
    let reply = server.until(FARM, |reply| reply.text_at(pointer) == reason).await;
    reply.json["status"]["conditions"][0].clone()
}

#[tokio::test]
async fn requests_of_the_group_go_to_the_extension_server() {
    let (server, extension) = registered().await;
    let query = format!("{BARNS}?limit=5&labelSelector=a%3Db");
    let headers = [("x-remote-user", "root"), ("x-remote-extra-a", "b")];
    let reply = server.send("GET", &query, &headers, "").await.expect(200);
    assert_eq!(reply.text_at("/path"), query);
    server.post(BARNS, &json!({"spec": {"size": 3}})).await.expect(201);
    let is_last = |request: &Received| request.path == query;
    let seen = extension.received().into_iter().find(is_last).expect("a request");
    let values = |headers: &HeaderMap, name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.map(|value| value.to_str().expect("text").to_owned()).collect()
    };
    assert_eq!(values(&seen.headers, "x-remote-user"), ["kubeproof-admin"]);
    let groups = values(&seen.headers, "x-remote-group");
    assert!(groups.contains(&"system:masters".to_owned()), "{groups:?}");
    assert_eq!(values(&seen.headers, "x-remote-extra-a"), [""; 0]);
    assert_eq!(values(&seen.headers, "authorization"), [""; 0]);
    let last = extension.received().pop().expect("a request");
    assert_eq!(last.body, json!({"spec": {"size": 3}}));

    let denied = [("authorization", "Bearer user")];
    let reply = server.send("GET", BARNS, &denied, "").await;
    assert_eq!(reply.expect(403).reason(), "Forbidden");
}

#[tokio::test]
async fn discovery_includes_the_group() {
    let (server, _extension) = registered().await;
    let groups = server.get("/apis").await.expect(200);
    let groups = groups.json["groups"].as_array().expect("groups").clone();
    let group = groups.iter().find(|group| group["name"] == "farm.example.com").expect("a group");
    assert_eq!(group["preferredVersion"]["groupVersion"], "farm.example.com/v1");
    let group = server.get("/apis/farm.example.com").await.expect(200);
    assert_eq!(group.json["versions"][0]["version"], "v1");
    let resources = server.get(GROUP).await.expect(200);
    assert_eq!(resources.json["resources"][0]["name"], "barns");
    let roots = server.get("/").await.expect(200);
    assert!(roots.json["paths"].as_array().expect("paths").contains(&json!(GROUP)));

    // The extension server has no aggregated discovery, so its resources come from the legacy one.
    let reply = server.send("GET", "/apis", &[("accept", AGGREGATED)], "").await.expect(200);
    let items = reply.json["items"].as_array().expect("groups").clone();
    let item = items.iter().find(|item| item["metadata"]["name"] == "farm.example.com");
    let version = &item.expect("a group")["versions"][0];
    assert_eq!(version["freshness"], "Current");
    assert_eq!(version["resources"][0]["resource"], "barns");
    assert_eq!(version["resources"][0]["scope"], "Namespaced");
}

#[tokio::test]
async fn openapi_includes_the_documents_of_the_group() {
    let (server, _extension) = registered().await;
    let index = server.get("/openapi/v3").await.expect(200);
    let pointer = "/paths/apis~1farm.example.com~1v1/serverRelativeURL";
    assert_eq!(index.text_at(pointer), "/openapi/v3/apis/farm.example.com/v1?hash=A");
    let document = server.get(index.text_at(pointer)).await.expect(200);
    assert_eq!(document.text_at("/openapi"), "3.0.0");
    let document = server.get("/openapi/v2").await.expect(200);
    assert!(document.json["paths"][BARNS].is_object());
    assert!(document.json["definitions"]["com.example.Barn"].is_object());
    assert!(document.json["paths"]["/api/v1/pods"].is_object());
}

#[tokio::test]
async fn a_removed_group_is_not_found() {
    let (server, _extension) = registered().await;
    server.delete(FARM, "").await.expect(200);
    server.until(BARNS, |reply| reply.status == 404).await;
    let groups = server.get("/apis").await.expect(200);
    assert!(!groups.text.contains("farm.example.com"));
}

#[tokio::test]
async fn a_group_without_service_is_unavailable() {
    let server = TestServer::start().await;
    register(&server, 443, &json!({"service": {"namespace": "default", "name": "gone"}})).await;
    let found = condition(&server, "ServiceNotFound").await;
    assert_eq!(found["status"], "False");
    assert_eq!(found["message"], r#"service/gone in "default" is not present"#);
    let reply = server.get(BARNS).await.expect(503);
    assert_eq!(reply.text, "service unavailable\n");
    let reply = server.send("GET", "/apis", &[("accept", AGGREGATED)], "").await.expect(200);
    let items = reply.json["items"].as_array().expect("groups").clone();
    let item = items.iter().find(|item| item["metadata"]["name"] == "farm.example.com");
    assert_eq!(item.expect("a group")["versions"][0]["freshness"], "Stale");
}

#[rstest]
#[case::no_port(json!({"ports": [{"port": 80}]}), "ServicePortError")]
#[case::no_endpoint(json!({"ports": [{"port": 443}]}), "EndpointsNotFound")]
#[tokio::test]
async fn the_condition_names_what_the_service_lacks(#[case] spec: Value, #[case] reason: &str) {
    let server = TestServer::start().await;
    let service = json!({"metadata": {"name": "lacking"}, "spec": spec});
    server.post(SERVICES, &service).await.expect(201);
    register(&server, 443, &json!({"service": {"namespace": "default", "name": "lacking"}})).await;
    assert_eq!(condition(&server, reason).await["status"], "False");
}

#[tokio::test]
async fn an_untrusted_server_is_unavailable_unless_trust_is_not_required() {
    let server = TestServer::start().await;
    let extension = HttpsServer::start(farm).await;
    let other = HttpsServer::start(farm).await;
    let bundle = json!({"caBundle": other.ca_bundle()});
    register(&server, extension.port(), &bundle).await;
    let found = condition(&server, "FailedDiscoveryCheck").await;
    assert!(found["message"].as_str().is_some_and(|text| text.contains("certificate")), "{found}");
    let skip = json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}});
    server.merge(FARM, &skip).await.expect(200);
    let found = condition(&server, "Passed").await;
    assert_eq!(
        (&found["status"], &found["message"]),
        (&json!("True"), &json!("all checks passed"))
    );
    server.get(BARNS).await.expect(200);
}

#[tokio::test]
async fn a_group_without_a_service_stays_local() {
    let server = TestServer::start().await;
    let spec = json!({
        "group": "local.example.com", "version": "v1",
        "groupPriorityMinimum": 100, "versionPriority": 10,
    });
    let object = json!({"metadata": {"name": "v1.local.example.com"}, "spec": spec});
    server.post(API_SERVICES, &object).await.expect(201);
    let path = format!("{API_SERVICES}/v1.local.example.com");
    let is_local =
        |reply: &crate::support::Reply| reply.text_at("/status/conditions/0/reason") == "Local";
    server.until(&path, is_local).await;
    server.get("/apis/local.example.com/v1").await.expect(404);
}
