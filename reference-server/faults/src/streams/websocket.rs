//! Relays that edit WebSocket frames, messages and channels.

use bytes::{Bytes, BytesMut};
use kubeproof_streaming::websocket::channel::Coding;
use kubeproof_streaming::websocket::frame::{Decoder, Defragmenter, Frame, Opcode};

use super::{Flow, Framing, Pump, Relay, Session, sessions};
use crate::middleware::Middleware;

/// Edits one frame: appends the frames to send instead.
pub(crate) type FrameEdit = Box<dyn FnMut(Frame, &mut Vec<Frame>) -> Flow + Send>;

/// Edits the frames that servers send over WebSocket. `start` returns the edit of a session, if it
/// has one.
pub(crate) fn to_client(
    start: impl Fn(&Session) -> Option<FrameEdit> + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    sessions(move |session, server| match start(session).filter(|_| session.is_websocket()) {
        Some(edit) => Pump { to_client: frames(edit), ..Pump::default() }.start(server),
        None => server,
    })
}

/// Edits the frames that clients send over WebSocket.
pub(crate) fn to_server(
    start: impl Fn(&Session) -> Option<FrameEdit> + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    sessions(move |session, server| match start(session).filter(|_| session.is_websocket()) {
        Some(edit) => Pump { to_server: frames(edit), ..Pump::default() }.start(server),
        None => server,
    })
}

/// Edits the messages of channels that servers send. The edit gets the channel and the content.
pub(crate) fn channels_to_client<E>(
    start: impl Fn(&Session) -> Option<E> + Send + Sync + 'static,
) -> Box<dyn Middleware>
where
    E: FnMut(u8, Bytes, &mut Vec<(u8, Bytes)>) -> Flow + Send + 'static,
{
    to_client(move |session| {
        let Framing::Channels(coding) = session.framing else { return None };
        Some(channels(coding, start(session)?))
    })
}

/// Returns an edit of frames that edits the messages of channels.
pub(crate) fn channels(
    coding: Coding,
    mut edit: impl FnMut(u8, Bytes, &mut Vec<(u8, Bytes)>) -> Flow + Send + 'static,
) -> FrameEdit {
    Box::new(move |frame, out| {
        let Some((channel, content)) = decode(coding, &frame) else {
            out.push(frame);
            return Flow::Continue;
        };
        let mut messages = Vec::new();
        let flow = edit(channel, content, &mut messages);
        out.extend(
            messages.into_iter().map(|(channel, content)| message(coding, channel, &content)),
        );
        flow
    })
}

/// Returns a relay that edits frames. Bytes that are no frames pass unchanged.
pub(crate) fn frames(mut edit: FrameEdit) -> Relay {
    let mut decoder = Decoder::default();
    let mut broken = false;
    Box::new(move |input, output| {
        loop {
            if broken {
                output.unsplit(input.split());
                return Flow::Continue;
            }
            match decoder.decode(input) {
                Ok(Some(frame)) => {
                    let mut out = Vec::new();
                    let flow = edit(frame, &mut out);
                    for frame in out {
                        frame.encode(output);
                    }
                    if flow != Flow::Continue {
                        return flow;
                    }
                }
                Ok(None) => return Flow::Continue,
                Err(_) => broken = true,
            }
        }
    })
}

/// Returns a relay that edits whole messages and control frames. Fragments that form no message
/// pass unchanged.
pub(crate) fn messages(mut edit: FrameEdit) -> Relay {
    let mut fragments = Defragmenter::default();
    let mut held = Vec::new();
    frames(Box::new(move |frame, out| {
        if frame.reserved != 0 || matches!(frame.opcode, Opcode::Reserved(_)) {
            out.push(frame);
            return Flow::Continue;
        }
        let raw = frame.clone();
        match fragments.push(frame) {
            Ok(Some(message)) => {
                if !message.opcode.is_control() {
                    held.clear();
                }
                edit(message, out)
            }
            Ok(None) => {
                held.push(raw);
                Flow::Continue
            }
            Err(_) => {
                out.append(&mut held);
                out.push(raw);
                Flow::Continue
            }
        }
    }))
}

/// Returns a relay for a byte stream in binary messages. Boundaries of messages have no meaning.
pub(crate) fn tunnel(mut relay: Relay) -> Relay {
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    frames(Box::new(move |frame, out| {
        if frame.opcode.is_control() {
            out.push(frame);
            return Flow::Continue;
        }
        input.extend_from_slice(&frame.payload);
        let flow = relay(&mut input, &mut output);
        if !output.is_empty() {
            out.push(Frame { mask: frame.mask, ..Frame::binary(output.split().freeze()) });
        }
        flow
    }))
}

/// The channel and the content of a data frame; none for others and for empty ones.
pub(crate) fn decode(coding: Coding, frame: &Frame) -> Option<(u8, Bytes)> {
    if !matches!(frame.opcode, Opcode::Binary | Opcode::Text) {
        return None;
    }
    coding.decode(frame.payload.clone()).ok()?
}

/// A message of a channel, without a mask.
pub(crate) fn message(coding: Coding, channel: u8, content: &[u8]) -> Frame {
    let opcode = match coding {
        Coding::Binary => Opcode::Binary,
        Coding::Base64 => Opcode::Text,
    };
    Frame::new(opcode, coding.encode(channel, content))
}
