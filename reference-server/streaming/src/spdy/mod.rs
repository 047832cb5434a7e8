//! SPDY/3.1 as Kubernetes uses it: many streams of the client over one upgraded connection.
//!
//! [`frame`] parses and writes frames of both directions. [`header_block`] compresses and
//! decompresses headers. [`handshake`] negotiates the protocol. Sessions of this crate use an
//! internal connection type on top of them.
//!
//! The known peers (spdystream in kubectl, and later implementations) have no flow control. They
//! never send `WINDOW_UPDATE` or `SETTINGS`, and a sender with windows would wait forever. This
//! crate ignores both frames and relies on the flow control of TCP.

pub(crate) mod connection;
mod dictionary;
pub mod frame;
pub mod handshake;
pub mod header_block;
