//! Creates, reads, updates and deletions.

use crate::support::{CONFIG_MAPS, TestServer, config_map};
use rstest::rstest;
use serde_json::{Value, json};

fn path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

#[tokio::test]
async fn an_object_can_be_read_from_its_creation_to_its_deletion() {
    let server = TestServer::start().await;
    let created = server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    assert_eq!(created.json["kind"], "ConfigMap");
    assert_eq!(created.text_at("/metadata/namespace"), "default");
    assert!(!created.text_at("/metadata/uid").is_empty());
    let read = server.get(&path("a")).await.expect(200);
    assert_eq!(read.json, created.json);
    let deleted = server.delete(&path("a"), "").await.expect(200);
    assert_eq!(deleted.json["status"], "Success");
    assert_eq!(deleted.text_at("/details/uid"), created.text_at("/metadata/uid"));
    server.get(&path("a")).await.rejected(404, "NotFound");
}

#[tokio::test]
async fn a_deletion_applies_its_options_and_returns_the_deleted_object() {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let server = TestServer::start().await;
    let created = server.post(LEASES, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let text = [("content-type", "text/plain")];
    let lease = format!("{LEASES}/a");
    server.send("DELETE", &lease, &text, "{}").await.rejected(415, "UnsupportedMediaType");
    server.delete(&lease, "[]").await.rejected(400, "BadRequest");
    let yaml = [("content-type", "application/yaml")];
    server.send("DELETE", &lease, &yaml, "dryRun: [All]\n").await.expect(200);
    let deleted = server.send("DELETE", &lease, &text, "").await.expect(200);
    let uid = created.text_at("/metadata/uid");
    let details =
        json!({"name": "a", "group": "coordination.k8s.io", "kind": "leases", "uid": uid});
    assert_eq!(deleted.json["details"], details);
}

#[rstest]
#[case("/apis/storage.k8s.io/v1/storageclasses", json!({"provisioner": "a.example.com/b"}))]
#[case("/apis/resource.k8s.io/v1/deviceclasses", json!({"spec": {}}))]
#[case("/api/v1/namespaces/default/resourcequotas", json!({}))]
#[tokio::test]
async fn deletions_of_some_types_return_the_object(#[case] collection: &str, #[case] body: Value) {
    let server = TestServer::start().await;
    let mut body = body;
    body["metadata"]["name"] = "a".into();
    let created = server.post(collection, &body).await.expect(201);
    let deleted = server.delete(&format!("{collection}/a"), "").await.expect(200);
    assert_eq!(deleted.text_at("/metadata/uid"), created.text_at("/metadata/uid"));
}

#[tokio::test]
async fn a_create_with_a_taken_name_is_rejected_and_changes_nothing() {
    let server = TestServer::start().await;
    let first = server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut other = config_map("a");
    other["data"] = json!({ "a": "2" });
    let rejected = server.post(CONFIG_MAPS, &other).await.rejected(409, "AlreadyExists");
    assert_eq!(rejected.json["details"], json!({ "name": "a", "kind": "configmaps" }));
    assert_eq!(server.get(&path("a")).await.json, first.json);
}

#[rstest]
#[case(json!({ "metadata": {} }), 422, "Invalid")]
#[case(json!({ "metadata": { "name": "Upper" } }), 422, "Invalid")]
#[case(json!({ "metadata": { "name": "a", "namespace": "other" } }), 400, "BadRequest")]
#[case(json!({ "kind": "Secret", "metadata": { "name": "a" } }), 400, "BadRequest")]
#[case(json!({ "apiVersion": "v2", "metadata": { "name": "a" } }), 400, "BadRequest")]
#[case(json!({ "metadata": { "name": "a" }, "data": "text" }), 400, "BadRequest")]
#[case(json!({ "metadata": { "name": "a", "resourceVersion": "7" } }), 400, "BadRequest")]
#[case(json!([]), 400, "BadRequest")]
#[case(Value::Null, 422, "Invalid")]
#[tokio::test]
async fn invalid_objects_are_rejected(
    #[case] body: Value,
    #[case] code: u16,
    #[case] reason: &str,
) {
    let server = TestServer::start().await;
    server.post(CONFIG_MAPS, &body).await.rejected(code, reason);
    assert!(server.get(CONFIG_MAPS).await.names().is_empty());
}

#[tokio::test]
async fn a_create_in_a_missing_namespace_is_rejected() {
    let server = TestServer::start().await;
    let rejected = server
        .post("/api/v1/namespaces/nope/configmaps", &config_map("a"))
        .await
        .rejected(404, "NotFound");
    assert_eq!(rejected.json["details"], json!({ "name": "nope", "kind": "namespaces" }));
    assert!(server.get("/api/v1/namespaces/nope/configmaps").await.expect(200).names().is_empty());
}

#[tokio::test]
async fn a_dry_run_returns_the_result_and_stores_nothing() {
    let server = TestServer::start().await;
    let shown =
        server.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a")).await.expect(201);
    assert!(!shown.text_at("/metadata/uid").is_empty());
    server.get(&path("a")).await.expect(404);
    server
        .post(&format!("{CONFIG_MAPS}?dryRun=yes"), &config_map("a"))
        .await
        .rejected(422, "Invalid");
    let stored = server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let patch = json!({ "data": { "b": "2" } });
    let shown = server.merge(&format!("{}?dryRun=All", path("a")), &patch).await.expect(200);
    assert_eq!(shown.json["data"]["b"], "2");
    server.delete(&format!("{}?dryRun=All", path("a")), "").await.expect(200);
    assert_eq!(server.get(&path("a")).await.json, stored.json);
    let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    let held = server.merge(&path("a"), &held).await.expect(200);
    let shown = server.delete(&format!("{}?dryRun=All", path("a")), "").await.expect(200);
    assert!(!shown.text_at("/metadata/deletionTimestamp").is_empty());
    assert_eq!(server.get(&path("a")).await.json, held.json);
}

#[tokio::test]
async fn field_validation_covers_unknown_and_duplicate_fields() {
    let server = TestServer::start().await;
    let body = r#"{"metadata":{"name":"a"},"bogus":1,"data":{"a":"1","a":"2"}}"#;
    let json_type = [("content-type", "application/json")];
    let strict = server
        .send("POST", &format!("{CONFIG_MAPS}?fieldValidation=Strict"), &json_type, body)
        .await;
    strict.rejected(400, "BadRequest");
    let ignored = server
        .send("POST", &format!("{CONFIG_MAPS}?fieldValidation=Ignore&dryRun=All"), &json_type, body)
        .await;
    assert!(!ignored.expect(201).headers.contains_key("warning"));
    let warned = server.send("POST", CONFIG_MAPS, &json_type, body).await.expect(201);
    let warnings: Vec<_> =
        warned.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(
        warnings,
        [r#"299 - "duplicate field \"data.a\"""#, r#"299 - "unknown field \"bogus\"""#]
    );
    assert_eq!(warned.json["data"]["a"], "2");
    server
        .post(&format!("{CONFIG_MAPS}?fieldValidation=strict"), &config_map("b"))
        .await
        .rejected(422, "Invalid");
}

#[tokio::test]
async fn a_put_replaces_the_whole_object() {
    let server = TestServer::start().await;
    let mut object = config_map("a");
    object["metadata"]["labels"] = json!({ "x": "y" });
    let created = server.post(CONFIG_MAPS, &object).await.expect(201);
    let updated = server.put(&path("a"), &config_map("a")).await.expect(200);
    assert_eq!(updated.json["metadata"]["labels"], Value::Null);
    assert_eq!(updated.text_at("/metadata/uid"), created.text_at("/metadata/uid"));
    assert_eq!(
        updated.text_at("/metadata/creationTimestamp"),
        created.text_at("/metadata/creationTimestamp")
    );
    assert!(updated.version() > created.version());
    let again = server.put(&path("a"), &config_map("a")).await.expect(200);
    assert_eq!(again.version(), updated.version(), "a write that changes nothing is none");
    server.put(&path("b"), &config_map("b")).await.rejected(404, "NotFound");
    server.put(&path("b"), &config_map("c")).await.rejected(400, "BadRequest");
    server.put(&path("a"), &config_map("b")).await.rejected(400, "BadRequest");
    server.put(&path("a"), &json!({ "metadata": {} })).await.rejected(400, "BadRequest");
}

#[rstest]
#[case("resourceVersion", "1", 409, "Conflict")]
#[case("resourceVersion", "99999", 409, "Conflict")]
#[case("resourceVersion", "old", 400, "BadRequest")]
#[case("uid", "11111111-1111-4111-8111-111111111111", 409, "Conflict")]
#[case("deletionTimestamp", "2001-01-01T00:00:00Z", 422, "Invalid")]
#[tokio::test]
async fn a_put_of_another_object_is_rejected(
    #[case] field: &str,
    #[case] value: &str,
    #[case] code: u16,
    #[case] reason: &str,
) {
    let server = TestServer::start().await;
    let created = server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut object = config_map("a");
    object["data"] = json!({ "a": "2" });
    object["metadata"][field] = value.into();
    server.put(&path("a"), &object).await.rejected(code, reason);
    assert_eq!(server.get(&path("a")).await.json, created.json);
}

#[tokio::test]
async fn one_of_several_concurrent_updates_succeeds_and_all_patches_succeed() {
    let server = TestServer::start().await;
    let created = server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let puts = (0..20).map(|n| {
        let mut object = created.json.clone();
        object["data"] = json!({ "winner": n.to_string() });
        let (server, target) = (&server, path("a"));
        async move { server.put(&target, &object).await.status.as_u16() }
    });
    let mut codes = futures_util::future::join_all(puts).await;
    codes.sort_unstable();
    assert_eq!(codes[0], 200);
    assert!(codes[1..].iter().all(|code| *code == 409), "{codes:?}");

    let merges = (0..20).map(|n| {
        let patch = json!({ "data": { format!("k{n}"): "1" } });
        let (server, target) = (&server, path("a"));
        async move { server.merge(&target, &patch).await.status.as_u16() }
    });
    assert!(futures_util::future::join_all(merges).await.into_iter().all(|code| code == 200));
    let data = server.get(&path("a")).await.json["data"].as_object().map(serde_json::Map::len);
    assert_eq!(data, Some(21), "every patch is there, and the winner of the puts");
}

#[tokio::test]
async fn generated_names_are_unique() {
    let server = TestServer::start().await;
    let body = json!({ "metadata": { "generateName": "g-" } });
    let creates = (0..100).map(|_| server.post(CONFIG_MAPS, &body));
    let names: std::collections::BTreeSet<String> = futures_util::future::join_all(creates)
        .await
        .into_iter()
        .map(|reply| reply.expect(201).text_at("/metadata/name").to_owned())
        .collect();
    assert_eq!(names.len(), 100);
    assert!(names.iter().all(|name| name.starts_with("g-") && name.len() == 7));
}

#[tokio::test]
async fn a_finalizer_delays_a_deletion_until_its_removal() {
    let server = TestServer::start().await;
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(CONFIG_MAPS, &object).await.expect(201);
    let waiting = server.delete(&path("a"), "").await.expect(200);
    assert!(!waiting.text_at("/metadata/deletionTimestamp").is_empty());
    let again = server.delete(&path("a"), "").await.expect(200);
    assert_eq!(again.version(), waiting.version(), "a second deletion changes nothing");
    let rejected = server.post(CONFIG_MAPS, &config_map("a")).await.rejected(409, "AlreadyExists");
    assert!(rejected.text_at("/message").starts_with("object is being deleted"));
    let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } });
    server.merge(&path("a"), &more).await.rejected(422, "Invalid");
    let revive = json!({ "metadata": { "deletionTimestamp": null } });
    assert!(
        !server
            .merge(&path("a"), &revive)
            .await
            .expect(200)
            .text_at("/metadata/deletionTimestamp")
            .is_empty()
    );
    server.merge(&path("a"), &json!({ "metadata": { "finalizers": null } })).await.expect(200);
    server.get(&path("a")).await.rejected(404, "NotFound");
}

