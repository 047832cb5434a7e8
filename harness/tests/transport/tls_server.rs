//! A TLS server with generated certificates, which reports the requests it received.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::PrivateKeyDer;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) names: Vec<&'static str>,
    pub(crate) protocols: Vec<&'static str>,
    pub(crate) requires_certificate: bool,
    pub(crate) max_streams: u32,
    pub(crate) certificate: Certificate,
    /// The rejection of every HTTP/2 request.
    pub(crate) rejection: Option<Rejection>,
    /// Frames of a response over HTTP/2. Each connection receives one byte more than the previous
    /// one.
    pub(crate) growing: Option<&'static [u8]>,
}

/// The mistake in the certificate of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Certificate {
    Good,
    Expired,
    NotYetValid,
    Authority,
    ExpiredAuthority,
}

/// How a server reports an unprocessed request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rejection {
    Stream,
    Connection,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            names: vec!["127.0.0.1"],
            protocols: vec!["h2", "http/1.1"],
            requires_certificate: false,
            max_streams: 100,
            certificate: Certificate::Good,
            rejection: None,
            growing: None,
        }
    }
}

/// A running server. It never responds to `/hang`, and reports the request for other paths.
pub(crate) struct TlsServer {
    pub(crate) addr: SocketAddr,
    /// PEM of the authority, of the client certificate and of its key.
    pub(crate) pem: [String; 3],
    /// PEM of the certificate of the server.
    pub(crate) own_pem: String,
    directory: TempDir,
    connections: Arc<AtomicUsize>,
}

impl TlsServer {
    pub(crate) async fn start(setup: Setup) -> Self {
        let issuer = issuer();
        let (certificate, key) =
            leaf(&issuer, &setup.names, ExtendedKeyUsagePurpose::ServerAuth, setup.certificate);
        let (client, client_key) =
            leaf(&issuer, &["jane"], ExtendedKeyUsagePurpose::ClientAuth, Certificate::Good);
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(issuer.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier =
            if setup.requires_certificate { verifier } else { verifier.allow_unauthenticated() };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        config.alpn_protocols =
            setup.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            addr: listener.local_addr().unwrap(),
            pem: [issuer.pem(), client.pem(), client_key.serialize_pem()],
            own_pem: certificate.pem(),
            directory: TempDir::new().unwrap(),
            connections: Arc::default(),
        };
        let (acceptor, count) =
            (TlsAcceptor::from(Arc::new(config)), Arc::clone(&server.connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let before = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(acceptor.clone(), stream, setup.clone(), before));
            }
        });
        server
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Writes a file that exists as long as the server.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

pub(crate) fn issuer() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn leaf(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    names: &[&str],
    purpose: ExtendedKeyUsagePurpose,
    certificate: Certificate,
) -> (rcgen::Certificate, KeyPair) {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.extended_key_usages = vec![purpose];
    match certificate {
        Certificate::Good => {}
        Certificate::Expired => params.not_after = rcgen::date_time_ymd(2020, 1, 1),
        Certificate::NotYetValid => params.not_before = rcgen::date_time_ymd(4000, 1, 1),
        Certificate::Authority => params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
        Certificate::ExpiredAuthority => {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
    }
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, issuer).unwrap(), key)
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, setup: Setup, before: usize) {
    // The client may reject the certificate.
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let connection = stream.get_ref().1;
    let scripted = match (setup.rejection, setup.growing) {
        (Some(Rejection::Stream), _) => Some(REFUSED),
        (Some(Rejection::Connection), _) => Some(GOODBYE),
        (None, growing) => growing.map(|frames| &frames[..before.min(frames.len())]),
    };
    if connection.alpn_protocol() == Some(b"h2")
        && let Some(frames) = scripted
    {
        // The client may close the connection at any time.
        let _ = meet(stream, frames, setup.growing.is_some()).await;
        return;
    }
    let certificate = connection.peer_certificates().is_some();
    let name = connection.server_name().map(str::to_owned);
    let service = service_fn(move |request| response(request, certificate, name.clone()));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(setup.max_streams);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// `RST_STREAM` of stream 1 with `REFUSED_STREAM`.
const REFUSED: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7];
/// GOAWAY with `NO_ERROR` and last stream 0.
const GOODBYE: &[u8] = &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Implements enough of HTTP/2 to reply to the first request with raw frames.
async fn meet(mut stream: TlsStream<TcpStream>, frames: &[u8], closes: bool) -> io::Result<()> {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(&settings).await?;
    stream.read_exact(&mut [0; b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()]).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let [a, b, c, kind, ..] = head;
        stream.read_exact(&mut vec![0; u32::from_be_bytes([0, a, b, c]) as usize]).await?;
        if kind == 1 {
            break;
        }
    }
    stream.write_all(frames).await?;
    if closes {
        stream.shutdown().await?;
    }
    stream.read_to_end(&mut Vec::new()).await.map(|_| ())
}

async fn response(
    request: Request<Incoming>,
    certificate: bool,
    server_name: Option<String>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() == "/hang" {
        std::future::pending::<()>().await;
    }
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let groups = request.headers().get_all("impersonate-group").iter();
    let groups: Vec<&str> = groups.filter_map(|group| group.to_str().ok()).collect();
    let seen = json!({
        "certificate": certificate,
        "serverName": server_name,
        "target": request.uri().path_and_query().map(ToString::to_string),
        "host": header("host").or(request.uri().authority().map(http::uri::Authority::as_str)),
        "authorization": header("authorization"),
        "user": header("impersonate-user"),
        "groups": groups,
    });
    let mut line = seen.to_string();
    if request.uri().query() == Some("watch=true") {
        line = format!("{}\n", json!({"type": "ADDED", "object": seen}));
    }
    Ok(Response::builder()
        .header("content-type", "application/json")
        .body(line.into())
        .unwrap_or_default())
}
