//! The `APIService` objects of the groups that the server itself serves.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::TestServer;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LABEL: &str = "/metadata/labels/kube-aggregator.kubernetes.io~1automanaged";

fn definition(versions: &[(&str, bool)]) -> Value {
    let versions = versions.iter().enumerate().map(|(index, (name, served))| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        json!({"name": name, "served": served, "storage": index == 0, "schema": schema})
    });
    json!({
        "metadata": {"name": "barns.farm.io"},
        "spec": {
            "group": "farm.io", "scope": "Namespaced",
            "names": {"plural": "barns", "kind": "Barn"},
            "versions": versions.collect::<Vec<_>>(),
        },
    })
}

#[rstest]
#[case("v1.", 18_000, 1)]
#[case("v1.apps", 17_800, 15)]
#[case("v2.autoscaling", 17_500, 30)]
#[tokio::test]
async fn built_in_groups_are_local(
    #[case] name: &str,
    #[case] group_priority: u32,
    #[case] version_priority: u32,
) {
    let server = TestServer::start().await;
    let service = server.get(&format!("{API_SERVICES}/{name}")).await.expect(200);
    assert_eq!(service.json["spec"]["groupPriorityMinimum"], group_priority);
    assert_eq!(service.json["spec"]["versionPriority"], version_priority);
    assert_eq!(service.text_at(LABEL), "onstart");
    let condition = &service.json["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Available"), &json!("True")));
    assert_eq!(condition["reason"], "Local");
}

#[tokio::test]
async fn each_group_of_discovery_has_a_service() {
    let server = TestServer::start().await;
    let groups = server.get("/apis").await.expect(200).json["groups"].clone();
    let services = server.get(API_SERVICES).await.expect(200).json["items"].clone();
    let services = services.as_array().expect("items");
    let versions = groups.as_array().expect("groups").iter().flat_map(|group| {
        group["versions"].as_array().expect("versions").iter().map(|version| {
            let version = version["version"].as_str().expect("a version");
            format!("{version}.{}", group["name"].as_str().expect("a name"))
        })
    });
    for name in versions.filter(|name| name != "v1.apiregistration.k8s.io") {
        assert!(services.iter().any(|one| one["metadata"]["name"] == name.as_str()), "{name}");
    }
}

#[tokio::test]
async fn services_follow_the_served_versions_of_definitions() {
    let server = TestServer::start().await;
    let created = definition(&[("v1", true), ("v2", true), ("v3", false)]);
    server.post(DEFINITIONS, &created).await.expect(201);
    let path = |version: &str| format!("{API_SERVICES}/{version}.farm.io");
    let service = server.until(&path("v2"), |reply| reply.status == 200).await;
    assert_eq!(service.text_at(LABEL), "true");
    assert_eq!(service.json["spec"]["groupPriorityMinimum"], 1_000);
    server.until(&path("v1"), |reply| reply.status == 200).await;

    let versions = definition(&[("v1", true), ("v2", false), ("v3", true)]);
    let change = json!({"spec": {"versions": versions["spec"]["versions"]}});
    server.merge(&format!("{DEFINITIONS}/barns.farm.io"), &change).await.expect(200);
    server.until(&path("v3"), |reply| reply.status == 200).await;
    server.until(&path("v2"), |reply| reply.status == 404).await;

    server.delete(&format!("{DEFINITIONS}/barns.farm.io"), "").await.expect(200);
    server.until(&path("v1"), |reply| reply.status == 404).await;
    server.until(&path("v3"), |reply| reply.status == 404).await;
}

#[tokio::test]
async fn users_cannot_break_the_service_of_a_definition() {
    let server = TestServer::start().await;
    server.post(DEFINITIONS, &definition(&[("v1", true)])).await.expect(201);
    let path = format!("{API_SERVICES}/v1.farm.io");
    server.until(&path, |reply| reply.status == 200).await;
    let service = json!({"namespace": "default", "name": "gone"});
    let change = json!({"spec": {"service": service, "groupPriorityMinimum": 5}});
    server.merge(&path, &change).await.expect(200);
    server
        .until(&path, |reply| {
            reply.json["spec"].get("service").is_none()
                && reply.json["spec"]["groupPriorityMinimum"] == 1_000
                && reply.json["status"]["conditions"][0]["reason"] == "Local"
        })
        .await;
    server.until("/apis/farm.io/v1/barns", |reply| reply.status == 200).await;

    let before = server.get(&path).await.expect(200).text_at("/metadata/uid").to_owned();
    server.delete(&path, "").await.expect(200);
    let is_new = |reply: &crate::support::Reply| {
        reply.status == 200 && reply.text_at("/metadata/uid") != before
    };
    server.until(&path, is_new).await;
}

#[tokio::test]
async fn a_service_of_a_user_stays() {
    let server = TestServer::start().await;
    let spec = json!({
        "group": "farm.io", "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 8,
    });
    let object = json!({"metadata": {"name": "v1.farm.io"}, "spec": spec});
    server.post(API_SERVICES, &object).await.expect(201);
    server.post(DEFINITIONS, &definition(&[("v1", true), ("v2", true)])).await.expect(201);
    server.until(&format!("{API_SERVICES}/v2.farm.io"), |reply| reply.status == 200).await;
    let kept = server.get(&format!("{API_SERVICES}/v1.farm.io")).await.expect(200);
    assert_eq!(kept.json["spec"]["groupPriorityMinimum"], 7);
}
