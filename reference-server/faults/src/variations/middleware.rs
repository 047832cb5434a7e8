//! The middleware that changes requests and responses for the variations.

use std::io::Write as _;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use kubeproof_apimachinery::request::Query;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::time::sleep;

use super::events::Events;
use super::responses::ResponseRewriter;
use super::{Variation, Variations, request};
use crate::document;
use crate::exchange::{Body, Request, Response};
use crate::headers::accepts_gzip;
use crate::middleware::{Middleware, Next};

/// The offset of the clock in hours.
const HOURS: std::ops::RangeInclusive<i64> = 2..=70;
/// One in this number of requests gets 429 first.
const TURNED_AWAY: u32 = 40;
/// One in this number of responses is slow.
const SLOW: u32 = 8;
/// The delay of a response, or of a piece of it, in milliseconds.
const PAUSE: std::ops::RangeInclusive<u64> = 1..=12;

/// The warning that every response carries.
const NOTICE: &str = "299 - \"maintenance begins at ten\"";

/// Changes requests and responses as a set of variations permits.
pub(crate) struct VariationMiddleware {
    variations: Variations,
    clock: i64,
    rewriter: Arc<ResponseRewriter>,
    random: Mutex<StdRng>,
}

impl Middleware for VariationMiddleware {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        self.exchange(request, next).boxed()
    }
}

impl VariationMiddleware {
    pub(crate) fn new(variations: Variations) -> Self {
        let mut random = StdRng::seed_from_u64(variations.seed());
        let hours = random.random_range(HOURS);
        let clock = if random.random() { hours * 3600 } else { -hours * 3600 };
        let rewriter = Arc::new(ResponseRewriter::new(variations, clock));
        Self { variations, clock, rewriter, random: Mutex::new(random) }
    }

    async fn exchange(&self, mut request: Request, next: Next<'_>) -> Response {
        let mut random = self.random();
        if self.variations.on(Variation::TooManyRequests) && random.random_ratio(1, TURNED_AWAY) {
            return too_many_requests(&mut random);
        }
        if self.variations.on(Variation::SlowResponses) && random.random_ratio(1, SLOW) {
            sleep(Duration::from_millis(random.random_range(PAUSE))).await;
        }
        let preferences = Preferences::of(&request);
        request::change(&mut request, self.variations, self.clock, &mut random);
        let mut response = if self.rejects_options(&request) {
            Response::text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n")
        } else {
            next.send(request).await
        };
        match &mut response.body {
            Body::Whole(_) => self.change(&mut response, &preferences, &mut random),
            Body::Stream(chunks)
                if preferences.watch
                    && response.status == StatusCode::OK
                    && !document::is_protobuf(&response.headers) =>
            {
                let server = mem::replace(chunks, stream::empty().boxed());
                let rewriter = self.rewriter.clone();
                let query = &preferences.query;
                let events = Events::new(self.variations, rewriter, server, query, &mut random);
                *chunks = events.into_stream();
            }
            Body::Stream(_) | Body::Upgraded(_) => {}
        }
        self.rearrange(&mut response);
        response
    }

    /// Requests to a backend behind the proxy subresource are not the server's own.
    fn rejects_options(&self, request: &Request) -> bool {
        request.method == Method::OPTIONS
            && self.variations.on(Variation::OptionsAsText)
            && request.target().subresource != "proxy"
    }

    /// Changes a response with a known end.
    fn change(&self, response: &mut Response, preferences: &Preferences, random: &mut StdRng) {
        self.rewrite(response, preferences);
        // Without a body, the length is that of the response to a GET.
        if preferences.method == Method::HEAD || response.status == StatusCode::NOT_MODIFIED {
            return;
        }
        if self.variations.on(Variation::GzipAlways) && preferences.gzip {
            compress(response);
        }
        self.split(response, random);
    }

    /// Changes the document in the body. Other bodies stay as they are.
    fn rewrite(&self, response: &mut Response, preferences: &Preferences) {
        let media_type = document::media_type(&response.headers);
        if !matches!(media_type.as_str(), "application/json" | "application/yaml") {
            return;
        }
        let Some(mut document) = response.value() else { return };
        // Documents without `kind` describe the API and do not change.
        if document.get("kind").is_none() {
            return;
        }
        if preferences.method == Method::DELETE && response.status == StatusCode::OK {
            if let Some(status) = self.rewriter.deleted(&document) {
                document = status;
            }
            if self.variations.on(Variation::DeletionAccepted) {
                response.status = StatusCode::ACCEPTED;
            }
        }
        self.rewriter.document(&mut document);
        let indented = preferences.pretty || self.variations.on(Variation::IndentedAlways);
        if let Some(body) = document::write(&response.headers, &document, indented) {
            response.set_bytes(body);
        }
    }

