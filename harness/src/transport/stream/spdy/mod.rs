//! The client's side of SPDY/3.1: frames, header blocks and sessions.
//!
//! Peers in Kubernetes use no flow control, so SETTINGS and `WINDOW_UPDATE` are recorded and
//! ignored.

mod frame;
mod header_block;
mod session;

pub(super) use session::Session;
