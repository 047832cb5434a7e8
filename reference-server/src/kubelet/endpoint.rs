//! The endpoint of a node's agent: what an API server asks it for, over TLS.
//!
//! An API server that has a client certificate for its nodes shows it, and one that has none cannot: so certificates are
//! asked for where their authority is known, and otherwise whoever reaches the port is answered. Behind it is the scripted
//! runtime, which gives nobody anything of this machine.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::stream;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Kubelet;
use crate::Faults;
use crate::config::Tls;
use crate::handlers::streams::refusal;
use crate::query::Query;
use crate::request_info;
use crate::respond::{Answer, Payload};
use crate::runtime::{ExecRequest, LogOptions, PIPE_CAPACITY, PodKey, Runtime};
use crate::streams::{Reply, Upgrade, command, forward};
use crate::tls::{self, TlsError};

/// Where the endpoint of an agent listens, and whom it answers.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Only clients with a certificate of this authority (PEM) are answered. Without it everybody is.
    pub client_ca_pem: Option<String>,
}

/// An endpoint that answers until it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    _stop: DropGuard,
}

/// Why an endpoint did not open.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is taken, or not one of this machine.
    #[error(
        "cannot listen on {address}: {source}; give an address of this machine that the server can reach"
    )]
    Listen {
        /// The address of the configuration.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The certificates could not be made, or the authority of clients cannot be read.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Endpoint {
    /// Opens the endpoint of an agent.
    pub async fn open(kubelet: Arc<Kubelet>, config: EndpointConfig) -> Result<Self, EndpointError> {
        let refused = |source| EndpointError::Listen { address: config.listen, source };
        let socket = TcpListener::bind(config.listen).await.map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        let names = Tls { names: vec![kubelet.node().to_owned()] };
        let identity = tls::generate_for(&names, address, config.client_ca_pem.as_deref())?;
        let stop = CancellationToken::new();
        tokio::spawn(accept(socket, TlsAcceptor::from(identity.config), kubelet, stop.clone()));
        Ok(Self { address, _stop: stop.drop_guard() })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address that it listens on.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }
}

async fn accept(socket: TcpListener, tls: TlsAcceptor, kubelet: Arc<Kubelet>, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        let Ok((connection, _)) = accepted else {
            tokio::task::yield_now().await;
            continue;
        };
        // A lost option costs latency, not correctness.
        let _ = connection.set_nodelay(true);
        let (tls, kubelet, stop) = (tls.clone(), kubelet.clone(), stop.clone());
        tokio::spawn(async move {
            let serve = async {
                if let Ok(connection) = tls.accept(connection).await {
                    kubelet.serve(connection, stop.clone()).await;
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = serve => {}
            }
        });
    }
}

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ask {
    Health,
    Pods,
    Log(PodKey, String),
    Exec(PodKey, String),
    Attach(PodKey, String),
    Forward(PodKey),
}

impl Ask {
    fn parse(path: &str) -> Option<Self> {
        let decoded = request_info::decode(path);
        let segments: Vec<&str> = decoded.trim_end_matches('/').split('/').skip(1).collect();
        let key = |namespace: &str, name: &str, uid: &str| PodKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        Some(match segments.as_slice() {
            ["healthz"] => Self::Health,
            ["pods"] => Self::Pods,
            ["containerLogs", namespace, pod, container] => {
                Self::Log(key(namespace, pod, ""), (*container).to_owned())
            }
            ["exec", namespace, pod, container] => {
                Self::Exec(key(namespace, pod, ""), (*container).to_owned())
            }
            ["exec", namespace, pod, uid, container] => {
                Self::Exec(key(namespace, pod, uid), (*container).to_owned())
            }
            ["attach", namespace, pod, container] => {
                Self::Attach(key(namespace, pod, ""), (*container).to_owned())
            }
            ["attach", namespace, pod, uid, container] => {
                Self::Attach(key(namespace, pod, uid), (*container).to_owned())
            }
            ["portForward", namespace, pod] => Self::Forward(key(namespace, pod, "")),
            ["portForward", namespace, pod, uid] => Self::Forward(key(namespace, pod, uid)),
            _ => return None,
        })
    }
}

impl Kubelet {
    /// A connection to it from within the process, as over its endpoint.
    pub(crate) fn connect(self: &Arc<Self>) -> DuplexStream {
        let (near, far) = tokio::io::duplex(PIPE_CAPACITY);
        let kubelet = self.clone();
        // It ends with the near end.
        tokio::spawn(async move { kubelet.serve(far, CancellationToken::new()).await });
        near
    }

