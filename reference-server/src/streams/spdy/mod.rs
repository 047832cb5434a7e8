//! SPDY/3.1, as far as Kubernetes uses it: many streams, opened by the client, over one upgraded connection.
//!
//! Layered as its draft is: [`frame`] cuts and writes frames, [`header_block`] reads what they carry compressed, and
//! [`session`] knows streams.

mod dictionary;
pub(super) mod frame;
pub(super) mod handshake;
pub(super) mod header_block;
pub(super) mod session;
