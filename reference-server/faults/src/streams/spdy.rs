//! Relays that edit SPDY frames, alone or tunnelled through a WebSocket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use kubeproof_streaming::spdy::frame::{Decoder, Frame};
use kubeproof_streaming::spdy::header_block;

use super::{Flow, Framing, Pump, Relay, Session, sessions, websocket};
use crate::middleware::Middleware;

/// The length of the header of a frame.
const HEAD: usize = 8;

/// Edits one frame: appends the bytes to send instead.
pub(crate) type FrameEdit = Box<dyn FnMut(Frame, &Streams, &mut BytesMut) -> Flow + Send>;

/// The streams that the client has opened, with the value of their header `streamtype`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Arc<Mutex<BTreeMap<u32, String>>>);

impl Streams {
    /// The type of a stream; empty for an unknown one.
    pub(crate) fn kind(&self, stream: u32) -> String {
        self.lock().get(&stream).cloned().unwrap_or_default()
    }

    /// The first stream of this type.
    pub(crate) fn first(&self, kind: &str) -> Option<u32> {
        self.lock().iter().find(|(_, known)| *known == kind).map(|(stream, _)| *stream)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Edits the frames that servers send over SPDY. `start` returns the edit of a session, if it has
/// one.
pub(crate) fn to_client(
    start: impl Fn(&Session) -> Option<FrameEdit> + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    sessions(move |session, server| match start(session).filter(|_| session.is_spdy()) {
        Some(edit) => pump(session, unchanged(), edit).start(server),
        None => server,
    })
}

/// Edits the frames that clients send over SPDY.
pub(crate) fn to_server(
    start: impl Fn(&Session) -> Option<FrameEdit> + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    sessions(move |session, server| match start(session).filter(|_| session.is_spdy()) {
        Some(edit) => pump(session, edit, unchanged()).start(server),
        None => server,
    })
}

/// An edit that changes nothing.
pub(crate) fn unchanged() -> FrameEdit {
    Box::new(|frame, _, out| {
        frame.encode(out);
        Flow::Continue
    })
}

/// Returns the pump of a SPDY session with an edit for each direction.
pub(crate) fn pump(session: &Session, to_server: FrameEdit, to_client: FrameEdit) -> Pump {
    let streams = Streams::default();
    let to_server = frames(recorded(to_server), streams.clone());
    let to_client = frames(to_client, streams);
    let wrap =
        |relay| if session.framing == Framing::Tunnel { websocket::tunnel(relay) } else { relay };
    Pump { to_server: wrap(to_server), to_client: wrap(to_client), ..Pump::default() }
}

/// Records the types of the streams that a client opens.
fn recorded(mut edit: FrameEdit) -> FrameEdit {
    let mut blocks = header_block::Decoder::default();
    Box::new(move |frame, streams, out| {
        if let Frame::SynStream { stream, block, .. } = &frame
            && let Ok(headers) = blocks.decode(block)
        {
            let kind = headers.get("streamtype").unwrap_or_default().to_ascii_lowercase();
            streams.lock().insert(*stream, kind);
        }
        edit(frame, streams, out)
    })
}

/// Returns a relay that edits whole frames. Bytes that are no frames pass unchanged.
fn frames(mut edit: FrameEdit, streams: Streams) -> Relay {
    let mut decoder = Decoder::default();
    let mut broken = false;
    Box::new(move |input, output| {
        while !broken {
            let Some(mut whole) = take_frame(input) else { return Flow::Continue };
            let raw = whole.clone();
            if let Ok(Some(frame)) = decoder.decode(&mut whole) {
                let flow = edit(frame, &streams, output);
                if flow != Flow::Continue {
                    return flow;
                }
            } else {
                broken = true;
                output.unsplit(raw);
            }
        }
        output.unsplit(input.split());
        Flow::Continue
    })
}

/// Takes a whole frame, since the decoder returns data frames in pieces.
fn take_frame(input: &mut BytesMut) -> Option<BytesMut> {
    let (head, _) = input.split_at_checked(HEAD)?;
    let length = head[5..].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    (input.len() >= HEAD + length).then(|| input.split_to(HEAD + length))
}
