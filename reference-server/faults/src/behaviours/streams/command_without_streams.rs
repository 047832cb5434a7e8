//! Commands without stdin, stdout and stderr.
//!
//! The server needs one stream at least. The middleware asks for stdout and drops it.

use bytes::Bytes;
use kubeproof_streaming::spdy::frame::Frame;
use kubeproof_streaming::spdy::header_block::{Decoder, Encoder, Headers};

use super::command_requests::has_streams;
use crate::behaviours::Fault;
use crate::middleware::{Middleware, around};
use crate::streams::command::{self, ERROR, Edit, Event, STDOUT};
use crate::streams::spdy::{self, FrameEdit};
use crate::streams::{Flow, is_command, wrap_session};

/// The SPDY stream of the stdout that is dropped. The ids of the client move up by two.
const ADDED: u32 = 1;
const SHIFT: u32 = 2;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    (fault == Fault::NoStreamsAccepted).then(|| {
        around(|mut request, next| {
            Box::pin(async move {
                if !is_command(&request) || has_streams(&request.query()) {
                    return next.send(request).await;
                }
                request.edit_query(|query| query.set("stdout", "true"));
                let mut response = next.send(request.clone()).await;
                wrap_session(&request, &mut response, &|session, server| {
                    let pump = if session.is_spdy() {
                        spdy::pump(session, with_stdout(), without_stdout())
                    } else {
                        command::pump(session, command::unchanged(), silent())
                    };
                    pump.start(server)
                });
                response
            })
        })
    })
}

/// Drops stdout. The first message of a session, which is empty, moves to the error channel.
fn silent() -> Edit {
    Box::new(|event, out| {
        match event {
            Event::Data(STDOUT, bytes) if bytes.is_empty() => out.push(Event::Data(ERROR, bytes)),
            Event::Data(STDOUT, _) | Event::End(STDOUT) => {}
            event => out.push(event),
        }
        Flow::Continue
    })
}

/// Opens a stream for stdout in front of those of the client.
fn with_stdout() -> FrameEdit {
    let (mut decoder, mut encoder) = (Decoder::default(), Encoder::default());
    let mut added = false;
    Box::new(move |mut frame, _, out| {
        if let Frame::SynStream { associated, .. } = &frame
            && !std::mem::replace(&mut added, true)
        {
            let headers: Headers = [("streamtype", "stdout")].into_iter().collect();
            let block = encoder.encode(&headers).freeze();
            Frame::SynStream { stream: ADDED, fin: true, associated: *associated, block }
                .encode(out);
        }
        encode_again(&mut frame, &mut decoder, &mut encoder);
        if let Some(stream) = stream_mut(&mut frame) {
            *stream += SHIFT;
        }
        frame.encode(out);
        Flow::Continue
    })
}

/// Drops the frames of the stream that the middleware added.
fn without_stdout() -> FrameEdit {
    let (mut decoder, mut encoder) = (Decoder::default(), Encoder::default());
    Box::new(move |mut frame, _, out| {
        let last = matches!(frame, Frame::GoAway { .. });
        if let Some(stream) = stream_mut(&mut frame) {
            let is_added = *stream == ADDED && !last;
            *stream = stream.saturating_sub(SHIFT);
            if is_added {
                // The decoder needs every block.
                if let Some(block) = block_mut(&mut frame) {
                    let _ = decoder.decode(block);
                }
                return Flow::Continue;
            }
        }
        encode_again(&mut frame, &mut decoder, &mut encoder);
        frame.encode(out);
        Flow::Continue
    })
}

/// Compresses the headers of a frame again, since all blocks of a direction are one stream.
fn encode_again(frame: &mut Frame, decoder: &mut Decoder, encoder: &mut Encoder) {
    if let Some(block) = block_mut(frame)
        && let Ok(headers) = decoder.decode(block)
    {
        *block = encoder.encode(&headers).freeze();
    }
}

fn block_mut(frame: &mut Frame) -> Option<&mut Bytes> {
    match frame {
        Frame::SynStream { block, .. }
        | Frame::SynReply { block, .. }
        | Frame::Headers { block, .. } => Some(block),
        _ => None,
    }
}

fn stream_mut(frame: &mut Frame) -> Option<&mut u32> {
    match frame {
        Frame::SynStream { stream, .. }
        | Frame::SynReply { stream, .. }
        | Frame::Data { stream, .. }
        | Frame::RstStream { stream, .. }
        | Frame::Headers { stream, .. }
        | Frame::GoAway { last: stream, .. } => Some(stream),
        Frame::Ping(_) | Frame::Other { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use kubeproof_streaming::spdy::frame;

    use super::*;
    use crate::streams::spdy::Streams;

    fn pass(edit: &mut FrameEdit, frame: Frame) -> Vec<Frame> {
        let mut wire = BytesMut::new();
        edit(frame, &Streams::default(), &mut wire);
        let mut decoder = frame::Decoder::default();
        std::iter::from_fn(|| decoder.decode(&mut wire).expect("the frames are valid")).collect()
    }

    #[test]
    fn the_added_stream_is_hidden_from_the_client() {
        let block = |kind| {
            Encoder::default().encode(&[("streamtype", kind)].into_iter().collect()).freeze()
        };
        let opened =
            Frame::SynStream { stream: 1, fin: false, associated: [0; 6], block: block("error") };
        let sent = pass(&mut with_stdout(), opened);
        let ids: Vec<_> =
            sent.into_iter().filter_map(|mut frame| stream_mut(&mut frame).copied()).collect();
        assert_eq!(ids, [1, 3]);

        let mut back = without_stdout();
        assert_eq!(
            pass(&mut back, Frame::SynReply { stream: 1, fin: false, block: block("stdout") }),
            []
        );
        let data = |stream| Frame::Data { stream, fin: false, bytes: Bytes::from("{}") };
        assert_eq!(pass(&mut back, data(3)), [data(1)]);
    }
}