    async fn serve<S>(self: Arc<Self>, connection: S, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(move |request| {
            let response = self.answer(request, &stop);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        // How it ends is the peer's affair.
        let _ = builder.serve_connection_with_upgrades(TokioIo::new(connection), service).await;
    }

    /// Answers a request of an API server.
    fn answer(&self, mut request: Request<Incoming>, stop: &CancellationToken) -> Response<Payload> {
        let upgrade = Upgrade::take(&mut request, Faults::none());
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let Some(ask) = Ask::parse(request.uri().path()) else {
            return Answer::text(StatusCode::NOT_FOUND, "404 page not found\n").into_response();
        };
        let reads = matches!(ask, Ask::Health | Ask::Pods | Ask::Log(..));
        if *request.method() != Method::GET && (reads || *request.method() != Method::POST) {
            return Answer::text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed\n").into_response();
        }
        let runtime = self.runtime().clone();
        let reply = match (ask, upgrade) {
            (Ask::Health, _) => return Answer::text(StatusCode::OK, "ok").into_response(),
            (Ask::Pods, _) => {
                let list =
                    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self.pods()});
                return Answer::json(StatusCode::OK, &list).into_response();
            }
            (Ask::Log(key, container), _) => return log(&runtime, &key, &container, &query).into_response(),
            (_, None) => {
                return Answer::text(StatusCode::BAD_REQUEST, "Upgrade request required\n").into_response();
            }
            (Ask::Exec(key, container), Some(upgrade)) => {
                run(upgrade, &query, runtime, key, container, false)
            }
            (Ask::Attach(key, container), Some(upgrade)) => {
                run(upgrade, &query, runtime, key, container, true)
            }
            (Ask::Forward(key), Some(upgrade)) => ports(upgrade, &query, &runtime, &key),
        };
        if let Some(session) = reply.session {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = session => {}
                }
            });
        }
        reply.answer.into_response()
    }
}

fn run(
    upgrade: Upgrade,
    query: &Query,
    runtime: Runtime,
    key: PodKey,
    container: String,
    attach: bool,
) -> Reply {
    let request = ExecRequest {
        command: query.all("command").map(str::to_owned).collect(),
        stdin: query.flag("input"),
        stdout: query.flag("output"),
        stderr: query.flag("error"),
        tty: query.flag("tty"),
    };
    let refusal = refusal(&runtime, &key, &container);
    let start = move |request| async move {
        if attach {
            runtime.attach(&key, &container, request).await
        } else {
            runtime.exec(&key, &container, request).await
        }
    };
    command::serve(upgrade, request, refusal, start, Faults::none())
}

fn ports(upgrade: Upgrade, query: &Query, runtime: &Runtime, key: &PodKey) -> Reply {
    let ports: Vec<String> = query
        .all("port")
        .flat_map(|ports| ports.split(','))
        .filter(|port| !port.is_empty())
        .map(str::to_owned)
        .collect();
    let target = forward::Target {
        pod: key.name.clone(),
        uid: key.uid.clone(),
        connect: forward::connector({
            let (runtime, key) = (runtime.clone(), key.clone());
            move |port| {
                let (runtime, key) = (runtime.clone(), key.clone());
                async move { runtime.connect(&key, port).await }
            }
        }),
    };
    forward::serve(upgrade, &ports, target, Faults::none())
}

/// The API server has checked the options; what it would not send counts as absent.
fn log(runtime: &Runtime, key: &PodKey, container: &str, query: &Query) -> Answer {
    let number = |name: &str| query.text(name).and_then(|text| text.parse::<i64>().ok());
    let positive = |name: &str| number(name).and_then(|number| u64::try_from(number).ok());
    let since = query.text("sinceTime").and_then(|text| text.parse().ok());
    let options = LogOptions {
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        tail_lines: positive("tailLines"),
        limit_bytes: positive("limitBytes"),
        since: number("sinceSeconds").and_then(LogOptions::since_seconds).or(since),
        timestamps: query.flag("timestamps"),
    };
    match runtime.logs(key, container, options) {
        Ok(log) => {
            let pieces = stream::unfold(log, |mut log| async move {
                let piece = log.next().await?;
                Some((piece, log))
            });
            Answer { content_type: "text/plain", ..Answer::stream(Box::pin(pieces)) }
        }
        Err(error) => {
            let why = format!("{error} in pod {:?}\n", key.name);
            Answer::text(StatusCode::BAD_REQUEST, why)
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn key(uid: &str) -> PodKey {
        PodKey { namespace: "n".to_owned(), name: "p".to_owned(), uid: uid.to_owned() }
    }

    #[rstest]
    #[case("/healthz", Some(Ask::Health))]
    #[case("/pods/", Some(Ask::Pods))]
    #[case("/containerLogs/n/p/c", Some(Ask::Log(key(""), "c".to_owned())))]
    #[case("/exec/n/p/c", Some(Ask::Exec(key(""), "c".to_owned())))]
    #[case("/exec/n/p/u/c", Some(Ask::Exec(key("u"), "c".to_owned())))]
    #[case("/attach/n/p/c", Some(Ask::Attach(key(""), "c".to_owned())))]
    #[case("/portForward/n/p", Some(Ask::Forward(key(""))))]
    #[case("/exec/n/p", None)]
    #[case("/", None)]
    fn paths(#[case] path: &str, #[case] ask: Option<Ask>) {
        assert_eq!(Ask::parse(path), ask);
    }
}
