//! A small, real API server in memory that follows the Kubernetes API conventions.
//!
//! It is strict as kube-apiserver is, starts in milliseconds and keeps nothing on disk, so tests of clients and
//! controllers can have one each. What it is not: a cluster. There are no controllers, and pods run, where
//! [`Config::node`] is set, in a runtime that is a part of the server.
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

mod api;
mod apply;
mod auth;
mod bends;
mod body;
pub mod builtin;
pub mod config;
pub mod crd;
mod discover;
pub mod discovery;
mod encode;
pub mod faults;
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
pub use faults::{Fault, Faults};
pub use server::{Running, Server, StartError};
pub use variations::{Variation, Variations};
