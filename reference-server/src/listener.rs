//! Accepting connections and speaking HTTP/1.1 or HTTP/2 on them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
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

use crate::api::Api;
use crate::variations::Front;

/// Who answers on a connection.
#[derive(Clone)]
pub(crate) enum Door {
    /// The server.
    Server(Arc<Api>),
    /// What stands before it, if that is to differ from it.
    Front(Arc<Front>),
}

impl Door {
    async fn open<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        match self {
            Self::Server(api) => connection(stream, api).await,
            Self::Front(front) => front.connection(stream).await,
        }
    }
}

/// How long accepting rests when the system has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Accepts connections until `stop`, each on a task of its own.
pub(crate) async fn accept(
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    door: Door,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let acceptor = tls.map(TlsAcceptor::from);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // A lost option costs latency, not correctness.
        let _ = stream.set_nodelay(true);
        let (acceptor, door, stop) = (acceptor.clone(), door.clone(), stop.clone());
        tasks.spawn(async move {
            let serve = async {
                match acceptor {
                    None => door.open(stream).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            door.open(stream).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = serve => {}
            }
        });
    }
}

/// Serves one connection. How it ends is the peer's affair: there is nobody here to tell.
pub(crate) async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, api: Arc<Api>) {
    let service = service_fn(|request: Request<Incoming>| {
        let api = api.clone();
        async move { Ok::<_, Infallible>(api.handle(request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new());
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}