#[rstest]
#[case(json!({ "preconditions": { "uid": "another" } }), 409, "Conflict")]
#[case(json!({ "preconditions": { "resourceVersion": "1" } }), 409, "Conflict")]
#[case(json!({ "propagationPolicy": "Bogus" }), 422, "Invalid")]
#[case(json!({ "propagationPolicy": "Orphan", "orphanDependents": true }), 422, "Invalid")]
#[case(json!({ "kind": "ConfigMap" }), 400, "BadRequest")]
#[case(json!({ "dryRun": ["No"] }), 422, "Invalid")]
#[tokio::test]
async fn a_deletion_with_a_failed_precondition_changes_nothing(
    #[case] options: Value,
    #[case] code: u16,
    #[case] reason: &str,
) {
    let server = TestServer::start().await;
    server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    server.delete(&path("a"), &options.to_string()).await.rejected(code, reason);
    server.get(&path("a")).await.expect(200);
}

#[tokio::test]
async fn the_propagation_policy_adds_a_finalizer() {
    let server = TestServer::start().await;
    let mut held = config_map("a");
    // Without this finalizer the collector would remove the object at once.
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(CONFIG_MAPS, &held).await.expect(201);
    let orphan =
        server.delete(&format!("{}?propagationPolicy=Orphan", path("a")), "").await.expect(200);
    assert_eq!(orphan.json["metadata"]["finalizers"], json!(["example.com/hold", "orphan"]));
    let background = json!({ "propagationPolicy": "Background" }).to_string();
    let background = server.delete(&path("a"), &background).await.expect(200);
    assert_eq!(background.json["metadata"]["finalizers"], json!(["example.com/hold"]));
}

