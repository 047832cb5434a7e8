//! Sends each request over its own HTTP/1.1 connection with hyper, without normalisation, pooling
//! or retries.

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::upgrade::{OnUpgrade, Upgraded};
use kubeproof_cases::plural;
use tokio::time::Instant;

use super::body::Body;
use super::connection::{Dialer, Hold};
use super::failure::by;
use super::memory::MemoryBudget;
use super::{Ready, response};
use crate::exchange::{Broken, BrokenKind, Outcome, Received};

/// A response whose body has not been read. Drop closes the connection.
pub(super) struct ExactResponse {
    received: Received,
    body: OpenBody,
    upgrade: OnUpgrade,
}

/// A body during reception, with its connection. Drop closes it.
#[derive(Debug)]
pub(crate) struct OpenBody {
    pub(crate) incoming: Incoming,
    _hold: Hold,
}

/// Completes an exchange. Returns it with the time of sending.
pub(super) async fn send(
    dialer: &Dialer,
    ready: Ready,
    deadline: Instant,
    budget: &MemoryBudget,
) -> (Instant, Outcome) {
    let (started, response) = open(dialer, ready, deadline).await;
    let outcome = match response {
        Ok(response) => response.read(deadline, budget).await,
        Err(broken) => Outcome::Broken(broken),
    };
    (started, outcome)
}

/// Sends a request and reads the head of the response.
pub(super) async fn open(
    dialer: &Dialer,
    ready: Ready,
    deadline: Instant,
) -> (Instant, Result<ExactResponse, Broken>) {
    let target = wire_target(&dialer.prefix, &ready.sent.target);
    let (uri, line) = match held(&target) {
        Some(uri) => (uri, None),
        // A line end would start another request.
        None if target.contains(['\r', '\n']) => {
            let broken = Broken::not_sent("the target holds the end of a line");
            return (Instant::now(), Err(broken));
        }
        None => (Uri::from_static("/"), Some(request_line(&ready.method, &target))),
    };
    let connection = match dialer.open(ready.anonymous, line, deadline).await {
        Ok(connection) => connection,
        Err(broken) => return (Instant::now(), Err(broken)),
    };
    let mut request = Request::new(Full::new(ready.sent.body));
    *request.method_mut() = ready.method;
    *request.uri_mut() = uri;
    if !ready.headers.iter().any(|(name, _)| name == HOST) {
        request.headers_mut().insert(HOST, dialer.host_header.clone());
    }
    for (name, value) in ready.headers {
        request.headers_mut().append(name, value);
    }
    let started = Instant::now();
    let mut sender = connection.sender;
    let stage = "waiting for the head of the response";
    let head = by(deadline, BrokenKind::Deadline, stage, sender.send_request(request)).await;
    let response = head.and_then(|head| head.map_err(|error| Broken::on_connection(stage, &error)));
    let response = response.map(|mut response| {
        let upgrade = hyper::upgrade::on(&mut response);
        let (parts, incoming) = response.into_parts();
        let mut headers = connection.head.take_headers();
        // If the two parsers differ, the library's headers determined its behaviour.
        if headers.len() != parts.headers.len() {
            headers = response::text_headers(&parts.headers);
        }
        ExactResponse {
            received: response::head(parts.status, parts.version, headers),
            body: OpenBody { incoming, _hold: connection.hold },
            upgrade,
        }
    });
    (started, response)
}

impl ExactResponse {
    pub(super) fn status(&self) -> u16 {
        self.received.status
    }

    pub(super) fn into_parts(self) -> (Received, OpenBody) {
        (self.received, self.body)
    }

    /// Returns the upgraded connection after a 101.
    pub(super) async fn upgraded(self, deadline: Instant) -> (Received, Result<Upgraded, Broken>) {
        let stage = "the connection was being upgraded";
        let upgraded = by(deadline, BrokenKind::Deadline, stage, self.upgrade).await;
        let upgraded = upgraded
            .and_then(|result| result.map_err(|error| Broken::on_connection(stage, &error)));
        (self.received, upgraded)
    }

    /// Reads the whole body.
    pub(super) async fn read(self, deadline: Instant, budget: &MemoryBudget) -> Outcome {
        self.read_body(deadline, budget).await.map_or_else(Outcome::Broken, Outcome::Response)
    }

    async fn read_body(
        mut self,
        deadline: Instant,
        budget: &MemoryBudget,
    ) -> Result<Received, Broken> {
        let status = self.received.status;
        let mut body = Body::new(budget, self.received, self.body.incoming.size_hint().exact())?;
        loop {
            let length = plural(body.len(), "byte");
            let stage = format!("reading the body of a {status}, {length} so far");
            let frame =
                by(deadline, BrokenKind::Deadline, &stage, self.body.incoming.frame()).await?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| Broken::on_connection(&stage, &error))?;
            let Ok(data) = frame.into_data() else { continue };
            body.push(&data, deadline).await?;
        }
        body.finish(deadline).await
    }
}

/// Returns the target of the request line. Only paths get the prefix of the server.
pub(super) fn wire_target(prefix: &str, target: &str) -> String {
    if target.starts_with('/') { format!("{prefix}{target}") } else { target.to_owned() }
}

/// Returns the target as the HTTP library stores it, if that is unchanged.
fn held(target: &str) -> Option<Uri> {
    let parsed = PathAndQuery::try_from(target).ok()?;
    (parsed.as_str() == target).then(|| Uri::from(parsed))
}

fn request_line(method: &Method, target: &str) -> Bytes {
    format!("{method} {target} HTTP/1.1").into()
}
