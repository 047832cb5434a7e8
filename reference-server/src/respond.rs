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

use crate::items::Items;
use crate::status::ApiError;
use crate::{Fault, Faults, bends, json};

/// Chunks of a stream without end.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Marks the response whose client may leave it unread for as long as it likes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patient;

/// The body of a response: bytes, or a stream of events.
pub(crate) enum Payload {
    Whole(Bytes),
    /// A long list, whose text is made while it is sent.
    Items(Box<Items>),
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

/// An answer on its way out.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) payload: Payload,
    pub(crate) headers: Vec<(header::HeaderName, HeaderValue)>,
    /// The client may leave it unread.
    pub(crate) patient: bool,
}

const JSON: &str = "application/json";

impl Answer {
    /// JSON that is serialised already.
    pub(crate) fn bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: JSON,
            payload: Payload::Whole(bytes.into()),
            headers: Vec::new(),
            patient: false,
        }
    }

    /// A JSON document.
    pub(crate) fn json(status: StatusCode, value: &Value) -> Self {
        Self::bytes(status, format!("{value}\n"))
    }

    /// Nothing but what is added to it: the answer to a handshake.
    pub(crate) fn bare(status: StatusCode) -> Self {
        Self { content_type: "", ..Self::bytes(status, Bytes::new()) }
    }

    /// A list of objects.
    pub(crate) fn items(mut items: Items) -> Self {
        let payload = if items.length() <= WORTH_COMPRESSING {
            Payload::Whole(items.rest())
        } else {
            Payload::Items(Box::new(items))
        };
        Self { payload, ..Self::bytes(StatusCode::OK, Bytes::new()) }
    }

    /// The text of a list at once: what it is to become depends on all of it.
    #[must_use]
    fn gathered(mut self) -> Self {
        if let Payload::Items(items) = &mut self.payload {
            self.payload = Payload::Whole(items.rest());
        }
        self
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
            patient: false,
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
        let (mut budget, mut answer_warnings) = (MAX_WARNINGS, 0);
        let mut seen: Vec<&str> = Vec::new();
        for warning in warnings {
            if seen.contains(&warning.as_str()) {
                continue;
            }
            seen.push(warning);
            let value = warning_header(warning);
            if value.len() > budget || answer_warnings == MAX_WARNING_COUNT {
                break;
            }
            budget -= value.len();
            answer_warnings += 1;
            if let Ok(value) = HeaderValue::from_str(&value) {
                self.headers.push((header::WARNING, value));
            }
        }
        self
    }

    /// Indents the JSON of the body, when the client asked for that.
    #[must_use]
    pub(crate) fn pretty(self, pretty: bool) -> Self {
        if !pretty {
            return self;
        }
        let mut answer = self.gathered();
        if let (JSON, Payload::Whole(bytes)) = (answer.content_type, &answer.payload)
            && let Ok(value) = json::parse(bytes)
        {
            // Indenting is a courtesy: what would come out many times as long goes as it is.
            if let Ok(indented) = json::pretty(&value, MAX_INDENTED.max(4 * bytes.len())) {
                answer.payload = Payload::Whole([indented.as_ref(), b"\n"].concat().into());
            }
        }
        answer
    }

    /// Compresses a long body.
    #[must_use]
    pub(crate) fn compressed(self) -> Self {
        let mut answer = self.gathered();
        let Payload::Whole(bytes) = &answer.payload else { return answer };
        if bytes.len() < WORTH_COMPRESSING
            || answer.headers.iter().any(|(name, _)| name == header::CONTENT_ENCODING)
        {
            return answer;
        }
        let Some(compressed) = gzip(bytes) else { return answer };
        answer.payload = Payload::Whole(compressed);
        answer
            .header(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))
            .header(header::VARY, HeaderValue::from_static("Accept-Encoding"))
    }

    pub(crate) fn into_response(self) -> Response<Payload> {
        let mut response = Response::new(self.payload);
        *response.status_mut() = self.status;
        if self.patient {
            response.extensions_mut().insert(Patient);
        }
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
        let late = error.code == StatusCode::GATEWAY_TIMEOUT && faults.on(Fault::FutureVersionAs500);
        let code = if late { StatusCode::INTERNAL_SERVER_ERROR } else { error.code };
        let mut answer = Self::json(code, &status);
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

/// How long a text may become by indenting it; a document of objects in objects grows by its depth.
pub(crate) const MAX_INDENTED: usize = 16 * 1024 * 1024;

/// How many bytes of warnings one answer carries, how many characters each, and how many of them: clients take a hundred headers.
const MAX_WARNINGS: usize = 4096;
const MAX_WARNING: usize = 256;
const MAX_WARNING_COUNT: usize = 50;

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
        let short: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        assert_eq!(Answer::text(StatusCode::OK, "").warnings(&short).headers.len(), MAX_WARNING_COUNT);
        let twice = Answer::text(StatusCode::OK, "").warnings(&["a".into(), "a".into()]);
        assert_eq!(twice.headers.len(), 1);
    }
}
