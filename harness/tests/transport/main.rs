//! Tests transports, watches and targets over real sockets.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod broken_servers;
mod exact_requests;
mod kubeconfigs;
mod scripted_peer;
mod streams;
mod tls;
mod tls_server;
mod truncated_responses;
mod unreachable_targets;
mod watches;
