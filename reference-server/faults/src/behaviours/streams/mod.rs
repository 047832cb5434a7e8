//! Streams: exec, attach, port-forward, and watches and logs over WebSocket.

mod command_input;
mod command_output;
mod command_pods;
mod command_requests;
mod command_sessions;
mod command_status;
mod command_without_streams;
pub(super) mod faults;
mod port_forwards;
mod spdy_frames;
mod spdy_handshakes;
mod stdin_endings;
mod websocket_frames;
mod websocket_handshakes;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
