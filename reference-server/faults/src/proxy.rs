//! The proxy: HTTP with the client, the middleware, and the server behind it.

use std::convert::Infallible;
use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::{Extensions, Request as HttpRequest, Response as HttpResponse, StatusCode, Version};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};

use crate::behaviours;
use crate::body::Payload;
use crate::exchange::{Body, Io, LOCALHOST, Request, Response};
use crate::middleware::{Middleware, Next};
use crate::set::Faults;
use crate::upstream::Upstream;
use crate::variations::{Variation, VariationMiddleware, Variations};

/// The longest body of a request that the proxy reads, in bytes. The server's own limit is lower.
const BODY: usize = 64 * 1024 * 1024;

/// A server with bugs or variations: middleware in front of a correct server.
pub struct Proxy {
    middleware: Vec<Box<dyn Middleware>>,
    server: Upstream,
    options: ConnectionOptions,
}

/// The variations of the connections with clients.
#[derive(Clone, Copy)]
struct ConnectionOptions {
    http1_only: bool,
    title_case: bool,
}

impl Proxy {
    /// Puts variations in front of a server, and faults in front of the variations. So requests
    /// that faults send themselves see the variations, too.
    pub fn new(faults: Faults, variations: Variations, server: Upstream) -> Self {
        let options = ConnectionOptions {
            http1_only: variations.on(Variation::Http1Only),
            title_case: variations.on(Variation::HeadersInTitleCase),
        };
        let varied: Option<Box<dyn Middleware>> = (!variations.is_none())
            .then(|| Box::new(VariationMiddleware::new(variations)) as Box<dyn Middleware>);
        if faults.is_none() {
            return Self { middleware: varied.into_iter().collect(), server, options };
        }
        let server = match varied {
            Some(varied) => {
                let admin = server.admin();
                let proxy = Arc::new(Self { middleware: vec![varied], server, options });
                Upstream::with_credential(admin, move |connection, extensions| {
                    tokio::spawn(proxy.clone().connection(connection, extensions, || ()));
                })
            }
            None => server,
        };
        let middleware = faults.iter().filter_map(behaviours::of).collect();
        Self { middleware, server, options }
    }

    /// Serves one connection until it ends. The extensions identify its client. `on_request` is
    /// called for each request.
    pub async fn connection<S>(
        self: Arc<Self>,
        stream: S,
        client: Extensions,
        on_request: impl Fn() + Send + Sync,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let ConnectionOptions { http1_only, title_case } = self.options;
        let service = service_fn(|mut request: HttpRequest<Incoming>| {
            on_request();
            request.extensions_mut().extend(client.clone());
            let proxy = self.clone();
            async move { Ok::<_, Infallible>(proxy.serve(request).await) }
        });
        let stream = TokioIo::new(stream);
        // The client notices the end of its connection, and the proxy keeps no log.
        if http1_only {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).title_case_headers(title_case);
            let _ = builder.serve_connection(stream, service).with_upgrades().await;
        } else {
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http1().timer(TokioTimer::new()).title_case_headers(title_case);
            builder.http2().timer(TokioTimer::new());
            let _ = builder.serve_connection_with_upgrades(stream, service).await;
        }
    }

    async fn serve(&self, request: HttpRequest<Incoming>) -> HttpResponse<Payload> {
        let request = match incoming(request).await {
            Ok(request) => request,
            Err(response) => return outgoing(response, None),
        };
        let upgrade = request.upgrade.clone();
        let next = Next { rest: &self.middleware, server: &self.server };
        outgoing(next.send(request).await, upgrade)
    }
}

/// Reads a request to its end.
async fn incoming(mut request: HttpRequest<Incoming>) -> Result<Request, Response> {
    let upgrades =
        request.headers().contains_key(header::UPGRADE) && request.version() == Version::HTTP_11;
    let upgrade = upgrades.then(|| hyper::upgrade::on(&mut request));
    let (mut head, body) = request.into_parts();
    let extensions = std::mem::take(&mut head.extensions);
    let body = match Limited::new(body, BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            return Err(Response::text(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()));
        }
    };
    // The connection in memory is HTTP/1.1, which requires a host. Other versions do not.
    if head.version != Version::HTTP_11 {
        let authority = head.uri.authority();
        let host = authority.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        head.headers.entry(header::HOST).or_insert(host.unwrap_or(LOCALHOST));
    }
    Ok(Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        raw_query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body,
        upgrade,
        extensions,
    })
}

/// A response as it is sent to the client.
fn outgoing(response: Response, client: Option<OnUpgrade>) -> HttpResponse<Payload> {
    let Response { status, headers, body } = response;
    let body = match body {
        Body::Whole(bytes) => Payload::Whole(Some(bytes)),
        Body::Stream(stream) => Payload::Stream(stream),
        Body::Upgraded(server) => {
            if let Some(client) = client {
                tokio::spawn(tunnel(client, server));
            }
            Payload::Whole(None)
        }
    };
    let mut outgoing = HttpResponse::new(body);
    *outgoing.status_mut() = status;
    *outgoing.headers_mut() = headers;
    outgoing
}

/// Copies both ways until both ends have closed.
async fn tunnel(client: OnUpgrade, mut server: Box<dyn Io>) {
    if let Ok(client) = client.await {
        // Client and server see how the connection ends.
        let _ = copy_bidirectional(&mut TokioIo::new(client), &mut server).await;
    }
}
