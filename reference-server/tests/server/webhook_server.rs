//! An HTTPS server that answers the requests of admission webhooks.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Returns the status code and the body of a response to a review.
pub(crate) type Handler = dyn Fn(&Value) -> (u16, Value) + Send + Sync;

pub(crate) struct WebhookServer {
    pub(crate) port: u16,
    ca_pem: String,
    reviews: Arc<Mutex<Vec<Value>>>,
}

impl WebhookServer {
    /// Starts a server whose handler returns the field `response` of the review.
    pub(crate) async fn start(respond: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::raw(move |review| {
            let mut response = respond(&review["request"]);
            if response["uid"].is_null() {
                response["uid"] = review["request"]["uid"].clone();
            }
            let version = review["apiVersion"].clone();
            let body = json!({
                "kind": "AdmissionReview", "apiVersion": version, "response": response,
            });
            (200, body)
        })
        .await
    }

    /// Starts a server whose handler returns the whole response.
    pub(crate) async fn raw(
        handle: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let names = ["127.0.0.1", "localhost", "hook.default.svc"];
        let params = CertificateParams::new(names.map(str::to_owned)).expect("names");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let chain = vec![certificate.der().clone()];
        let private = key.serialize_der().try_into().expect("a key");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .expect("a certificate with its key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let reviews = Arc::new(Mutex::new(Vec::new()));
        let state = (Arc::new(handle) as Arc<Handler>, Arc::clone(&reviews));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream, state.clone()));
            }
        });
        Self { port, ca_pem: certificate.pem(), reviews }
    }

    /// Returns the `clientConfig` of a webhook of this server.
    pub(crate) fn client_config(&self) -> Value {
        let url = format!("https://127.0.0.1:{}/admit", self.port);
        json!({"url": url, "caBundle": self.ca_bundle()})
    }

    pub(crate) fn ca_bundle(&self) -> String {
        STANDARD.encode(&self.ca_pem)
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let reviews = self.reviews.lock().expect("no panic");
        reviews.iter().map(|review| review["request"].clone()).collect()
    }
}

type State = (Arc<Handler>, Arc<Mutex<Vec<Value>>>);

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, (handle, reviews): State) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let (handle, reviews) = (Arc::clone(&handle), Arc::clone(&reviews));
        async move {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let review: Value = serde_json::from_slice(&body).expect("a review");
            reviews.lock().expect("no panic").push(review.clone());
            let (status, body) = handle(&review);
            if status == 0 {
                std::future::pending::<()>().await;
            }
            let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
            *response.status_mut() = status.try_into().expect("a status code");
            Ok::<_, Infallible>(response)
        }
    });
    // The client may close the connection at any time.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
