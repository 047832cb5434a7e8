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
    ["ping", "log", "informer-sync", STARTED[0], STARTED[1], STARTED[2], STARTED[3], SHUTDOWN];
/// The check that fails while the server drains.
const SHUTDOWN: &str = "shutdown";
/// The server listens only after these steps.
const STARTED: [&str; 4] = [
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/rbac/bootstrap-roles",
];

/// Returns the response of a health endpoint, or none if the path is not one. A server that drains
/// is alive, but not ready.
pub(crate) fn handle(
    path: &str,
    query: &Query,
    is_draining: bool,
) -> Option<Result<ApiResponse, ApiError>> {
    let (endpoint, check) = match path.strip_prefix('/')?.split_once('/') {
        None => (path.strip_prefix('/')?, None),
        Some((endpoint, check)) => (endpoint, Some(check)),
    };
    let checks: &[&str] = match endpoint {
        "healthz" | "livez" => &ALIVE,
        "readyz" => &READY,
        _ => return None,
    };
    let excluded: BTreeSet<&str> = query.all("exclude").filter(|name| !name.is_empty()).collect();
    let failed = Some(SHUTDOWN)
        .filter(|failed| is_draining && checks.contains(failed) && !excluded.contains(failed));
    let response = match check {
        Some(check) if !checks.contains(&check) => return Some(Err(ApiError::no_such_path())),
        Some(check) if failed == Some(check) => {
            let text = "internal server error: process is shutting down\n";
            ApiResponse::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
        Some(_) => ApiResponse::text(StatusCode::OK, "ok"),
        None if failed.is_some() => {
            let text = verbose((endpoint, checks), &excluded, failed);
            ApiResponse::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
        None if query.get("verbose").is_none() => ApiResponse::text(StatusCode::OK, "ok"),
        None => ApiResponse::text(StatusCode::OK, verbose((endpoint, checks), &excluded, None)),
    };
    let nosniff = HeaderValue::from_static("nosniff");
    Some(Ok(response.header(header::X_CONTENT_TYPE_OPTIONS, nosniff)))
}

/// Returns a line for each check. A failed one does not tell its reason, as in kube-apiserver.
fn verbose(
    (endpoint, checks): (&str, &[&str]),
    excluded: &BTreeSet<&str>,
    failed: Option<&str>,
) -> String {
    let lines = checks.iter().map(|check| match excluded.contains(check) {
        true => format!("[+]{check} excluded: ok"),
        false if failed == Some(*check) => format!("[-]{check} failed: reason withheld"),
        false => format!("[+]{check} ok"),
    });
    let mut lines: Vec<String> = lines.collect();
    let unknown = excluded.iter().filter(|name| !checks.contains(name));
    let unknown: Vec<String> = unknown.map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        lines
            .push(format!("warn: some health checks cannot be excluded: no matches for {unknown}"));
    }
    let result = if failed.is_some() { "failed" } else { "passed" };
    lines.join("\n") + &format!("\n{endpoint} check {result}\n")
}
