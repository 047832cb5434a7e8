//! SPDY frames and header blocks, for commands and port-forwards.

use std::collections::BTreeMap;

use bytes::{BufMut as _, Bytes, BytesMut};
use kubeproof_streaming::spdy::frame::Frame;
use kubeproof_streaming::spdy::header_block::{Decoder, Encoder};

use crate::behaviours::Fault;
use crate::middleware::Middleware;
use crate::streams::Flow;
use crate::streams::spdy::{FrameEdit, to_client, to_server};

/// The bytes that a SPDY peer may send on a stream before the first window update.
const WINDOW: usize = 64 * 1024;
/// The start of the first header block: the flag of a dictionary and its identifier.
const DICTIONARY_HEAD: usize = 6;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::SpdyReplyMissing => written(|frame| match frame {
            Frame::SynReply { .. } => None,
            frame => Some(frame),
        }),
        Fault::SpdyPingIgnored => written(|frame| match frame {
            Frame::Ping(_) => None,
            frame => Some(frame),
        }),
        Fault::SpdyPingRenumbered => written(|frame| match frame {
            Frame::Ping(id) => Some(Frame::Ping(id.wrapping_add(1))),
            frame => Some(frame),
        }),
        Fault::SpdyFinMissing => written(without_fin),
        Fault::SpdyHalfCloseIgnored => to_server(|_| Some(frame_by_frame(without_fin))),
        Fault::SpdyFrameBorderLosesByte => written(|frame| match frame {
            Frame::Data { stream, fin, bytes } if bytes.len() > 1 => {
                Some(Frame::Data { stream, fin, bytes: bytes.slice(..bytes.len() - 1) })
            }
            frame => Some(frame),
        }),
        Fault::SpdyDataOnEvenStreams => written(|frame| match frame {
            Frame::Data { stream, fin, bytes } => {
                Some(Frame::Data { stream: stream + 1, fin, bytes })
            }
            frame => Some(frame),
        }),
        Fault::SpdyFramesOfVersion2 => to_client(|_| {
            Some(Box::new(|frame, _, out| {
                let mut bytes = frame.to_bytes();
                if !matches!(frame, Frame::Data { .. })
                    && let Some(version) = bytes.get_mut(1)
                {
                    *version = 2;
                }
                out.put(bytes);
                Flow::Continue
            }))
        }),
        Fault::SpdyDictionaryMissing => {
            to_client(|_| {
                let mut first = true;
                Some(blocks(move |block| {
                    if std::mem::take(&mut first) { without_dictionary(block) } else { block }
                }))
            })
        }
        Fault::SpdyBlocksCompressedApart => to_client(|_| {
            let mut decoder = Decoder::default();
            Some(blocks(move |block| match decoder.decode(&block) {
                Ok(headers) => Encoder::default().encode(&headers).freeze(),
                Err(_) => block,
            }))
        }),
        Fault::SpdyWindowsHeeded => to_client(|_| Some(windows())),
        _ => return None,
    })
}

/// Edits or drops each frame that servers write.
fn written(edit: fn(Frame) -> Option<Frame>) -> Box<dyn Middleware> {
    to_client(move |_| Some(frame_by_frame(edit)))
}

fn frame_by_frame(edit: fn(Frame) -> Option<Frame>) -> FrameEdit {
    Box::new(move |frame, _, out| {
        if let Some(frame) = edit(frame) {
            frame.encode(out);
        }
        Flow::Continue
    })
}

/// A data frame without its FIN; none if nothing else is in it.
fn without_fin(frame: Frame) -> Option<Frame> {
    match frame {
        Frame::Data { fin: true, bytes, .. } if bytes.is_empty() => None,
        Frame::Data { stream, bytes, .. } => Some(Frame::Data { stream, fin: false, bytes }),
        frame => Some(frame),
    }
}

/// Edits the header blocks that servers write.
fn blocks(mut edit: impl FnMut(Bytes) -> Bytes + Send + 'static) -> FrameEdit {
    Box::new(move |frame, _, out| {
        let frame = match frame {
            Frame::SynReply { stream, fin, block } => {
                Frame::SynReply { stream, fin, block: edit(block) }
            }
            Frame::Headers { stream, fin, block } => {
                Frame::Headers { stream, fin, block: edit(block) }
            }
            frame => frame,
        };
        frame.encode(out);
        Flow::Continue
    })
}

/// The first header block with the head of a zlib stream that has no dictionary.
fn without_dictionary(block: Bytes) -> Bytes {
    let Some(rest) = block.get(DICTIONARY_HEAD..) else { return block };
    let mut plain = BytesMut::from(&[0x78, 0x9c][..]);
    plain.put_slice(rest);
    plain.freeze()
}

/// Drops the data of a stream beyond its first window.
fn windows() -> FrameEdit {
    let mut sent: BTreeMap<u32, usize> = BTreeMap::new();
    Box::new(move |frame, _, out| {
        match &frame {
            Frame::Data { stream, bytes, .. } => {
                let sent = sent.entry(*stream).or_default();
                *sent += bytes.len();
                if *sent > WINDOW {
                    return Flow::Continue;
                }
            }
            Frame::RstStream { stream, .. } => {
                sent.remove(stream);
            }
            _ => {}
        }
        frame.encode(out);
        Flow::Continue
    })
}
