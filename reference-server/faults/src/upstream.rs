//! The server behind a proxy, over connections in memory.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{self, HeaderValue};
use http::{Extensions, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::DuplexStream;

use crate::exchange::{Body, Io, Request, Response};

/// The buffer of a connection in memory, in bytes.
const PIPE: usize = 64 * 1024;

/// A server that accepts connections in memory.
#[derive(Clone)]
pub struct Upstream {
    accept: Arc<dyn Fn(DuplexStream, Extensions) + Send + Sync>,
    admin: HeaderValue,
}

impl Upstream {
    /// Describes a server: `accept` starts to serve HTTP/1.1 on a connection and returns at
    /// once. It receives the extensions of the request, which identify the client.
    /// `admin_token` is the bearer token for the requests that faults send themselves.
    ///
    /// # Errors
    /// If the token cannot be part of a header.
    pub fn new(
        admin_token: &str,
        accept: impl Fn(DuplexStream, Extensions) + Send + Sync + 'static,
    ) -> Result<Self, header::InvalidHeaderValue> {
        let admin = HeaderValue::from_str(&format!("Bearer {admin_token}"))?;
        Ok(Self::with_credential(admin, accept))
    }

    /// Describes a server like [`Self::new`]; `admin` is a whole `Authorization` header.
    pub(crate) fn with_credential(
        admin: HeaderValue,
        accept: impl Fn(DuplexStream, Extensions) + Send + Sync + 'static,
    ) -> Self {
        Self { accept: Arc::new(accept), admin }
    }

    /// Sends a request over a connection of its own. A connection that breaks is a 502.
    pub(crate) async fn send(&self, request: Request) -> Response {
        self.try_send(request).await.unwrap_or_else(|error| {
            let text = format!("the server behind the proxy sent no response: {error}");
            Response::text(StatusCode::BAD_GATEWAY, text)
        })
    }

    /// Sends a request as the administrator, with a JSON body of this media type, if any.
    pub(crate) async fn as_admin(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
    ) -> Response {
        let mut request = Request::new(method, path);
        request.headers.insert(header::AUTHORIZATION, self.admin.clone());
        if let Some((media_type, body)) = body {
            request = request.with_json(media_type, body);
        }
        self.send(request).await
    }

    /// Reads a document as the administrator; `None` unless the response is 200 with JSON.
    pub(crate) async fn read(&self, path: &str) -> Option<Value> {
        let response = self.as_admin(Method::GET, path, None).await;
        (response.status == StatusCode::OK).then(|| response.value())?
    }

    /// The `Authorization` header of the administrator.
    pub(crate) fn admin(&self) -> HeaderValue {
        self.admin.clone()
    }

    async fn try_send(&self, request: Request) -> Result<Response, hyper::Error> {
        let (near, far) = tokio::io::duplex(PIPE);
        (self.accept)(far, request.extensions.clone());
        exchange(near, request).await
    }
}

/// Sends one request over a new connection and reads the response.
pub(crate) async fn exchange(
    connection: impl Io + 'static,
    request: Request,
) -> Result<Response, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection)).await?;
    tokio::spawn(connection.with_upgrades());
    let mut response = sender.send_request(outgoing(request)).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let upgraded = hyper::upgrade::on(&mut response).await?;
        let (head, _) = response.into_parts();
        let body = Body::Upgraded(Box::new(TokioIo::new(upgraded)));
        return Ok(Response { status: head.status, headers: head.headers, body });
    }
    let (mut head, body) = response.into_parts();
    let body = if head.headers.remove(header::TRANSFER_ENCODING).is_some() {
        Body::Stream(chunks(body).boxed())
    } else {
        Body::Whole(body.collect().await?.to_bytes())
    };
    Ok(Response { status: head.status, headers: head.headers, body })
}

/// A request for the connection in memory, which finds out the length of the body itself.
fn outgoing(request: Request) -> http::Request<Full<Bytes>> {
    let Request { method, path, raw_query, mut headers, body, .. } = request;
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::EXPECT);
    let mut outgoing = http::Request::new(Full::new(body));
    *outgoing.method_mut() = method;
    *outgoing.headers_mut() = headers;
    let query = if raw_query.is_empty() { String::new() } else { format!("?{raw_query}") };
    if let Ok(uri) = format!("{path}{query}").parse() {
        *outgoing.uri_mut() = uri;
    }
    outgoing
}

/// The chunks of a body. A connection that breaks ends them.
fn chunks(body: Incoming) -> impl futures_util::Stream<Item = Bytes> + Send {
    futures_util::stream::unfold(body, |mut body| async move {
        loop {
            if let Ok(data) = body.frame().await?.ok()?.into_data() {
                return Some((data, body));
            }
        }
    })
}
