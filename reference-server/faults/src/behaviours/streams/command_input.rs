//! The input of commands: stdin and terminal sizes of exec and attach.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::BytesMut;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::exchange::Io;
use crate::middleware::Middleware;
use crate::streams::command::{self, CLOSE, Edit, Event, RESIZE, STDIN, input, pump};
use crate::streams::{Flow, Pump, Session, sessions, unchanged};

/// The bytes of a message for stdin that a server with short buffers reads.
const SHORT_MESSAGE: usize = 4096;
/// The longest message for stdin that a server without large buffers accepts, in bytes.
const LONG_MESSAGE: usize = 64 * 1024;
/// The input that waits for a command before more is dropped, in bytes.
const WAITING: usize = 64 * 1024;
/// A buffer that no client fills.
const UNLIMITED: usize = 1 << 30;
/// The longest incomplete terminal size that is kept, in bytes.
const LONGEST_SIZE: usize = 4096;

/// The codes of close frames.
const NORMAL: u16 = 1000;
const TOO_BIG: u16 = 1009;

/// The middleware of a fault of this file.
#[expect(clippy::too_many_lines, reason = "a flat table of faults")]
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StdinCloseIgnored => input(|session| {
            session
                .is_websocket()
                .then(|| edited(|event| (event != Event::End(STDIN)).then_some(event)))
        }),
        Fault::StdinFramesCut => input(|_| {
            Some(edited(|event| match event {
                Event::Data(STDIN, mut bytes) => {
                    bytes.truncate(SHORT_MESSAGE);
                    Some(Event::Data(STDIN, bytes))
                }
                event => Some(event),
            }))
        }),
        Fault::UnknownChannelsAreStdin => input(|session| {
            let closes = session.version >= 5;
            Some(Box::new(move |event, out| {
                out.push(match event {
                    Event::Data(channel, bytes) if is_unknown(channel, closes) => {
                        Event::Data(STDIN, bytes)
                    }
                    event => event,
                });
                Flow::Continue
            }))
        }),
        Fault::UnknownChannelEndsSession => input(|session| {
            let closes = session.version >= 5;
            Some(ends_at(NORMAL, move |event| match event {
                Event::Data(channel, _) => is_unknown(*channel, closes),
                _ => false,
            }))
        }),
        Fault::LongMessagesEndSession => input(|session| {
            session.is_websocket().then(|| {
                ends_at(TOO_BIG, |event| match event {
                    Event::Data(STDIN, bytes) => bytes.len() > LONG_MESSAGE,
                    _ => false,
                })
            })
        }),
        Fault::HalfCloseEndsSession => input(|_| {
            Some(Box::new(|event, out| {
                if event == Event::End(STDIN) {
                    return Flow::Stop;
                }
                out.push(event);
                Flow::Continue
            }))
        }),
        Fault::ResizeIgnored => input(|_| {
            Some(edited(
                |event| if matches!(event, Event::Data(RESIZE, _)) { None } else { Some(event) },
            ))
        }),
        Fault::ResizeSwapsSides => input(|_| Some(sides_swapped())),
        Fault::StdinDroppedWhenFull => {
            sessions(
                |session, server| {
                    if session.is_command() { lossy(session, server) } else { server }
                },
            )
        }
        _ => return None,
    })
}

/// Returns true for channels of a client that have no meaning for the server.
fn is_unknown(channel: u8, closes: bool) -> bool {
    channel != STDIN && channel != RESIZE && !(closes && channel == CLOSE)
}

/// Edits or drops each event.
fn edited(edit: fn(Event) -> Option<Event>) -> Edit {
    Box::new(move |event, out| {
        out.extend(edit(event));
        Flow::Continue
    })
}

/// Closes the WebSocket at some events.
fn ends_at(code: u16, ends: impl Fn(&Event) -> bool + Send + 'static) -> Edit {
    Box::new(move |event, out| {
        if ends(&event) {
            out.push(Event::Close(code));
            return Flow::Discard;
        }
        out.push(event);
        Flow::Continue
    })
}

/// Swaps width and height of terminal sizes, which come in pieces of any length.
fn sides_swapped() -> Edit {
    let mut pending = BytesMut::new();
    Box::new(move |event, out| {
        let Event::Data(RESIZE, bytes) = event else {
            out.push(event);
            return Flow::Continue;
        };
        pending.extend_from_slice(&bytes);
        let mut sizes = serde_json::Deserializer::from_slice(&pending).into_iter::<Value>();
        let mut read = 0;
        while let Some(Ok(size)) = sizes.next() {
            read = sizes.byte_offset();
            out.push(Event::Data(RESIZE, swapped(&size).into()));
        }
        let rest = pending.split_off(read);
        pending = if rest.len() > LONGEST_SIZE { BytesMut::new() } else { rest };
        Flow::Continue
    })
}

/// A size with its sides swapped. Names are case-insensitive.
fn swapped(size: &Value) -> String {
    let field = |name: &str| {
        let mut fields = size.as_object()?.iter();
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    };
    json!({ "Width": field("Height"), "Height": field("Width") }).to_string()
}

/// Drops input for stdin while the server does not read.
fn lossy(session: &Session, server: Box<dyn Io>) -> Box<dyn Io> {
    let waiting = Arc::new(AtomicUsize::new(0));
    let read = waiting.clone();
    let mut pass = unchanged();
    let to_server = Box::new(move |input: &mut BytesMut, output: &mut BytesMut| {
        read.fetch_sub(input.len(), Ordering::SeqCst);
        pass(input, output)
    });
    let unblocked = Pump { to_server, capacity: UNLIMITED, ..Pump::default() }.start(server);
    let dropped: Edit = Box::new({
        let waiting = waiting.clone();
        move |event, out| {
            let is_input = matches!(&event, Event::Data(STDIN, bytes) if !bytes.is_empty());
            if !is_input || waiting.load(Ordering::SeqCst) <= WAITING {
                out.push(event);
            }
            Flow::Continue
        }
    });
    let mut pump = pump(session, dropped, command::unchanged());
    let mut relay = pump.to_server;
    pump.to_server = Box::new(move |input, output| {
        let before = output.len();
        let flow = relay(input, output);
        waiting.fetch_add(output.len() - before, Ordering::SeqCst);
        flow
    });
    pump.start(unblocked)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn sizes_are_swapped_across_the_borders_of_pieces() {
        let mut edit = sides_swapped();
        let mut out = Vec::new();
        for piece in [&br#"{"Width":80,"#[..], br#""Height":24}{"width":1}"#] {
            edit(Event::Data(RESIZE, Bytes::from_static(piece)), &mut out);
        }
        let expected = [r#"{"Height":80,"Width":24}"#, r#"{"Height":1,"Width":null}"#];
        assert_eq!(out, expected.map(|size| Event::Data(RESIZE, size.into())));
    }
}
