//! Requests that upgrade their connection, and the response to them.

use std::fmt;
use std::future::Future;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// An upgraded connection.
pub type Connection = TokioIo<hyper::upgrade::Upgraded>;

/// The protocol that a request asks to upgrade to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// WebSocket (RFC 6455).
    Websocket,
    /// SPDY/3.1.
    Spdy,
    /// A protocol that this crate does not serve.
    Other,
}

impl Protocol {
    /// Returns the protocol of these request headers, or none without `Connection: Upgrade`.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let contains = |name: HeaderName, word: &str| {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.into_iter().any(|value| value.to_ascii_lowercase().contains(word))
        };
        if !contains(header::CONNECTION, "upgrade") {
            return None;
        }
        Some(match () {
            () if contains(header::UPGRADE, "websocket") => Self::Websocket,
            () if contains(header::UPGRADE, "spdy/3.1") => Self::Spdy,
            () => Self::Other,
        })
    }
}

/// A request to upgrade: its method, its headers and the connection below it.
pub struct Upgrade {
    method: Method,
    headers: HeaderMap,
    protocol: Protocol,
    connection: OnUpgrade,
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to upgrade to {:?}", self.method, self.protocol)
    }
}

impl Upgrade {
    /// Takes the connection out of a request. Returns none for a request without an upgrade.
    pub fn take<B>(request: &mut Request<B>) -> Option<Self> {
        let protocol = Protocol::of(request.headers())?;
        let (method, headers) = (request.method().clone(), request.headers().clone());
        Some(Self { method, headers, protocol, connection: hyper::upgrade::on(request) })
    }

    /// Returns the protocol that the client asks for.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the method of the request.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the headers of the request.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Accepts the upgrade. The session starts when the client has received `response`.
    pub fn accept<F, W>(self, response: Response<Bytes>, session: F) -> Handshake
    where
        F: FnOnce(Connection) -> W + Send + 'static,
        W: Future<Output = ()> + Send,
    {
        let connection = self.connection;
        let session = async move {
            // The upgrade fails when the client disconnects during the handshake.
            if let Ok(upgraded) = connection.await {
                session(TokioIo::new(upgraded)).await;
            }
        };
        Handshake { response, session: Some(Box::pin(session)) }
    }
}

/// The response to an upgrade request, and the session that follows it.
pub struct Handshake {
    /// The HTTP response to send.
    pub response: Response<Bytes>,
    /// Serves the upgraded connection. The caller runs it on a task of its own. None after a
    /// rejection.
    pub session: Option<BoxFuture<'static, ()>>,
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepted = self.session.is_some();
        f.debug_struct("Handshake")
            .field("response", &self.response)
            .field("accepted", &accepted)
            .finish()
    }
}

impl Handshake {
    /// Rejects the upgrade with a message in plain text.
    pub fn reject(status: StatusCode, message: &str) -> Self {
        Self { response: text(status, format!("{message}\n")), session: None }
    }

    /// Rejects an upgrade to a protocol that is neither WebSocket nor SPDY.
    pub(crate) fn reject_protocol() -> Self {
        Self::reject(
            StatusCode::BAD_REQUEST,
            "unable to upgrade: missing upgrade headers in request",
        )
    }
}

impl From<Response<Bytes>> for Handshake {
    /// Rejects the upgrade with this response.
    fn from(response: Response<Bytes>) -> Self {
        Self { response, session: None }
    }
}

/// A response without headers and content.
pub(crate) fn bare(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// A response in plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = bare(status).map(|_| text.into());
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Upgrade", "websocket", Some(Protocol::Websocket))]
    #[case("keep-alive, Upgrade", "WebSocket", Some(Protocol::Websocket))]
    #[case("upgrade", "spdy/3.1", Some(Protocol::Spdy))]
    #[case("Upgrade", "h2c", Some(Protocol::Other))]
    #[case("keep-alive", "SPDY/3.1", None)]
    fn protocol_comes_from_the_connection_and_upgrade_headers(
        #[case] connection: &'static str,
        #[case] upgrade: &'static str,
        #[case] expected: Option<Protocol>,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static(connection));
        headers.insert(header::UPGRADE, HeaderValue::from_static(upgrade));
        assert_eq!(Protocol::of(&headers), expected);
    }
}
