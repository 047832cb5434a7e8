//! The streaming protocols of Kubernetes for servers: exec, attach, port-forward, logs, watches.
//!
//! A client upgrades an HTTP connection to WebSocket or to SPDY/3.1. The server responds to the
//! handshake, and then carries several streams over that one connection.
//!
//! | | WebSocket | SPDY |
//! | --- | --- | --- |
//! | exec, attach | a channel per stream | a SPDY stream per stream |
//! | port-forward | two channels per port, or tunnelled SPDY | two SPDY streams per connection |
//! | log, watch | messages | |
//!
//! [`remotecommand`] serves exec and attach, and [`portforward`] serves ports.
//! [`websocket::serve_log`] and [`websocket::serve_watch`] serve streams in one direction.
//!
//! The crate has no notion of pods. Callers pass the request to upgrade, and a function that starts
//! the command or connects to the port. They receive a [`Handshake`], which holds the HTTP response
//! to send and a future that serves the upgraded connection.
//!
//! Buffers are bounded. A slow reader slows the writer down, in both directions.
//!
//! # Serve a command
//!
//! ```no_run
//! use bytes::Bytes;
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use hyper::body::Incoming;
//! use kubeproof_streaming::Upgrade;
//! use kubeproof_streaming::remotecommand::{self, ExecRequest, Process};
//!
//! async fn start(request: ExecRequest) -> Result<Process, String> {
//!     Err(format!("cannot run {:?}", request.command))
//! }
//!
//! fn exec(mut request: Request<Incoming>) -> Response<Full<Bytes>> {
//!     let Some(upgrade) = Upgrade::take(&mut request) else {
//!         let mut response = Response::new(Full::from("Upgrade request required\n"));
//!         *response.status_mut() = StatusCode::BAD_REQUEST;
//!         return response;
//!     };
//!     let command = vec!["date".to_owned()];
//!     let request = ExecRequest { command, stdout: true, ..ExecRequest::default() };
//!     let handshake = remotecommand::serve(upgrade, request, None, start);
//!     if let Some(session) = handshake.session {
//!         tokio::spawn(session);
//!     }
//!     handshake.response.map(Full::new)
//! }
//! ```
//!
//! # Read and write frames
//!
//! The codecs work in both directions, so a proxy can decode, change and encode again. See
//! [`websocket::frame`], [`websocket::channel`], [`spdy::frame`] and [`spdy::header_block`].
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use kubeproof_streaming::websocket::channel::Coding;
//! use kubeproof_streaming::websocket::frame::{Decoder, Frame};
//!
//! // A client sends "ls\n" to stdin, which is channel 0. Clients mask their frames.
//! let sent = Frame::binary(Coding::Binary.encode(0, b"ls\n")).masked([1, 2, 3, 4]);
//! let mut wire = BytesMut::new();
//! sent.encode(&mut wire);
//!
//! let received = Decoder::default().decode(&mut wire)?.expect("the frame is complete");
//! assert_eq!(received, sent);
//! let message = Coding::Binary.decode(received.payload).expect("binary channels always decode");
//! assert_eq!(message, Some((0, Bytes::from("ls\n"))));
//! # Ok::<(), kubeproof_streaming::websocket::frame::FrameError>(())
//! ```

#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
pub mod portforward;
pub mod remotecommand;
pub mod spdy;
#[cfg(test)]
mod testing;
mod upgrade;
pub mod websocket;

pub use upgrade::{Connection, Handshake, Protocol, Upgrade};

/// The bytes that a pipe or an in-memory connection holds before its writer waits.
pub const PIPE_CAPACITY: usize = 64 * 1024;

/// The most bytes of a stream in one message or frame.
pub const MAX_CHUNK: usize = 32 * 1024;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
