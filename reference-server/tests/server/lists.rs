//! Lists, pages and watches.

use crate::support::{CONFIG_MAPS, TestServer, config_map};
use kubeproof_reference_server::Config;
use rstest::rstest;
use serde_json::{Value, json};

async fn filled(names: &[&str]) -> TestServer {
    let server = TestServer::start().await;
    for name in names {
        create(&server, name, &json!({})).await;
    }
    server
}

async fn create(server: &TestServer, name: &str, labels: &Value) -> u64 {
    let mut object = config_map(name);
    object["metadata"]["labels"] = labels.clone();
    server.post(CONFIG_MAPS, &object).await.expect(201).version()
}

#[tokio::test]
async fn pages_show_one_version_despite_concurrent_writes() {
    let server = filled(&["a", "b", "c", "d", "e"]).await;
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    assert_eq!(first.names(), ["a", "b"]);
    assert_eq!(first.json["metadata"]["remainingItemCount"], 3);
    server.delete(&format!("{CONFIG_MAPS}/d"), "").await.expect(200);
    create(&server, "bb", &json!({})).await;
    let mut names = Vec::new();
    let mut token = first.text_at("/metadata/continue").to_owned();
    while !token.is_empty() {
        let page = server.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.expect(200);
        assert_eq!(page.version(), first.version());
        names.extend(page.names().into_iter().map(str::to_owned));
        page.text_at("/metadata/continue").clone_into(&mut token);
    }
    assert_eq!(names, ["c", "d", "e"]);
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["a", "b", "bb", "c", "e"]);
}

#[tokio::test]
async fn a_list_at_an_exact_version_shows_the_past_state() {
    let server = filled(&["a"]).await;
    let then = server.get(CONFIG_MAPS).await.version();
    create(&server, "b", &json!({})).await;
    let exact = format!("{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact");
    let list = server.get(&exact).await.expect(200);
    assert_eq!((list.version(), list.names()), (then, vec!["a"]));
    let not_older = server.get(&format!("{CONFIG_MAPS}?resourceVersion={then}")).await.expect(200);
    assert_eq!(not_older.names(), ["a", "b"]);
}

#[rstest]
#[case("resourceVersion=1&resourceVersionMatch=Exact", 410, "Expired")]
#[case("resourceVersion=999999", 504, "Timeout")]
#[case("resourceVersion=999999&resourceVersionMatch=Exact", 504, "Timeout")]
#[case("resourceVersion=abc", 400, "BadRequest")]
#[case("resourceVersionMatch=Exact", 422, "Invalid")]
#[case("resourceVersion=1&resourceVersionMatch=Bogus", 422, "Invalid")]
#[case("continue=garbage", 400, "BadRequest")]
#[case("limit=x", 400, "BadRequest")]
#[case("labelSelector=a%20b", 400, "BadRequest")]
#[case("fieldSelector=data.a%3D1", 400, "BadRequest")]
#[case("fieldSelector=garbage", 400, "BadRequest")]
#[tokio::test]
async fn a_list_with_invalid_parameters_is_rejected(
    #[case] query: &str,
    #[case] code: u16,
    #[case] reason: &str,
) {
    let server = filled(&["a"]).await;
    server.get(&format!("{CONFIG_MAPS}?{query}")).await.rejected(code, reason);
}

#[tokio::test]
async fn an_expired_token_returns_a_new_token() {
    let server = TestServer::with(Config { history: 3, ..Config::default() }).await;
    for name in ["a", "b", "c"] {
        create(&server, name, &json!({})).await;
    }
    let token = server
        .get(&format!("{CONFIG_MAPS}?limit=1"))
        .await
        .text_at("/metadata/continue")
        .to_owned();
    for name in ["d", "e", "f", "g"] {
        create(&server, name, &json!({})).await;
    }
    let expired = server
        .get(&format!("{CONFIG_MAPS}?limit=1&continue={token}"))
        .await
        .rejected(410, "Expired");
    let token = expired.text_at("/metadata/continue");
    let rest = server.get(&format!("{CONFIG_MAPS}?continue={token}")).await.expect(200);
    assert_eq!(rest.names(), ["b", "c", "d", "e", "f", "g"]);
}

