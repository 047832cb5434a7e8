//! The HTTPS endpoint of the kubelet, which the API server connects to.
//!
//! With a certificate authority, clients must present a certificate of it. Without one, the
//! endpoint serves every client. Containers are scripted, so a client gets no access to the
//! machine.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kubeproof_apimachinery::request::{Query, decode};
use kubeproof_streaming::remotecommand::ExecRequest;
use kubeproof_streaming::websocket::Chunks;
use kubeproof_streaming::{Handshake, PIPE_CAPACITY, Upgrade, portforward, remotecommand};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::Kubelet;
use crate::runtime::{LogOptions, PodKey};
use crate::tls::{self, TlsError};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The configuration of an [`Endpoint`].
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The certificate authority of the clients in PEM. Without it, clients need no certificate.
    pub client_ca_pem: Option<String>,
}

/// An endpoint that serves until it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    _stop: DropGuard,
}

/// Why an endpoint did not open.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is in use, or not one of this machine.
    #[error(
        "cannot listen on {address}: {source}; give an address of this machine that the server \
         can reach"
    )]
    Listen {
        /// The address of the configuration.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The endpoint cannot serve TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Endpoint {
    /// Opens the endpoint of a kubelet.
    pub async fn open(
        kubelet: Arc<Kubelet>,
        config: EndpointConfig,
    ) -> Result<Self, EndpointError> {
        let failed = |source| EndpointError::Listen { address: config.listen, source };
        let socket = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let names = vec![kubelet.node().to_owned(), address.ip().to_string()];
        let tls = TlsAcceptor::from(tls::server_config(names, config.client_ca_pem.as_deref())?);
        let stop = CancellationToken::new();
        tokio::spawn(accept(socket, tls, kubelet, stop.clone()));
        Ok(Self { address, _stop: stop.drop_guard() })
    }

    /// Returns the port of the endpoint.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the address of the endpoint.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }
}

async fn accept(
    socket: TcpListener,
    tls: TlsAcceptor,
    kubelet: Arc<Kubelet>,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        let Ok((connection, _)) = accepted else {
            tokio::task::yield_now().await;
            continue;
        };
        // Without this option, responses are correct but slower.
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

/// A path of the kubelet API.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Route {
    Health,
    Pods,
    Logs(PodKey, String),
    Command(CommandRoute),
    PortForward(PodKey),
}

/// The path of exec or attach.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandRoute {
    pod: PodKey,
    container: String,
    attach: bool,
}

impl Route {
    fn parse(path: &str) -> Option<Self> {
        let decoded = decode(path);
        let segments: Vec<&str> = decoded.trim_end_matches('/').split('/').skip(1).collect();
        let key = |namespace: &str, name: &str, uid: &str| PodKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        let (kind, pod, container) = match segments.as_slice() {
            ["healthz"] => return Some(Self::Health),
            ["pods"] => return Some(Self::Pods),
            ["portForward", namespace, pod] => {
                return Some(Self::PortForward(key(namespace, pod, "")));
            }
            ["portForward", namespace, pod, uid] => {
                return Some(Self::PortForward(key(namespace, pod, uid)));
            }
            [kind, namespace, pod, container] => (*kind, key(namespace, pod, ""), *container),
            [kind @ ("exec" | "attach"), namespace, pod, uid, container] => {
                (*kind, key(namespace, pod, uid), *container)
            }
            _ => return None,
        };
        let container = container.to_owned();
        match kind {
            "containerLogs" => Some(Self::Logs(pod, container)),
            "exec" => Some(Self::Command(CommandRoute { pod, container, attach: false })),
            "attach" => Some(Self::Command(CommandRoute { pod, container, attach: true })),
            _ => None,
        }
    }

    fn is_read(&self) -> bool {
        matches!(self, Self::Health | Self::Pods | Self::Logs(..))
    }
}

impl Kubelet {
    /// Connects to the kubelet within this process, as over its endpoint.
    pub fn dial(self: &Arc<Self>) -> DuplexStream {
        let (near, far) = tokio::io::duplex(PIPE_CAPACITY);
        let kubelet = self.clone();
        // The task ends when the caller drops its end.
        tokio::spawn(async move { kubelet.serve(far, CancellationToken::new()).await });
        near
    }

