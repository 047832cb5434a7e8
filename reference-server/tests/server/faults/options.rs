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
