//! Dedicated connections: one per exact request, one per watch.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tower::BoxError;
use url::{Host, Url};

use super::failure::by;
use super::proxy::Proxy;
use super::wire::{Head, Stream, Wire};
use crate::exchange::{Broken, BrokenKind};
use crate::target::{PreparedTls, TargetConfig, TargetError, error_chain};

/// Above the library's default of 100, which would hide responses with many headers.
pub(super) const MAX_HEADERS: usize = 1000;

pub(super) struct Dialer {
    host: String,
    port: u16,
    tls: Option<Tls>,
    proxy: Option<Proxy>,
    connect_timeout: Duration,
    /// The value of the Host header.
    pub(super) host_header: HeaderValue,
    /// The path of the server's URL, without a final slash.
    pub(super) prefix: String,
}

struct Tls {
    authenticated: TlsConnector,
    anonymous: TlsConnector,
    name: ServerName<'static>,
}

/// A connection for one request. Drop closes it.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) head: Head,
    pub(super) hold: Hold,
}

/// Keeps a connection open. Drop closes it.
#[derive(Debug)]
pub(crate) struct Hold(JoinHandle<()>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Dialer {
    pub(super) fn new(
        config: &TargetConfig,
        tls: &PreparedTls,
        connect_timeout: Duration,
    ) -> Result<Self, TargetError> {
        let bad = |reason: &str| TargetError::Url {
            url: config.display_url(),
            reason: reason.to_owned(),
        };
        let (host, authority) = authority(&config.server).ok_or_else(|| bad("it has no host"))?;
        let port = config.server.port_or_known_default().ok_or_else(|| bad("it has no port"))?;
        let tls = match config.server.scheme() {
            "https" => {
                let name = match &tls.server_name {
                    Some(name) => name.clone(),
                    None => ServerName::try_from(host.clone())
                        .map_err(|error| bad(&error.to_string()))?,
                };
                // The connection carries one request, so HTTP/1.1 suffices.
                let connector = |anonymous| {
                    let config: ClientConfig = tls.config(anonymous, &[b"http/1.1"]);
                    TlsConnector::from(Arc::new(config))
                };
                Some(Tls { authenticated: connector(false), anonymous: connector(true), name })
            }
            _ => None,
        };
        Ok(Self {
            host_header: HeaderValue::from_str(&authority)
                .map_err(|error| bad(&error.to_string()))?,
            prefix: config.server.path().trim_end_matches('/').to_owned(),
            proxy: config.proxy.as_ref().map(Proxy::new).transpose()?,
            host,
            port,
            tls,
            connect_timeout,
        })
    }

    /// Opens a connection. `line` replaces the request line.
    pub(super) async fn open(
        &self,
        anonymous: bool,
        line: Option<Bytes>,
        deadline: Instant,
    ) -> Result<Connection, Broken> {
        let allowed = Instant::now() + self.connect_timeout;
        // A request whose own time is short says nothing about the server.
        let late = if deadline < allowed { BrokenKind::NotSent } else { BrokenKind::Connect };
        let deadline = deadline.min(allowed);
        let tcp = by(deadline, late, "connecting", self.tcp()).await?;
        let tcp = tcp.map_err(|error| {
            Broken::connect(format!("connecting to {}: {}", self.authority(), error_chain(&*error)))
        })?;
        // Fails on a dead connection, which the request will report.
        let _ = tcp.set_nodelay(true);
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(tcp),
            Some(tls) => {
                let connector = if anonymous { &tls.anonymous } else { &tls.authenticated };
                let handshake = connector.connect(tls.name.clone(), tcp);
                let stage = "the TLS handshake went on";
                let stream = by(deadline, BrokenKind::Tls, stage, handshake).await?;
                Box::new(stream.map_err(|error| {
                    Broken::new(
                        BrokenKind::Tls,
                        format!("the TLS handshake failed: {}", error_chain(&error)),
                    )
                })?)
            }
        };
        let (wire, head) = Wire::new(stream, line);
        let (sender, connection) = Builder::new()
            .max_headers(MAX_HEADERS)
            .handshake(TokioIo::new(wire))
            .await
            .map_err(|error| Broken::on_connection("setting up HTTP", &error))?;
        // The request on the connection receives its errors.
        let hold = Hold(tokio::spawn(async move {
            let _ = connection.with_upgrades().await;
        }));
        Ok(Connection { sender, head, hold })
    }

    async fn tcp(&self) -> Result<TcpStream, BoxError> {
        match &self.proxy {
            None => Ok(TcpStream::connect((self.host.as_str(), self.port)).await?),
            Some(proxy) => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                proxy.connect(format!("{scheme}://{}", self.authority()).parse::<Uri>()?).await
            }
        }
    }

    /// Returns host and port for a proxy.
    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Returns the host to connect to, and the value of the Host header.
fn authority(server: &Url) -> Option<(String, String)> {
    let host = match server.host()? {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let authority = match server.port() {
        Some(port) => format!("{}:{port}", server.host_str()?),
        None => server.host_str()?.to_owned(),
    };
    Some((host, authority))
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
