//! Streams over upgraded connections: commands, ports, logs and watches, by WebSocket and by SPDY.
//!
//! This module knows framing and nothing of pods. It is given a request to upgrade and a way to start what is asked for,
//! and gives back the answer to the handshake and the work that follows it; so the API server and a node's own endpoint
//! use the same code.
//!
//! | | WebSocket | SPDY |
//! | --- | --- | --- |
//! | exec, attach | channels, [`command`] | a stream each, [`command`] |
//! | portforward | two channels a port, or SPDY inside of binary messages, [`forward`] | two streams a connection, [`forward`] |
//! | log, watch | messages, [`websocket::messages`] | |

pub(crate) mod command;
pub(crate) mod forward;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod spdy;
#[cfg(test)]
pub(crate) mod testing;
mod upgrade;
pub(crate) mod websocket;

use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use hyper_util::rt::TokioIo;

pub(crate) use self::upgrade::{Upgrade, Wish};
use self::websocket::handshake;
use self::websocket::messages::{self, BASE64, BINARY, Form};
use self::websocket::socket::Socket;
use crate::Faults;
use crate::respond::{Answer, Chunks};

/// An upgraded connection.
pub(crate) type Connection = TokioIo<hyper::upgrade::Upgraded>;

/// What a request to upgrade comes to.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// What goes on once the answer is sent; to be run on a task of its own. A refusal has none.
    pub(crate) session: Option<BoxFuture<'static, ()>>,
}

impl From<Box<Answer>> for Reply {
    fn from(answer: Box<Answer>) -> Self {
        Self { answer: *answer, session: None }
    }
}

impl Reply {
    /// A refusal in plain text, as a node gives it.
    fn refused(code: StatusCode, why: &str) -> Self {
        Self { answer: Answer::text(code, format!("{why}\n")), session: None }
    }
}

/// The bearer token among the subprotocols of a WebSocket request.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<Option<String>, handshake::UnusableToken> {
    match upgrade::wish(headers, Faults::none()) {
        Some(Wish::Websocket) => handshake::token(headers),
        _ => Ok(None),
    }
}

/// Sends a log as messages.
pub(crate) fn log(upgrade: Upgrade, chunks: Chunks, faults: Faults) -> Reply {
    let chosen = handshake::check(upgrade.method(), upgrade.headers(), faults)
        .and_then(|()| handshake::negotiate(upgrade.headers(), &[BINARY, BASE64], faults));
    match chosen {
        Ok(BASE64) => stream(upgrade, BASE64, Form::Base64, chunks, faults),
        Ok(protocol) => stream(upgrade, protocol, Form::Binary, chunks, faults),
        Err(refusal) => refusal.into(),
    }
}

/// Sends the events of a watch as messages. Any one subprotocol will do: it changes nothing.
pub(crate) fn watch(upgrade: Upgrade, chunks: Chunks, faults: Faults) -> Reply {
    if let Err(refusal) = handshake::check(upgrade.method(), upgrade.headers(), faults) {
        return refusal.into();
    }
    // A page of another origin must not read with the credentials of a browser.
    if !upgrade.headers().contains_key(http::header::ORIGIN) {
        return Box::new(handshake::forbidden()).into();
    }
    let protocol = match handshake::offers(upgrade.headers()).as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        _ => return Box::new(Answer::bare(StatusCode::BAD_REQUEST)).into(),
    };
    stream(upgrade, &protocol, Form::Events, chunks, faults)
}

fn stream(upgrade: Upgrade, protocol: &str, form: Form, chunks: Chunks, faults: Faults) -> Reply {
    let answer = handshake::switch(upgrade.headers(), protocol, faults);
    upgrade.switch(answer, move |connection| async move {
        messages::serve(Socket::new(connection, faults).await, form, chunks, faults).await;
    })
}
