//! Outgoing HTTPS requests: to admission webhooks, conversion webhooks and extension servers.
//!
//! A client has the certificates that it trusts, and keeps idle connections to one server.

mod trust;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) use self::trust::{Security, TrustError};

/// The largest body of a response, in bytes.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// The most idle connections of a client.
const MAX_IDLE: usize = 16;

/// A connection in the network or in memory.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A function that opens connections, for servers that the network does not reach.
pub(crate) type Dialer =
    Arc<dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Connection>>> + Send + Sync>;

/// The reason why a request has no response. The texts are those of the client of Go.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The URL has no valid host.
    #[error("the URL {0:?} has no valid host")]
    Host(String),
    /// The certificates of the configuration are invalid.
    #[error("unable to load root certificates: {0}")]
    Trust(#[from] TrustError),
    /// The connection was refused, or the handshake failed.
    #[error("dial tcp {address}: {why}")]
    Connect {
        /// The host and port.
        address: String,
        /// The reason.
        why: String,
    },
    /// The server has no trusted certificate.
    #[error("tls: failed to verify certificate: {0}")]
    Tls(String),
    /// The connection broke.
    #[error("{0}")]
    Exchange(String),
    /// The response did not arrive in time.
    #[error("context deadline exceeded")]
    Timeout,
}

/// A client of one server.
pub(crate) struct Client {
    /// The host and port.
    address: String,
    host: String,
    server_name: ServerName<'static>,
    tls: TlsConnector,
    dialer: Option<Dialer>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client of the server of a URL. Without certificates in `ca_pem`, it trusts those
    /// of the system. `dialer` replaces the connection to the address.
    pub(crate) fn new(
        url: &Uri,
        ca_pem: &[u8],
        dialer: Option<Dialer>,
    ) -> Result<Self, ClientError> {
        Self::secured(url, Security { ca_pem, ..Security::default() }, dialer)
    }

    /// Creates a client that can skip the verification and can have a certificate.
    pub(crate) fn secured(
        url: &Uri,
        security: Security<'_>,
        dialer: Option<Dialer>,
    ) -> Result<Self, ClientError> {
        let unusable = || ClientError::Host(url.to_string());
        let host = url.host().ok_or_else(unusable)?.trim_matches(['[', ']']).to_owned();
        let server_name = ServerName::try_from(host.clone()).map_err(|_| unusable())?;
        let port = url.port_u16().unwrap_or(443);
        let address =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let tls = TlsConnector::from(Arc::new(trust::configuration(security)?));
        Ok(Self { address, host, server_name, tls, dialer, idle: Mutex::default() })
    }

    /// Sends a JSON document, and returns the status and the body of the response.
    pub(crate) async fn post_json(
        &self,
        path: &str,
        body: Bytes,
        timeout: Duration,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(header::ACCEPT, HeaderValue::from_static("application/json, */*"))
            .header(header::USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"))
            .body(Full::new(body))
            .map_err(|error| ClientError::Exchange(error.to_string()))?;
        let response = self.exchange(request, timeout).await?;
        Ok((response.status(), response.into_body()))
    }

    /// Sends a request to this server, and returns the complete response.
    pub(crate) async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        timeout: Duration,
    ) -> Result<Response<Bytes>, ClientError> {
        request.headers_mut().insert(header::HOST, self.host_header()?);
        let exchange = async {
            let (parts, body) = self.send(request).await?.into_parts();
            // Simple servers end a body of unknown length by closing the connection, without a
            // message of TLS.
            let ends_at_close = body.size_hint().exact().is_none();
            let mut body = Limited::new(body, MAX_BODY);
            let mut bytes = BytesMut::new();
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => bytes.extend(frame.into_data()),
                    Err(_) if ends_at_close => break,
                    Err(error) => return Err(ClientError::Exchange(error.to_string())),
                }
            }
            Ok(Response::from_parts(parts, bytes.freeze()))
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(ClientError::Timeout))
    }

    /// Returns the value of the header `Host`.
    pub(crate) fn host_header(&self) -> Result<HeaderValue, ClientError> {
        let host = if self.address.ends_with(":443") { &self.host } else { &self.address };
        HeaderValue::try_from(host).map_err(|_| ClientError::Host(host.clone()))
    }

    /// Sends a request on an idle connection, or on a new one. A server may close an idle
    /// connection at any time, so the request moves on to the next one.
    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ClientError> {
        while let Some(mut sender) = self.take_idle() {
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.keep(sender);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(exchange_error(&error.into_error())),
                },
            }
        }
        let mut sender = self.connect().await?;
        let response =
            sender.send_request(request).await.map_err(|error| exchange_error(&error))?;
        self.keep(sender);
        Ok(response)
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sender) = idle.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn keep(&self, sender: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|sender| !sender.is_closed());
        if idle.len() < MAX_IDLE {
            idle.push(sender);
        }
    }

    /// Opens a connection and completes the handshake of TLS.
    pub(crate) async fn open(
        &self,
    ) -> Result<tokio_rustls::client::TlsStream<Box<dyn Connection>>, ClientError> {
        let refused = |error: &io::Error| ClientError::Connect {
            address: self.address.clone(),
            why: dial_error(error),
        };
        let stream: Box<dyn Connection> = if let Some(dial) = &self.dialer {
            dial().await.map_err(|error| refused(&error))?
        } else {
            let stream = TcpStream::connect(&self.address).await;
            let stream = stream.map_err(|error| refused(&error))?;
            // The option only changes the latency.
            let _ = stream.set_nodelay(true);
            Box::new(stream)
        };
        let name = self.server_name.clone();
        self.tls.connect(name, stream).await.map_err(|error| ClientError::Tls(error.to_string()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let stream = self.open().await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| exchange_error(&error))?;
        tokio::spawn(async move {
            // The response reports an error of the connection.
            let _ = connection.await;
        });
        Ok(sender)
    }
}

fn dial_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => format!("connect: {error}"),
    }
}

fn exchange_error(error: &hyper::Error) -> ClientError {
    if error.is_incomplete_message() {
        return ClientError::Exchange("EOF".to_owned());
    }
    ClientError::Exchange(error.to_string())
}
