//! Why there is no answer: from the errors of the libraries to [`Broken`].

use std::error::Error;
use std::fmt::Write;
use std::io;

use tokio::time::Instant;

use crate::exchange::{Broken, BrokenKind};

impl Broken {
    pub(crate) fn new(kind: BrokenKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn connect(message: impl Into<String>) -> Self {
        Self::new(BrokenKind::Connect, message)
    }

    pub(super) fn budget(what: &str, bytes: usize) -> Self {
        Self::new(BrokenKind::Budget, format!("{what} is longer than {bytes} bytes"))
    }

    /// An error of an exchange on a connection that stood.
    pub(super) fn on_connection(while_: &str, error: &(dyn Error + 'static)) -> Self {
        // TLS 1.3 servers refuse a client certificate only after the handshake.
        let kind = if is_tls(error) { BrokenKind::Tls } else { BrokenKind::Protocol };
        Self::new(kind, format!("{while_}: {}", chain(error)))
    }
}

/// Waits no longer than the deadline; `stage` says what for.
pub(super) async fn by<T>(
    deadline: Instant,
    kind: BrokenKind,
    stage: &str,
    what: impl Future<Output = T>,
) -> Result<T, Broken> {
    tokio::time::timeout_at(deadline, what)
        .await
        .map_err(|_| Broken::new(kind, format!("the deadline passed while {stage}")))
}

/// The whole chain of causes: most libraries show only the outermost.
pub(crate) fn chain(error: &(dyn Error + '_)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}

/// What the client says of a request for which it found no connection, though there was one to come: of two that turned out
/// to be HTTP/2 at the same time it keeps one. It shows only its words.
const NEVER_SENT: &str = "client error (Canceled)";

/// Whether the request was never sent, or the server said itself that it has not processed it: it refused the stream, or
/// is closing the connection and will look at no stream after the last it named.
pub(super) fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.to_string() == NEVER_SENT {
            return true;
        }
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            let closing = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            return error.is_remote() && (refused || closing);
        }
        cause = error.source();
    }
    false
}

/// Whether TLS is at the bottom of it.
pub(super) fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // The HTTP/2 library keeps the cause to itself, and shows only its words: those of rustls for an alert.
        if error.is::<rustls::Error>() || error.to_string().contains("received fatal alert") {
            return true;
        }
        // An io::Error gives the source of what it wraps, never what it wraps.
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref)
            && is_tls(inner)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("error sending request")]
    struct Sending(#[source] Client);

    #[derive(Debug, thiserror::Error)]
    #[error("client error ({0})")]
    struct Client(&'static str);

    #[rstest]
    #[case::no_connection_was_left("Canceled", true)]
    #[case::it_was_on_its_way("SendRequest", false)]
    #[case::nothing_to_connect_to("Connect", false)]
    fn what_was_never_sent_may_be_sent_again(#[case] kind: &'static str, #[case] unprocessed: bool) {
        assert_eq!(is_unprocessed(&Sending(Client(kind))), unprocessed);
    }
}
