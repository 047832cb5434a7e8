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
use crate::config::Limits;
use crate::limits::{Guarded, Lobby, Standing};
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
    async fn open<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        standing: Arc<Standing>,
        limits: &Limits,
    ) {
        match self {
            Self::Server(api) => connection(stream, api, standing, limits).await,
            Self::Front(front) => front.connection(stream, standing).await,
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
    limits: Limits,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let acceptor = tls.map(TlsAcceptor::from);
    let lobby = Lobby::new(&limits);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            lobby.clear();
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // A lost option costs latency, not correctness.
        let _ = stream.set_nodelay(true);
        let (acceptor, door, stop, standing) = (acceptor.clone(), door.clone(), stop.clone(), lobby.enter());
        tasks.spawn(async move {
            let stream = Guarded::new(stream, standing.clone(), &limits);
            let serve = async {
                match acceptor {
                    None => door.open(stream, standing.clone(), &limits).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            door.open(stream, standing.clone(), &limits).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = standing.overstayed(&limits) => {}
                () = serve => {}
            }
        });
    }
}

/// Serves one connection. How it ends is the peer's affair: there is nobody here to tell.
pub(crate) async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    api: Arc<Api>,
    standing: Arc<Standing>,
    limits: &Limits,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (api, standing) = (api.clone(), standing.clone());
        async move {
            standing.asked();
            let response = api.handle(request).await;
            standing.answered(&response);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(limits.head).keep_alive_timeout(limits.head);
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}
