//! Requests, responses, watch events and stream frames as text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request and its response, as text.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct ExchangeRecord {
    /// The step that sent the request, with its iterations.
    pub step: String,
    /// For example `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The user of the request: `admin`, `second`, `anonymous`, `invalid`.
    pub identity: String,
    /// In the order of sending.
    pub request_headers: Vec<(String, String)>,
    /// Empty for a request without a body.
    pub request_body: String,
    /// Start of the request in milliseconds since the start of the run.
    pub started_ms: f64,
    /// Time until the last byte of the response in milliseconds.
    pub took_ms: f64,
    /// The HTTP status code. Absent if there was no response.
    pub status: Option<u16>,
    /// For example `HTTP/1.1`.
    pub http_version: String,
    /// In the order of arrival.
    pub response_headers: Vec<(String, String)>,
    /// Empty for a response without a body.
    pub response_body: String,
    /// Why the body is not valid JSON.
    pub json_error: Option<String>,
    /// The events of a watch.
    pub events: Vec<EventRecord>,
    /// The first and last frames of a stream, in both directions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<FrameRecord>,
    /// How a watch or a stream ended.
    pub end: Option<String>,
    /// Why there was no response.
    pub broken: Option<String>,
}

/// One frame of a stream, or a placeholder for frames that are left out.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct FrameRecord {
    /// The sender: `server` or `client`.
    pub from: String,
    /// For example `binary` or `SYN_REPLY`.
    pub kind: String,
    /// For example `stdout`. Absent for frames of the whole connection.
    pub channel: Option<String>,
    /// Bytes of the payload.
    pub size: usize,
    /// The beginning of the payload.
    pub text: String,
    /// Fields of this kind of frame.
    pub detail: Value,
    /// Milliseconds since the start of the run.
    pub at_ms: f64,
}

/// One event of a watch.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct EventRecord {
    /// For example `ADDED`.
    pub kind: String,
    /// The object of the event.
    pub object: Value,
    /// Milliseconds since the start of the run.
    pub at_ms: f64,
}
