//! An HTTPS server for webhooks of one test.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
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
    /// Starts a server that sends the status and the document of `respond`.
    pub(crate) async fn start(
        respond: impl Fn(&Received) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certified = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::aws_lc_rs::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .expect("TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("a usable certificate");
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
        Self { addr, ca_pem: certified.cert.pem(), received, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }
}

async fn handle(
    request: Request<Incoming>,
    respond: Arc<Handler>,
    seen: Arc<Mutex<Vec<Received>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let body = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let received = Received { path, body };
    let (status, document) = respond(&received);
    seen.lock().expect("no panic").push(received);
    let mut response = Response::new(Full::new(document.to_string().into()));
    *response.status_mut() = status.try_into().expect("a status");
    Ok(response)
}
