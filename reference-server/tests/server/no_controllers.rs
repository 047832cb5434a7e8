//! A server without controllers, as in test suites that run kube-apiserver alone.

use kubeproof_reference_server::{Config, Controllers};
use serde_json::json;

use crate::support::{CONFIG_MAPS, TestServer, config_map};

/// The deletion of the definition shows that deletions which began earlier had time to end.
#[tokio::test]
async fn namespaces_and_dependents_stay_and_definitions_are_deleted() {
    let server =
        TestServer::with(Config { controllers: Controllers::None, ..Config::default() }).await;
    let namespace = json!({"metadata": {"name": "doomed"}});
    server.post("/api/v1/namespaces", &namespace).await.expect(201);
    let owner = server.post(CONFIG_MAPS, &config_map("owner")).await.expect(201);
    let mut dependent = config_map("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner.text_at("/metadata/uid"),
    }]);
    server.post(CONFIG_MAPS, &dependent).await.expect(201);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    server.post(definitions, &definition).await.expect(201);

    server.delete("/api/v1/namespaces/doomed", "").await.expect(200);
    server.delete(&format!("{CONFIG_MAPS}/owner"), "").await.expect(200);
    let definition = format!("{definitions}/things.example.com");
    server.delete(&definition, "").await.expect(200);
    server.until(&definition, |reply| reply.status == 404).await;

    let namespace = server.get("/api/v1/namespaces/doomed").await.expect(200);
    assert_eq!(namespace.text_at("/status/phase"), "Terminating");
    assert_eq!(namespace.json["spec"]["finalizers"], json!(["kubernetes"]));
    server.get(&format!("{CONFIG_MAPS}/dependent")).await.expect(200);
}
