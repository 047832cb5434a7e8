//! A byte stream in binary WebSocket messages, whose boundaries have no meaning.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::websocket::socket::bytes_of;

/// A WebSocket that reads and writes like a TCP connection.
#[derive(Debug)]
pub(super) struct Tunnel<S> {
    socket: WebSocketStream<S>,
    /// The unread part of the last message.
    rest: Bytes,
    closing: bool,
}

impl<S> Tunnel<S> {
    pub(super) fn new(socket: WebSocketStream<S>) -> Self {
        Self { socket, rest: Bytes::new(), closing: false }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnel<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.rest.is_empty() {
            match ready!(Pin::new(&mut this.socket).poll_next(cx)) {
                Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) => {
                    this.rest = bytes_of(message);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(end_of_stream(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = this.rest.len().min(buffer.remaining());
        buffer.put_slice(&this.rest[..length]);
        this.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tunnel<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut socket = Pin::new(&mut self.get_mut().socket);
        ready!(socket.as_mut().poll_ready(cx)).map_err(io::Error::other)?;
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        socket.start_send(message).map_err(io::Error::other)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx).map_err(io::Error::other)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.closing {
            ready!(Pin::new(&mut this.socket).poll_ready(cx)).map_err(io::Error::other)?;
            this.closing = true;
            let frame = CloseFrame { code: 1000.into(), reason: "".into() };
            if let Err(error) = Pin::new(&mut this.socket).start_send(Message::Close(Some(frame))) {
                return Poll::Ready(end_of_stream(error));
            }
        }
        match ready!(Pin::new(&mut this.socket).poll_flush(cx)) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(end_of_stream(error)),
        }
    }
}

/// Closing the WebSocket is the end of the stream. A protocol violation is an error.
fn end_of_stream(error: Error) -> io::Result<()> {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => Ok(()),
        error => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    #[tokio::test]
    async fn messages_are_joined_and_shutdown_sends_a_close_frame() {
        let (ours, theirs) = tokio::io::duplex(1024);
        let mut tunnel =
            Tunnel::new(WebSocketStream::from_raw_socket(ours, Role::Server, None).await);
        let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
        for piece in ["spd", "", "y!"] {
            client
                .send(Message::binary(piece.as_bytes().to_vec()))
                .await
                .expect("the connection has space");
        }
        let mut read = [0; 5];
        tunnel.read_exact(&mut read).await.expect("five bytes");
        assert_eq!(&read, b"spdy!");
        tunnel.write_all(b"back").await.expect("the connection has space");
        tunnel.flush().await.expect("the connection has space");
        assert_eq!(
            client.next().await.expect("a message").expect("a message"),
            Message::binary(b"back".to_vec())
        );
        tunnel.shutdown().await.expect("the connection has space");
        assert!(matches!(
            client.next().await,
            Some(Ok(Message::Close(Some(frame)))) if u16::from(frame.code) == 1000
        ));
    }

    #[tokio::test]
    async fn a_protocol_violation_is_an_error() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut tunnel =
            Tunnel::new(WebSocketStream::from_raw_socket(ours, Role::Server, None).await);
        // A binary message without a mask.
        theirs.write_all(b"\x82\x01x").await.expect("the connection has space");
        assert!(tunnel.read(&mut [0]).await.is_err());
    }
}
