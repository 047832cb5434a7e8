//! `kubeproof etcd`: serves the health endpoint of etcd. The objects are in the API server.

use std::convert::Infallible;
use std::io::{self, Write as _};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::warn;
use crate::args::high::{Etcd, EtcdOptions};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::signals::Signals;

pub(in crate::commands) async fn etcd(command: Etcd) -> Result<Exit, Error> {
    match command {
        Etcd::Print(text) => io::stdout().lock().write_all(text.as_bytes())?,
        Etcd::Start(options) => start(&options).await?,
    }
    Ok(Exit::CONFORMANT)
}

async fn start(options: &EtcdOptions) -> Result<(), Error> {
    let mut signals = Signals::listen().map_err(Error::Runtime)?;
    warn(&options.warnings);
    for address in &options.listen {
        let failed = |source| Error::Listen { address: address.clone(), source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        writeln!(io::stdout().lock(), "listening on http://{address}")?;
        tokio::spawn(accept(socket));
    }
    signals.next().await;
    Ok(())
}

/// Serves connections until the process ends.
async fn accept(socket: TcpListener) {
    loop {
        // Without a free descriptor, the next attempt fails until a client closes its connection.
        let Ok((stream, _)) = socket.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(async move {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new());
            // The client notices the end of its connection.
            let service =
                service_fn(|request| async move { Ok::<_, Infallible>(respond(&request)) });
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn respond(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match (request.uri().path(), request.method()) {
        ("/health", &Method::GET) => (StatusCode::OK, "{\"health\":\"true\",\"reason\":\"\"}"),
        ("/health", _) => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n"),
        _ => (StatusCode::NOT_FOUND, "404 page not found\n"),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
