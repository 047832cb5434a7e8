//! The part of the conversation about options: of deletions, of answers, and of HTTP itself.

use serde_json::json;

use super::{JSON, Record};
use crate::support::{CONFIG_MAPS, config_map};

pub(super) async fn ask(talk: &mut Record) {
    let held = json!({ "metadata": { "name": "held", "finalizers": ["example.com/hold"] } });
    let held_at = format!("{CONFIG_MAPS}/held");
    talk.post(CONFIG_MAPS, &held).await;
    for options in [
        r#"{"dryRun": ["All"]}"#,
        r#"{"orphanDependents": true, "propagationPolicy": "Background"}"#,
        r#"{"kind": "Pod"}"#,
        r#"{"orphanDependents": true}"#,
        r#"{"propagationPolicy": "Foreground"}"#,
    ] {
        talk.delete(&held_at, options).await;
    }
    evict(talk).await;
    let nothing = ("accept", "application/x-nothing");
    talk.send("POST", CONFIG_MAPS, &[JSON, nothing], &config_map("unheard").to_string()).await;
    talk.get(&format!("{CONFIG_MAPS}/unheard")).await;
    talk.get(&format!("{held_at}?pretty=true")).await;
    talk.send("GET", &held_at, &[("accept", "application/yaml;charset=utf-8, application/json;q=0.5")], "")
        .await;
    talk.send("GET", "/version", &[("x-http-method-override", "DELETE")], "").await;
    for coding in ["gzip", "gzip;q=0"] {
        // Its text would be no text when compressed; what the headers say is enough.
        let response = talk.server.open("GET", "/openapi/v2", &[("accept-encoding", coding)], "").await;
        talk.note(&format!("{:?}", response.headers().get("content-encoding")));
    }
}

async fn evict(talk: &mut Record) {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let pod = json!({ "metadata": { "name": "kept", "labels": { "app": "kept" } }, "spec": { "schedulerName": "none", "containers": [{ "name": "c", "image": "i" }] } });
    talk.post(PODS, &pod).await;
    talk.patch("merge", &format!("{PODS}/kept/status"), &json!({ "status": { "phase": "Running" } })).await;
    let budget = json!({ "metadata": { "name": "kept" }, "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "kept" } } } });
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    talk.post(budgets, &budget).await;
    talk.post(&format!("{PODS}/kept/eviction"), &json!({ "metadata": { "name": "other" } })).await;
    let reply = talk.send("POST", &format!("{PODS}/kept/eviction"), &[JSON], "{}").await;
    talk.note(&format!("{:?}", reply.headers.get("retry-after")));
    talk.delete(&format!("{budgets}/kept"), "").await;
    talk.post(&format!("{PODS}/kept/eviction"), &json!({})).await;
    talk.get(&format!("{PODS}/kept")).await;
}