    /// Sends the body late, in pieces or without its length.
    fn split(&self, response: &mut Response, random: &mut StdRng) {
        let Body::Whole(bytes) = &response.body else { return };
        let chunked = self.variations.on(Variation::Chunked);
        let slow = self.variations.on(Variation::SlowBodies) && random.random_ratio(1, SLOW);
        if bytes.is_empty() || !(chunked || slow) {
            return;
        }
        if chunked {
            response.headers.remove(header::CONTENT_LENGTH);
        } else {
            response.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
        }
        let piece = bytes.len().div_ceil(random.random_range(1..=4));
        let pause = if slow { random.random_range(PAUSE) } else { 0 };
        let pieces: Vec<Bytes> = bytes.chunks(piece).map(Bytes::copy_from_slice).collect();
        let pieces = stream::iter(pieces).then(move |piece| async move {
            if pause > 0 {
                sleep(Duration::from_millis(pause)).await;
            }
            piece
        });
        response.body = Body::Stream(pieces.boxed());
    }

    fn rearrange(&self, response: &mut Response) {
        let headers = &mut response.headers;
        let json = HeaderValue::from_static("application/json");
        if self.variations.on(Variation::CharsetsNamed)
            && headers.get(header::CONTENT_TYPE) == Some(&json)
        {
            let named = HeaderValue::from_static("application/json; charset=utf-8");
            headers.insert(header::CONTENT_TYPE, named);
        }
        if self.variations.on(Variation::WarningsAlways) {
            headers.append(header::WARNING, HeaderValue::from_static(NOTICE));
        }
        if self.variations.on(Variation::HeadersRearranged) {
            let mut sorted: Vec<(HeaderName, HeaderValue)> =
                headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            sorted.sort_by(|(a, _), (b, _)| b.as_str().cmp(a.as_str()));
            headers.clear();
            headers
                .insert(HeaderName::from_static("x-served-by"), HeaderValue::from_static("front"));
            for (name, value) in sorted {
                headers.append(name, value);
            }
        }
        if self.variations.on(Variation::ClockOff)
            && let Ok(now) = u64::try_from(jiff::Timestamp::now().as_second() + self.clock)
        {
            let now = UNIX_EPOCH + Duration::from_secs(now);
            let now = httpdate::fmt_http_date(now);
            // Replaces the header of the server behind.
            if let Ok(now) = HeaderValue::from_str(&now) {
                headers.insert(header::DATE, now);
            }
        }
        // The server side of hyper removes the header from responses over HTTP/2.
        if self.variations.on(Variation::ConnectionsClose)
            && response.status != StatusCode::SWITCHING_PROTOCOLS
        {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }

    /// Returns the generator for the choices of one request, so that requests do not share a lock.
    fn random(&self) -> StdRng {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        StdRng::seed_from_u64(random.random())
    }
}

/// The properties of a request that determine the form of the response.
struct Preferences {
    method: Method,
    query: Query,
    watch: bool,
    pretty: bool,
    gzip: bool,
}

impl Preferences {
    fn of(request: &Request) -> Self {
        let query = request.query();
        Self {
            method: request.method.clone(),
            watch: request.is_watch(),
            pretty: query.flag("pretty"),
            gzip: accepts_gzip(&request.headers),
            query,
        }
    }
}

fn too_many_requests(random: &mut StdRng) -> Response {
    let seconds = u32::from(random.random_ratio(1, 4));
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": "TooManyRequests", "code": 429,
        "message": "too many requests at once, please come back",
        "details": { "retryAfterSeconds": seconds },
    });
    let mut response = Response::json(StatusCode::TOO_MANY_REQUESTS, &status);
    response.set_header(header::CACHE_CONTROL, "no-cache, private");
    response.headers.insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Compresses a body that is not compressed.
fn compress(response: &mut Response) {
    if response.bytes().is_empty() || response.headers.contains_key(header::CONTENT_ENCODING) {
        return;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(response.bytes()).and_then(|()| encoder.finish());
    if let Ok(compressed) = compressed {
        response.set_bytes(compressed);
        response.set_header(header::CONTENT_ENCODING, "gzip");
    }
}
