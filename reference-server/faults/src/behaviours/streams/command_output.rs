//! The output of commands: stdout and stderr of exec and attach.

use bytes::Bytes;

use crate::behaviours::Fault;
use crate::middleware::Middleware;
use crate::streams::Flow;
use crate::streams::command::{ERROR, Edit, Event, STDERR, STDOUT, output};

/// The most output of a server with a limit, in bytes.
const LIMIT: usize = 32 * 1024;
/// The most output that is held back until the end of a command, in bytes.
const HELD: usize = 4 * 1024 * 1024;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StdoutAndStderrSwapped => output(|_| {
            Some(each(|event| match event {
                Event::Data(channel @ (STDOUT | STDERR), bytes) => {
                    Event::Data(other(channel), bytes)
                }
                Event::End(channel @ (STDOUT | STDERR)) => Event::End(other(channel)),
                event => event,
            }))
        }),
        Fault::StderrMerged => output(|_| {
            Some(each(|event| match event {
                Event::Data(STDERR, bytes) => Event::Data(STDOUT, bytes),
                event => event,
            }))
        }),
        Fault::LastOutputLost => output(|_| Some(last_lost())),
        Fault::OutputCutAt32K => output(|_| Some(limited())),
        Fault::OutputHalvesSwapped => output(|_| Some(halves_swapped())),
        Fault::StatusBeforeOutput => output(|session| session.is_websocket().then(status_first)),
        Fault::EndWaitsForClient => {
            output(|session| session.query.flag("stdin").then(never_ending))
        }
        Fault::AttachWithoutStderr => {
            output(|session| (session.subresource == "attach").then(without_stderr))
        }
        _ => return None,
    })
}

fn other(channel: u8) -> u8 {
    if channel == STDOUT { STDERR } else { STDOUT }
}

fn each(edit: fn(Event) -> Event) -> Edit {
    Box::new(move |event, out| {
        out.push(edit(event));
        Flow::Continue
    })
}

fn is_output(event: &Event) -> bool {
    matches!(event, Event::Data(STDOUT | STDERR, bytes) if !bytes.is_empty())
}

/// Holds each piece back until the next one is there.
fn last_lost() -> Edit {
    let mut held = None;
    Box::new(move |event, out| {
        if is_output(&event) {
            out.extend(held.replace(event));
        } else {
            out.push(event);
        }
        Flow::Continue
    })
}

fn limited() -> Edit {
    let mut left = [LIMIT; 2];
    Box::new(move |event, out| {
        let event = match event {
            Event::Data(channel @ (STDOUT | STDERR), mut bytes) if !bytes.is_empty() => {
                let left = &mut left[usize::from(channel == STDERR)];
                bytes.truncate(*left);
                *left -= bytes.len();
                if bytes.is_empty() {
                    return Flow::Continue;
                }
                Event::Data(channel, bytes)
            }
            event => event,
        };
        out.push(event);
        Flow::Continue
    })
}

fn halves_swapped() -> Edit {
    Box::new(|event, out| {
        match event {
            Event::Data(channel @ (STDOUT | STDERR), mut first) if !first.is_empty() => {
                let second: Bytes = first.split_off(first.len().div_ceil(2));
                out.extend([Event::Data(channel, second), Event::Data(channel, first)]);
            }
            event => out.push(event),
        }
        Flow::Continue
    })
}

/// Holds the output back until the status has been sent.
fn status_first() -> Edit {
    let (mut held, mut size) = (Vec::new(), 0);
    Box::new(move |event, out| {
        match &event {
            Event::Data(STDOUT | STDERR, bytes)
                if size + bytes.len() <= HELD && !bytes.is_empty() =>
            {
                size += bytes.len();
                held.push(event);
            }
            Event::Data(ERROR, _) => {
                out.push(event);
                out.append(&mut held);
            }
            _ => {
                out.append(&mut held);
                out.push(event);
            }
        }
        Flow::Continue
    })
}

/// Keeps the session open after its command has ended.
fn never_ending() -> Edit {
    Box::new(|event, out| match event {
        Event::Data(ERROR, bytes) if !bytes.is_empty() => Flow::Hold,
        Event::Over => Flow::Hold,
        event => {
            out.push(event);
            Flow::Continue
        }
    })
}

fn without_stderr() -> Edit {
    Box::new(|event, out| {
        if !matches!(&event, Event::Data(STDERR, bytes) if !bytes.is_empty()) {
            out.push(event);
        }
        Flow::Continue
    })
}
