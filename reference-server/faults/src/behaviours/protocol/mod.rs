//! HTTP: paths, methods, queries, media types and framing.

mod framing;
mod negotiation;
mod paths;
mod routing;
mod spelling;
mod timeouts;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [framing::of, negotiation::of, paths::of, routing::of, spelling::of, timeouts::of];
    parts.into_iter().find_map(|part| part(fault))
}
