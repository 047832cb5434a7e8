//! The streams of exec and attach as events that do not depend on the framing.

use bytes::{Bytes, BytesMut};
use kubeproof_streaming::spdy;
use kubeproof_streaming::websocket::channel::Coding;
use kubeproof_streaming::websocket::frame::{Frame, Opcode};

use super::spdy::{FrameEdit, Streams};
use super::{Flow, Framing, Pump, Relay, Session, sessions, websocket};
use crate::middleware::Middleware;

pub(crate) const STDIN: u8 = 0;
pub(crate) const STDOUT: u8 = 1;
pub(crate) const STDERR: u8 = 2;
pub(crate) const ERROR: u8 = 3;
pub(crate) const RESIZE: u8 = 4;
/// The channel over WebSocket whose content is a channel to close.
pub(crate) const CLOSE: u8 = 255;

/// The values of the header `streamtype`, in the order of the channels.
const KINDS: [&str; 5] = ["stdin", "stdout", "stderr", "error", "resize"];

/// An event of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Content of a channel.
    Data(u8, Bytes),
    /// The sender closes a channel.
    End(u8),
    /// The frame with which the sender ends the session.
    Over,
    /// A close frame of WebSocket with this code. Edits send it; SPDY has no such frame.
    Close(u16),
}

/// Edits one event: appends the events to send instead.
pub(crate) type Edit = Box<dyn FnMut(Event, &mut Vec<Event>) -> Flow + Send>;

/// Edits the output of commands. `start` returns the edit of a session, if it has one.
pub(crate) fn output(
    start: impl Fn(&Session) -> Option<Edit> + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    sessions(move |session, server| match start(session).filter(|_| session.is_command()) {
        Some(edit) => pump(session, unchanged(), edit).start(server),
        None => server,
    })
}

/// Edits the input of commands.
pub(crate) fn input(
    start: impl Fn(&Session) -> Option<Edit> + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    sessions(move |session, server| match start(session).filter(|_| session.is_command()) {
        Some(edit) => pump(session, edit, unchanged()).start(server),
        None => server,
    })
}

/// An edit that changes nothing.
pub(crate) fn unchanged() -> Edit {
    Box::new(|event, out| {
        out.push(event);
        Flow::Continue
    })
}

/// Returns the pump of a session of exec or attach, with an edit for each direction.
pub(crate) fn pump(session: &Session, to_server: Edit, to_client: Edit) -> Pump {
    match session.framing {
        Framing::Channels(coding) => {
            let dialect = Dialect { coding, closes: session.version >= 5 };
            Pump {
                to_server: channels(dialect, dialect, to_server),
                to_client: channels(dialect, dialect, to_client),
                ..Pump::default()
            }
        }
        Framing::Spdy | Framing::Tunnel => {
            super::spdy::pump(session, spdy(to_server), spdy(to_client))
        }
        Framing::Log(_) | Framing::Watch => Pump::default(),
    }
}

/// The encoding of channels over WebSocket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) coding: Coding,
    /// Returns whether channel 255 closes channels, as in v5.
    pub(crate) closes: bool,
}

/// Returns a relay that reads one dialect, edits events and writes another dialect.
pub(crate) fn channels(from: Dialect, to: Dialect, mut edit: Edit) -> Relay {
    websocket::messages(Box::new(move |frame, out| {
        let event = match (frame.opcode, websocket::decode(from.coding, &frame)) {
            (Opcode::Close, _) => Event::Over,
            (_, Some((CLOSE, content))) if from.closes && content.as_ref() == [STDIN] => {
                Event::End(STDIN)
            }
            (_, Some((channel, content))) => Event::Data(channel, content),
            (_, None) => {
                out.push(frame);
                return Flow::Continue;
            }
        };
        let mut events = Vec::new();
        let flow = edit(event, &mut events);
        for event in events {
            let message = match event {
                Event::Data(channel, content) => websocket::message(to.coding, channel, &content),
                Event::End(channel) if to.closes => {
                    websocket::message(to.coding, CLOSE, &[channel])
                }
                Event::End(_) => continue,
                Event::Over => frame.clone(),
                Event::Close(code) => Frame::close(code, ""),
            };
            out.push(Frame { mask: frame.mask, ..message });
        }
        flow
    }))
}

/// Edits the events of SPDY frames. The end of a session is the reset of its error stream.
fn spdy(mut edit: Edit) -> FrameEdit {
    let mut over = false;
    Box::new(move |frame, streams, out| {
        let mut events = Vec::new();
        let mut flow = Flow::Continue;
        match &frame {
            spdy::frame::Frame::Data { stream, fin, bytes } => {
                let kind = streams.kind(*stream);
                let channel = KINDS.iter().position(|known| *known == kind);
                let Some(channel) = channel.and_then(|channel| u8::try_from(channel).ok()) else {
                    frame.encode(out);
                    return Flow::Continue;
                };
                if !bytes.is_empty() || !fin {
                    flow = edit(Event::Data(channel, bytes.clone()), &mut events);
                }
                if *fin && flow == Flow::Continue {
                    flow = edit(Event::End(channel), &mut events);
                }
            }
            spdy::frame::Frame::RstStream { stream, .. }
                if !over && streams.kind(*stream) == "error" =>
            {
                over = true;
                flow = edit(Event::Over, &mut events);
            }
            spdy::frame::Frame::GoAway { .. } if !over => {
                over = true;
                flow = edit(Event::Over, &mut events);
            }
            _ => events.push(Event::Over),
        }
        for event in events {
            encode(event, &frame, streams, out);
        }
        flow
    })
}

fn encode(event: Event, frame: &spdy::frame::Frame, streams: &Streams, out: &mut BytesMut) {
    let (channel, bytes, fin) = match event {
        Event::Over => return frame.encode(out),
        Event::Close(_) => return,
        Event::Data(channel, bytes) => (channel, bytes, false),
        Event::End(channel) => (channel, Bytes::new(), true),
    };
    let kind = KINDS.get(usize::from(channel)).copied().unwrap_or_default();
    if let Some(stream) = streams.first(kind) {
        spdy::frame::Frame::Data { stream, fin, bytes }.encode(out);
    }
}