    async fn serve<S>(self: Arc<Self>, connection: S, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(move |request| {
            let response = self.clone().respond(request, &stop);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        // The error of a broken connection concerns the client only.
        let _ = builder.serve_connection_with_upgrades(TokioIo::new(connection), service).await;
    }

    fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        stop: &CancellationToken,
    ) -> Response<Body> {
        let upgrade = Upgrade::take(&mut request);
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let Some(route) = Route::parse(request.uri().path()) else {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        let method = request.method();
        if *method != Method::GET && (route.is_read() || *method != Method::POST) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed\n");
        }
        let handshake = match (route, upgrade) {
            (Route::Health, _) => return text(StatusCode::OK, "ok"),
            (Route::Pods, _) => {
                let items = self.pods();
                let list =
                    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items});
                return respond_with(StatusCode::OK, "application/json", format!("{list}\n"));
            }
            (Route::Logs(pod, container), _) => return self.serve_log(&pod, &container, &query),
            (_, None) => return text(StatusCode::BAD_REQUEST, "Upgrade request required\n"),
            (Route::Command(command), Some(upgrade)) => {
                self.serve_command(upgrade, &query, command)
            }
            (Route::PortForward(pod), Some(upgrade)) => self.serve_ports(upgrade, &query, pod),
        };
        if let Some(session) = handshake.session {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = session => {}
                }
            });
        }
        handshake.response.map(|content| Full::new(content).boxed_unsync())
    }

    fn serve_command(
        self: Arc<Self>,
        upgrade: Upgrade,
        query: &Query,
        route: CommandRoute,
    ) -> Handshake {
        let CommandRoute { pod, container, attach } = route;
        let request = ExecRequest {
            command: query.all("command").map(str::to_owned).collect(),
            stdin: query.flag("input"),
            stdout: query.flag("output"),
            stderr: query.flag("error"),
            tty: query.flag("tty"),
        };
        let rejection = self.rejection(&pod, &container);
        let start = move |request| async move {
            if attach {
                self.attach(&pod, &container, request).await
            } else {
                self.exec(&pod, &container, request).await
            }
        };
        remotecommand::serve(upgrade, request, rejection, start)
    }

    fn serve_ports(self: Arc<Self>, upgrade: Upgrade, query: &Query, pod: PodKey) -> Handshake {
        let ports: Vec<String> = query.all("port").map(str::to_owned).collect();
        let target = portforward::Target::new(pod.name.clone(), pod.uid.clone(), move |port| {
            let (kubelet, pod) = (self.clone(), pod.clone());
            async move { kubelet.connect(&pod, port).await }
        });
        portforward::serve(upgrade, &ports, target)
    }

    /// Serves a log. The API server validates the options, so invalid values count as absent.
    fn serve_log(&self, pod: &PodKey, container: &str, query: &Query) -> Response<Body> {
        let number = |name: &str| query.number(name).ok().flatten();
        let positive = |name: &str| number(name).and_then(|number| u64::try_from(number).ok());
        let since_time = query.text("sinceTime").and_then(|text| text.parse().ok());
        let options = LogOptions {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            tail_lines: positive("tailLines"),
            limit_bytes: positive("limitBytes"),
            since: number("sinceSeconds").and_then(LogOptions::since_seconds).or(since_time),
            timestamps: query.flag("timestamps"),
        };
        match self.logs(pod, container, options) {
            Ok(chunks) => stream_of(chunks),
            Err(error) => {
                let message = format!("{error} in pod {:?}\n", pod.name);
                text(StatusCode::BAD_REQUEST, message)
            }
        }
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    respond_with(status, "text/plain; charset=utf-8", text)
}

fn respond_with(
    status: StatusCode,
    content_type: &'static str,
    content: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Full::new(content.into()).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn stream_of(chunks: Chunks) -> Response<Body> {
    let frames = StreamBody::new(chunks.map(|chunk| Ok(Frame::data(chunk))));
    let mut response = Response::new(frames.boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn key(uid: &str) -> PodKey {
        PodKey { namespace: "n".to_owned(), name: "p".to_owned(), uid: uid.to_owned() }
    }

    fn command(uid: &str, attach: bool) -> Route {
        Route::Command(CommandRoute { pod: key(uid), container: "c".to_owned(), attach })
    }

    #[rstest]
    #[case("/healthz", Some(Route::Health))]
    #[case("/pods/", Some(Route::Pods))]
    #[case("/containerLogs/n/p/c", Some(Route::Logs(key(""), "c".to_owned())))]
    #[case("/exec/n/p/c", Some(command("", false)))]
    #[case("/exec/n/p/u/c", Some(command("u", false)))]
    #[case("/attach/n/p/c", Some(command("", true)))]
    #[case("/portForward/n/p", Some(Route::PortForward(key(""))))]
    #[case("/portForward/n/p/u", Some(Route::PortForward(key("u"))))]
    #[case("/containerLogs/n/p/u/c", None)]
    #[case("/exec/n/p", None)]
    #[case("/run/n/p/c", None)]
    #[case("/", None)]
    fn paths_have_routes(#[case] path: &str, #[case] route: Option<Route>) {
        assert_eq!(Route::parse(path), route);
    }
}
