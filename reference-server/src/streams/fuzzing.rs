//! Frames of strangers, for [`crate::fuzzing`].

use bytes::{Bytes, BytesMut};
use tokio_tungstenite::tungstenite::Message;

use super::spdy::frame::{Decoder, Frame};
use super::spdy::header_block;
use super::websocket::channels::{Channels, Coding};
use super::websocket::socket::Socket;
use crate::Faults;

/// What frames there are in the pieces of a connection, in words; the pieces of one data frame are put together.
pub(crate) fn spdy_frames<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<String> {
    let (mut decoder, mut blocks) = (Decoder::default(), header_block::Reader::new());
    let (mut buffer, mut words, mut data) = (BytesMut::new(), Vec::new(), BytesMut::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let frame = match decoder.decode(&mut buffer) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    words.push(error.to_string());
                    return words;
                }
            };
            match frame {
                // How many pieces it comes in is chance, and that an open one has none yet.
                Frame::Data { stream, fin, bytes } => {
                    data.extend_from_slice(&bytes);
                    if fin {
                        words.push(format!("data on {stream}: {:?}", data.split()));
                    }
                }
                Frame::SynStream { block, .. } | Frame::Headers { block } => match blocks.read(&block) {
                    Ok(headers) => words.push(format!("{headers:?}")),
                    Err(error) => {
                        words.push(error.to_string());
                        return words;
                    }
                },
                other => words.push(format!("{other:?}")),
            }
        }
        assert!(buffer.len() < 8 + 64 * 1024, "a frame that is not taken grows");
    }
    words
}

/// Reads a WebSocket to its end.
pub(crate) async fn messages(bytes: Bytes) {
    let connection = tokio::io::join(std::io::Cursor::new(bytes), tokio::io::sink());
    let (mut incoming, _outgoing) = Socket::new(connection, Faults::none()).await.split();
    while let Ok(message) = incoming.next().await {
        for coding in [Coding::Binary, Coding::Base64] {
            let channels = Channels { coding, faults: Faults::none() };
            if let Ok(Some((channel, content))) = channels.decode(message.clone()) {
                let again = channels.decode(channels.encode(channel, &content));
                // A digit is all that base64 has for a channel.
                if coding == Coding::Binary || channel < 10 {
                    assert_eq!(again, Ok(Some((channel, content))), "{}", Message::len(&message));
                }
            }
        }
    }
}
