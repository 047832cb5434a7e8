//! The health endpoints: `/healthz`, `/livez` and `/readyz`, and their single checks.

use std::collections::BTreeSet;

use http::{HeaderValue, StatusCode, header};
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::status::ApiError;

use crate::http::respond::ApiResponse;

/// The checks of this process, under the names of kube-apiserver. The store takes the place of
/// etcd.
const ALIVE: [&str; 7] = ["ping", "log", "etcd", STARTED[0], STARTED[1], STARTED[2], STARTED[3]];
/// The checks of `/readyz`. A server that stops serves no request.
const READY: [&str; 8] =
    ["ping", "log", "informer-sync", STARTED[0], STARTED[1], STARTED[2], STARTED[3], "shutdown"];
/// The server listens only after these steps.
const STARTED: [&str; 4] = [
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/rbac/bootstrap-roles",
];

/// Returns the response of a health endpoint, or none if the path is not one.
pub(crate) fn handle(path: &str, query: &Query) -> Option<Result<ApiResponse, ApiError>> {
    let (endpoint, check) = match path.strip_prefix('/')?.split_once('/') {
        None => (path.strip_prefix('/')?, None),
        Some((endpoint, check)) => (endpoint, Some(check)),
    };
    let checks: &[&str] = match endpoint {
        "healthz" | "livez" => &ALIVE,
        "readyz" => &READY,
        _ => return None,
    };
    let text = match check {
        Some(check) if checks.contains(&check) => "ok".to_owned(),
        Some(_) => return Some(Err(ApiError::no_such_path())),
        None => whole(endpoint, checks, query),
    };
    let nosniff = HeaderValue::from_static("nosniff");
    let response = ApiResponse::text(StatusCode::OK, text);
    Some(Ok(response.header(header::X_CONTENT_TYPE_OPTIONS, nosniff)))
}

fn whole(endpoint: &str, checks: &[&str], query: &Query) -> String {
    if query.get("verbose").is_none() {
        return "ok".to_owned();
    }
    let excluded: BTreeSet<&str> = query.all("exclude").filter(|name| !name.is_empty()).collect();
    let lines = checks.iter().map(|check| {
        let state = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        format!("[+]{check} {state}")
    });
    let mut lines: Vec<String> = lines.collect();
    let unknown = excluded.iter().filter(|name| !checks.contains(name));
    let unknown: Vec<String> = unknown.map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        lines
            .push(format!("warn: some health checks cannot be excluded: no matches for {unknown}"));
    }
    lines.join("\n") + &format!("\n{endpoint} check passed\n")
}