#[tokio::test]
async fn selectors_limit_lists() {
    let server = TestServer::start().await;
    create(&server, "a", &json!({ "tier": "front", "app": "x" })).await;
    create(&server, "b", &json!({ "tier": "back", "app": "x" })).await;
    create(&server, "c", &json!({})).await;
    for (query, names) in [
        ("labelSelector=tier%3Dfront", vec!["a"]),
        ("labelSelector=tier!%3Dfront", vec!["b", "c"]),
        ("labelSelector=tier%20in%20(front,back)", vec!["a", "b"]),
        ("labelSelector=!tier", vec!["c"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name!%3Db,metadata.namespace%3Ddefault", vec!["a", "c"]),
        ("labelSelector=app&fieldSelector=metadata.name%3Da", vec!["a"]),
    ] {
        assert_eq!(
            server.get(&format!("{CONFIG_MAPS}?{query}")).await.expect(200).names(),
            names,
            "{query}"
        );
    }
    let page = server.get(&format!("{CONFIG_MAPS}?labelSelector=app&limit=1")).await.expect(200);
    assert_eq!(page.json["metadata"]["remainingItemCount"], Value::Null);
}

#[tokio::test]
async fn a_watch_reports_each_event_after_its_version_once() {
    let server = filled(&["old"]).await;
    let start = server.get(CONFIG_MAPS).await.version();
    create(&server, "a", &json!({})).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).await;
    server.merge(&format!("{CONFIG_MAPS}/a"), &json!({ "data": { "b": "2" } })).await.expect(200);
    server.merge(&format!("{CONFIG_MAPS}/a"), &json!({})).await.expect(200);
    server.delete(&format!("{CONFIG_MAPS}/a"), "").await.expect(200);
    create(&server, "end", &json!({})).await;
    assert_eq!(watch.take(4).await, ["ADDED a", "MODIFIED a", "DELETED a", "ADDED end"]);
}

#[tokio::test]
async fn a_watch_can_resume_from_every_received_version() {
    let server = filled(&[]).await;
    let mut versions = vec![server.get(CONFIG_MAPS).await.version()];
    for name in ["a", "b", "c"] {
        versions.push(create(&server, name, &json!({})).await);
    }
    for (seen, version) in versions.iter().enumerate() {
        let mut watch =
            server.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}")).await;
        let marker = format!("m{seen}");
        create(&server, &marker, &json!({})).await;
        let events = watch.take(4).await;
        let expected: Vec<String> = ["a", "b", "c", "m0", "m1", "m2", "m3"][seen..seen + 4]
            .iter()
            .map(|name| format!("ADDED {name}"))
            .collect();
        assert_eq!(events, expected);
    }
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_the_existing_objects() {
    let server = filled(&["a", "b"]).await;
    for query in ["watch=1", "watch=1&resourceVersion=0"] {
        let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(watch.take(2).await, ["ADDED a", "ADDED b"]);
    }
}

#[tokio::test]
async fn objects_enter_and_leave_the_selection_of_a_watch() {
    let server = filled(&[]).await;
    let version = create(&server, "a", &json!({ "on": "yes" })).await;
    let mut watch = server
        .watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}&labelSelector=on%3Dyes"))
        .await;
    let set = |value: &str| json!({ "metadata": { "labels": { "on": value } } });
    let left = server.merge(&format!("{CONFIG_MAPS}/a"), &set("no")).await.expect(200).version();
    server.merge(&format!("{CONFIG_MAPS}/a"), &json!({ "data": { "b": "2" } })).await.expect(200);
    server.merge(&format!("{CONFIG_MAPS}/a"), &set("yes")).await.expect(200);
    let gone = watch.next().await.expect("an event");
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(
        gone["object"]["metadata"]["labels"]["on"], "yes",
        "the last state inside the selection"
    );
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], left.to_string());
    assert_eq!(watch.take(1).await, ["ADDED a"]);
}

#[tokio::test]
async fn a_watch_from_a_compacted_version_ends_with_an_error() {
    let server = filled(&["a"]).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1")).await;
    let event = watch.next().await.expect("an event");
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn bookmarks_and_the_end_of_the_initial_events_carry_the_version() {
    let server = filled(&["a"]).await;
    let version = server.get(CONFIG_MAPS).await.version();
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(watch.take(1).await, ["ADDED a"]);
    let bookmark = watch.next().await.expect("an event");
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], version.to_string());
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    // Writes to other collections change the version as well.
    server.post("/api/v1/namespaces", &json!({ "metadata": { "name": "n" } })).await.expect(201);
    let bookmark = watch.next().await.expect("an event");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], (version + 1).to_string());
}

