//! Discovery and OpenAPI, and other documents about the server.

mod api_services;
mod availability;
mod caches;
mod documents;
pub(super) mod faults;
mod health;
mod openapi;
mod operations;
mod server_documents;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
