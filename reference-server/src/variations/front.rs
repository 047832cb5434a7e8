//! What stands before the server: takes each request, hands it on over a connection in memory, and answers for the server.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::header::{self, HeaderName, HeaderValue};
use http::response::Parts as Head;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::server::conn::http1 as server_http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::time::sleep;

use super::answer::Dresser;
use super::events::Events;
use super::{Variation, Variations, request};
use crate::api::{Api, accepts_gzip};
use crate::config::Limits;
use crate::limits::Standing;
use crate::query::Query;
use crate::respond::{Answer, Payload};
use crate::{Faults, body, listener};

/// Of the connection in memory.
const PIPE: usize = 64 * 1024;
/// How far the clock may be off, in hours.
const HOURS: std::ops::RangeInclusive<i64> = 2..=70;
/// One of so many requests is told to come back.
const TURNED_AWAY: u32 = 40;
/// One of so many answers is slow.
const SLOW: u32 = 8;
/// Milliseconds that an answer, or a piece of it, may take longer.
const PAUSE: std::ops::RangeInclusive<u64> = 1..=12;

/// What a server may have to say, whatever was asked.
const NOTICE: &str = "299 - \"maintenance begins at ten\"";

/// Serves in the name of a server, and differs from it lawfully.
pub(crate) struct Front {
    api: Arc<Api>,
    variations: Variations,
    clock: i64,
    dresser: Arc<Dresser>,
    random: Mutex<StdRng>,
}

impl Front {
    /// A front of these variations before a server.
    pub(crate) fn new(api: Arc<Api>, variations: Variations) -> Self {
        let mut random = StdRng::seed_from_u64(variations.seed());
        let hours = random.random_range(HOURS);
        let clock = if random.random() { hours * 3600 } else { -hours * 3600 };
        let dresser = Arc::new(Dresser::new(variations, clock));
        Self { api, variations, clock, dresser, random: Mutex::new(random) }
    }

