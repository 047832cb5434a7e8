//! The garbage collector: dependents of deleted owners.

use futures_util::future::{join_all, join3};
use serde_json::{Value, json};

use crate::support::{TIMEOUT, TestServer};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(server: &TestServer, name: &str, owners: &[Value]) -> String {
    let map = json!({"metadata": {"name": name, "ownerReferences": owners}});
    server.post(MAPS, &map).await.expect(201).text_at("/metadata/uid").to_owned()
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": true})
}

#[tokio::test]
async fn foreground_deletion_removes_the_last_generation_first() {
    let server = TestServer::start().await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true")).await;
    let first = create(&server, "first", &[]).await;
    let second = create(&server, "second", &[owner("ConfigMap", "first", &first)]).await;
    create(&server, "third", &[owner("ConfigMap", "second", &second)]).await;
    server
        .delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Foreground"}"#)
        .await
        .expect(200);
    let mut gone = Vec::new();
    while gone.len() < 3 {
        let event = watch.next().await.expect("the watch goes on");
        if event["type"] == "DELETED" {
            gone.push(event["object"]["metadata"]["name"].as_str().expect("a name").to_owned());
        }
    }
    assert_eq!(gone, ["third", "second", "first"]);
}

#[tokio::test]
async fn foreground_deletion_of_a_cycle_ends() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let second = create(&server, "second", &[owner("ConfigMap", "first", &first)]).await;
    let back = json!({"metadata": {"ownerReferences": [owner("ConfigMap", "second", &second)]}});
    server.merge(&format!("{MAPS}/first"), &back).await.expect(200);
    server
        .delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Foreground"}"#)
        .await
        .expect(200);
    for name in ["first", "second"] {
        server.until(&format!("{MAPS}/{name}"), |reply| reply.status == 404).await;
    }
}

/// An owner reference with another uid is absent. The collector ignores references to unserved
/// kinds, and references from a cluster-scoped object to a namespaced one.
#[tokio::test]
async fn absent_owners_are_ignored_and_unresolvable_owners_keep_their_dependents() {
    let server = TestServer::start().await;
    create(&server, "owner", &[]).await;
    create(&server, "unknown", &[owner("Boat", "owner", "a")]).await;
    let namespace =
        json!({"metadata": {"name": "far", "ownerReferences": [owner("ConfigMap", "owner", "a")]}});
    server.post("/api/v1/namespaces", &namespace).await.expect(201);
    create(&server, "another", &[owner("ConfigMap", "owner", "b")]).await;
    create(&server, "absent", &[owner("Namespace", "nowhere", "c")]).await;
    // The collector checks owners in the order of their uids, so the last deletion ends the wait.
    for last in ["another", "absent"] {
        server.until(&format!("{MAPS}/{last}"), |reply| reply.status == 404).await;
    }
    server.get(&format!("{MAPS}/unknown")).await.expect(200);
    server.get("/api/v1/namespaces/far").await.expect(200);
}

#[tokio::test]
async fn a_cluster_scoped_owner_is_deleted_with_its_namespaced_dependents() {
    let server = TestServer::start().await;
    let space = server
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "space"}}))
        .await
        .expect(201);
    let uid = space.text_at("/metadata/uid");
    create(&server, "owned", &[owner("Namespace", "space", uid)]).await;
    server.delete("/api/v1/namespaces/space", "").await.expect(200);
    server.until(&format!("{MAPS}/owned"), |reply| reply.status == 404).await;
}

/// Rounds of the test below, and owners in each of them.
const ROUNDS: usize = 20;
const OWNERS: usize = 20;

/// The deletion of each owner races with a change of a dependent, and with a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_dependent_is_missed_however_deletions_and_writes_interleave() {
    let server = TestServer::start().await;
    for round in 0..ROUNDS {
        let names = (0..OWNERS).map(|n| format!("owner-{round}-{n}"));
        join_all(names.map(|name| delete_with_dependents(&server, name))).await;
    }
}

