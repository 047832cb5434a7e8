//! SPDY/3.1, the client's side: frames, header blocks, and a session over them.
//!
//! Kubernetes' peers use no flow control: windows are never opened, so none is kept to here either. What comes of it
//! (SETTINGS, `WINDOW_UPDATE`) is recorded and ignored.

mod frame;
mod header_block;
mod session;

pub(super) use session::Session;
