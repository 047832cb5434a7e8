//! Server-side apply: owners of fields, merges, and checks of the configuration.

mod configurations;
mod merges;
mod ownership;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [configurations::of, merges::of, ownership::of];
    parts.into_iter().find_map(|part| part(fault))
}
