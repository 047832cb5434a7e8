//! Responses of endpoints, and their conversion to HTTP responses.

use std::convert::Infallible;
use std::fmt;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::http::items::Items;
use crate::http::metrics::Running;
use crate::http::negotiate::Representation;
use kubeproof_apimachinery::serializer::json;
use kubeproof_apimachinery::status::ApiError;

/// The chunks of an endless stream.
pub type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Marks a response that the client may pause without a timeout.
#[derive(Clone, Copy, Debug)]
pub struct MayPause;

/// The body of a response: bytes, or a stream of events.
pub enum Payload {
    /// The complete body.
    Whole(Bytes),
    /// A long list that is written while it is sent.
    Items(Box<Items>),
    /// Chunks when they are ready.
    Stream(Chunks),
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Items(items) => Poll::Ready(items.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Stream(chunks) => {
                chunks.as_mut().poll_next(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Items(items) => SizeHint::with_exact(items.length() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Items(items) => write!(f, "a list of {} bytes", items.length()),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}

/// The response of an endpoint.
#[derive(Debug)]
pub struct ApiResponse {
    /// The HTTP status code.
    pub status: StatusCode,
    /// The media type.
    pub content_type: &'static str,
    /// The body.
    pub payload: Payload,
    /// Additional headers.
    pub headers: Vec<(header::HeaderName, HeaderValue)>,
    /// The client may pause reading without a timeout.
    pub may_pause: bool,
}

const JSON: &str = "application/json";

impl ApiResponse {
    /// Returns a response of serialised JSON.
    pub fn bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: JSON,
            payload: Payload::Whole(bytes.into()),
            headers: Vec::new(),
            may_pause: false,
        }
    }

    /// Returns a response of a JSON document.
    pub fn json(status: StatusCode, value: &Value) -> Self {
        Self::bytes(status, format!("{value}\n"))
    }

    /// Returns a response without a body, for example for a handshake.
    pub fn bare(status: StatusCode) -> Self {
        Self { content_type: "", ..Self::bytes(status, Bytes::new()) }
    }

    /// Returns a response of a list of objects.
    pub fn items(mut items: Items) -> Self {
        let payload = if items.length() <= WORTH_COMPRESSING {
            Payload::Whole(items.rest())
        } else {
            Payload::Items(Box::new(items))
        };
        Self { payload, ..Self::bytes(StatusCode::OK, Bytes::new()) }
    }

    /// Collects the text of a list, because indenting and compressing need all of it.
    #[must_use]
    pub(crate) fn gathered(mut self) -> Self {
        if let Payload::Items(items) = &mut self.payload {
            self.payload = Payload::Whole(items.rest());
        }
        self
    }

    /// Returns a response of plain text.
    pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::bytes(status, text) }
    }

    /// Returns a response of an endless stream.
    pub fn stream(chunks: Chunks) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: JSON,
            payload: Payload::Stream(chunks),
            headers: Vec::new(),
            may_pause: false,
        }
    }

    /// Ends a stream when the server drains. `running` is dropped with the body.
    #[must_use]
    pub(crate) fn until(mut self, draining: CancellationToken, running: Option<Running>) -> Self {
        self.payload = match self.payload {
            Payload::Stream(chunks) => {
                let chunks = Box::pin(chunks.take_until(draining.cancelled_owned()));
                let counted = stream::unfold((chunks, running), |(mut chunks, running)| async {
                    let chunk = chunks.next().await?;
                    Some((chunk, (chunks, running)))
                });
                Payload::Stream(Box::pin(counted))
            }
            whole @ (Payload::Whole(_) | Payload::Items(_)) => whole,
        };
        self
    }

    #[must_use]
    /// Adds a header.
    pub fn header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds one `Warning` header for each text.
    #[must_use]
    pub fn warnings(mut self, warnings: &[String]) -> Self {
        let (mut budget, mut warning_count) = (MAX_WARNINGS, 0);
        let mut seen: Vec<&str> = Vec::new();
        // As in kube-apiserver, only warnings that are too long together become shorter.
        let is_short = warnings.iter().map(String::len).sum::<usize>() < MAX_WARNINGS;
        let limit = if is_short { MAX_WARNINGS } else { MAX_WARNING };
        for warning in warnings {
            if seen.contains(&warning.as_str()) {
                continue;
            }
            seen.push(warning);
            let value = warning_header(warning, limit);
            if value.len() > budget || warning_count == MAX_WARNING_COUNT {
                break;
            }
            budget -= value.len();
            warning_count += 1;
            if let Ok(value) = HeaderValue::from_str(&value) {
                self.headers.push((header::WARNING, value));
            }
        }
        self
    }

    /// Indents the JSON of the body if the client requested it.
    #[must_use]
    pub fn pretty(self, pretty: bool) -> Self {
        if !pretty {
            return self;
        }
        let mut response = self.gathered();
        if let (JSON, Payload::Whole(bytes)) = (response.content_type, &response.payload)
            && let Ok(value) = json::parse(bytes)
        {
            // Indenting is optional. Text that would become many times longer stays as it is.
            if let Ok(indented) = json::pretty(&value, MAX_INDENTED.max(4 * bytes.len())) {
                response.payload = Payload::Whole([indented.as_ref(), b"\n"].concat().into());
            }
        }
        response
    }

    /// Compresses a long body.
    #[must_use]
    pub fn compressed(self) -> Self {
        let mut response = self.gathered();
        let Payload::Whole(bytes) = &response.payload else { return response };
        if bytes.len() < WORTH_COMPRESSING
            || response.headers.iter().any(|(name, _)| name == header::CONTENT_ENCODING)
        {
            return response;
        }
        let Some(compressed) = gzip(bytes) else { return response };
        response.payload = Payload::Whole(compressed);
        response
            .header(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))
            .header(header::VARY, HeaderValue::from_static("Accept-Encoding"))
    }

    /// Returns the HTTP response.
    pub fn into_response(self) -> Response<Payload> {
        let mut response = Response::new(self.payload);
        *response.status_mut() = self.status;
        if self.may_pause {
            response.extensions_mut().insert(MayPause);
        }
        let headers = response.headers_mut();
        // A cache takes over the headers of a 304 and would replace those of its copy.
        if self.status != StatusCode::NOT_MODIFIED && !self.content_type.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        if self.content_type.is_empty() {
            return response;
        }
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert_with(|| HeaderValue::from_static("no-cache, private"));
        response
    }
}

