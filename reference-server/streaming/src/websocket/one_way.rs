//! Streams from the server to the client: a log in pieces, and a watch with one event per message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::header;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;

use super::handshake::{self, HandshakeError};
use super::socket::{Ended, Incoming, Socket};
use crate::upgrade::{Handshake, Upgrade};

const BINARY_PROTOCOL: &str = "binary.k8s.io";
const BASE64_PROTOCOL: &str = "base64.binary.k8s.io";

/// The most bytes of a log in one message.
const MAX_LOG_MESSAGE: usize = 2048;

/// The content of a one-way stream, in pieces.
pub type Chunks = BoxStream<'static, Bytes>;

/// Serves a log over WebSocket, in binary messages or in base64.
pub fn serve_log(upgrade: Upgrade, chunks: Chunks) -> Handshake {
    let chosen = handshake::check(upgrade.method(), upgrade.headers()).and_then(|()| {
        handshake::negotiate(upgrade.headers(), &[BINARY_PROTOCOL, BASE64_PROTOCOL])
    });
    match chosen {
        Ok(BASE64_PROTOCOL) => serve(upgrade, BASE64_PROTOCOL, Form::Base64, chunks),
        Ok(protocol) => serve(upgrade, protocol, Form::Binary, chunks),
        Err(error) => error.into(),
    }
}

/// Serves a watch over WebSocket. Each chunk is an event and becomes a text message.
///
/// The client may name any one subprotocol, which has no effect.
pub fn serve_watch(upgrade: Upgrade, chunks: Chunks) -> Handshake {
    match watch_protocol(&upgrade) {
        Ok(protocol) => serve(upgrade, &protocol, Form::Events, chunks),
        Err(error) => error.into(),
    }
}

/// Serves a watch in binary messages: each one is a protobuf event.
pub fn serve_binary_watch(upgrade: Upgrade, chunks: Chunks) -> Handshake {
    match watch_protocol(&upgrade) {
        Ok(protocol) => serve(upgrade, &protocol, Form::BinaryEvents, chunks),
        Err(error) => error.into(),
    }
}

fn watch_protocol(upgrade: &Upgrade) -> Result<String, HandshakeError> {
    handshake::check(upgrade.method(), upgrade.headers())?;
    // Without this check, a page of another origin could read with the credentials of the browser.
    if !upgrade.headers().contains_key(header::ORIGIN) {
        return Err(HandshakeError::Origin);
    }
    match handshake::protocols(upgrade.headers()).as_slice() {
        [] => Ok(String::new()),
        [one] => Ok((*one).to_owned()),
        _ => Err(HandshakeError::SeveralProtocols),
    }
}

fn serve(upgrade: Upgrade, protocol: &str, form: Form, chunks: Chunks) -> Handshake {
    let response = handshake::switching_protocols(upgrade.headers(), protocol);
    upgrade.accept(response, move |connection| async move {
        send(Socket::new(connection).await, form, chunks).await;
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Bytes in binary messages.
    Binary,
    /// Bytes in text messages, each with its own base64.
    Base64,
    /// Watch events in text messages.
    Events,
    /// Watch events in binary messages.
    BinaryEvents,
}

impl Form {
    const fn is_watch(self) -> bool {
        matches!(self, Self::Events | Self::BinaryEvents)
    }
}

/// Sends all chunks, or stops when the client closes the connection.
async fn send<S>(socket: Socket<S>, form: Form, mut chunks: Chunks)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut incoming, mut outgoing) = socket.split();
    let send = async {
        // The first chunk may take long, so an empty message shows the client that the stream is
        // open.
        if !form.is_watch() {
            outgoing.send(message(form, Bytes::new())).await?;
        }
        while let Some(mut chunk) = chunks.next().await {
            while !form.is_watch() && chunk.len() > MAX_LOG_MESSAGE {
                outgoing.send(message(form, chunk.split_to(MAX_LOG_MESSAGE))).await?;
            }
            outgoing.send(message(form, chunk)).await?;
        }
        Ok(())
    };
    let end = tokio::select! {
        end = send => end,
        end = discard(&mut incoming) => Err(end),
    };
    outgoing.close(incoming, end).await;
}

/// Reads until the connection ends. Reading is necessary to respond to pings and to see a close
/// frame.
async fn discard<S>(incoming: &mut Incoming<S>) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        if let Err(end) = incoming.next().await {
            return end;
        }
    }
}

fn message(form: Form, chunk: Bytes) -> Message {
    match form {
        Form::Binary | Form::BinaryEvents => Message::Binary(chunk),
        Form::Base64 => Message::text(STANDARD.encode(&chunk)),
        // Events are JSON and therefore valid UTF-8.
        Form::Events => Message::Text(chunk.try_into().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    #[test]
    fn logs_have_no_channels_and_events_are_text() {
        let chunk = || Bytes::from_static(b"one\n");
        assert_eq!(message(Form::Binary, chunk()), Message::binary(chunk()));
        assert_eq!(message(Form::Base64, chunk()), Message::text("b25lCg=="));
        assert_eq!(message(Form::Base64, Bytes::new()), Message::text(""));
        assert_eq!(message(Form::Events, Bytes::from_static(b"{}\n")), Message::text("{}\n"));
    }

    /// Returns the lengths of all messages for one chunk.
    async fn message_lengths(form: Form, chunk: Vec<u8>) -> Vec<usize> {
        let (server, client) = tokio::io::duplex(1024);
        let chunks = futures_util::stream::iter([Bytes::from(chunk)]).boxed();
        let serving = async { send(Socket::new(server).await, form, chunks).await };
        let reading = async {
            let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
            let mut lengths = Vec::new();
            while let Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) =
                client.next().await
            {
                lengths.push(message.len());
            }
            lengths
        };
        tokio::join!(serving, reading).1
    }

    #[tokio::test]
    async fn logs_are_split_at_2_kib_and_events_are_not() {
        let chunk = |length| vec![b'x'; length];
        assert_eq!(message_lengths(Form::Binary, chunk(2048)).await, [0, 2048]);
        assert_eq!(message_lengths(Form::Binary, chunk(2 * 2048 + 1)).await, [0, 2048, 2048, 1]);
        assert_eq!(message_lengths(Form::Events, chunk(2049)).await, [2049]);
    }
}
