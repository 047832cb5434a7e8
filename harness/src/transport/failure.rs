//! Converts errors of libraries to [`Broken`].

use std::error::Error;
use std::io;

use tokio::time::Instant;

use crate::exchange::{Broken, BrokenKind};
use crate::target::error_chain;

impl Broken {
    pub(crate) fn new(kind: BrokenKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn connect(message: impl Into<String>) -> Self {
        Self::new(BrokenKind::Connect, message)
    }

    /// Creates the outcome of a request that an option or its content forbids.
    pub(super) fn not_sent(why: impl std::fmt::Display) -> Self {
        Self::new(BrokenKind::NotSent, format!("not sent: {why}"))
    }

    pub(super) fn budget(what: &str, bytes: usize) -> Self {
        Self::new(BrokenKind::Budget, format!("{what} is longer than {bytes} bytes"))
    }

    /// Converts an error on an established connection.
    pub(super) fn on_connection(while_: &str, error: &(dyn Error + 'static)) -> Self {
        // TLS 1.3 servers reject a client certificate only after the handshake.
        let kind = if is_tls(error) { BrokenKind::Tls } else { BrokenKind::Protocol };
        Self::new(kind, format!("{while_}: {}", error_chain(error)))
    }
}

/// Applies the deadline. `stage` describes the wait.
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

/// The client's error for a request without connection. It keeps only one of two new HTTP/2
/// connections. The kind is visible only in the text.
const NEVER_SENT: &str = "client error (Canceled)";

/// Reports whether the server never processed the request. Either it was never sent, or the server
/// sent `REFUSED_STREAM` or a GOAWAY before it.
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

/// Reports whether TLS caused the error.
pub(super) fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // The HTTP/2 library hides the cause and keeps only the text of rustls.
        if error.is::<rustls::Error>() || error.to_string().contains("received fatal alert") {
            return true;
        }
        // `source` of an io::Error skips the wrapped error.
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
    fn what_was_never_sent_may_be_sent_again(
        #[case] kind: &'static str,
        #[case] unprocessed: bool,
    ) {
        assert_eq!(is_unprocessed(&Sending(Client(kind))), unprocessed);
    }
}
