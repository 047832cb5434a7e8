#![doc = include_str!("../README.md")]

mod agent;
mod endpoint;
pub mod node;
mod runtime;
mod status;
mod tls;

pub use agent::{Kubelet, PodClient};
pub use endpoint::{Endpoint, EndpointConfig, EndpointError};
pub use futures_util::future::BoxFuture;
pub use runtime::{LogError, LogOptions, PodKey, StartError};
pub use status::merge_status;
pub use tls::TlsError;
