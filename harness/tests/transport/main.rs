//! The transports, the watch reader and the targets, against peers on real sockets.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod as_written;
mod broken_servers;
mod cut_anywhere;
mod kubeconfigs;
mod peer;
mod reaching;
mod streams;
mod tls;
mod tls_server;
mod watches;