    /// Serves one connection.
    pub(crate) async fn connection<S>(self: Arc<Self>, stream: S, standing: Arc<Standing>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let front = self.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let front = front.clone();
            standing.asked();
            standing.trust();
            async move { Ok::<_, Infallible>(front.handle(request).await) }
        });
        let (io, title_case) = (TokioIo::new(stream), self.variations.on(Variation::HeadersInTitleCase));
        // How a connection ends is the affair of its client.
        if self.variations.on(Variation::Http1Only) {
            let mut builder = server_http1::Builder::new();
            builder.timer(TokioTimer::new()).title_case_headers(title_case);
            let _ = builder.serve_connection(io, service).with_upgrades().await;
        } else {
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http1().timer(TokioTimer::new()).title_case_headers(title_case);
            builder.http2().timer(TokioTimer::new());
            let _ = builder.serve_connection_with_upgrades(io, service).await;
        }
    }

    async fn handle(&self, mut request: Request<Incoming>) -> Response<Payload> {
        let mut random = self.random();
        if self.variations.on(Variation::TooManyRequests) && random.random_ratio(1, TURNED_AWAY) {
            // Over a body unread the connection would be closed, and the next request on it lost.
            if !request.headers().contains_key(header::EXPECT) {
                body::discard(request.body_mut()).await;
            }
            return turned_away(&mut random);
        }
        if self.variations.on(Variation::SlowAnswers) && random.random_ratio(1, SLOW) {
            sleep(Duration::from_millis(random.random_range(PAUSE))).await;
        }
        let is_http1 = request.version() <= Version::HTTP_11;
        let asked = Asked::of(&request);
        let answer = if request.headers().contains_key(header::UPGRADE) {
            self.tunnel(request).await
        } else {
            self.ask(request, &asked, &mut random).await
        };
        let mut response = answer.unwrap_or_else(|error| {
            let text = format!("the server behind the front does not answer: {error}");
            Answer::text(StatusCode::BAD_GATEWAY, text).into_response()
        });
        self.rearrange(&mut response, is_http1);
        response
    }

    /// Asks the server behind.
    async fn ask(
        &self,
        request: Request<Incoming>,
        asked: &Asked,
        random: &mut StdRng,
    ) -> Result<Response<Payload>, hyper::Error> {
        let (mut parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let bytes = request::body(self.variations, self.clock, &parts, &bytes, random);
        parts.uri = request::uri(&parts.uri);
        behind(&mut parts);
        // The new length is found out by the connection.
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::TRANSFER_ENCODING);
        let (mut head, body) = self.send(Request::from_parts(parts, Full::new(bytes))).await?.into_parts();
        if asked.watch && head.status == StatusCode::OK {
            let events = Events::new(self.variations, self.dresser.clone(), body, &asked.query, random);
            return Ok(Response::from_parts(head, Payload::Stream(Box::pin(events.into_stream()))));
        }
        if head.headers.remove(header::TRANSFER_ENCODING).is_some() {
            // It has no length because its end is not known, as that of a log that is followed.
            return Ok(Response::from_parts(head, Payload::Stream(Box::pin(chunks(body)))));
        }
        let bytes = body.collect().await?.to_bytes();
        Ok(self.whole(head, bytes, asked, random))
    }

    /// One request over a connection of its own.
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        let (near, far) = tokio::io::duplex(PIPE);
        let api = self.api.clone();
        tokio::spawn(
            async move { listener::connection(far, api, Standing::trusted(), &Limits::DEFAULT).await },
        );
        let (mut sender, connection) = http1::handshake(TokioIo::new(near)).await?;
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await
    }

    /// Hands a connection through that becomes something else than HTTP.
    async fn tunnel(&self, mut request: Request<Incoming>) -> Result<Response<Payload>, hyper::Error> {
        let client = hyper::upgrade::on(&mut request);
        let (mut parts, _) = request.into_parts();
        parts.uri = request::uri(&parts.uri);
        behind(&mut parts);
        let mut response = self.send(Request::from_parts(parts, Full::default())).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let server = hyper::upgrade::on(&mut response);
            let (head, _) = response.into_parts();
            tokio::spawn(async move {
                if let (Ok(client), Ok(server)) = (client.await, server.await) {
                    // How it ends is the affair of the two.
                    let _ = copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(server)).await;
                }
            });
            return Ok(Response::from_parts(head, Payload::Whole(Bytes::new())));
        }
        let (head, body) = response.into_parts();
        Ok(Response::from_parts(head, Payload::Whole(body.collect().await?.to_bytes())))
    }

    /// An answer whose end is known.
    fn whole(&self, mut head: Head, bytes: Bytes, asked: &Asked, random: &mut StdRng) -> Response<Payload> {
        let bytes = match self.dressed(&mut head, &bytes, asked) {
            Some(dressed) => dressed,
            None => bytes,
        };
        let mut length = Some(bytes.len());
        if asked.method == Method::HEAD || head.status == StatusCode::NOT_MODIFIED {
            return Response::from_parts(head, Payload::Whole(bytes));
        }
        head.headers.remove(header::CONTENT_LENGTH);
        let compresses = self.variations.on(Variation::GzipAlways) && asked.gzip && !bytes.is_empty();
        let bytes = if compresses && let Some(compressed) = compressed(&mut head.headers, &bytes) {
            length = Some(compressed.len());
            compressed
        } else {
            bytes
        };
        let chunked = self.variations.on(Variation::Chunked);
        let slow = self.variations.on(Variation::SlowBodies) && random.random_ratio(1, SLOW);
        if bytes.is_empty() || !(chunked || slow) {
            return Response::from_parts(head, Payload::Whole(bytes));
        }
        if let Some(length) = length.filter(|_| !chunked) {
            head.headers.insert(header::CONTENT_LENGTH, length.into());
        }
        let piece = bytes.len().div_ceil(random.random_range(1..=4));
        let pause = if slow { random.random_range(PAUSE) } else { 0 };
        let pieces: Vec<Bytes> = bytes.chunks(piece).map(Bytes::copy_from_slice).collect();
        let pieces = futures_util::stream::iter(pieces).then(move |piece| async move {
            if pause > 0 {
                sleep(Duration::from_millis(pause)).await;
            }
            piece
        });
        Response::from_parts(head, Payload::Stream(Box::pin(pieces)))
    }

    /// A JSON body in its other form; `None` for what is no JSON.
    fn dressed(&self, head: &mut Head, bytes: &Bytes, asked: &Asked) -> Option<Bytes> {
        let media = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())?;
        let is_yaml = media.starts_with("application/yaml");
        let plain = !head.headers.contains_key(header::CONTENT_ENCODING);
        let mut document: Value = if media.starts_with("application/json") && plain {
            serde_json::from_slice(bytes).ok()?
        } else if is_yaml && plain {
            serde_saphyr::from_slice(bytes).ok()?
        } else {
            return None;
        };
        // Documents that describe the API are as large as they are plain.
        document.as_object()?.get("kind")?;
        if asked.method == Method::DELETE && head.status == StatusCode::OK {
            if let Some(status) = self.dresser.deleted(&document) {
                document = status;
            }
            if self.variations.on(Variation::DeletionAccepted) {
                head.status = StatusCode::ACCEPTED;
            }
        }
        self.dresser.document(&mut document);
        if is_yaml {
            return serde_saphyr::to_string(&document).ok().map(Bytes::from);
        }
        let indented = asked.pretty || self.variations.on(Variation::IndentedAlways);
        Some(if indented { format!("{document:#}\n") } else { format!("{document}\n") }.into())
    }

    fn rearrange(&self, response: &mut Response<Payload>, is_http1: bool) {
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json");
        if self.variations.on(Variation::CharsetsNamed) && headers.get(header::CONTENT_TYPE) == Some(&json) {
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
            headers.insert(HeaderName::from_static("x-served-by"), HeaderValue::from_static("front"));
            for (name, value) in sorted {
                headers.append(name, value);
            }
        }
        if self.variations.on(Variation::ClockOff)
            && let Ok(now) = u64::try_from(jiff::Timestamp::now().as_second() + self.clock)
        {
            let now = std::time::UNIX_EPOCH + Duration::from_secs(now);
            let now = httpdate::fmt_http_date(now);
            // In place of the one that came from behind.
            if let Ok(now) = HeaderValue::from_str(&now) {
                headers.insert(header::DATE, now);
            }
        }
        if self.variations.on(Variation::ConnectionsClose)
            && is_http1
            && response.status() != StatusCode::SWITCHING_PROTOCOLS
        {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }

    /// Choices of one request, which do not wait for each other.
    fn random(&self) -> StdRng {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        StdRng::seed_from_u64(random.random())
    }
}

