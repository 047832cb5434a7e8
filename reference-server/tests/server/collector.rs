//! What nobody owns any more goes.

use serde_json::{Value, json};

use crate::support::{PATIENCE, TestServer};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(server: &TestServer, name: &str, owners: &[Value]) -> String {
    let map = json!({"metadata": {"name": name, "ownerReferences": owners}});
    server.post(MAPS, &map).await.expect(201).text_at("/metadata/uid").to_owned()
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": true})
}

#[tokio::test]
async fn in_the_foreground_generations_go_from_the_last() {
    let server = TestServer::start().await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true")).await;
    let first = create(&server, "first", &[]).await;
    let second = create(&server, "second", &[owner("ConfigMap", "first", &first)]).await;
    create(&server, "third", &[owner("ConfigMap", "second", &second)]).await;
    server.delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Foreground"}"#).await.expect(200);
    let mut gone = Vec::new();
    while gone.len() < 3 {
        let event = watch.next().await.expect("the watch goes on");
        if event["type"] == "DELETED" {
            gone.push(event["object"]["metadata"]["name"].as_str().expect("a name").to_owned());
        }
    }
    assert_eq!(gone, ["third", "second", "first"]);
}

/// An owner whose uid is another's is none. Of kinds that nobody serves nobody can tell, and objects of the cluster are not
/// owned by one of a namespace.
#[tokio::test]
async fn owners_that_never_were_own_nothing_and_those_that_nobody_can_tell_do() {
    let server = TestServer::start().await;
    create(&server, "owner", &[]).await;
    create(&server, "unknown", &[owner("Boat", "owner", "a")]).await;
    let namespace =
        json!({"metadata": {"name": "far", "ownerReferences": [owner("ConfigMap", "owner", "a")]}});
    server.post("/api/v1/namespaces", &namespace).await.expect(201);
    create(&server, "another", &[owner("ConfigMap", "owner", "b")]).await;
    create(&server, "absent", &[owner("Namespace", "nowhere", "c")]).await;
    // Owners are looked at by their uids, in order: what comes last is the sign that the others had their turn.
    for last in ["another", "absent"] {
        server.until(&format!("{MAPS}/{last}"), |reply| reply.status == 404).await;
    }
    server.get(&format!("{MAPS}/unknown")).await.expect(200);
    server.get("/api/v1/namespaces/far").await.expect(200);
}

#[tokio::test]
async fn an_owner_of_the_cluster_takes_what_it_owns_in_namespaces_with_it() {
    let server = TestServer::start().await;
    let space = server.post("/api/v1/namespaces", &json!({"metadata": {"name": "space"}})).await.expect(201);
    let uid = space.text_at("/metadata/uid");
    create(&server, "owned", &[owner("Namespace", "space", uid)]).await;
    server.delete("/api/v1/namespaces/space", "").await.expect(200);
    server.until(&format!("{MAPS}/owned"), |reply| reply.status == 404).await;
}

#[tokio::test]
async fn an_orphan_may_be_adopted() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let second = create(&server, "second", &[]).await;
    create(&server, "owned", &[owner("ConfigMap", "first", &first)]).await;
    let orphans = r#"{"propagationPolicy": "Orphan"}"#;
    server.delete(&format!("{MAPS}/first"), orphans).await.expect(200);
    let owned = format!("{MAPS}/owned");
    server.until(&owned, |reply| reply.json["metadata"]["ownerReferences"].is_null()).await.expect(200);
    let adopted = json!({"metadata": {"ownerReferences": [owner("ConfigMap", "second", &second)]}});
    server.merge(&owned, &adopted).await.expect(200);
    server.delete(&format!("{MAPS}/second"), "").await.expect(200);
    server.until(&owned, |reply| reply.status == 404).await;
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A config map that ends when it is let go.
async fn create_held(server: &TestServer, name: &str, owner: &Value) {
    let metadata = json!({"name": name, "ownerReferences": [owner], "finalizers": ["example.com/hold"]});
    server.post(MAPS, &json!({ "metadata": metadata })).await.expect(201);
}

#[tokio::test]
async fn who_does_not_block_is_not_waited_for() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let mut free = owner("ConfigMap", "first", &first);
    free["blockOwnerDeletion"] = json!(false);
    create_held(&server, "owned", &free).await;
    server.delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Foreground"}"#).await.expect(200);
    server.until(&format!("{MAPS}/first"), |reply| reply.status == 404).await;
    let owned = server.get(&format!("{MAPS}/owned")).await.expect(200);
    assert!(!owned.text_at("/metadata/deletionTimestamp").is_empty());
}

#[tokio::test]
async fn in_the_background_no_generation_waits_for_the_next() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let second = create(&server, "second", &[owner("ConfigMap", "first", &first)]).await;
    create_held(&server, "third", &owner("ConfigMap", "second", &second)).await;
    server.delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Background"}"#).await.expect(200);
    server.until(&format!("{MAPS}/second"), |reply| reply.status == 404).await;
    server
        .until(&format!("{MAPS}/third"), |reply| !reply.text_at("/metadata/deletionTimestamp").is_empty())
        .await;
}

/// What an object held outside the store is given back when the collector ends it, and not before.
#[tokio::test]
async fn the_address_of_a_service_is_its_own_until_its_end() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let spec = |address: &str| json!({"clusterIP": address, "ports": [{"port": 80}]});
    let metadata = json!({"name": "owned", "ownerReferences": [owner("ConfigMap", "first", &first)]});
    let owned = json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}});
    let owned = server.post(SERVICES, &owned).await.expect(201);
    let other = json!({"metadata": {"name": "other"}, "spec": spec(owned.text_at("/spec/clusterIP"))});
    server.delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Orphan"}"#).await.expect(200);
    server.until(&format!("{MAPS}/first"), |reply| reply.status == 404).await;
    server.post(SERVICES, &other).await.refused(422, "Invalid");

    create(&server, "last", &[owner("Service", "owned", owned.text_at("/metadata/uid"))]).await;
    server.delete(&format!("{SERVICES}/owned"), r#"{"propagationPolicy": "Foreground"}"#).await.expect(200);
    let free = async {
        while server.post(SERVICES, &other).await.status != 201 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.expect("the address is free again");
}
