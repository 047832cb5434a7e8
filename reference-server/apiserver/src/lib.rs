#![doc = include_str!("../README.md")]

mod admission;
mod audit;
mod authentication;
mod authorization;
pub mod certificates;
pub mod config;
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

pub use audit::AuditError;
pub use endpoints::forward::{AUTHORITY as AUTHORITY_ANNOTATION, SERVER as SERVER_ANNOTATION};
pub use endpoints::restore::StorageError;
pub use endpoints::snapshot::SnapshotError;
pub use handler_chain::StartError;
pub use server::ApiServer;