/// A body as it comes. What goes wrong behind the front ends it, as it would without one.
fn chunks(body: Incoming) -> impl Stream<Item = Bytes> + Send {
    futures_util::stream::unfold(body, |mut body| async move {
        loop {
            if let Ok(data) = body.frame().await?.ok()?.into_data() {
                return Some((data, body));
            }
        }
    })
}

/// What of a request shapes the answer.
struct Asked {
    query: Query,
    method: Method,
    watch: bool,
    pretty: bool,
    gzip: bool,
}

impl Asked {
    fn of(request: &Request<Incoming>) -> Self {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        Self {
            watch: query.flag("watch") || request.uri().path().contains("/watch/"),
            pretty: query.flag("pretty"),
            query,
            gzip: accepts_gzip(request.headers(), Faults::none()),
            method: request.method().clone(),
        }
    }
}

/// Makes a request one of HTTP/1.1, as the connection in memory speaks it.
fn behind(parts: &mut http::request::Parts) {
    if parts.version == Version::HTTP_2
        && let Some(host) = parts.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok())
    {
        parts.headers.entry(header::HOST).or_insert(host);
    }
    parts.version = Version::HTTP_11;
    if let Some(path) = parts.uri.path_and_query().and_then(|path| path.as_str().parse().ok()) {
        parts.uri = path;
    }
}

fn turned_away(random: &mut StdRng) -> Response<Payload> {
    let seconds = u32::from(random.random_ratio(1, 4));
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "TooManyRequests", "code": 429,
        "message": "too many requests at once, please come back", "details": { "retryAfterSeconds": seconds },
    });
    let answer = Answer::json(StatusCode::TOO_MANY_REQUESTS, &status);
    answer.header(header::RETRY_AFTER, HeaderValue::from(seconds)).into_response()
}

fn compressed(headers: &mut HeaderMap, bytes: &Bytes) -> Option<Bytes> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return None;
    }
    let compressed = crate::respond::gzip(bytes)?;
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Some(compressed)
}