/// Returns the response to HEAD: the headers of a response to GET. HTTP/2 forbids a body after
/// them.
pub(crate) fn without_body(mut response: Response<Payload>) -> Response<Payload> {
    if let Payload::Whole(body) = response.body() {
        let length = HeaderValue::from(body.len());
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length);
    }
    *response.body_mut() = Payload::Whole(Bytes::new());
    response
}

impl ApiResponse {
    /// Returns the Status of an error.
    pub(crate) fn from_error(error: &ApiError, representation: Representation) -> Self {
        if error.plain {
            return Self::text(error.code, format!("{}\n", error.message));
        }
        let status = error.to_status();
        let code = error.code;
        let mut response = Self::document(representation, code, &status);
        let retry_after = error.details.as_ref().and_then(|details| details.retry_after);
        if let Some(seconds) = retry_after {
            response = response.header(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if error.code == StatusCode::UNAUTHORIZED {
            response =
                response.header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Response<Bytes>> for ApiResponse {
    fn from(response: Response<Bytes>) -> Self {
        let (mut parts, content) = response.into_parts();
        let mut response = Self::text(parts.status, content);
        if parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value == response.content_type)
        {
            parts.headers.remove(header::CONTENT_TYPE);
        } else {
            response.content_type = "";
        }
        response
            .headers
            .extend(parts.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        response
    }
}

/// Compresses the bytes.
fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).ok().map(Bytes::from)
}

/// The shortest body that is compressed.
const WORTH_COMPRESSING: usize = 128 * 1024;

/// The longest text after indenting. Nested objects grow by their depth.
pub const MAX_INDENTED: usize = 16 * 1024 * 1024;

/// The most bytes of warnings in one response. Clients accept a limited number of headers.
const MAX_WARNINGS: usize = 4096;
const MAX_WARNING: usize = 256;
const MAX_WARNING_COUNT: usize = 50;

/// Formats a warning as in RFC 7234: code, agent and a quoted text.
fn warning_header(text: &str, limit: usize) -> String {
    let mut value = String::from("299 - \"");
    for c in text.chars().take(limit) {
        match c {
            '"' | '\\' => value.extend(['\\', c]),
            c if c.is_ascii_graphic() || c == ' ' => value.push(c),
            c if c.is_control() => value.push(' '),
            _ => value.push('?'),
        }
    }
    value.push('"');
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_a_quoted_string_behind_code_and_agent() {
        assert_eq!(
            warning_header("unknown field \"spec.x\"", MAX_WARNING),
            r#"299 - "unknown field \"spec.x\"""#
        );
        assert_eq!(warning_header("a\nb", MAX_WARNING), r#"299 - "a b""#);
    }

    #[test]
    fn repeated_warnings_are_sent_once_and_never_more_than_the_budget() {
        let warnings: Vec<String> = (0..100)
            .map(|n| format!("{n}{}", "x".repeat(200)))
            .chain(["a".into(), "a".into()])
            .collect();
        let response = ApiResponse::text(StatusCode::OK, "").warnings(&warnings);
        assert!(
            response.headers.iter().map(|(_, value)| value.len()).sum::<usize>() <= MAX_WARNINGS
        );
        let short: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        assert_eq!(
            ApiResponse::text(StatusCode::OK, "").warnings(&short).headers.len(),
            MAX_WARNING_COUNT
        );
        let twice = ApiResponse::text(StatusCode::OK, "").warnings(&["a".into(), "a".into()]);
        assert_eq!(twice.headers.len(), 1);
    }
}
