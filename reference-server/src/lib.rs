//! A small, real API server in memory that follows the Kubernetes API conventions.
//!
//! It is strict as kube-apiserver is, starts in milliseconds and keeps nothing on disk, so tests of clients and
//! controllers can have one each. What it is not: a cluster. There are no controllers, and pods run, where
//! [`Config::node`] is set, in a runtime that is a part of the server.
//!
//! # What a client is granted
//!
//! Nobody who is slow, greedy or wrong keeps the server from others. What goes beyond is answered with a 4xx, or the connection is
//! closed; what was acknowledged stays. [`Limits`] holds what a test may want to move:
//!
//! | | limit | beyond it |
//! | --- | --- | --- |
//! | handshake of TLS, head of a request, rest between requests | 30 s | closed |
//! | connections that have asked for nothing yet | 1024 | the oldest are closed |
//! | body of a request | 60 s | 408 |
//! | bodies under way, without the first 64 KiB of each | 128 MiB together | 429, `Retry-After` |
//! | an answer or a watch of which the client takes nothing | 60 s | closed; logs, commands and ports wait |
//!
//! The others are fixed:
//!
//! | | limit | beyond it |
//! | --- | --- | --- |
//! | URL and headers | 64 KiB, 400 KiB, 100 headers | 414, 431 |
//! | body | 3 MiB | 413 |
//! | JSON, also as YAML | 500 levels, 16 KiB of keys from the root to a value | 400 |
//! | JSON patch | 10,000 operations, 3 MiB of copies, 50 million items moved | 413 |
//! | label selector | 1,000 requirements | 400 |
//! | mistakes told of an object | 200, each with 1 KiB of the value | the others are counted |
//! | warnings | 50, 4 KiB | left out |
//! | a text that is indented (`pretty`, YAML) | 16 MiB, or four times the plain one | plain JSON, which is YAML, too |
//! | patterns of a schema | 8 KiB of text each, 1 MiB compiled, 16 MiB together | 422 |
//! | rules of a schema | 16 KiB and 300 links each, priced on the largest object | 422 |
//! | log of a resource | [`Config::history`] events, 64 MiB | 410 for who asks for more |
//! | streams of a SPDY connection | 1024, 64 headers each, 64 KiB of them | reset; closed |
//! | message of a WebSocket | 32 MiB | closed with 1009 |
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use kubeproof_reference_server::{Config, Server};
//!
//! let server = Server::start(Config::default()).await?;
//! println!("{} {}", server.url(), server.admin_token());
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```

#[macro_use]
mod named;

mod api;
mod apply;
mod auth;
mod bends;
mod body;
pub mod builtin;
mod collector;
pub mod config;
pub mod crd;
pub mod cuts;
mod discover;
pub mod discovery;
mod encode;
pub mod faults;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod handlers;
mod items;
pub mod json;
pub mod kubelet;
mod lifecycle;
mod limits;
mod listener;
pub mod negotiate;
pub mod node;
mod object;
pub mod openapi;
pub mod patch;
mod paths;
mod present;
mod query;
mod registry;
mod request_info;
mod respond;
mod reviews;
mod runtime;
pub mod schema;
mod selection;
pub mod selector;
mod server;
mod status;
mod store;
mod streams;
pub mod table;
mod tls;
pub mod variations;

pub use config::{Config, Limits, Tls};
pub use cuts::{Cut, Cuts};
pub use faults::{Fault, Faults};
pub use server::{Running, Server, StartError};
pub use variations::{Variation, Variations};