#[tokio::test]
async fn a_list_can_require_the_newest_version() {
    let server = filled(&["a"]).await;
    let newest = server.get(CONFIG_MAPS).await.version();
    let asked = server.get(&format!("{CONFIG_MAPS}?resourceVersion={newest}")).await.expect(200);
    assert_eq!((asked.names(), asked.version()), (vec!["a"], newest));
}

#[tokio::test]
async fn a_continue_token_applies_to_the_requested_collection() {
    let server = filled(&["a", "c"]).await;
    let others = CONFIG_MAPS.replace("default", "kube-system");
    server.post(&others, &config_map("b")).await.expect(201);
    let page = server.get(&format!("{CONFIG_MAPS}?limit=1")).await.expect(200);
    let token = page.text_at("/metadata/continue");
    let rest = server.get(&format!("{others}?continue={token}")).await.expect(200);
    assert!(rest.names().contains(&"b"), "{}", rest.text);
    assert!(!rest.text.contains("\"default\""), "{}", rest.text);
}

#[tokio::test]
async fn a_watch_of_a_name_reports_only_that_object() {
    let server = filled(&["a", "b"]).await;
    let mut watch = server.watch("/api/v1/watch/namespaces/default/configmaps/b").await;
    assert_eq!(watch.take(1).await, ["ADDED b"]);
    for name in ["a", "b"] {
        server
            .merge(&format!("{CONFIG_MAPS}/{name}"), &json!({"data": {"x": "y"}}))
            .await
            .expect(200);
    }
    assert_eq!(watch.take(1).await, ["MODIFIED b"]);
}

#[tokio::test]
async fn a_watch_without_send_initial_events_has_no_end_bookmark() {
    let server = filled(&["a"]).await;
    for query in
        ["allowWatchBookmarks=true", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"]
    {
        let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&{query}")).await;
        assert_eq!(watch.take(1).await, ["ADDED a"], "{query}");
        server
            .merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"query": query}}))
            .await
            .expect(200);
        let mut event = watch.next().await.expect("an event");
        while event["type"] == "BOOKMARK" {
            assert_eq!(event["object"]["metadata"].get("annotations"), None, "{query}");
            event = watch.next().await.expect("an event");
        }
        assert_eq!(event["type"], "MODIFIED", "{query}");
    }
}

#[tokio::test]
async fn a_watch_ends_after_its_timeout() {
    let server = filled(&["a"]).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(watch.take(1).await, ["ADDED a"]);
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn fifty_watchers_receive_the_same_events() {
    let server = filled(&[]).await;
    let start = server.get(CONFIG_MAPS).await.version();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}");
    let watches = futures_util::future::join_all((0..50).map(|_| server.watch(&path))).await;
    for n in 0..20 {
        create(&server, &format!("o{n:02}"), &json!({})).await;
    }
    let expected: Vec<String> = (0..20).map(|n| format!("ADDED o{n:02}")).collect();
    for mut watch in watches {
        assert_eq!(watch.take(20).await, expected);
    }
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_closed_and_delays_no_writes() {
    let server = TestServer::with(Config { history: 50, ..Config::default() }).await;
    let start = server.get(CONFIG_MAPS).await.version();
    let mut slow = server.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).await;
    // The events exceed all socket buffers.
    let big = "x".repeat(400_000);
    for n in 0..120 {
        let mut object = config_map(&format!("o{n}"));
        object["data"]["big"] = big.as_str().into();
        server.post(CONFIG_MAPS, &object).await.expect(201);
    }
    let mut last = Value::Null;
    while let Some(event) = slow.next().await {
        last = event;
    }
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn tables_and_partial_objects_show_the_same_list() {
    let server = filled(&["a", "b"]).await;
    let table = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let reply = server.send("GET", CONFIG_MAPS, &table, "").await.expect(200);
    assert_eq!(reply.json["kind"], "Table");
    assert_eq!(reply.json["rows"][1]["cells"][0], "b");
    let partial = [("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")];
    let reply = server.send("GET", CONFIG_MAPS, &partial, "").await.expect(200);
    assert_eq!(reply.json["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(reply.json["items"][0]["data"], Value::Null);
    let html = [("accept", "text/html")];
    server.send("GET", CONFIG_MAPS, &html, "").await.rejected(406, "NotAcceptable");
}