#[tokio::test]
async fn a_collection_deletion_applies_its_selectors() {
    let server = TestServer::start().await;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({ "color": color });
        server.post(CONFIG_MAPS, &object).await.expect(201);
    }
    let deleted =
        server.delete(&format!("{CONFIG_MAPS}?labelSelector=color%3Dred"), "").await.expect(200);
    assert_eq!(deleted.json["kind"], "ConfigMapList");
    assert_eq!(deleted.names(), ["a", "c"]);
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["b"]);
}

#[tokio::test]
async fn a_namespace_is_deleted_with_its_content() {
    let server = TestServer::start().await;
    let namespace = json!({ "metadata": { "name": "doomed" } });
    let created = server.post("/api/v1/namespaces", &namespace).await.expect(201);
    assert_eq!(created.text_at("/status/phase"), "Active");
    let inside = "/api/v1/namespaces/doomed/configmaps";
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(inside, &held).await.expect(201);
    server.post(inside, &config_map("free")).await.expect(201);
    let deleted = server.delete("/api/v1/namespaces/doomed", "").await.expect(200);
    assert_eq!(deleted.text_at("/status/phase"), "Terminating");
    let rejected = server.post(inside, &config_map("late")).await.rejected(403, "Forbidden");
    assert_eq!(rejected.text_at("/details/causes/0/reason"), "NamespaceTerminating");
    server.until(&format!("{inside}/free"), |reply| reply.status == 404).await;
    server.get("/api/v1/namespaces/doomed").await.expect(200);
    server
        .merge(&format!("{inside}/held"), &json!({ "metadata": { "finalizers": null } }))
        .await
        .expect(200);
    server.until("/api/v1/namespaces/doomed", |reply| reply.status == 404).await;
    server.post("/api/v1/namespaces", &namespace).await.expect(201);
    assert!(server.get(inside).await.names().is_empty());
}

#[tokio::test]
async fn the_built_in_namespaces_cannot_be_deleted() {
    let server = TestServer::start().await;
    server.delete("/api/v1/namespaces/default", "").await.rejected(403, "Forbidden");
}

#[tokio::test]
async fn a_long_key_of_a_list_survives_later_writes() {
    let server = TestServer::start().await;
    let item = json!({
        "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}},
    });
    let items = json!({
        "type": "array", "items": item, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    });
    let schema = json!({"type": "object", "properties": {"items": items}});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
    });
    let definition = json!({
        "metadata": {"name": "lists.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "lists", "kind": "ListedItems"},
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(path, &definition).await.expect(201);
    let lists = "/apis/example.com/v1/namespaces/default/lists";
    server.until(lists, |reply| reply.status == 200).await;
    let items = json!([{"name": "n".repeat(20_000)}]);
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "ListedItems", "metadata": {"name": "a"},
        "items": items,
    });
    server.post(lists, &object).await.expect(201);
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = server.merge(&format!("{lists}/a"), &change).await.expect(200);
    assert_eq!(changed.json["items"], items);
}
