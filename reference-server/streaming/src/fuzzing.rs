//! Entry points for the fuzz targets. Each function panics when an invariant breaks.

use bytes::{Bytes, BytesMut};

use crate::spdy::frame::{Decoder, Frame};
use crate::spdy::header_block::{self, BlockError};
use crate::websocket::channel::Coding;
use crate::websocket::frame;
use crate::websocket::socket::{Socket, bytes_of};

/// Checks that SPDY frames do not depend on how their bytes are split.
pub fn spdy(bytes: &[u8]) {
    let whole = describe([bytes]);
    let size = bytes.first().map_or(1, |first| usize::from(*first).max(1));
    assert_eq!(describe(bytes.chunks(size)), whole);
}

/// Checks that WebSocket frames, messages and channels survive decoding and encoding.
pub fn websocket(bytes: &[u8]) {
    let (mut decoder, mut buffer) = (frame::Decoder::default(), BytesMut::from(bytes));
    while let Ok(Some(frame)) = decoder.decode(&mut buffer) {
        let mut wire = BytesMut::new();
        frame.encode(&mut wire);
        assert_eq!(frame::Decoder::default().decode(&mut wire), Ok(Some(frame)));
        assert!(wire.is_empty());
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(messages(Bytes::copy_from_slice(bytes)));
}

/// Describes the SPDY frames in the pieces of a connection. Pieces of one data frame are joined.
fn describe<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<String> {
    let (mut decoder, mut blocks) = (Decoder::default(), header_block::Decoder::default());
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
            match describe_frame(frame, &mut blocks, &mut data) {
                Ok(word) => words.extend(word),
                Err(error) => {
                    words.push(error.to_string());
                    return words;
                }
            }
        }
        assert!(buffer.len() < 8 + 64 * 1024, "an incomplete control frame is bounded");
    }
    words
}

fn describe_frame(
    frame: Frame,
    blocks: &mut header_block::Decoder,
    data: &mut BytesMut,
) -> Result<Option<String>, BlockError> {
    Ok(match frame {
        Frame::Data { stream, fin, bytes } => {
            data.extend_from_slice(&bytes);
            fin.then(|| format!("data on {stream}: {:?}", data.split()))
        }
        Frame::SynStream { block, .. }
        | Frame::SynReply { block, .. }
        | Frame::Headers { block, .. } => Some(format!("{:?}", blocks.decode(&block)?)),
        other => Some(format!("{other:?}")),
    })
}

async fn messages(bytes: Bytes) {
    let connection = tokio::io::join(std::io::Cursor::new(bytes), tokio::io::sink());
    let (mut incoming, _outgoing) = Socket::new(connection).await.split();
    while let Ok(message) = incoming.next().await {
        for coding in [Coding::Binary, Coding::Base64] {
            if let Ok(Some((channel, content))) = coding.decode(bytes_of(message.clone())) {
                let again = coding.decode(coding.encode(channel, &content));
                // Base64 has one digit for the channel.
                if coding == Coding::Binary || channel < 10 {
                    assert_eq!(again, Ok(Some((channel, content))), "{coding:?}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// SPDY frames, most of them with a valid header.
    fn spdy_frames() -> impl Strategy<Value = Vec<u8>> {
        let control =
            (0..12_u8, any::<u8>(), vec(any::<u8>(), 0..20)).prop_map(|(kind, flags, body)| {
                let length = u8::try_from(body.len()).unwrap_or_default();
                [vec![0x80, 3, 0, kind, flags, 0, 0, length], body].concat()
            });
        let data = (0..4_u8, 0..2_u8, vec(any::<u8>(), 0..20)).prop_map(|(stream, flags, body)| {
            let length = u8::try_from(body.len()).unwrap_or_default();
            [vec![0, 0, 0, stream, flags, 0, 0, length], body].concat()
        });
        vec(prop_oneof![4 => control, 4 => data, 1 => vec(any::<u8>(), 0..10)], 0..10)
            .prop_map(|frames| frames.concat())
    }

    /// WebSocket frames of a client, most of them with a valid header.
    fn websocket_frames() -> impl Strategy<Value = Vec<u8>> {
        let frame = (
            select(vec![0x80_u8, 0x81, 0x82, 0x01, 0x02, 0x00, 0x88, 0x89, 0x8a, 0xc2]),
            vec(any::<u8>(), 0..126),
        );
        let frame = frame.prop_map(|(head, body)| {
            let length = u8::try_from(body.len()).unwrap_or_default();
            [vec![head, 0x80 | length, 0, 0, 0, 0], body].concat()
        });
        vec(prop_oneof![8 => frame, 1 => vec(any::<u8>(), 0..10)], 0..10)
            .prop_map(|frames| frames.concat())
    }

    proptest! {
        #[test]
        fn any_spdy_frames(bytes in spdy_frames()) {
            spdy(&bytes);
        }

        #[test]
        fn any_websocket_frames(bytes in websocket_frames()) {
            websocket(&bytes);
        }
    }
}
