//! Going on with a watch that the server has ended.

use percent_encoding::utf8_percent_encode;

use super::build::QUERY;
use crate::exchange::WatchEvent;
use crate::transport::Outgoing;
use crate::watch::OpenWatch;

/// The request that continues a watch behind its last event; `None` where the client could not know what it has missed: the
/// initial events had not all come, or the watch was to last for a time that the client chose.
pub(super) fn outgoing(watch: &OpenWatch) -> Option<Outgoing> {
    let sent = &watch.head.request;
    let (path, query) = sent.target.split_once('?')?;
    let asked = |name: &str| {
        query
            .split('&')
            .find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
    };
    if !asked("timeoutSeconds").is_empty() {
        return None;
    }
    let last = watch.events().iter().rev().find_map(version);
    let listed = watch.events().iter().any(ends_initial_events);
    let from_a_version =
        !matches!(asked("resourceVersion"), "" | "0") && asked("sendInitialEvents").is_empty();
    let version = match last {
        Some(version) if listed || from_a_version => utf8_percent_encode(version, QUERY).to_string(),
        None if from_a_version => asked("resourceVersion").to_owned(),
        _ => return None,
    };
    let kept = query.split('&').filter(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        !["resourceVersion", "sendInitialEvents", "resourceVersionMatch"].contains(&name)
    });
    let version = format!("resourceVersion={version}");
    let query: Vec<&str> = kept.chain([version.as_str()]).collect();
    Some(Outgoing {
        method: sent.method.clone(),
        target: format!("{path}?{}", query.join("&")),
        headers: sent.headers.clone(),
        body: sent.body.clone(),
        identity: sent.identity,
        exact: false,
    })
}

fn version(event: &WatchEvent) -> Option<&str> {
    event.object.pointer("/metadata/resourceVersion")?.as_str().filter(|_| event.kind != "ERROR")
}

fn ends_initial_events(event: &WatchEvent) -> bool {
    event.object.pointer("/metadata/annotations/k8s.io~1initial-events-end").is_some()
}
