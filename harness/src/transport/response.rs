//! Converts responses to [`Received`].

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use serde_json::Value;

use crate::exchange::Received;
use crate::json;

/// Records the head of a response.
pub(super) fn head(
    status: StatusCode,
    version: Version,
    headers: Vec<(String, String)>,
) -> Received {
    let version = match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    };
    Received::head(status.as_u16(), version, headers)
}

/// Adds the body to a response.
pub(super) fn with_body(mut head: Received, body: Bytes) -> Received {
    if !body.is_empty() {
        let (json, fault) = json_of(&body);
        head.json = json;
        head.json_fault = fault.filter(|_| head.json.is_some() || claims_json(&head));
    }
    head.body = body;
    head
}

/// Converts headers to text. Bytes beyond ASCII have no meaning in HTTP.
pub(super) fn text_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
}

/// Parses JSON and returns the value and its fault. A duplicate key has both, a syntax error no
/// value.
pub(crate) fn json_of(text: &[u8]) -> (Option<Arc<Value>>, Option<String>) {
    match json::parse(text) {
        Ok((value, duplicate)) => {
            (Some(Arc::new(value)), duplicate.map(|duplicate| duplicate.to_string()))
        }
        Err(fault) => (None, Some(fault.to_string())),
    }
}

/// Reports whether the response declares a JSON body.
fn claims_json(head: &Received) -> bool {
    let header = |wanted: &str| {
        head.headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.as_str())
    };
    let essence =
        header("content-type").and_then(|value| value.split(';').next()).unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let plain =
        header("content-encoding").is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
    plain && (essence == "application/json" || essence.ends_with("+json"))
}
