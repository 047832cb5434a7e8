//! The API server: HTTP, authentication, authorization, the registry of types, the endpoints,
//! discovery and OpenAPI.
//!
//! [`ApiServer`] is the state. `handler_chain` is the path of a request through it. Controllers use
//! [`loopback::Client`].

mod admission;
mod authentication;
mod authorization;
pub mod certificates;
pub mod config;
pub mod disabled;
mod discovery;
mod endpoints;
mod handler_chain;
pub mod http;
pub mod kubelet_client;
pub mod loopback;
mod openapi;
mod registry;
mod server;
pub mod service_accounts;

pub use server::ApiServer;
