//! HTTP: listener, TLS, limits, request parsing, content negotiation and responses.

pub(crate) mod body;
pub(crate) mod client;
mod encode;
pub(crate) mod forward;
pub(crate) mod items;
pub mod limits;
pub mod listener;
pub(crate) mod metrics;
pub(crate) mod negotiate;
pub(crate) mod protobuf;
pub(crate) mod query;
pub(crate) mod request_info;
pub mod respond;
pub(crate) mod timeout;
pub mod tls;
