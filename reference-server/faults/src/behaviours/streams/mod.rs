//! Streams: exec, attach, port-forward, and watches and logs over WebSocket.

mod command_input;
mod command_output;
mod command_pods;
mod command_requests;
mod command_sessions;
mod command_status;
mod command_without_streams;
mod port_forwards;
mod spdy_frames;
mod spdy_handshakes;
mod stdin_endings;
mod websocket_frames;
mod websocket_handshakes;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [
        command_input::of,
        command_output::of,
        command_pods::of,
        command_requests::of,
        command_sessions::of,
        command_status::of,
        command_without_streams::of,
        port_forwards::of,
        spdy_frames::of,
        spdy_handshakes::of,
        stdin_endings::of,
        websocket_frames::of,
        websocket_handshakes::of,
    ];
    parts.into_iter().find_map(|part| part(fault))
}
