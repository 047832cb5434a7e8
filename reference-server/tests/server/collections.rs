//! The part of the conversation about faults that reads collections: pages, and where watches begin, go on and end.

use serde_json::json;

use crate::faults::Record;
use crate::support::CONFIG_MAPS;

/// Lists in pages, and watches.
pub(crate) async fn read(talk: &mut Record) {
    pages(talk).await;
    streams(talk).await;
}

async fn pages(talk: &mut Record) {
    const EVERYWHERE: &str = "/api/v1/secrets";
    let secrets = |namespace: &str| format!("/api/v1/namespaces/{namespace}/secrets");
    talk.get("/api").await;
    for namespace in ["paged-a", "paged-b"] {
        talk.post("/api/v1/namespaces", &json!({ "metadata": { "name": namespace } })).await;
        for name in ["one", "two"] {
            talk.post(&secrets(namespace), &json!({ "metadata": { "name": name } })).await;
        }
    }
    let token = |first: &crate::support::Reply| first.text_at("/metadata/continue").to_owned();
    let first = talk.get(&format!("{}?limit=1", secrets("paged-a"))).await;
    for other in ["paged-a", "paged-b"] {
        talk.get(&format!("{}?continue={}", secrets(other), token(&first))).await;
    }
    talk.get(&format!("{}?continue={}&resourceVersion=1", secrets("paged-a"), token(&first))).await;
    let first = talk.get(&format!("{EVERYWHERE}?limit=1")).await;
    talk.get(&format!("{EVERYWHERE}?continue={}", token(&first))).await;
    talk.get(&format!("{EVERYWHERE}?limit=0")).await;
    talk.get(&format!("{EVERYWHERE}?resourceVersion=latest")).await;
    talk.get(&format!("{EVERYWHERE}?watch=false&timeoutSeconds=1")).await;
}

async fn streams(talk: &mut Record) {
    let streaming = "watch=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    let watch = |query: &str| format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1&{query}");
    let labels = json!({ "stream": "1" });
    let first = json!({ "metadata": { "name": "first", "labels": labels } });
    let first = talk.post(CONFIG_MAPS, &first).await;
    talk.watch(
        &format!("{CONFIG_MAPS}?{streaming}&labelSelector=nothing&sendInitialEvents=true"),
        "BOOKMARK",
    )
    .await;
    talk.watch(&format!("{CONFIG_MAPS}?{streaming}&labelSelector=stream&sendInitialEvents=false"), "ADDED")
        .await;
    talk.watch(&watch("labelSelector=stream&sendInitialEvents=true"), "ADDED").await;
    talk.watch(&watch("labelSelector=stream&resourceVersion=1"), "ERROR").await;
    // Both may be there: what comes behind the bookmark is seen up to the first event.
    let nothing = format!("{CONFIG_MAPS}?{streaming}&labelSelector=later&sendInitialEvents=true");
    talk.watch(&nothing, "ADDED").await;
    let partial = [("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")];
    let path = format!("{CONFIG_MAPS}?{streaming}&labelSelector=stream&sendInitialEvents=true");
    talk.watch_as(&path, &partial, "BOOKMARK").await;
    let one = format!("{CONFIG_MAPS}/first");
    talk.patch("merge", &one, &json!({ "data": { "a": "1" } })).await;
    let large =
        json!({ "metadata": { "name": "large", "labels": labels }, "data": { "x": "x".repeat(1 << 17) } });
    talk.server.post(CONFIG_MAPS, &large).await;
    talk.patch("merge", &one, &json!({ "data": { "a": "2" } })).await;
    talk.server.delete(&one, "").await;
    talk.post(CONFIG_MAPS, &json!({ "metadata": { "name": "last", "labels": labels } })).await;
    let since = first.text_at("/metadata/resourceVersion");
    talk.watch(&watch(&format!("labelSelector=stream&resourceVersion={since}")), "last").await;
}
