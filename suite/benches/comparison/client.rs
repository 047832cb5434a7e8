//! A client that costs less than the servers: HTTP/1.1 over TLS, on one thread.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::servers::TOKEN;

/// The host in the certificate of all servers.
pub(crate) const HOST: &str = "127.0.0.1";

/// Opens connections, and verifies the certificate that all servers have.
pub(crate) struct Client {
    tls: TlsConnector,
    host: ServerName<'static>,
}

impl Client {
    /// Returns a client that trusts a certificate in PEM format.
    pub(crate) fn new(certificate: &str) -> io::Result<Self> {
        let certificate = rustls_pki_types::CertificateDer::from_pem_slice(certificate.as_bytes());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let host = ServerName::try_from(HOST).map_err(io::Error::other)?;
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), host })
    }

    /// Opens a connection to a port of this host.
    pub(crate) async fn connect(&self, port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect((HOST, port)).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.connect(self.host.clone(), stream).await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // A failure also ends the requests of the connection, and they report it.
        tokio::spawn(connection);
        Ok(Connection { sender })
    }

    /// Opens several connections.
    pub(crate) async fn open(&self, port: u16, count: usize) -> io::Result<Vec<Connection>> {
        try_join_all((0..count).map(|_| self.connect(port))).await
    }
}

/// Sends requests over the connections, each request after the response to the one before it.
pub(crate) async fn send_all(
    connections: Vec<Connection>,
    requests: Vec<Request<Full<Bytes>>>,
) -> io::Result<()> {
    let requests = RefCell::new(requests);
    let send = async |mut connection: Connection| {
        loop {
            let Some(request) = requests.borrow_mut().pop() else { return Ok::<(), io::Error>(()) };
            connection.send(request).await?;
        }
    };
    try_join_all(connections.into_iter().map(send)).await?;
    Ok(())
}

/// One connection.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Sends a request, and reads the whole body of a successful response.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> io::Result<Bytes> {
        let body = self.open(request).await?;
        Ok(body.collect().await.map_err(io::Error::other)?.to_bytes())
    }

    /// Sends a request, and returns the body of a successful response.
    pub(crate) async fn open(&mut self, request: Request<Full<Bytes>>) -> io::Result<Incoming> {
        self.sender.ready().await.map_err(io::Error::other)?;
        let response = self.sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response.into_body());
        }
        let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        Err(unexpected(status, &body))
    }
}

fn unexpected(status: StatusCode, body: &[u8]) -> io::Error {
    let body = String::from_utf8_lossy(body);
    io::Error::other(format!("expected success, got HTTP {status}: {body}"))
}

/// Returns a GET request.
pub(crate) fn get(path: &str) -> io::Result<Request<Full<Bytes>>> {
    request(Request::get(path), Bytes::new())
}

/// Returns a POST request with an object.
pub(crate) fn post(path: &str, object: &Value) -> io::Result<Request<Full<Bytes>>> {
    let builder = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request(builder, object.to_string().into())
}

fn request(builder: http::request::Builder, body: Bytes) -> io::Result<Request<Full<Bytes>>> {
    let builder =
        builder.header(header::HOST, HOST).header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
    builder.body(Full::new(body)).map_err(io::Error::other)
}
