//! An open WebSocket of a server. It queues nothing: a message is written, or its sender waits.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// The longest message that is read.
const MAX_MESSAGE: usize = 32 * 1024 * 1024;
/// An idle connection uses about this much memory.
const READ_BUFFER: usize = 8 * 1024;
/// A few of the largest frames that this crate sends.
const WRITE_BUFFER: usize = 256 * 1024;
/// The time for the client to see the end of the connection.
const LINGER: Duration = Duration::from_secs(5);

pub(crate) struct Socket<S> {
    stream: WebSocketStream<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Takes over a connection after its handshake.
    pub(crate) async fn new(connection: S) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let stream = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
        Self { stream }
    }

    pub(crate) fn into_stream(self) -> WebSocketStream<S> {
        self.stream
    }

    pub(crate) fn split(self) -> (Incoming<S>, Outgoing<S>) {
        let (sink, stream) = self.stream.split();
        (Incoming { stream }, Outgoing { sink })
    }
}

pub(crate) struct Incoming<S> {
    stream: SplitStream<WebSocketStream<S>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Incoming<S> {
    /// Returns the next text or binary message. tungstenite responds to pings.
    pub(crate) async fn next(&mut self) -> Result<Message, Ended> {
        loop {
            match self.stream.next().await {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => return Ok(message),
                Some(Ok(Message::Close(_))) => return Err(Ended::Closed),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Ended::from(&error)),
                None => return Err(Ended::Gone),
            }
        }
    }
}

/// Why no more messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The client sent a close frame. tungstenite has queued the response.
    Closed,
    /// The connection broke.
    Gone,
    /// The client violated the protocol. The server closes with this code.
    Violation(u16),
}

impl From<&Error> for Ended {
    fn from(error: &Error) -> Self {
        Self::Violation(match error {
            Error::Capacity(CapacityError::MessageTooLong { .. }) => CloseCode::Size.into(),
            Error::Utf8(_) => CloseCode::Invalid.into(),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
            | Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Io(_) => return Self::Gone,
            _ => CloseCode::Protocol.into(),
        })
    }
}

pub(crate) struct Outgoing<S> {
    sink: SplitSink<WebSocketStream<S>, Message>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Outgoing<S> {
    /// Writes a message, and waits until the connection has accepted it.
    pub(crate) async fn send(&mut self, message: Message) -> Result<(), Ended> {
        self.sink.send(message).await.map_err(|error| Ended::from(&error))
    }

    /// Sends a close frame unless the client sent one, then shuts the connection down.
    pub(crate) async fn close(mut self, incoming: Incoming<S>, reason: Result<(), Ended>) {
        let code = match reason {
            Ok(()) => Some(1000),
            Err(Ended::Violation(code)) => Some(code),
            // The flush below sends the response that tungstenite has queued.
            Err(Ended::Closed) => None,
            Err(Ended::Gone) => return,
        };
        let shutdown = async {
            match code {
                Some(code) => {
                    let frame = CloseFrame { code: code.into(), reason: "".into() };
                    let _ = self.sink.send(Message::Close(Some(frame))).await;
                }
                None => {
                    let _ = self.sink.flush().await;
                }
            }
            let Ok(stream) = incoming.stream.reunite(self.sink) else { return };
            let mut connection = stream.into_inner();
            let _ = connection.shutdown().await;
            // Closing a socket with unread bytes resets it, and the client would lose the last
            // messages.
            let mut discarded = [0; 4096];
            while matches!(connection.read(&mut discarded).await, Ok(read) if read > 0) {}
        };
        let _ = tokio::time::timeout(LINGER, shutdown).await;
    }
}

/// Returns the content of a message. Clients may send text instead of bytes.
pub(crate) fn bytes_of(message: Message) -> Bytes {
    match message {
        Message::Text(text) => text.into(),
        other => other.into_data(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        Error::Capacity(CapacityError::MessageTooLong { size: 2, max_size: 1 }),
        Ended::Violation(1009)
    )]
    #[case(Error::Utf8(String::new()), Ended::Violation(1007))]
    #[case(Error::Protocol(ProtocolError::UnmaskedFrameFromClient), Ended::Violation(1002))]
    #[case(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake), Ended::Gone)]
    #[case(Error::ConnectionClosed, Ended::Gone)]
    #[case(Error::AlreadyClosed, Ended::Gone)]
    #[case(Error::Io(std::io::ErrorKind::BrokenPipe.into()), Ended::Gone)]
    fn errors_of_the_client_have_a_close_code(#[case] error: Error, #[case] expected: Ended) {
        assert_eq!(Ended::from(&error), expected);
    }

    #[rstest]
    #[case(32 << 20, Ended::Gone)]
    #[case((32 << 20) + 1, Ended::Violation(1009))]
    #[tokio::test]
    async fn messages_may_have_32_mib(#[case] length: u64, #[case] expected: Ended) {
        let (server, mut client) = tokio::io::duplex(64);
        let (mut incoming, _outgoing) = Socket::new(server).await.split();
        let head = [[0x82, 0xff].as_slice(), &length.to_be_bytes(), &[0; 4]].concat();
        client.write_all(&head).await.expect("the connection is open");
        drop(client);
        assert_eq!(incoming.next().await, Err(expected));
    }
}
