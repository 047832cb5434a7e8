//! Sessions of commands that disturb each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use kubeproof_streaming::websocket::frame::{Frame, Opcode};
use tokio::sync::broadcast;

use crate::behaviours::Fault;
use crate::exchange::Io;
use crate::middleware::Middleware;
use crate::streams::command::{self, Event, STDIN};
use crate::streams::websocket::{FrameEdit, frames};
use crate::streams::{Flow, Pump, Session, sessions};

/// The most signals that a slow session may have pending.
const SIGNALS: usize = 1024;
/// The code of a normal end. Other codes from the server report a violation by the client.
const NORMAL: u16 = 1000;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ForeignInputMixedIn => foreign_input(),
        Fault::BrokenFrameEndsAll => {
            let all = All::default();
            sessions(move |session, server| {
                if session.is_command() && session.is_websocket() {
                    broken_ends_all(&all, server)
                } else {
                    server
                }
            })
        }
        Fault::AttachEndsOthers => {
            let all = All::default();
            sessions(move |session, server| attach_ends_others(&all, session, server))
        }
        _ => return None,
    })
}

/// The sessions of one server.
#[derive(Clone)]
struct All {
    next: Arc<AtomicU64>,
    /// Carries the number of the session that ends the others.
    signal: broadcast::Sender<u64>,
}

impl Default for All {
    fn default() -> Self {
        Self { next: Arc::default(), signal: broadcast::Sender::new(SIGNALS) }
    }
}

impl All {
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn end_others(&self, number: u64) {
        // Without other sessions there is no receiver.
        let _ = self.signal.send(number);
    }

    /// Completes when another session ends all.
    fn ended_by_another(&self, number: u64) -> BoxFuture<'static, ()> {
        let mut signals = self.signal.subscribe();
        Box::pin(
            async move { while matches!(signals.recv().await, Ok(other) if other == number) {} },
        )
    }
}

fn broken_ends_all(all: &All, server: Box<dyn Io>) -> Box<dyn Io> {
    let number = all.number();
    let stop = all.ended_by_another(number);
    let all = all.clone();
    let edit: FrameEdit = Box::new(move |frame: Frame, out| {
        if frame.opcode == Opcode::Close && frame.close_code() != Some(NORMAL) {
            all.end_others(number);
        }
        out.push(frame);
        Flow::Continue
    });
    Pump { to_client: frames(edit), stop, ..Pump::default() }.start(server)
}

fn attach_ends_others(all: &All, session: &Session, server: Box<dyn Io>) -> Box<dyn Io> {
    if !session.is_command() {
        return server;
    }
    let number = all.number();
    if session.subresource == "attach" {
        all.end_others(number);
    }
    if !session.is_websocket() {
        return server;
    }
    Pump { stop: all.ended_by_another(number), ..Pump::default() }.start(server)
}

/// Puts the last input of another session in front of each input.
fn foreign_input() -> Box<dyn Middleware> {
    let last: Arc<Mutex<Option<(u64, Bytes)>>> = Arc::default();
    let next = AtomicU64::new(0);
    command::input(move |_| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let last = last.clone();
        Some(Box::new(move |event, out| {
            let event = match event {
                Event::Data(STDIN, bytes) => {
                    let own = (number, bytes.clone());
                    let before = last.lock().unwrap_or_else(PoisonError::into_inner).replace(own);
                    let foreign =
                        before.filter(|(other, _)| *other != number).map(|(_, bytes)| bytes);
                    Event::Data(
                        STDIN,
                        foreign.into_iter().chain([bytes]).flatten().collect::<BytesMut>().freeze(),
                    )
                }
                event => event,
            };
            out.push(event);
            Flow::Continue
        }))
    })
}
