//! One request and all that came back: the only input of a verdict.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::stream::Transcript;

/// One request and what came back.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What was sent.
    pub request: Sent,
    /// What came back, or why nothing did.
    pub outcome: Outcome,
    /// From the start of the run to the first byte sent.
    pub started: Duration,
    /// From the first byte sent to the last byte received (so far, for a watch).
    pub took: Duration,
}

/// A request as it went out. It carries no credential: those are added by the transport, and are never recorded.
#[derive(Clone, Debug)]
pub struct Sent {
    /// As `GET`.
    pub method: String,
    /// Path and query, as on the request line.
    pub target: String,
    /// In order, without Authorization and Host.
    pub headers: Vec<(String, String)>,
    /// Empty for none.
    pub body: Bytes,
    /// Whose credential went with it.
    pub identity: kubeproof_cases::case::Identity,
}

/// How an exchange ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A complete answer, or for a watch its head and the events so far.
    Answered(Received),
    /// Nothing usable came.
    Broken(Broken),
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Received {
    /// The HTTP code.
    pub status: u16,
    /// As `HTTP/1.1` or `HTTP/2`.
    pub version: &'static str,
    /// In order, names as received (HTTP/2: lower case).
    pub headers: Vec<(String, String)>,
    /// As received, up to the budget. Empty for a watch that answered 200.
    pub body: Bytes,
    /// The body as JSON, when it is (read strictly; see [`crate::json`]).
    pub json: Option<Arc<Value>>,
    /// What is wrong with the body as JSON although it claims to be JSON: a syntax error, a duplicate key.
    pub json_fault: Option<String>,
    /// The events of a watch, in order.
    pub events: Vec<WatchEvent>,
    /// How a watch ended; `None` while it is open, or when this is no watch.
    pub end: Option<WatchEnd>,
    /// Everything that came and went on a connection that was upgraded.
    pub stream: Option<Arc<Transcript>>,
}

impl Received {
    /// An answer that has a head and nothing else yet.
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
    /// ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or whatever stood there.
    pub kind: String,
    /// Its object.
    pub object: Arc<Value>,
    /// From the start of the run.
    pub at: Duration,
}

/// How a watch ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WatchEnd {
    /// The server ended the stream in order.
    Server,
    /// The client hung up.
    Client,
    /// The connection broke, or a line was no event.
    Broken(String),
    /// A line or the whole was longer than the reader allows.
    Budget(String),
}

/// Why there is no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broken {
    /// What happened.
    pub kind: BrokenKind,
    /// The whole chain of causes.
    pub message: String,
}

/// The ways in which an exchange can fail to produce an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BrokenKind {
    /// No connection.
    Connect,
    /// TLS failed.
    Tls,
    /// The deadline of the case or request passed.
    Deadline,
    /// The peer reset, truncated, or sent what is not HTTP.
    Protocol,
    /// The body was longer than the reader allows.
    Budget,
    /// The run was interrupted.
    Interrupted,
}
