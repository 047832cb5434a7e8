//! Discovery and OpenAPI, and other documents about the server.

mod api_services;
mod caches;
mod documents;
mod health;
mod openapi;
mod server_documents;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [
        api_services::of,
        caches::of,
        documents::of,
        health::of,
        openapi::of,
        server_documents::of,
    ];
    parts.into_iter().find_map(|part| part(fault))
}
