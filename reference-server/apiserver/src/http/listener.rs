//! Accepts connections and serves HTTP/1.1 or HTTP/2 on them.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::limits::{ConnectionState, StallGuard, WaitingConnections};
use super::respond::Payload;
use crate::certificates::PeerCertificates;
use crate::config::Limits;

/// Handles the requests of connections.
pub trait RequestHandler: Send + Sync + 'static {
    /// Returns the response to one request.
    fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Payload>> + Send;
}

/// Serves accepted connections.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Serves one connection until it is closed.
    fn serve<S>(
        self: Arc<Self>,
        stream: S,
        state: Arc<ConnectionState>,
        limits: Limits,
    ) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static;
}

impl<H: RequestHandler> ConnectionHandler for H {
    async fn serve<S>(self: Arc<Self>, stream: S, state: Arc<ConnectionState>, limits: Limits)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        connection(stream, self, state, &limits).await;
    }
}

/// The pause of the accept loop if the system has no free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What ends the connections of a listener.
#[derive(Clone, Debug)]
pub struct Lifetime {
    /// Connections finish their requests.
    pub drain: CancellationToken,
    /// Connections end at once.
    pub stop: CancellationToken,
    /// The tasks of the connections.
    pub connections: TaskTracker,
}

/// Accepts connections until `drain` or `stop`. Each connection has its own task. With `drain`, it
/// finishes its requests, with `stop`, it ends at once.
pub async fn accept<H: ConnectionHandler>(
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    handler: Arc<H>,
    limits: Limits,
    Lifetime { drain, stop, connections }: Lifetime,
) {
    let acceptor = tls.map(TlsAcceptor::from);
    let waiting = WaitingConnections::new(&limits);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            () = drain.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        let Ok((stream, remote)) = accepted else {
            waiting.make_room();
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Without the option, latency is higher and the rest still works.
        let _ = stream.set_nodelay(true);
        let (acceptor, handler, stop, state) =
            (acceptor.clone(), handler.clone(), stop.clone(), waiting.add());
        state.set_remote(remote);
        state.set_drain(drain.clone());
        connections.spawn(async move {
            let stream = StallGuard::new(stream, state.clone(), &limits);
            let serve = async {
                match acceptor {
                    None => handler.serve(stream, state.clone(), limits).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            if let Some(chain) = stream.get_ref().1.peer_certificates() {
                                state.set_peer(Arc::new(PeerCertificates::new(chain)));
                            }
                            handler.serve(stream, state.clone(), limits).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = state.expired(&limits) => {}
                () = serve => {}
            }
        });
    }
}

/// Serves one connection. Errors of the connection concern the client only.
pub async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static, H: RequestHandler>(
    stream: S,
    handler: Arc<H>,
    state: Arc<ConnectionState>,
    limits: &Limits,
) {
    let service = service_fn(|mut request: Request<Incoming>| {
        let (handler, state) = (handler.clone(), state.clone());
        async move {
            state.request_received();
            if let Some(peer) = state.peer() {
                request.extensions_mut().insert(peer);
            }
            if let Some(remote) = state.remote() {
                request.extensions_mut().insert(remote);
            }
            let response = handler.handle(request).await;
            state.response_started(&response);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.head)
        .keep_alive_timeout(limits.head);
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => {}
        () = state.drained() => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}
