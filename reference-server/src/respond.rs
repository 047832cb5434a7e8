//! Answers, and how they become HTTP responses.

use std::convert::Infallible;
use std::fmt;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;

use crate::status::ApiError;
use crate::{Fault, Faults, bends, json};

/// Chunks of a stream without end.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of a response: bytes, or a stream of events.
pub(crate) enum Payload {
    Whole(Bytes),
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
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}

/// An answer on its way out.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) payload: Payload,
    pub(crate) headers: Vec<(header::HeaderName, HeaderValue)>,
}

const JSON: &str = "application/json";

impl Answer {
    /// JSON that is serialised already.
    pub(crate) fn bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Self {
        Self { status, content_type: JSON, payload: Payload::Whole(bytes.into()), headers: Vec::new() }
    }

    /// A JSON document.
    pub(crate) fn json(status: StatusCode, value: &Value) -> Self {
        Self::bytes(status, format!("{value}\n"))
    }

    /// Nothing but what is added to it: the answer to a handshake.
    pub(crate) fn bare(status: StatusCode) -> Self {
        Self { content_type: "", ..Self::bytes(status, Bytes::new()) }
    }

    /// Plain text.
    pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::bytes(status, text) }
    }

    /// Events without end.
    pub(crate) fn stream(chunks: Chunks) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: JSON,
            payload: Payload::Stream(chunks),
            headers: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// One `Warning` header for each text.
    #[must_use]
    pub(crate) fn warnings(mut self, warnings: &[String]) -> Self {
        let mut budget = MAX_WARNINGS;
        let mut seen: Vec<&str> = Vec::new();
        for warning in warnings {
            if seen.contains(&warning.as_str()) {
                continue;
            }
            seen.push(warning);
            let value = warning_header(warning);
            if value.len() > budget {
                break;
            }
            budget -= value.len();
            if let Ok(value) = HeaderValue::from_str(&value) {
                self.headers.push((header::WARNING, value));
            }
        }
        self
    }

    /// Indents the JSON of the body, when the client asked for that.
    #[must_use]
    pub(crate) fn pretty(mut self, pretty: bool) -> Self {
        if let (true, JSON, Payload::Whole(bytes)) = (pretty, self.content_type, &self.payload)
            && let Ok(value) = json::parse(bytes)
        {
            self.payload = Payload::Whole(format!("{value:#}\n").into());
        }
        self
    }

    /// Compresses a long body.
    #[must_use]
    pub(crate) fn compressed(mut self) -> Self {
        let Payload::Whole(bytes) = &self.payload else { return self };
        if bytes.len() < WORTH_COMPRESSING
            || self.headers.iter().any(|(name, _)| name == header::CONTENT_ENCODING)
        {
            return self;
        }
        let Some(compressed) = gzip(bytes) else { return self };
        self.payload = Payload::Whole(compressed);
        self.header(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))
            .header(header::VARY, HeaderValue::from_static("Accept-Encoding"))
    }

    pub(crate) fn into_response(self) -> Response<Payload> {
        let mut response = Response::new(self.payload);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        // A cache takes over the headers of a 304, and would forget what it has a copy of.
        if self.status != StatusCode::NOT_MODIFIED && !self.content_type.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        if self.content_type.is_empty() {
            return response;
        }
        headers.entry(header::CACHE_CONTROL).or_insert_with(|| HeaderValue::from_static("no-cache, private"));
        response
    }
}

impl Answer {
    /// The Status of a refusal.
    pub(crate) fn from_error(error: &ApiError, faults: Faults) -> Self {
        if error.plain {
            return Self::text(error.code, format!("{}\n", error.message));
        }
        let mut status = error.to_status();
        bends::status(&mut status, error.code, faults);
        let mut answer = Self::json(error.code, &status);
        let retry_after = error.details.as_ref().and_then(|details| details.retry_after);
        if let Some(seconds) = retry_after.filter(|_| !faults.on(Fault::RetryAfterInBodyOnly)) {
            answer = answer.header(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if error.code == StatusCode::UNAUTHORIZED {
            answer = answer.header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

/// The bytes, compressed.
pub(crate) fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).ok().map(Bytes::from)
}

/// How long a body is that is worth the time of compressing it.
const WORTH_COMPRESSING: usize = 128 * 1024;

/// How many bytes of warnings one answer carries, and how many characters each.
const MAX_WARNINGS: usize = 4096;
const MAX_WARNING: usize = 256;

/// A warning as RFC 7234 writes it: code, agent and a quoted text.
fn warning_header(text: &str) -> String {
    let mut value = String::from("299 - \"");
    for c in text.chars().take(MAX_WARNING) {
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
        assert_eq!(warning_header("unknown field \"spec.x\""), r#"299 - "unknown field \"spec.x\"""#);
        assert_eq!(warning_header("a\nb"), r#"299 - "a b""#);
    }

    #[test]
    fn repeated_warnings_are_sent_once_and_never_more_than_the_budget() {
        let warnings: Vec<String> =
            (0..100).map(|n| format!("{n}{}", "x".repeat(200))).chain(["a".into(), "a".into()]).collect();
        let answer = Answer::text(StatusCode::OK, "").warnings(&warnings);
        assert!(answer.headers.iter().map(|(_, value)| value.len()).sum::<usize>() <= MAX_WARNINGS);
        let twice = Answer::text(StatusCode::OK, "").warnings(&["a".into(), "a".into()]);
        assert_eq!(twice.headers.len(), 1);
    }
}
