//! Admission: plugins, policies and webhooks.

mod operations;
mod plugins;
mod policies;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [operations::of, plugins::of, policies::of];
    parts.into_iter().find_map(|part| part(fault))
}