async fn delete_with_dependents(server: &TestServer, name: String) {
    let [second, owned, shared, late] =
        ["second", "owned", "shared", "late"].map(|suffix| format!("{name}-{suffix}"));
    let uid = create(server, &name, &[]).await;
    let owners = [
        owner("ConfigMap", &name, &uid),
        owner("ConfigMap", &second, &create(server, &second, &[]).await),
    ];
    create(server, &owned, &owners[..1]).await;
    create(server, &shared, &owners).await;
    let (first, owned) = (format!("{MAPS}/{name}"), format!("{MAPS}/{owned}"));
    let change = json!({"data": {"a": "b"}});
    // The dependent may be gone before its change.
    let (deleted, _, _) = join3(
        server.delete(&first, ""),
        server.merge(&owned, &change),
        create(server, &late, &owners[..1]),
    )
    .await;
    deleted.expect(200);
    for path in [owned, format!("{MAPS}/{late}")] {
        server.until(&path, |reply| reply.status == 404).await;
    }
    let has_one_owner = |owners: &Value| owners.as_array().is_some_and(|all| all.len() == 1);
    server
        .until(&format!("{MAPS}/{shared}"), |reply| {
            has_one_owner(&reply.json["metadata"]["ownerReferences"])
        })
        .await;
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
    server
        .until(&owned, |reply| reply.json["metadata"]["ownerReferences"].is_null())
        .await
        .expect(200);
    let adopted = json!({"metadata": {"ownerReferences": [owner("ConfigMap", "second", &second)]}});
    server.merge(&owned, &adopted).await.expect(200);
    server.delete(&format!("{MAPS}/second"), "").await.expect(200);
    server.until(&owned, |reply| reply.status == 404).await;
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Creates a config map with a finalizer.
async fn create_held(server: &TestServer, name: &str, owner: &Value) {
    let metadata =
        json!({"name": name, "ownerReferences": [owner], "finalizers": ["example.com/hold"]});
    server.post(MAPS, &json!({ "metadata": metadata })).await.expect(201);
}

#[tokio::test]
async fn foreground_deletion_ignores_dependents_that_do_not_block() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let mut free = owner("ConfigMap", "first", &first);
    free["blockOwnerDeletion"] = json!(false);
    create_held(&server, "owned", &free).await;
    server
        .delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Foreground"}"#)
        .await
        .expect(200);
    server.until(&format!("{MAPS}/first"), |reply| reply.status == 404).await;
    let owned = server.get(&format!("{MAPS}/owned")).await.expect(200);
    assert!(!owned.text_at("/metadata/deletionTimestamp").is_empty());
}

#[tokio::test]
async fn background_deletion_does_not_wait_for_dependents() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let second = create(&server, "second", &[owner("ConfigMap", "first", &first)]).await;
    create_held(&server, "third", &owner("ConfigMap", "second", &second)).await;
    server
        .delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Background"}"#)
        .await
        .expect(200);
    server.until(&format!("{MAPS}/second"), |reply| reply.status == 404).await;
    server
        .until(&format!("{MAPS}/third"), |reply| {
            !reply.text_at("/metadata/deletionTimestamp").is_empty()
        })
        .await;
}

/// The address of a service is free again only after the collector has removed the service.
#[tokio::test]
async fn a_deleted_service_keeps_its_address_until_its_removal() {
    let server = TestServer::start().await;
    let first = create(&server, "first", &[]).await;
    let spec = |address: &str| json!({"clusterIP": address, "ports": [{"port": 80}]});
    let metadata =
        json!({"name": "owned", "ownerReferences": [owner("ConfigMap", "first", &first)]});
    let owned = json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}});
    let owned = server.post(SERVICES, &owned).await.expect(201);
    let other =
        json!({"metadata": {"name": "other"}, "spec": spec(owned.text_at("/spec/clusterIP"))});
    server.delete(&format!("{MAPS}/first"), r#"{"propagationPolicy": "Orphan"}"#).await.expect(200);
    server.until(&format!("{MAPS}/first"), |reply| reply.status == 404).await;
    server.post(SERVICES, &other).await.rejected(422, "Invalid");

    create(&server, "last", &[owner("Service", "owned", owned.text_at("/metadata/uid"))]).await;
    server
        .delete(&format!("{SERVICES}/owned"), r#"{"propagationPolicy": "Foreground"}"#)
        .await
        .expect(200);
    let free = async {
        while server.post(SERVICES, &other).await.status != 201 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, free).await.expect("the address is free again");
}
