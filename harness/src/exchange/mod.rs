//! One request and its response: the only input of a verdict.

mod isolation;
mod request_kind;
mod stream_error;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::json;

pub(crate) use self::isolation::Isolation;
pub use self::stream_error::{FrameError, SpdyError};
pub(crate) use self::transcript::sha256;
pub use self::transcript::{Channel, Close, Flow, Frame, StreamEnd, Transcript};

/// One request and its outcome.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request.
    pub request: Sent,
    /// The response, or the reason for its absence.
    pub outcome: Outcome,
    /// Time from the start of the run to the first byte sent.
    pub started: Duration,
    /// Time from the first byte sent to the last byte received so far.
    pub took: Duration,
}

/// A request as it was sent. The transport adds credentials and never records them.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Such as `GET`.
    pub method: String,
    /// Path and query, as on the request line.
    pub target: String,
    /// In order, without Authorization and Host.
    pub headers: Vec<(String, String)>,
    /// Empty without a body.
    pub body: Bytes,
    /// The credential that was used.
    pub identity: kubeproof_cases::case::Identity,
}

/// How an exchange ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A complete response; for a watch, its head and the events so far.
    Response(Received),
    /// No usable response.
    Broken(Broken),
}

/// A response.
#[derive(Clone, Debug)]
pub struct Received {
    /// The HTTP status code.
    pub status: u16,
    /// Such as `HTTP/1.1` or `HTTP/2`.
    pub version: &'static str,
    /// In order, names as received (HTTP/2: lower case).
    pub headers: Vec<(String, String)>,
    /// As received, up to a size limit. Empty for a watch with status 200.
    pub body: Bytes,
    /// The body as JSON, if it is valid JSON.
    pub json: Option<Arc<Value>>,
    /// Why a body of type JSON is invalid: a syntax error or a duplicate key.
    pub json_fault: Option<String>,
    /// The events of a watch, in order.
    pub events: Vec<WatchEvent>,
    /// The end of a watch; `None` while it is open, and without a watch.
    pub end: Option<WatchEnd>,
    /// The transcript of an upgraded connection.
    pub stream: Option<Arc<Transcript>>,
}

impl Received {
    /// Returns a response with a head only.
    pub(crate) fn head(status: u16, version: &'static str, headers: Vec<(String, String)>) -> Self {
        Self {
            status,
            version,
            headers,
            body: Bytes::new(),
            json: None,
            json_fault: None,
            events: Vec::new(),
            end: None,
            stream: None,
        }
    }
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or what the server sent instead.
    pub kind: String,
    /// Its object.
    pub object: Arc<Value>,
    /// Time since the start of the run.
    pub at: Duration,
}

/// How a watch ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WatchEnd {
    /// The server closed the stream properly.
    Server,
    /// The client closed the stream.
    Client,
    /// The server sent a list of this kind instead of events.
    List(String),
    /// The connection broke, or a document of the stream is no event.
    Broken(String),
    /// The watch exceeded a size limit.
    Budget(String),
}

/// Why an exchange has no response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broken {
    /// The category.
    pub kind: BrokenKind,
    /// The whole chain of causes.
    pub message: String,
}

/// Categories of exchanges without a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BrokenKind {
    /// The client did not send the request, or its deadline expired before there was a connection.
    NotSent,
    /// The connection failed.
    Connect,
    /// TLS failed.
    Tls,
    /// The deadline of the case or request expired.
    Deadline,
    /// The peer reset the connection, truncated the response, or did not send HTTP.
    Protocol,
    /// The body exceeded a size limit.
    Budget,
}

impl Exchange {
    /// Returns the complete response, if there is one.
    pub fn response(&self) -> Option<&Received> {
        match &self.outcome {
            Outcome::Response(received) => Some(received),
            Outcome::Broken(_) => None,
        }
    }

    /// Returns the status code, or 0 without a response.
    pub fn status(&self) -> u16 {
        self.response().map_or(0, |response| response.status)
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Option<&Value> {
        self.response()?.json.as_deref()
    }

    /// Keeps the start of a body that is longer than a limit in bytes. The start has no JSON, and
    /// ends before the first character that does not fit.
    pub(crate) fn shorten_body(&mut self, limit: usize) {
        if let Outcome::Response(received) = &mut self.outcome
            && received.body.len() > limit
        {
            let starts_character = |at: &usize| received.body[*at] & 0xC0 != 0x80;
            let end = (0..=limit).rev().find(starts_character).unwrap_or(limit);
            received.body = Bytes::copy_from_slice(&received.body[..end]);
            received.json = None;
        }
    }

    /// Describes the outcome, such as `403 Forbidden: pods is forbidden` or `connection refused`.
    pub fn in_words(&self) -> String {
        let response = match &self.outcome {
            Outcome::Broken(broken) => return broken.message.clone(),
            Outcome::Response(response) => response,
        };
        let text = |member: &str| response.json.as_ref()?.get(member)?.as_str().map(shorten);
        let parts = [
            text("reason").map(|reason| format!(" {reason}")),
            text("message").map(|text| format!(": {text}")),
        ];
        format!("{}{}", response.status, parts.into_iter().flatten().collect::<String>())
    }
}

/// Parses a body strictly: `None` when it is not JSON. Of duplicate keys, the last one counts.
pub fn parse_json(body: &[u8]) -> Option<Value> {
    Some(json::parse(body).ok()?.0)
}

/// Limits a text to 200 characters.
pub(crate) fn shorten(text: &str) -> String {
    const LIMIT: usize = 200;
    if text.chars().count() <= LIMIT {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LIMIT).collect();
    format!("{cut}… ({} bytes)", text.len())
}
