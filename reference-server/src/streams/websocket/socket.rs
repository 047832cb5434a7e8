//! An open WebSocket: messages in, messages out, and an end that the client sees.
//!
//! Messages are bounded, buffers are small, and nothing is queued: a message is handed to the connection, or waits.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, error::CapacityError};

use crate::{Fault, Faults};

/// The longest message that is read.
const MAX_MESSAGE: usize = 32 * 1024 * 1024;
/// A connection that is idle costs about this much.
const READ_BUFFER: usize = 8 * 1024;
/// How much may wait for the connection: a few of the largest frames that this server sends.
const WRITE_BUFFER: usize = 256 * 1024;
/// How long the client has to take note of the end before the connection is cut.
const LINGER: Duration = Duration::from_secs(5);

/// A WebSocket of which both halves are here.
pub(crate) struct Socket<S> {
    stream: WebSocketStream<S>,
    faults: Faults,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Takes over a connection right behind its handshake.
    pub(crate) async fn new(connection: S, faults: Faults) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE))
            .accept_unmasked_frames(faults.on(Fault::WebsocketUnmaskedAccepted));
        let stream = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
        Self { stream, faults }
    }

    pub(crate) fn into_stream(self) -> WebSocketStream<S> {
        self.stream
    }

    pub(crate) fn split(self) -> (Incoming<S>, Outgoing<S>) {
        let (sink, stream) = self.stream.split();
        (Incoming { stream, faults: self.faults }, Outgoing { sink, faults: self.faults })
    }
}

/// What the client sends.
pub(crate) struct Incoming<S> {
    stream: SplitStream<WebSocketStream<S>>,
    faults: Faults,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Incoming<S> {
    /// The next message with content. Pings are answered on the way.
    pub(crate) async fn next(&mut self) -> Result<Message, Ended> {
        loop {
            match self.stream.next().await {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => return Ok(message),
                Some(Ok(Message::Ping(_))) if self.faults.on(Fault::WebsocketPongMissing) => {
                    // The answer goes out with the next read, which never comes.
                    std::future::pending::<()>().await;
                }
                Some(Ok(Message::Close(_))) => return Err(Ended::Closed),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Ended::from(&error)),
                None => return Err(Ended::Gone),
            }
        }
    }
}

/// Why no more messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The client has closed. It is answered.
    Closed,
    /// The connection is gone.
    Gone,
    /// What came is no WebSocket, and this is the code to say so with.
    Broken(u16),
}

impl From<&Error> for Ended {
    fn from(error: &Error) -> Self {
        Self::Broken(match error {
            Error::Capacity(CapacityError::MessageTooLong { .. }) => CloseCode::Size.into(),
            Error::Utf8(_) => CloseCode::Invalid.into(),
            Error::Protocol(
                tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )
            | Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Io(_) => return Self::Gone,
            _ => CloseCode::Protocol.into(),
        })
    }
}

/// What this side sends.
pub(crate) struct Outgoing<S> {
    sink: SplitSink<WebSocketStream<S>, Message>,
    faults: Faults,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Outgoing<S> {
    /// Sends a message, and waits until the connection has taken it.
    pub(crate) async fn send(&mut self, message: Message) -> Result<(), Ended> {
        self.sink.send(message).await.map_err(|error| Ended::from(&error))
    }

    /// Ends the WebSocket: a close frame if the client has sent none, then the connection.
    pub(crate) async fn close(mut self, incoming: Incoming<S>, why: Result<(), Ended>) {
        let code = match why {
            Ok(()) | Err(Ended::Closed) if self.faults.on(Fault::WebsocketClosesGoingAway) => Some(1001),
            Ok(()) => Some(1000),
            Err(Ended::Broken(code)) => Some(code),
            // Tungstenite has queued the answer, which goes out with the flush below.
            Err(Ended::Closed) => None,
            Err(Ended::Gone) => return,
        };
        if self.faults.on(Fault::WebsocketEndsWithoutClose) {
            return;
        }
        let farewell = async {
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
            if self.faults.on(Fault::WebsocketDataAfterClose) {
                let _ = connection.write_all(&[0x82, 0x02, 0x01, b'x']).await;
            }
            // The client sees the end at once. Reading on until it has: closing a socket that holds unread bytes would
            // destroy what is still on its way to the client.
            let _ = connection.shutdown().await;
            let mut waste = [0; 4096];
            while matches!(connection.read(&mut waste).await, Ok(read) if read > 0) {}
        };
        let _ = tokio::time::timeout(LINGER, farewell).await;
    }
}

/// A message of bytes.
pub(crate) fn bytes_of(message: Message) -> Bytes {
    match message {
        // Clients may send text where bytes are expected.
        Message::Text(text) => text.into(),
        other => other.into_data(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio_tungstenite::tungstenite::error::ProtocolError;

    use super::*;

    #[rstest]
    #[case(Error::Capacity(CapacityError::MessageTooLong { size: 2, max_size: 1 }), Ended::Broken(1009))]
    #[case(Error::Utf8(String::new()), Ended::Broken(1007))]
    #[case(Error::Protocol(ProtocolError::UnmaskedFrameFromClient), Ended::Broken(1002))]
    #[case(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake), Ended::Gone)]
    #[case(Error::ConnectionClosed, Ended::Gone)]
    #[case(Error::AlreadyClosed, Ended::Gone)]
    #[case(Error::Io(std::io::ErrorKind::BrokenPipe.into()), Ended::Gone)]
    fn an_error_has_a_code_where_somebody_can_hear_it(#[case] error: Error, #[case] expected: Ended) {
        assert_eq!(Ended::from(&error), expected);
    }

    #[rstest]
    #[case(32 << 20, Ended::Gone)]
    #[case((32 << 20) + 1, Ended::Broken(1009))]
    #[tokio::test]
    async fn a_message_of_32_mebibytes_is_waited_for(#[case] length: u64, #[case] expected: Ended) {
        let (ours, mut client) = tokio::io::duplex(64);
        let (mut incoming, _outgoing) = Socket::new(ours, Faults::none()).await.split();
        let head = [[0x82, 0xff].as_slice(), &length.to_be_bytes(), &[0; 4]].concat();
        client.write_all(&head).await.expect("room");
        drop(client);
        assert_eq!(incoming.next().await, Err(expected));
    }
}
