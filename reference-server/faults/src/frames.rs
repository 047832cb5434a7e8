//! WebSocket frames that a server sends, and a way to edit the messages in them.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, split};

use crate::exchange::{Body, Io, Response};

/// The buffer between the server and the client, in bytes.
const PIPE: usize = 64 * 1024;
/// The first byte of a whole message of text.
const TEXT: u8 = 0x81;
/// The first byte of a whole binary message.
const BINARY: u8 = 0x82;

/// Edits the messages of a WebSocket connection that the server sends. Fragments and control frames
/// stay as they are.
pub(crate) fn edit_messages(
    response: &mut Response,
    edit: impl FnMut(Bytes) -> Vec<Bytes> + Send + 'static,
) {
    if !matches!(response.body, Body::Upgraded(_)) {
        return;
    }
    let (near, far) = tokio::io::duplex(PIPE);
    let body = std::mem::replace(&mut response.body, Body::Upgraded(Box::new(far)));
    if let Body::Upgraded(server) = body {
        let (from_server, mut to_server) = split(server);
        let (mut from_client, to_client) = split(near);
        // Both ends see how the connection ends.
        tokio::spawn(async move {
            let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
            let _ = to_server.shutdown().await;
        });
        tokio::spawn(copy_messages(from_server, to_client, edit));
    }
}

/// A whole message of text as a frame.
pub(crate) fn text(message: &[u8]) -> Bytes {
    frame(TEXT, message)
}

fn frame(first: u8, message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 10);
    frame.put_u8(first);
    match (u8::try_from(message.len()), u16::try_from(message.len())) {
        (Ok(short @ ..126), _) => frame.put_u8(short),
        (_, Ok(medium)) => {
            frame.put_u8(126);
            frame.put_u16(medium);
        }
        _ => {
            frame.put_u8(127);
            frame.put_u64(message.len() as u64);
        }
    }
    frame.extend_from_slice(message);
    frame.freeze()
}

async fn copy_messages(
    mut server: ReadHalf<Box<dyn Io>>,
    mut client: tokio::io::WriteHalf<DuplexStream>,
    mut edit: impl FnMut(Bytes) -> Vec<Bytes> + Send,
) {
    let mut received = BytesMut::new();
    loop {
        while let Some((first, header, message)) = next_frame(&mut received) {
            let frames = if matches!(first, TEXT | BINARY) {
                edit(message).iter().map(|message| frame(first, message)).collect()
            } else {
                vec![[header, message].concat().into()]
            };
            for frame in frames {
                if client.write_all(&frame).await.is_err() {
                    return;
                }
            }
        }
        if !matches!(server.read_buf(&mut received).await, Ok(1..)) {
            break;
        }
    }
    // The client is gone if this fails.
    let _ = client.shutdown().await;
}

/// Takes a frame: its first byte, its header and its payload. Frames of servers have no mask.
fn next_frame(received: &mut BytesMut) -> Option<(u8, Bytes, Bytes)> {
    let (first, short) = (*received.first()?, *received.get(1)? & 0x7f);
    let mut length = received.get(2..)?;
    let (header, length) = match short {
        126 if length.len() >= 2 => (4, u64::from(length.get_u16())),
        127 if length.len() >= 8 => (10, length.get_u64()),
        126 | 127 => return None,
        short => (2, u64::from(short)),
    };
    let length = usize::try_from(length).ok()?;
    if received.len() < header + length {
        return None;
    }
    let header = received.split_to(header).freeze();
    Some((first, header, received.split_to(length).freeze()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0)]
    #[case(125)]
    #[case(126)]
    #[case(70_000)]
    fn a_frame_is_read_as_it_was_written(#[case] length: usize) {
        let message = vec![b'a'; length];
        let frame = text(&message);
        let mut received = BytesMut::from(&frame[..]);
        let (first, header, payload) = next_frame(&mut received).expect("a whole frame");
        assert_eq!((first, header.len() + payload.len()), (TEXT, frame.len()));
        assert_eq!((payload.len(), received.len()), (length, 0));
        assert!(next_frame(&mut BytesMut::from(&frame[..frame.len() - 1])).is_none());
    }
}
