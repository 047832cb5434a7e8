//! An HTTPS server of one test: for webhooks and as an extension server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The names in the certificate: addresses, and services of the namespace `default`.
const NAMES: [&str; 4] = ["localhost", "127.0.0.1", "hook.default.svc", "farm.default.svc"];

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: Method,
    /// The path with the query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

type Handler = dyn Fn(&Received) -> (u16, Value) + Send + Sync;

/// A server that stops when it is dropped.
pub(crate) struct HttpsServer {
    addr: SocketAddr,
    ca_pem: String,
    received: Arc<Mutex<Vec<Received>>>,
    _tasks: JoinSet<()>,
}

impl HttpsServer {
    /// Starts a server that sends the status and the document of `respond`, which may block. It
    /// never responds with status 0.
    pub(crate) async fn start(
        respond: impl Fn(&Received) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        Self::trusting("", respond).await
    }

    /// Starts a server that requires a certificate of this authority, if there is one.
    pub(crate) async fn trusting(
        client_ca_pem: &str,
        respond: impl Fn(&Received) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let (config, ca_pem) = configuration(client_ca_pem);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let respond: Arc<Handler> = Arc::new(respond);
        let seen = Arc::clone(&received);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, respond) = (acceptor.clone(), Arc::clone(&respond));
                let seen = Arc::clone(&seen);
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| {
                        handle(request, Arc::clone(&respond), Arc::clone(&seen))
                    });
                    // A client may close its connection at any time.
                    let _ =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { addr, ca_pem, received, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    pub(crate) fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Returns the authority of the server for the field `caBundle`.
    pub(crate) fn ca_bundle(&self) -> String {
        STANDARD.encode(&self.ca_pem)
    }

    /// Returns the requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }
}

/// Returns what accepts connections with TLS and a certificate of its own.
pub(crate) fn acceptor() -> TlsAcceptor {
    TlsAcceptor::from(Arc::new(configuration("").0))
}

/// Returns the configuration of TLS, and the authority of the server as PEM.
fn configuration(client_ca_pem: &str) -> (ServerConfig, String) {
    let names = NAMES.map(str::to_owned);
    let certified = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("TLS");
    let builder = if client_ca_pem.is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(client_ca_pem.as_bytes()) {
            roots.add(authority.expect("PEM")).expect("an authority");
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
    };
    let chain = vec![certified.cert.der().clone()];
    let config = builder.with_single_cert(chain, key).expect("a usable certificate");
    (config, certified.cert.pem())
}

async fn handle(
    request: Request<Incoming>,
    respond: Arc<Handler>,
    seen: Arc<Mutex<Vec<Received>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    let received = Received {
        method: parts.method,
        path: parts.uri.to_string(),
        headers: parts.headers,
        body: serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default(),
    };
    seen.lock().expect("no panic").push(received.clone());
    // A thread of the runtime must not block: it may be the one that all tasks wait for.
    let response = tokio::task::spawn_blocking(move || respond(&received));
    let (status, document) = response.await.expect("a response");
    if status == 0 {
        std::future::pending::<()>().await;
    }
    let mut response = Response::new(Full::new(document.to_string().into()));
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    *response.status_mut() = status.try_into().expect("a status");
    Ok(response)
}
