//! The ports of a pod. Containers declare well-known ports, and programs listen on others.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::process::{PIPE_CAPACITY, PortError};

/// The connections that wait for a program to accept them.
const BACKLOG: usize = 128;

/// The longest request body of the HTTP port.
const MAX_BODY: usize = 64 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Network(Mutex<BTreeMap<u16, Listener>>);

enum Listener {
    /// Returns all bytes.
    Echo,
    /// Responds with a description of the request.
    Http,
    /// A program of the pod listens.
    Program(mpsc::Sender<DuplexStream>),
}

impl Network {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Listener>> {
        // Each change is one insertion or removal, so a panic leaves the map consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a declared port whose name or number is well known.
    pub(super) fn declare(&self, name: &str, port: u16) {
        let listener = match (name, port) {
            ("echo", _) | (_, 7) => Listener::Echo,
            ("http", _) | (_, 80 | 8080) => Listener::Http,
            _ => return,
        };
        self.lock().insert(port, listener);
    }

    /// Opens a port for a program. Returns none when another program has it.
    pub(super) fn listen(&self, port: u16) -> Option<mpsc::Receiver<DuplexStream>> {
        let mut ports = self.lock();
        if let Some(Listener::Program(accept)) = ports.get(&port)
            && !accept.is_closed()
        {
            return None;
        }
        let (accept, accepted) = mpsc::channel(BACKLOG);
        // A program replaces a declared port.
        ports.insert(port, Listener::Program(accept));
        Some(accepted)
    }

    pub(super) fn close(&self) {
        self.lock().clear();
    }

    pub(super) fn connect(&self, port: u16) -> Result<DuplexStream, PortError> {
        let (near, far) = tokio::io::duplex(PIPE_CAPACITY);
        match self.lock().get(&port) {
            Some(Listener::Echo) => {
                tokio::spawn(echo(far));
            }
            Some(Listener::Http) => {
                tokio::spawn(http(far));
            }
            Some(Listener::Program(accept)) if accept.try_send(far).is_ok() => {}
            _ => return Err(PortError::Refused { port }),
        }
        Ok(near)
    }
}

/// Returns all bytes until the peer closes.
async fn echo(connection: DuplexStream) {
    let (mut read, mut write) = tokio::io::split(connection);
    // The peer may disconnect at any time.
    let _ = tokio::io::copy(&mut read, &mut write).await;
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut write).await;
}

async fn http(connection: DuplexStream) {
    let service = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(connection), service_fn(response))
        .with_upgrades();
    // The error of a broken connection concerns the peer only.
    let _ = service.await;
}

/// Responds with a description of the request. `/status/NNN` sets the status, and `echo` upgrades.
async fn response(mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let wants_echo = request.headers().get(header::UPGRADE).is_some_and(|to| to == "echo");
    if wants_echo {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            if let Ok(connection) = upgrade.await {
                let (mut read, mut write) = tokio::io::split(TokioIo::new(connection));
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = tokio::io::AsyncWriteExt::shutdown(&mut write).await;
            }
        });
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("echo"));
        return Ok(response);
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(response);
    };
    let body = body.to_bytes();
    let mut headers = Map::new();
    for name in parts.headers.keys() {
        let values = parts
            .headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into());
        headers.insert(name.to_string(), values.collect::<Vec<Value>>().into());
    }
    let text = json!({
        "method": parts.method.as_str(),
        "path": parts.uri.path(),
        "query": parts.uri.query().unwrap_or_default(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
        "bodyBytes": body.len(),
    });
    let mut response = Response::new(Full::from(format!("{text}\n")));
    let asked = parts.uri.path().strip_prefix("/status/").and_then(|code| code.parse().ok());
    if let Some(status) = asked.filter(|status: &StatusCode| !status.is_informational()) {
        *response.status_mut() = status;
    }
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
