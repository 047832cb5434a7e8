//! Forwards a request to another server, and its response to the client.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kubeproof_streaming::{Connection, Handshake, Upgrade};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::respond::{ApiResponse, Payload};

/// The headers that a proxy must not forward.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The response to a request for another protocol.
pub(crate) enum Upgraded {
    /// Both sides switch protocols.
    Switched(Handshake),
    /// The server responded without a switch.
    Rejected(Response<Incoming>),
}

/// Returns the headers that go on to the next server.
pub(crate) fn without_hops(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
    headers
}

/// Sends a request with the body of the client, and returns the response when it begins.
pub(crate) async fn exchange(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<()>,
    body: &mut Incoming,
) -> hyper::Result<Response<Incoming>> {
    if body.is_end_stream() {
        return get(connection, request).await;
    }
    let (pieces, taken) = mpsc::channel(1);
    let pass_on = async {
        while let Some(Ok(frame)) = body.frame().await
            && pieces.send(Ok::<_, Infallible>(frame)).await.is_ok()
        {}
        drop(pieces);
    };
    let frames = stream::unfold(taken, |mut taken| async move {
        let frame = taken.recv().await?;
        Some((frame, taken))
    });
    tokio::join!(send(connection, request.map(|()| StreamBody::new(frames))), pass_on).0
}

/// Sends a request without a body, and returns the response when it begins.
pub(crate) async fn get(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<()>,
) -> hyper::Result<Response<Incoming>> {
    send(connection, request.map(|()| Empty::<Bytes>::new())).await
}

/// Connects client and server if the server accepts the upgrade that the client asks for.
pub(crate) async fn switch(
    upgrade: Upgrade,
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<()>,
) -> hyper::Result<Upgraded> {
    let mut response = get(connection, request).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Upgraded::Rejected(response));
    }
    let far = hyper::upgrade::on(&mut response);
    let mut agreed = Response::new(Bytes::new());
    *agreed.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    agreed.headers_mut().clone_from(response.headers());
    Ok(Upgraded::Switched(upgrade.accept(agreed, move |mut near: Connection| async move {
        if let Ok(far) = far.await {
            // Either side may close the connection.
            let _ = tokio::io::copy_bidirectional(&mut near, &mut TokioIo::new(far)).await;
        }
    })))
}

/// Adds the headers of an upgrade, which no other request has.
pub(crate) fn ask_to_switch(original: &HeaderMap, headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    for value in original.get_all(header::UPGRADE) {
        headers.append(header::UPGRADE, value.clone());
    }
}

/// Returns the response for the client. `relocate` changes the values of headers.
pub(crate) fn to_response(
    response: Response<Incoming>,
    relocate: impl Fn(&HeaderName, &HeaderValue) -> HeaderValue,
) -> ApiResponse {
    let (parts, body) = response.into_parts();
    let chunks = body.into_data_stream();
    // After an error the body is shorter than its length, which the client detects.
    let chunks = stream::unfold(chunks, |mut chunks| async move {
        let chunk: Bytes = chunks.next().await?.ok()?;
        Some((chunk, chunks))
    });
    let mut response = ApiResponse::bare(parts.status);
    response.payload = Payload::Stream(Box::pin(chunks));
    response.may_pause = true;
    for (name, value) in &without_hops(&parts.headers) {
        response = response.header(name.clone(), relocate(name, value));
    }
    response
}

async fn send<B>(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<B>,
) -> hyper::Result<Response<Incoming>>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection)).await?;
    tokio::spawn(async move {
        // The response reports an error of the connection.
        let _ = connection.with_upgrades().await;
    });
    sender.send_request(request).await
}
