//! Streams that go one way: a log, in pieces as they come, and a watch, an event a message.

use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;

use super::channels::{encode_base64, text_message};
use super::socket::{Ended, Incoming, Socket};
use crate::respond::Chunks;
use crate::{Fault, Faults};

/// The subprotocols of a stream of bytes.
pub(crate) const BINARY: &str = "binary.k8s.io";
pub(crate) const BASE64: &str = "base64.binary.k8s.io";

/// How much of a log goes into one message.
const PIECE: usize = 2048;

/// What the pieces of a stream become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Bytes, in binary messages.
    Binary,
    /// Bytes, in text messages that are base64 each by itself.
    Base64,
    /// Events of a watch, in text messages.
    Events,
}

/// Sends a stream to its end, or until the client has enough.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    socket: Socket<S>,
    form: Form,
    mut chunks: Chunks,
    faults: Faults,
) {
    let (mut incoming, mut outgoing) = socket.split();
    let send = async {
        // An empty message tells the client at once that the stream stands, however long the first piece takes.
        if form != Form::Events {
            outgoing.send(message(form, Bytes::new(), faults)).await?;
        }
        while let Some(mut chunk) = chunks.next().await {
            while form != Form::Events && chunk.len() > PIECE {
                outgoing.send(message(form, chunk.split_to(PIECE), faults)).await?;
            }
            outgoing.send(message(form, chunk, faults)).await?;
        }
        Ok(())
    };
    let end = tokio::select! {
        end = send => end,
        end = unheard(&mut incoming) => Err(end),
    };
    outgoing.close(incoming, end).await;
}

/// The client has nothing to say here; it is read for its pings and its end.
async fn unheard<S: AsyncRead + AsyncWrite + Unpin>(incoming: &mut Incoming<S>) -> Ended {
    loop {
        if let Err(end) = incoming.next().await {
            return end;
        }
    }
}

fn message(form: Form, chunk: Bytes, faults: Faults) -> Message {
    match form {
        Form::Binary if faults.on(Fault::LogCarriesChannels) => {
            Message::Binary([&[1], chunk.as_ref()].concat().into())
        }
        Form::Binary => Message::Binary(chunk),
        Form::Base64 => text_message(encode_base64(&chunk, faults), faults),
        Form::Events if faults.on(Fault::WatchInBinaryFrames) => Message::Binary(chunk),
        // Events are JSON, which is text.
        Form::Events => Message::Text(chunk.try_into().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    #[test]
    fn a_log_has_no_channels_and_an_event_is_text() {
        let chunk = || Bytes::from_static(b"one\n");
        let none = Faults::none();
        assert_eq!(message(Form::Binary, chunk(), none), Message::binary(chunk()));
        assert_eq!(message(Form::Base64, chunk(), none), Message::text("b25lCg=="));
        assert_eq!(message(Form::Base64, Bytes::new(), none), Message::text(""));
        assert_eq!(message(Form::Events, Bytes::from_static(b"{}\n"), none), Message::text("{}\n"));
    }

    /// All messages of this form, up to the end of the stream.
    async fn sent(form: Form, chunk: Vec<u8>) -> Vec<usize> {
        let (ours, theirs) = tokio::io::duplex(1024);
        let chunks = futures_util::stream::iter([Bytes::from(chunk)]).boxed();
        let none = Faults::none();
        let serving = async { serve(Socket::new(ours, none).await, form, chunks, none).await };
        let reading = async {
            let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
            let mut lengths = Vec::new();
            while let Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) = client.next().await {
                lengths.push(message.len());
            }
            lengths
        };
        tokio::join!(serving, reading).1
    }

    #[tokio::test]
    async fn a_log_comes_in_pieces_of_2_kibibytes_and_an_event_comes_whole() {
        let chunk = |length| vec![b'x'; length];
        assert_eq!(sent(Form::Binary, chunk(2048)).await, [0, 2048]);
        assert_eq!(sent(Form::Binary, chunk(2 * 2048 + 1)).await, [0, 2048, 2048, 1]);
        assert_eq!(sent(Form::Events, chunk(2049)).await, [2049]);
    }
}
