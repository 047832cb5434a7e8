//! Requests and responses in a form that is easy to edit: bodies are read to their end, except for
//! streams and upgraded connections.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::header::{self, HeaderName, HeaderValue};
use http::{Extensions, HeaderMap, Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::document;
use kubeproof_apimachinery::request::Query;

/// The `Host` of requests whose client sent none.
pub(crate) const LOCALHOST: HeaderValue = HeaderValue::from_static("localhost");

/// A request that a client sent, or that a fault sends itself.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The path as sent, with its percent signs, without the query.
    pub(crate) path: String,
    /// The query as sent, without the question mark.
    pub(crate) raw_query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The client's side of the connection, where the request asks for an upgrade.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// What the listener found out about the client, such as its certificates.
    pub(crate) extensions: Extensions,
}

impl Request {
    /// A request without a body. The caller adds a credential, or copies the headers of the client.
    pub(crate) fn new(method: Method, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, LOCALHOST);
        Self {
            method,
            path: path.to_owned(),
            raw_query: query.to_owned(),
            headers,
            body: Bytes::new(),
            upgrade: None,
            extensions: Extensions::new(),
        }
    }

    /// A request of the same client (credential, impersonation) for something else. Negotiation and
    /// upgrade headers are left out; the response is JSON.
    pub(crate) fn by_same_client(&self, method: Method, path: &str) -> Self {
        let mut request = Self::new(method, path);
        request.extensions = self.extensions.clone();
        for (name, value) in &self.headers {
            if *name == header::AUTHORIZATION || name.as_str().starts_with("impersonate-") {
                request.headers.append(name, value.clone());
            }
        }
        request
    }

    /// This request with a JSON body of this media type.
    pub(crate) fn with_json(mut self, media_type: &'static str, body: &Value) -> Self {
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        self.body = body.to_string().into();
        self
    }

    /// Returns the resource that the path names; empty for a path outside of the resources. A
    /// namespace is cluster-scoped here, like the object that represents it.
    pub(crate) fn target(&self) -> ResourceInfo {
        let mut target = ResourceInfo::parse(&self.path).unwrap_or_default();
        if target.resource == "namespaces" && target.namespace == target.name {
            target.namespace.clear();
        }
        target
    }

    /// The verb as authorization names it; empty for a path outside of the resources.
    pub(crate) fn verb(&self) -> &'static str {
        let target = self.target();
        if target.is_resource() { target.verb(&self.method, self.is_watch()) } else { "" }
    }

    /// The decoded query.
    pub(crate) fn query(&self) -> Query {
        Query::parse(&self.raw_query)
    }

    /// Replaces the query.
    pub(crate) fn set_query(&mut self, query: &Query) {
        self.raw_query = query.to_string();
    }

    /// Edits the query in place.
    pub(crate) fn edit_query(&mut self, edit: impl FnOnce(&mut Query)) {
        let mut query = self.query();
        edit(&mut query);
        self.set_query(&query);
    }

    /// Returns whether the request opens a watch.
    pub(crate) fn is_watch(&self) -> bool {
        self.method == Method::GET && (self.query().flag("watch") || self.target().legacy_watch)
    }

    /// Returns whether the request asks for a dry run in its query.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.query().get("dryRun").is_some_and(|value| !value.is_empty())
    }

    /// The media type of the body, without parameters, in lower case.
    pub(crate) fn media_type(&self) -> String {
        document::media_type(&self.headers)
    }

    /// A header as text; empty if it is missing or no text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as a JSON value, read from JSON or YAML; `None` if it is neither.
    pub(crate) fn json(&self) -> Option<Value> {
        document::read(&self.headers, &self.body)
    }

    /// Replaces the body, in the media type of the request.
    pub(crate) fn set_json(&mut self, value: &Value) {
        if let Some(body) = document::write(&self.headers, value, false) {
            self.body = body;
        }
    }

    /// Edits a JSON or YAML body in place. Returns whether there was one.
    pub(crate) fn edit_json(&mut self, edit: impl FnOnce(&mut Value)) -> bool {
        let Some(mut value) = self.json() else { return false };
        edit(&mut value);
        self.set_json(&value);
        true
    }
}

/// An upgraded connection, after the HTTP framing.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// The body of a response.
pub(crate) enum Body {
    /// A body that was read to its end.
    Whole(Bytes),
    /// A body that goes on: a watch, or a log that is followed.
    Stream(BoxStream<'static, Bytes>),
    /// The server's side of an upgraded connection. Bytes written go to the server.
    Upgraded(Box<dyn Io>),
}

/// A response of the server, or one that a fault makes up.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

impl Response {
    /// A JSON response.
    pub(crate) fn json(status: StatusCode, body: &Value) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { status, headers, body: Body::Whole(body.to_string().into()) }
    }

    /// A plain text response.
    pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        Self { status, headers, body: Body::Whole(text.into().into()) }
    }

    /// A failure with a `Status` body.
    pub(crate) fn failure(status: StatusCode, reason: &str, message: impl Into<String>) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message.into(), "reason": reason, "code": status.as_u16(),
        });
        Self::json(status, &body)
    }

    /// The bytes of a whole body; empty for a stream.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Whole(bytes) => bytes,
            Body::Stream(_) | Body::Upgraded(_) => &[],
        }
    }

    /// The body as a JSON value, read from JSON or YAML; `None` if it is neither, or compressed.
    pub(crate) fn value(&self) -> Option<Value> {
        if self.headers.contains_key(header::CONTENT_ENCODING) {
            return None;
        }
        document::read(&self.headers, self.bytes())
    }

    /// Replaces a whole body, in the media type of the response.
    pub(crate) fn set_value(&mut self, value: &Value) {
        let pretty = self.bytes().starts_with(b"{\n");
        if let Some(body) = document::write(&self.headers, value, pretty) {
            self.set_bytes(body);
        }
    }

    /// Replaces the body.
    pub(crate) fn set_bytes(&mut self, bytes: impl Into<Bytes>) {
        self.headers.remove(header::CONTENT_LENGTH);
        self.body = Body::Whole(bytes.into());
    }

    /// Edits a JSON or YAML body in place. Returns whether there was one.
    pub(crate) fn edit_value(&mut self, edit: impl FnOnce(&mut Value)) -> bool {
        let Some(mut value) = self.value() else { return false };
        edit(&mut value);
        self.set_value(&value);
        true
    }

    /// Sets a header.
    pub(crate) fn set_header(&mut self, name: HeaderName, value: &'static str) {
        self.headers.insert(name, HeaderValue::from_static(value));
    }

    /// Returns whether the body is a failure `Status` with this reason.
    pub(crate) fn has_reason(&self, reason: &str) -> bool {
        self.value().is_some_and(|value| value["kind"] == "Status" && value["reason"] == reason)
    }
}
