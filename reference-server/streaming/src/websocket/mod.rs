//! WebSocket (RFC 6455) as Kubernetes uses it.
//!
//! [`handshake`] follows the rules of Kubernetes for subprotocols. [`frame`] parses and writes
//! single frames of both directions. [`channel`] encodes the channel numbers in messages. Sessions
//! of this crate read and write messages with tungstenite.

pub mod channel;
pub mod frame;
pub mod handshake;
mod one_way;
pub(crate) mod socket;

pub use handshake::bearer_token;
pub use one_way::{Chunks, serve_binary_watch, serve_log, serve_watch};
