//! The counters of `/metrics`, in the text format of Prometheus.
//!
//! Only requests for served resources and health endpoints are counted. So the number of counters
//! is bounded, whatever names clients send.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::Method;
use kubeproof_apimachinery::request::{Query, ResourceInfo};

/// The media type of the text.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counts the requests of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
}

impl Metrics {
    /// Counts a request with these labels and this status code.
    pub(crate) fn count(&self, labels: String, code: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((labels, code)).or_default() += 1;
    }

    /// Returns the text of all counters.
    pub(crate) fn text(&self) -> String {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = requests.iter().map(|((labels, code), count)| {
            format!("apiserver_request_total{{code=\"{code}\",{labels}}} {count}\n")
        });
        let head = "# HELP apiserver_request_total Requests by verb, resource, scope and code.\n\
                    # TYPE apiserver_request_total counter\n";
        head.to_owned() + &lines.collect::<String>()
    }
}

/// Returns the labels of a request for a resource.
pub(crate) fn resource_labels(
    info: &ResourceInfo,
    method: &Method,
    query: &Query,
    applies: bool,
) -> String {
    let watches = query.flag("watch");
    let connects = matches!(info.subresource.as_str(), "exec" | "attach" | "portforward" | "proxy");
    let verb = match info.verb(method, watches) {
        _ if connects => "CONNECT",
        "create" => "POST",
        "update" => "PUT",
        "patch" if applies => "APPLY",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        "list" => "LIST",
        "watch" => "WATCH",
        _ => "GET",
    };
    let scope = match (info.name.as_str(), info.namespace.as_str()) {
        _ if verb == "POST" => "resource",
        ("", "") => "cluster",
        ("", _) => "namespace",
        _ => "resource",
    };
    let dry_run = if query.text("dryRun").is_some() { "All" } else { "" };
    let ResourceInfo { group, version, resource, subresource, .. } = info;
    format!(
        "component=\"apiserver\",dry_run=\"{dry_run}\",group=\"{group}\",resource=\"{resource}\",\
         scope=\"{scope}\",subresource=\"{subresource}\",system_client=\"\",verb=\"{verb}\",\
         version=\"{version}\""
    )
}

/// Returns the labels of a request for a health endpoint, or none for other paths.
pub(crate) fn path_labels(path: &str, method: &Method) -> Option<String> {
    let is_counted = matches!(path, "/healthz" | "/livez" | "/readyz");
    (is_counted && *method == Method::GET).then(|| {
        format!(
            "component=\"\",dry_run=\"\",group=\"\",resource=\"\",scope=\"\",\
             subresource=\"{path}\",system_client=\"\",verb=\"GET\",version=\"\""
        )
    })
}
