//! A request that wants its connection for something else than HTTP.

use std::fmt;
use std::future::Future;

use http::{HeaderMap, HeaderName, Method, Request, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::{Connection, Reply};
use crate::respond::Answer;
use crate::{Fault, Faults};

/// What the connection is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Websocket,
    Spdy,
    /// Something that is not spoken here.
    Other,
}

/// The parts of a request that matter for an upgrade.
pub(crate) struct Upgrade {
    method: Method,
    headers: HeaderMap,
    wish: Wish,
    connection: OnUpgrade,
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to upgrade to {:?}", self.method, self.wish)
    }
}

impl Upgrade {
    /// Takes the connection out of a request that wants to upgrade it; none when it does not.
    pub(crate) fn take(request: &mut Request<Incoming>, faults: Faults) -> Option<Self> {
        let wish = wish(request.headers(), faults)?;
        let (method, headers) = (request.method().clone(), request.headers().clone());
        Some(Self { method, headers, wish, connection: hyper::upgrade::on(request) })
    }

    pub(crate) fn wish(&self) -> Wish {
        self.wish
    }

    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Answers, and runs the session on the connection once the client has the answer.
    pub(crate) fn switch<F, W>(self, answer: Answer, session: F) -> Reply
    where
        F: FnOnce(Connection) -> W + Send + 'static,
        W: Future<Output = ()> + Send,
    {
        let connection = self.connection;
        let work = async move {
            // A client that left during the handshake leaves nothing to do.
            if let Ok(upgraded) = connection.await {
                session(TokioIo::new(upgraded)).await;
            }
        };
        Reply { answer, session: Some(Box::pin(work)) }
    }
}

/// What a request wants its connection for, if for anything.
pub(crate) fn wish(headers: &HeaderMap, faults: Faults) -> Option<Wish> {
    let says = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.into_iter().any(|value| value.to_ascii_lowercase().contains(word))
    };
    let taken_without = faults.on(Fault::UpgradeWithoutConnection) && headers.contains_key(header::UPGRADE);
    if !says(header::CONNECTION, "upgrade") && !taken_without {
        return None;
    }
    Some(match () {
        () if says(header::UPGRADE, "websocket") => Wish::Websocket,
        () if says(header::UPGRADE, "spdy/3.1") => Wish::Spdy,
        () => Wish::Other,
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Upgrade", "websocket", Some(Wish::Websocket))]
    #[case("keep-alive, Upgrade", "WebSocket", Some(Wish::Websocket))]
    #[case("upgrade", "spdy/3.1", Some(Wish::Spdy))]
    #[case("Upgrade", "h2c", Some(Wish::Other))]
    #[case("keep-alive", "SPDY/3.1", None)]
    fn what_a_connection_is_wanted_for(
        #[case] connection: &'static str,
        #[case] upgrade: &'static str,
        #[case] expected: Option<Wish>,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static(connection));
        headers.insert(header::UPGRADE, HeaderValue::from_static(upgrade));
        assert_eq!(wish(&headers, Faults::none()), expected);
    }
}
